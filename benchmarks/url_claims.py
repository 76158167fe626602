"""Four ways to claim URLs, as crawlers do that do not lease domains; benchmarks.claim_strategies compares them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

DELAY = 70.0
LOST, NOT_READY, NOTHING = "lost race", "domain not ready", "nothing found"
_DELAY = timedelta(seconds=DELAY)


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of URLs to claim."""

    urls: int
    domains: int
    clogged: int
    """Number of URLs at the head that belong to a few domains."""

    @property
    def name(self) -> str:
        """The name in the tables."""
        return "head clogged" if self.clogged else "evenly spread"


@dataclass(slots=True)
class Ledger:
    """Counts of what the workers of one cell did."""

    fetched: set[int] = field(default_factory=set)
    useful: int = 0
    broken: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    claims: list[float] = field(default_factory=list)
    """Seconds of each claim, successful or not."""
    waits: list[float] = field(default_factory=list)
    """Seconds that a worker waited for a URL."""

    def request(self, domain: int) -> None:
        """Count a request. Within one run, each domain may get one."""
        if domain in self.fetched:
            self.broken += 1
        else:
            self.useful += 1
            self.fetched.add(domain)

    def figures(self, seconds: float) -> dict[str, Any]:
        """Return the figures for the tables."""
        return {
            "useful_per_s": self.useful / seconds,
            "useful": self.useful,
            "no_request": dict(self.reasons),
            "broken": self.broken,
            "claims": len(self.claims),
            "claim_p50_ms": _percentile(self.claims, 0.5),
            "claim_p99_ms": _percentile(self.claims, 0.99),
            "wait_p50_ms": _percentile(self.waits, 0.5),
            "wait_p99_ms": _percentile(self.waits, 0.99),
        }


@dataclass(frozen=True, slots=True)
class Claim:
    """A URL that a worker may fetch."""

    url: int
    domain: int


class Strategy(Protocol):
    """One way to claim URLs."""

    name: str
    delete_done: bool

    async def claim(self, connection: Any) -> Claim | str:
        """Return a URL, or the reason why there is none."""


_IS_READY = "SELECT last_fetch < now() - $2::interval FROM domain WHERE id = $1"


class Delete:
    """Every worker reads the head of the queue and tries to delete it."""

    name = "delete"
    delete_done = True

    async def claim(self, connection: Any) -> Claim | str:
        head = await connection.fetchrow("SELECT id, domain FROM url ORDER BY id LIMIT 1")
        if head is None:
            return NOTHING
        text = await connection.fetchval("DELETE FROM url WHERE id = $1 RETURNING text", head["id"])
        if text is None:
            return LOST
        if await connection.fetchval(_IS_READY, head["domain"], _DELAY):
            return Claim(head["id"], head["domain"])
        await connection.execute("INSERT INTO url (domain, text) VALUES ($1, $2)", head["domain"], text)
        return NOT_READY


class SkipLocked:
    """Every worker marks an unclaimed row that is not locked, then checks the domain."""

    name = "skip locked"
    delete_done = False

    async def claim(self, connection: Any) -> Claim | str:
        row = await connection.fetchrow(
            "UPDATE url SET claimed_at = now() WHERE id = ("
            "SELECT id FROM url WHERE claimed_at IS NULL ORDER BY id LIMIT 1 "
            "FOR UPDATE SKIP LOCKED) RETURNING id, domain"
        )
        if row is None:
            return NOTHING
        if await connection.fetchval(_IS_READY, row["domain"], _DELAY):
            return Claim(row["id"], row["domain"])
        await connection.execute("UPDATE url SET claimed_at = NULL WHERE id = $1", row["id"])
        return NOT_READY


class Joined:
    """Every worker marks an unclaimed row whose domain looks ready in its snapshot."""

    name = "joined"
    delete_done = False

    async def claim(self, connection: Any) -> Claim | str:
        row = await connection.fetchrow(
            "UPDATE url SET claimed_at = now() WHERE id = ("
            "SELECT u.id FROM url AS u JOIN domain AS d ON d.id = u.domain "
            "WHERE u.claimed_at IS NULL AND d.last_fetch < now() - $1::interval "
            "ORDER BY u.id LIMIT 1 FOR UPDATE OF u SKIP LOCKED) RETURNING id, domain",
            _DELAY,
        )
        return NOTHING if row is None else Claim(row["id"], row["domain"])


class BothLocked:
    """Like Joined, but the domain's row is locked too and its time is written at the claim."""

    name = "both locked"
    delete_done = False

    async def claim(self, connection: Any) -> Claim | str:
        async with connection.transaction():
            row = await connection.fetchrow(
                "SELECT u.id, u.domain FROM url AS u JOIN domain AS d ON d.id = u.domain "
                "WHERE u.claimed_at IS NULL AND d.last_fetch < now() - $1::interval "
                "ORDER BY u.id LIMIT 1 FOR UPDATE OF u, d SKIP LOCKED",
                _DELAY,
            )
            if row is None:
                return NOTHING
            await connection.execute("UPDATE url SET claimed_at = now() WHERE id = $1", row["id"])
            await connection.execute("UPDATE domain SET last_fetch = now() WHERE id = $1", row["domain"])
        return Claim(row["id"], row["domain"])


STRATEGIES: tuple[Strategy, ...] = (Delete(), SkipLocked(), Joined(), BothLocked())


def _percentile(seconds: list[float], share: float) -> float:
    ordered = sorted(seconds) or [0.0]
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
