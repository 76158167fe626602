"""Ledgers for the tests of the audit, built visit by visit; a polite one has no violations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from rove.frontier.records import Exclusion
from rove.frontier.retries import Retry
from rove.inspect.audit import Auditor, audit
from rove.inspect.audit_findings import AuditReport, Check, Finding
from rove.model.ledger import RequestKind, RequestRow
from rove.model.text_hash import robots_name
from rove.policy.retry_filter import RetryFilter
from rove.urls.domain import domain_of
from tests.urls import FORM, canonical

T0 = 1_700_000_000_000
"""Start of the crawl, by its clock."""
A = "https://a.test"
RULES = "User-agent: *\nDisallow: /private\n"


class Ledger:
    """Requests by visit, and the copies of robots.txt that they name."""

    def __init__(self) -> None:
        self.rows: list[RequestRow] = []
        self.texts: dict[str, bytes] = {}
        self.retries: list[Retry] = []
        self.lost_at: list[int] = []
        """When the database came back without its last rows."""
        self._visits = 0

    def visit(
        self, at: float, *requests: RequestRow, delay: float = 70.0, domain: str = "a.test", **changes: Any
    ) -> int:
        """Add a visit that begins `at` seconds after T0; its requests follow each other."""
        self._visits += 1
        now = T0 + round(at * 1000)
        for seq, request in enumerate(requests):
            row = request.replace(
                visit=self._visits,
                seq=seq,
                domain=FORM.domain_id(domain_of(domain)),
                began=now,
                ended=now + request.ended,
                started=now / 1000,
                delay=delay,
                process=1,
            )
            self.rows.append(row.replace(**changes))
            now += request.ended
        return self._visits

    def robots(self, origin: str, body: str | None = "", **changes: Any) -> RequestRow:
        """Return a request that reads a robots.txt; without a body its copy is not stored."""
        hash = robots_name(b"lost" if body is None else body.encode())
        if body is not None:
            self.texts[hash] = body.encode()
        return hop(f"{origin}/robots.txt").replace(robots=hash, **changes)

    async def robots_text(self, hash: str) -> bytes | None:
        return self.texts.get(hash)

    async def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        async for row in self.ledger():
            if row.domain == domain:
                yield row

    async def losses(self) -> list[int]:
        return self.lost_at

    async def ledger(self) -> AsyncIterator[RequestRow]:
        for row in sorted(self.rows, key=lambda row: (row.domain, row.visit, row.seq)):
            yield row

    def audit(self, *exclusions: Exclusion) -> AuditReport:
        """Return the result of an audit."""
        return asyncio.run(self._audit(exclusions))

    async def _audit(self, exclusions: Sequence[Exclusion]) -> AuditReport:
        auditor = Auditor(exclusions, self.robots_text, self.visits, FORM, self.retries, self.lost_at)
        async for row in self.ledger():
            await auditor.take(row)
        return auditor.report()

    def violation(self, *exclusions: Exclusion) -> Finding:
        """Return its only violation."""
        report = self.audit(*exclusions)
        assert report.total == len(report.findings) == 1, report.findings
        return report.findings[0]

    def checks(self, *exclusions: Exclusion) -> set[Check]:
        """Return the checks that it violates."""
        violations = self.audit(*exclusions).violations
        return {check for check, count in violations.items() if count}


def ask(url: str, *, took: int = 100, kind: RequestKind = RequestKind.PAGE, **changes: Any) -> RequestRow:
    """Return a request for a visit; `took` is its duration in milliseconds."""
    parsed = canonical(url)
    assert parsed is not None and parsed.text == url
    row = RequestRow(
        visit=0,
        seq=0,
        domain=0,
        kind=kind,
        url=url,
        fingerprint=parsed.fingerprint,
        started=0.0,
        began=0,
        ended=took,
        status=200,
        address="192.0.2.1",
    )
    if "error" in changes and "status" not in changes:
        changes["status"] = 0
    if str(changes.get("status", 200))[0] in "45":
        changes.setdefault("error", f"status-{changes['status']}")
    return row.replace(**changes)


def ask_robots(origin: str, **changes: Any) -> RequestRow:
    """Return a request for a robots.txt that does not deliver one."""
    return ask(f"{origin}/robots.txt", kind=RequestKind.ROBOTS, **changes)


def hop(url: str, **changes: Any) -> RequestRow:
    """Return a request for the redirect target of a robots.txt."""
    return ask(url, kind=RequestKind.ROBOTS, **changes)


def exclusion(pattern: str, at: float, lifted: float | None = None) -> Exclusion:
    """Return an exclusion that holds from `at` seconds after T0."""
    return Exclusion(
        pattern=pattern,
        at=T0 + round(at * 1000),
        wall=0.0,
        who="me",
        reason="asked for",
        lifted_at=None if lifted is None else T0 + round(lifted * 1000),
    )


def retry(at: float, *, ended: float | None = None, delay: float = 70.0, **filter: Any) -> Retry:
    """Return a retry that began `at` seconds after T0."""
    return Retry(
        id=1,
        at=T0 + round(at * 1000),
        ended=T0 + round((at if ended is None else ended) * 1000),
        wall=0.0,
        who="me",
        urls=1,
        delay=delay,
        filter=RetryFilter(**filter),
    )


def _host(url: str) -> str:
    parsed = canonical(url)
    assert parsed is not None
    return parsed.host


def polite() -> Ledger:
    """Return a ledger with a visit to a.test at 0 that takes 200 ms: the delay is over at 70.2."""
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A, RULES), ask(f"{A}/"))
    return ledger


def test_a_polite_ledger() -> None:
    ledger = polite()
    ledger.visit(70.2, ask(f"{A}/b"))
    ledger.visit(0.1, ask_robots("http://b.test", status=404), ask("http://b.test/"), domain="b.test")
    report = ledger.audit(exclusion("c.test", 0))
    assert report.total == 0 and not report.findings
    assert (report.requests, report.visits, report.domains) == (5, 3, 2)
    assert report.checked == {
        Check.DELAY: 1,
        Check.ROBOTS: 3,
        Check.PAGE_BEFORE_ROBOTS: 3,
        Check.EXCLUDED: 5,
        Check.TWICE: 3,
        Check.ORDER: 5,
    }
    assert not any(report.unverifiable.values())


def test_an_empty_ledger() -> None:
    report = Ledger().audit()
    assert (report.total, report.requests, report.smallest_margin) == (0, 0, None)


def test_a_reader_is_audited() -> None:
    ledger = polite()
    ledger.visit(1, ask(f"{A}/b"))
    report = asyncio.run(audit(ledger, [], FORM))  # type: ignore[arg-type]
    assert report.violations[Check.DELAY] == 1
