"""Unusual host names in DNS, TLS and HTTP, and names that are too long."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.contract import Request
from rove.fetch.dns import AresLookup, CachingResolver
from rove.fetch.http import CurlFetcher
from rove.fetch.route import Router
from rove.model.outcomes import FailureKind, Fetched
from tests.unit.fetch import certificates
from tests.unit.fetch.server import AGENT, FakeResolver, failure, fetching, on_loop, page, parsed, serve
from tests.urls import canonical

pytestmark = pytest.mark.system

LABEL = "a" * 63
NAMES = {
    "bücher.test": "xn--bcher-kva.test",
    "BÜCHER.test": "xn--bcher-kva.test",
    "例え.テスト": "xn--r8jz45g.xn--zckzah",
    "faß.test": "xn--fa-hia.test",
    "under_score.page.test": "under_score.page.test",
    "_dmarc.page.test": "_dmarc.page.test",
    "page.test.": "page.test",
    "page.test..": "page.test",
    "-page-.test": "-page-.test",
    "a--b.test": "a--b.test",
    f"{LABEL}.test": f"{LABEL}.test",
    "1.2.3.4.test": "1.2.3.4.test",
}
TOO_LONG = ["a" * 64 + ".test", ".".join([LABEL] * 4) + ".test", ".".join(["a"] * 200)]


def test_only_names_that_dns_is_asked_for_are_looked_up_ahead() -> None:
    resolver = FakeResolver()
    rules = [parse_connect_to("*.local.test=127.0.0.1")]
    router = Router(resolver=resolver, guard=AddressGuard(), connect_to=rules)
    for host in ("page.test", "a.local.test", "192.0.2.1", "[2001:db8::1]", "mail.test:25"):
        router.look_ahead(f"http://{host}")
    assert resolver.looked_ahead == ["page.test"]


@pytest.fixture(scope="module")
def server_names(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, list[str]]:
    """Make a TLS context that records the server names of its clients."""
    file: Path = tmp_path_factory.mktemp("names") / "server.pem"
    file.write_text(certificates.GOOD)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    seen_names: list[str] = []
    context.sni_callback = lambda _socket, name, _context: seen_names.append(name)
    return context, seen_names


@pytest.mark.parametrize(("written", "name"), NAMES.items())
@on_loop
async def test_dns_tls_and_http_use_the_same_name(
    server_names: tuple[ssl.SSLContext, list[str]], written: str, name: str
) -> None:
    tls, seen_names = server_names
    seen_names.clear()
    resolver = FakeResolver()
    async with serve([page(b"hello")], tls=tls) as server, fetching(resolver=resolver) as fetcher:
        url = canonical(f"https://{written}:{server.port}/")
        assert url is not None
        outcome = await fetcher.fetch(Request(url=url, max_bytes=10))
    assert isinstance(outcome, Fetched)
    assert resolver.looked_up == [name]
    assert seen_names == [name]
    assert f"\r\nHost: {name}:{server.port}\r\n".encode() in server.requests[0]


@pytest.mark.parametrize("name", TOO_LONG)
@on_loop
async def test_a_name_that_is_too_long_for_dns_is_not_found(name: str) -> None:
    url = canonical(f"http://{name}/")
    if url is None:
        return
    lookup = AresLookup(servers=["127.0.0.1:9"], timeout=0.1, tries=1)
    fetcher = CurlFetcher(user_agent=AGENT, resolver=CachingResolver(lookup))
    try:
        outcome = await fetcher.fetch(Request(url=url, max_bytes=10))
    finally:
        await fetcher.close()
    assert failure(outcome) is FailureKind.DNS_NOT_FOUND


@pytest.mark.parametrize("name", TOO_LONG)
@pytest.mark.parametrize("scheme", ["http", "https"])
@on_loop
async def test_a_name_that_is_too_long_is_fetched_or_fails(
    server_names: tuple[ssl.SSLContext, list[str]], scheme: str, name: str
) -> None:
    """A connect-to rule may match any name, so libcurl must accept or refuse it."""
    tls = server_names[0] if scheme == "https" else None
    async with serve([page(b"hello")], tls=tls) as server, fetching() as fetcher:
        url = f"{scheme}://{name}:{server.port}/"
        outcome = await fetcher.fetch(Request(url=parsed(url), max_bytes=10))
    if not isinstance(outcome, Fetched):
        assert failure(outcome) in (FailureKind.TLS, FailureKind.PROTOCOL)
