"""Bad certificates and old TLS versions: pages are marked, or refused with strict_tls."""

from __future__ import annotations

import contextlib
import ssl
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pycurl
import pytest

from rove.errors import UsageError
from rove.fetch.http import CurlFetcher
from rove.fetch.tls import KnownSites, authorities_for, doubt_of, find_authorities
from rove.model.outcomes import Failed, FailureKind, Fetched
from tests.unit.fetch import certificates
from tests.unit.fetch.server import (
    Act,
    Script,
    Server,
    blocking_server,
    failure,
    fetching,
    on_loop,
    page,
    request_to,
    serve,
)

pytestmark = pytest.mark.system

DOUBTFUL = {
    certificates.EXPIRED: "tls-expired",
    certificates.NOT_YET_VALID: "tls-not-yet-valid",
    certificates.WRONG_HOST: "tls-wrong-host",
    certificates.SELF_SIGNED: "tls-self-signed",
    certificates.UNTRUSTED: "tls-untrusted",
}
OLD_VERSIONS = ["TLSv1", "TLSv1_1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authorities(folder: Path) -> Path:
    file = folder / "authorities.pem"
    file.write_text(certificates.AUTHORITY)
    return file


def context(folder: Path, certificate: str, version: str | None = None) -> ssl.SSLContext:
    """Make a server's TLS context. One for an old version accepts what OpenSSL refuses by default."""
    file = folder / "server.pem"
    file.write_text(certificate)
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if version is not None:
        tls_context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            tls_context.minimum_version = tls_context.maximum_version = ssl.TLSVersion[version]
    tls_context.load_cert_chain(file)
    return tls_context


@contextlib.asynccontextmanager
async def at(
    tls: ssl.SSLContext, *, authorities: Path | None, strict: bool = False
) -> AsyncIterator[tuple[Server, CurlFetcher]]:
    async with (
        serve([page(b"hello")], tls=tls) as server,
        fetching(authorities=authorities, strict_tls=strict) as fetcher,
    ):
        yield server, fetcher


@pytest.mark.parametrize("strict", [False, True])
@on_loop
async def test_a_good_certificate_leaves_no_mark(folder: Path, authorities: Path, strict: bool) -> None:
    good = context(folder, certificates.GOOD)
    async with at(good, authorities=authorities, strict=strict) as (server, fetcher):
        for _ in range(2):
            outcome = await fetcher.fetch(request_to(server, scheme="https"))
            assert isinstance(outcome, Fetched) and outcome.response.marks == ()
    assert len(server.requests) == 2


@pytest.mark.parametrize(("certificate", "mark"), DOUBTFUL.items(), ids=DOUBTFUL.values())
@on_loop
async def test_a_page_behind_a_doubtful_certificate_is_marked(
    folder: Path, authorities: Path, certificate: str, mark: str
) -> None:
    async with at(context(folder, certificate), authorities=authorities) as (server, fetcher):
        for _ in range(2):
            outcome = await fetcher.fetch(request_to(server, scheme="https"))
            assert isinstance(outcome, Fetched)
            assert (outcome.body, outcome.response.marks) == (b"hello", (mark,))
        cut = await fetcher.fetch(request_to(server, scheme="https", max_bytes=2))
        assert isinstance(cut, Fetched) and cut.response.marks == (mark, "body-cut")
    assert len(server.requests) == 3, "one request for each"


@pytest.mark.parametrize(("certificate", "mark"), DOUBTFUL.items(), ids=DOUBTFUL.values())
@on_loop
async def test_strict_tls_refuses_a_doubtful_certificate(
    folder: Path, authorities: Path, certificate: str, mark: str
) -> None:
    doubtful = context(folder, certificate)
    async with at(doubtful, authorities=authorities, strict=True) as (server, fetcher):
        for _ in range(2):
            outcome = await fetcher.fetch(request_to(server, scheme="https"))
            assert isinstance(outcome, Failed)
            assert (outcome.kind, outcome.marks) == (FailureKind.TLS, (mark,))
            assert "certificate" in outcome.detail
    assert server.requests == []


@on_loop
async def test_without_authorities_nothing_is_marked(folder: Path) -> None:
    async with at(context(folder, certificates.EXPIRED), authorities=None) as (server, fetcher):
        outcome = await fetcher.fetch(request_to(server, scheme="https"))
    assert isinstance(outcome, Fetched) and outcome.response.marks == ()


@pytest.mark.parametrize("version", OLD_VERSIONS)
@on_loop
async def test_old_tls_is_accepted_and_marked(folder: Path, authorities: Path, version: str) -> None:
    with blocking_server(context(folder, certificates.GOOD, version)) as server:
        async with fetching(authorities=authorities) as fetcher:
            for _ in range(2):
                outcome = await fetcher.fetch(request_to(server, scheme="https"))
                assert isinstance(outcome, Fetched) and outcome.response.marks == ("tls-old",)
        async with fetching(authorities=authorities, strict_tls=True) as fetcher:
            outcome = await fetcher.fetch(request_to(server, scheme="https"))
            assert isinstance(outcome, Failed) and outcome.kind is FailureKind.TLS
            assert outcome.marks == ("tls-old",)


@pytest.mark.parametrize("script", [[b"HTTP/1.1 400 Bad Request\r\n\r\n", Act.HOLD], []])
@on_loop
async def test_a_server_without_tls_is_tried_once(script: Script) -> None:
    async with serve(script, silent=True) as server, fetching() as fetcher:
        outcome = await fetcher.fetch(request_to(server, scheme="https"))
        assert failure(outcome) in (FailureKind.TLS, FailureKind.RESET)
    assert len(server.requests) == 1


@on_loop
async def test_a_handle_does_not_stay_lax(folder: Path, authorities: Path) -> None:
    """The requests come one after the other, so that they share one handle."""
    async with (
        serve([page(b"bad")], tls=context(folder, certificates.EXPIRED)) as bad,
        serve([page(b"good")], tls=context(folder, certificates.GOOD)) as good,
        serve([page(b"worse")], tls=context(folder, certificates.SELF_SIGNED)) as worse,
        fetching(authorities=authorities) as fetcher,
    ):
        marks = []
        for server in (bad, good, worse, bad, good):
            outcome = await fetcher.fetch(request_to(server, scheme="https"))
            assert isinstance(outcome, Fetched)
            marks.append(outcome.response.marks)
    assert marks == [("tls-expired",), (), ("tls-self-signed",), ("tls-expired",), ()]


@pytest.mark.parametrize(
    ("code", "text", "result", "errno", "mark"),
    [
        (pycurl.E_PEER_FAILED_VERIFICATION, "verify result", 10, 0, "tls-expired"),
        (pycurl.E_PEER_FAILED_VERIFICATION, "verify result", 19, 0, "tls-untrusted"),
        (pycurl.E_PEER_FAILED_VERIFICATION, "verify result", 66, 0, "tls-old"),
        (pycurl.E_PEER_FAILED_VERIFICATION, "no subject name matches", 1, 0, "tls-wrong-host"),
        (pycurl.E_SSL_CONNECT_ERROR, "dh key too small", 1, 0, "tls-old"),
        (pycurl.E_SSL_CONNECT_ERROR, "unsupported protocol", 1, 0, "tls-old"),
        (pycurl.E_SSL_CONNECT_ERROR, "wrong version number", 1, 0, None),
        (pycurl.E_SSL_CONNECT_ERROR, "unexpected eof while reading", 1, 0, None),
        (pycurl.E_SSL_CONNECT_ERROR, "connection reset", 1, 104, None),
        (pycurl.E_SSL_CACERT_BADFILE, "no such file", 1, 0, None),
    ],
)
def test_the_mark_of_a_refused_connection(code: int, text: str, result: int, errno: int, mark: str | None) -> None:
    assert doubt_of((code, text), verify_result=result, os_errno=errno) == mark


def test_marks_are_remembered_for_an_hour_and_up_to_the_size() -> None:
    now = 100.0
    known = KnownSites(size=2, clock=lambda: now)
    known.note("a", ())
    known.note("b", ("tls-expired",))
    assert (known.marks("a"), known.marks("b"), known.marks("c")) == ((), ("tls-expired",), None)
    known.note("c", ())
    assert (known.marks("a"), known.marks("b")) == (None, ("tls-expired",))
    now += 3_600
    assert known.marks("b") is None


def test_authorities_are_found_where_openssl_looks(
    authorities: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
    assert find_authorities() == authorities
    broken = folder / "broken.pem"
    broken.write_text("nothing")
    for name in (broken, folder / "missing.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(name))
        assert authorities_for(strict=False, bundles=()) is None
        with pytest.raises(UsageError, match="ca-certificates"):
            authorities_for(strict=True, bundles=())
