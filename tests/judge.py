"""Judge a crawler's politeness by the server's log.

The server writes the log, so the crawler's own view does not matter. A client starts a request earlier and sees its end
later than the log says. So pauses in the log are never shorter than those of the client, and a polite client is never
accused. There are two exceptions: the server notices late that a client gave up a request (see `cut_slack`), and a
response may be too large for the kernel's buffers, which happens only if pages are made huge.
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from rove.demo.log import LoggedRequest, LogKind
from rove.demo.robots import ROBOTS_PATH
from rove.demo.web import SmallWeb
from rove.urls.domain import domain_of
from tests.oracle import allowed, crawl_delay
from tests.urls import canonical

MAX_REQUESTS = 8
MAX_HOPS = 3
"""Limits of a visit: requests, and redirects among them that lead to a page."""
UNREAD_SECONDS = 1.0
"""A process that is killed this soon after a response to robots.txt may not have read it."""


class Rule(enum.StrEnum):
    """The rules of politeness, by how they are broken."""

    TOO_SOON = "too soon"
    """A visit started before the delay after the last one was over."""
    OVERLAP = "overlap"
    """Two requests to one domain at the same time."""
    FORBIDDEN = "forbidden"
    """A path that robots.txt disallows."""
    RULES_UNKNOWN = "rules unknown"
    """A page of a host was requested before there was a response to its robots.txt."""
    REPEATED = "repeated"
    """A URL was requested again after there was a response."""
    LARGE_VISIT = "large visit"
    """A visit had too many pages, redirects or requests."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule, and the requests that prove it."""

    broken: Rule
    domain: str
    detail: str
    evidence: tuple[LoggedRequest, ...]

    def __str__(self) -> str:
        lines = [f"{self.broken}: {self.domain}: {self.detail}"]
        lines += [f"  {r.start:.3f} - {r.end:.3f} {r.status} {r.url}" for r in self.evidence]
        return "\n".join(lines)


