"""The phases of requests are measured where they happened, over real connections."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from rove.fetch.dns import CachingResolver, DnsAnswer
from rove.fetch.phases import Phase, Phases
from rove.model.histogram import Histogram
from rove.model.outcomes import Failed, Fetched
from rove.model.samples import Distribution
from tests.unit.fetch import certificates
from tests.unit.fetch.server import fetching, page, request_to, serve

pytestmark = pytest.mark.system

SLOW = 0.2


class Measured:
    """The phases that a test has recorded."""

    def __init__(self) -> None:
        self._histograms: dict[str, Histogram] = {}
        self.phases = Phases(self._histogram)

    def _histogram(self, name: str) -> Histogram:
        return self._histograms.setdefault(name.removeprefix("phase."), Histogram())

    def take(self) -> dict[str, Distribution]:
        taken = {name: histogram.take() for name, histogram in self._histograms.items()}
        return {name: times for name, times in taken.items() if times.count}


class SlowLookup:
    """A name server that takes its time."""

    async def look_up(self, host: str) -> DnsAnswer:
        await asyncio.sleep(SLOW)
        return DnsAnswer(addresses=("127.0.0.1",), ttl=60.0)

    def forget(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def test_a_request_has_its_phases() -> None:
    measured = Measured()
    resolver = CachingResolver(SlowLookup(), on_lookup=measured.phases.note_lookup)
    async with serve([page(b"hello")]) as server, fetching(phases=measured.phases, resolver=resolver) as fetcher:
        for _ in range(2):
            assert isinstance(await fetcher.fetch(request_to(server)), Fetched)
    times = measured.take()
    assert {name: phase.count for name, phase in times.items()} == {
        Phase.DNS: 1,
        Phase.CONNECT: 2,
        Phase.FIRST_BYTE: 2,
        Phase.TRANSFER: 2,
    }
    assert times[Phase.DNS].longest >= 0.9 * SLOW, "a timer may be a little early"


async def test_a_secure_connection_has_a_handshake(tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    file.write_text(certificates.SELF_SIGNED)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    measured = Measured()
    async with serve([page(b"hello")], tls=tls) as server, fetching(phases=measured.phases) as fetcher:
        assert isinstance(await fetcher.fetch(request_to(server, scheme="https")), Fetched)
    times = measured.take()
    assert times[Phase.TLS].count == times[Phase.FIRST_BYTE].count == 1
    assert times[Phase.TLS].longest > 0


async def test_what_did_not_happen_has_no_time() -> None:
    measured = Measured()
    async with serve([]) as server, fetching(phases=measured.phases) as fetcher:
        assert isinstance(await fetcher.fetch(request_to(server)), Failed)
        assert measured.take().keys() == {Phase.CONNECT}
    async with fetching(phases=measured.phases) as fetcher:
        assert isinstance(await fetcher.fetch(request_to(server)), Failed)
    assert measured.take() == {}, "nobody listens any more"
