"""No spelling of a URL and no DNS trick makes the fetcher connect to a forbidden address or port."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rove.fetch.address import AddressGuard
from rove.fetch.contract import Request
from rove.fetch.dns import AresLookup, CachingResolver
from rove.fetch.http import CurlFetcher
from rove.model.outcomes import Failed, FailureKind, Fetched
from rove.policy.ports import BAD_PORTS
from tests.unit.fetch.server import AGENT, FakeResolver, failure, fetching, on_loop, page, parsed, request_to, serve
from tests.urls import canonical

LOOPBACK = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0177.0.0.1/",
    "http://0177.0x0.0.01/",
    "http://017700000001/",
    "http://0x7f.0.0.1/",
    "http://0x7f000001/",
    "http://0X7F.1/",
    "http://2130706433/",
    "http://127.0.0.1./",
    "http://127.0.0.1../",
    "http://2130706433./",
    "http://127.0.0.01/",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://１２７．１/",
    "http://①②⑦.⓪.⓪.①/",
    "http://𝟏𝟐𝟕.0.0.1/",
    "http://%31%32%37.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://127.0.0.1%2e/",
    "http://%30x7f000001/",
    "http://127.0.0\u00ad.1/",
    "http://127.0\t.0\n.1/",
    "http://example.com@127.0.0.1/",
    "http://example.com:80@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1\\@example.com/",
    "http:\\\\127.0.0.1\\",
    "http:127.0.0.1",
    "http:////127.0.0.1/",
]
OTHERS = {
    "http://0/": "0.0.0.0",
    "http://0.0.0.0/": "0.0.0.0",
    "http://0x0a.0.0.1/": "10.0.0.1",
    "http://2852039166/": "169.254.169.254",
    "http://0xA9FEA9FE/": "169.254.169.254",
    "http://0251.0376.0251.0376/": "169.254.169.254",
    "http://100.64.1/": "100.64.0.1",
    "http://192.168.257/": "192.168.1.1",
    "http://224.1/": "224.0.0.1",
    "http://4294967295/": "255.255.255.255",
    "http://[::]/": "::",
    "http://[::1]/": "::1",
    "http://[0:0:0:0:0:0:0:1]/": "::1",
    "http://[::ffff:127.0.0.1]/": "::ffff:7f00:1",
    "http://[::ffff:7f00:1]/": "::ffff:7f00:1",
    "http://[::127.0.0.1]/": "::7f00:1",
    "http://[64:ff9b::127.0.0.1]/": "64:ff9b::7f00:1",
    "http://[64:ff9b:1::a00:1]/": "64:ff9b:1::a00:1",
    "http://[2002:7f00:1::]/": "2002:7f00:1::",
    "http://[2001:0:7f00:1::1]/": "2001:0:7f00:1::1",
    "http://[fc00::1]/": "fc00::1",
    "http://[fd00:ec2::254]/": "fd00:ec2::254",
    "http://[fe80::1]/": "fe80::1",
    "http://[fec0::1]/": "fec0::1",
    "http://[ff02::1]/": "ff02::1",
}
SPELLINGS = [*((url, "127.0.0.1") for url in LOOPBACK), *OTHERS.items()]
NO_URLS = [
    "http://127.0.0.1.5/",
    "http://256.0.0.1/",
    "http://4294967296/",
    "http://0x100000000/",
    "http://08.0.0.1/",
    "http://[::1%25lo]/",
    "http://[::1%lo]/",
    "http://[fe80::1%eth0]/",
    "http://[127.0.0.1]/",
    "http://127.0.0.1:65536/",
    "http://127.0.0.1%00.example.com/",
    "http://%/",
]


@pytest.mark.parametrize(("text", "address"), SPELLINGS)
@on_loop
async def test_every_spelling_of_an_address_is_refused(text: str, address: str) -> None:
    url = canonical(text)
    assert url is not None
    resolver = FakeResolver()
    async with fetching(resolver=resolver, guard=AddressGuard()) as fetcher:
        outcome = await fetcher.fetch(Request(url=url, max_bytes=10))
    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.address) == (FailureKind.ADDRESS_REFUSED, address)
    assert resolver.looked_up == [], "it is an address, not a name"


@pytest.mark.parametrize("text", NO_URLS)
def test_text_that_only_looks_like_an_address_is_no_url(text: str) -> None:
    assert canonical(text) is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "a.b.localhost"])
@on_loop
async def test_localhost_is_loopback_and_refused(host: str) -> None:
    url = canonical(f"http://{host}/")
    assert url is not None
    fetcher = CurlFetcher(user_agent=AGENT, resolver=CachingResolver(AresLookup()))
    try:
        outcome = await fetcher.fetch(Request(url=url, max_bytes=10))
    finally:
        await fetcher.close()
    assert failure(outcome) is FailureKind.ADDRESS_REFUSED


class Rebinding(FakeResolver):
    """Gives another answer each time, and repeats the last one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        super().__init__()
        self._answers = list(answers)

    def forget_failures(self) -> None:
        """Do nothing: nothing is remembered."""

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        await super().resolve(host, within)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Only(AddressGuard):
    """Permits only 127.0.0.2."""

    def permits(self, address: str) -> bool:
        return address == "127.0.0.2"


@pytest.mark.system
@pytest.mark.parametrize("host", ["page.test", "localhost", "rebound.localhost"])
@on_loop
async def test_dns_rebinding_does_not_lead_to_a_forbidden_address(host: str) -> None:
    """The fetcher connects to the checked address. Nothing resolves the name again, not even libcurl for localhost."""
    resolver = Rebinding(["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["127.0.0.1"])
    async with (
        serve([page(b"outside")], host="127.0.0.2") as outside,
        serve([page(b"inside")], port=outside.port) as inside,
        fetching(resolver=resolver, guard=Only()) as fetcher,
    ):
        request = Request(url=parsed(f"http://{host}:{outside.port}/"), max_bytes=100)
        first, second, mixed, last = [await fetcher.fetch(request) for _ in range(4)]
    assert isinstance(first, Fetched) and first.body == b"outside"
    assert failure(second) is FailureKind.ADDRESS_REFUSED
    assert isinstance(mixed, Fetched) and mixed.response.address == "127.0.0.2"
    assert failure(last) is FailureKind.ADDRESS_REFUSED
    assert inside.requests == []
    assert resolver.looked_up == [host] * 4


@pytest.mark.parametrize("port", sorted(BAD_PORTS))
@on_loop
async def test_ports_of_other_protocols_are_refused(port: int) -> None:
    resolver = FakeResolver()
    async with fetching(resolver=resolver) as fetcher:
        outcome = await fetcher.fetch(Request(url=parsed(f"http://page.test:{port}/"), max_bytes=10))
    assert failure(outcome) is FailureKind.PORT_REFUSED
    assert isinstance(outcome, Failed) and str(port) in outcome.detail
    assert resolver.looked_up == []


@pytest.mark.system
@on_loop
async def test_any_other_port_is_accepted() -> None:
    async with serve([page(b"hello")]) as server, fetching() as fetcher:
        assert isinstance(await fetcher.fetch(request_to(server)), Fetched)