@dataclass(slots=True)
class LoggedVisit:
    """Requests to one domain that belong together: robots.txt if needed, one page, its redirects."""

    domain: str
    end: float = -math.inf
    requests: list[LoggedRequest] = field(default_factory=list)
    pages: int = 0
    """Requests for pages that no redirect led to."""
    hops: int = 0
    """Requests for pages that a redirect of the same visit led to."""
    awaited: str = ""
    """The redirect target of the last page, until it is requested."""

    def admits(self, request: LoggedRequest, pause: float) -> bool:
        """Whether a request belongs to this visit; otherwise it starts the next one."""
        last = self.requests[-1]
        if request.start - self.end >= pause:
            return False
        if last.target and request.url == last.target:
            return True
        if request.for_robots:
            return request.path == ROBOTS_PATH and request.host != last.host and _host_of(last.target) == request.host
        return last.for_robots and last.host == request.host

    def add(self, request: LoggedRequest, end: float) -> None:
        """Add the next request, which ended at `end`."""
        if not request.for_robots:
            if self.awaited and request.url == self.awaited:
                self.hops += 1
            else:
                self.pages += 1
            self.awaited = request.target
        self.requests.append(request)
        self.end = max(self.end, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogVerdict:
    """The result of judging a log."""

    violations: tuple[Violation, ...]
    requests: int
    visits: tuple[LoggedVisit, ...]
    domains: int
    hosts: int
    refetches: int
    """Repeated requests for URLs that already had a response, excused or not."""
    smallest_margin: float
    """The smallest difference between a pause and the required delay; infinite without pauses."""

    @property
    def polite(self) -> bool:
        """Whether no rule was broken."""
        return not self.violations

    def __str__(self) -> str:
        counts = (
            f"{self.requests} requests in {len(self.visits)} visits to {self.hosts} hosts of "
            f"{self.domains} domains, smallest margin {self.smallest_margin:.3f} s, "
            f"{self.refetches} refetches, {len(self.violations)} violations"
        )
        return "\n".join([counts, *map(str, self.violations)])


def judge(
    web: SmallWeb,
    requests: Iterable[LoggedRequest],
    delay: float,
    *,
    tolerance: float = 0.0,
    cut_slack: float = 0.1,
    allowed_refetches: int = 0,
    killed_at: Collection[float] = (),
) -> LogVerdict:
    """Judge a crawler by the log of the web that it visited.

    `delay` is the required delay between visits to a domain; a Crawl-delay may raise it once it was served. `tolerance`
    is subtracted from the required delay. `cut_slack` is how many seconds late the server may notice that a client gave
    up. `allowed_refetches` excuses this many repeated URLs, for crawls that were killed. `killed_at` holds the times,
    by the monotonic clock, when processes were killed: a Crawl-delay served just before may not have been read,
    and counts only once the crawler has requested a page of the host.
    """
    cases = [
        _Case(web, domain, own, delay, tolerance, cut_slack, killed_at) for domain, own in _by_domain(requests).items()
    ]
    violations = [violation for case in cases for violation in case.violations]
    repeated = [violation for case in cases for violation in case.repeated]
    if len(repeated) > allowed_refetches:
        violations += repeated
    return LogVerdict(
        violations=tuple(violations),
        requests=sum(len(case.requests) for case in cases),
        visits=tuple(visit for case in cases for visit in case.visits),
        domains=len(cases),
        hosts=len({request.host for case in cases for request in case.requests}),
        refetches=len(repeated),
        smallest_margin=min((case.smallest_margin for case in cases), default=math.inf),
    )


def _by_domain(requests: Iterable[LoggedRequest]) -> dict[str, list[LoggedRequest]]:
    domains: dict[str, list[LoggedRequest]] = defaultdict(list)
    for request in requests:
        if request.kind is LogKind.REQUEST:
            domains[domain_of(request.host)].append(request)
    for own in domains.values():
        own.sort(key=lambda request: (request.start, request.end))
    return domains


class _Case:
    """Judges the requests to one domain in order."""

    def __init__(
        self,
        web: SmallWeb,
        domain: str,
        requests: list[LoggedRequest],
        delay: float,
        tolerance: float,
        cut_slack: float,
        killed_at: Collection[float],
    ) -> None:
        self.domain = domain
        self.requests = requests
        self.violations: list[Violation] = []
        self.repeated: list[Violation] = []
        self.visits = [LoggedVisit(domain)]
        self.smallest_margin = math.inf
        self._web = web
        self._required = delay
        """The required delay, by what the crawler has been told so far."""
        self._tolerance = tolerance
        self._cut_slack = cut_slack
        self._killed_at = killed_at
        self._perhaps_unread: set[str] = set()
        """Hosts whose robots.txt was served just before a process was killed."""
        self._rules_known_at: dict[str, float] = {}
        self._responses: dict[str, LoggedRequest] = {}
        self._judge()

    def _judge(self) -> None:
        for request in self.requests:
            visit = self._visit_of(request)
            end = request.end
            if not request.complete:
                end = max(request.start, end - self._cut_slack)
            visit.add(request, end)
            if request.for_robots:
                self._note_robots(request)
            else:
                self._check_page(request)
        for visit in self.visits:
            self._check_size(visit)

    def _visit_of(self, request: LoggedRequest) -> LoggedVisit:
        """Return the visit that a request belongs to: the last one or a new one."""
        visit = self.visits[-1]
        if not visit.requests:
            return visit
        last = visit.requests[-1]
        pause = request.start - visit.end
        if pause < 0:
            self._accuse(Rule.OVERLAP, f"{-pause:.3f} s at the same time", last, request)
        if visit.admits(request, self._required):
            return visit
        margin = pause - self._required
        self.smallest_margin = min(self.smallest_margin, margin)
        if pause >= 0 and margin < -self._tolerance:
            detail = f"{pause:.3f} s after the last visit, {self._required:g} s required"
            self._accuse(Rule.TOO_SOON, detail, last, request)
        self.visits.append(LoggedVisit(self.domain, visit.end))
        return self.visits[-1]

    def _note_robots(self, request: LoggedRequest) -> None:
        if not request.complete or request.location:
            return
        self._rules_known_at.setdefault(request.host, request.end)
        if request.status != 200:
            return
        if any(0 <= at - request.end < UNREAD_SECONDS for at in self._killed_at):
            self._perhaps_unread.add(request.host)
        else:
            self._require_delay_of(request.host)

    def _require_delay_of(self, host: str) -> None:
        self._required = max(self._required, crawl_delay(self._web, host))

    def _check_page(self, request: LoggedRequest) -> None:
        if not allowed(self._web, request.host, request.path):
            self._accuse(Rule.FORBIDDEN, "robots.txt disallows this path", request)
        if request.start < self._rules_known_at.get(request.host, math.inf):
            self._accuse(Rule.RULES_UNKNOWN, "there was no response to robots.txt yet", request)
        if request.host in self._perhaps_unread:
            self._perhaps_unread.discard(request.host)
            self._require_delay_of(request.host)
        url = request.url
        before = self._responses.get(url)
        if before is not None:
            self.repeated.append(
                Violation(Rule.REPEATED, self.domain, "there was a response before", (before, request))
            )
        if request.complete and 0 < request.status < 500:
            self._responses[url] = request

    def _check_size(self, visit: LoggedVisit) -> None:
        if visit.pages > 1 or visit.hops > MAX_HOPS or len(visit.requests) > MAX_REQUESTS:
            detail = f"{visit.pages} pages, {visit.hops} redirects, {len(visit.requests)} requests"
            self._accuse(Rule.LARGE_VISIT, detail, *visit.requests)

    def _accuse(self, broken: Rule, detail: str, *evidence: LoggedRequest) -> None:
        self.violations.append(Violation(broken, self.domain, detail, evidence))


def _host_of(url: str) -> str:
    parsed = canonical(url) if url else None
    return "" if parsed is None else parsed.host
