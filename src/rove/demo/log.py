"""The server's log of requests, and the judge of a crawler's manners.

The log is written by the side that was visited, so a crawler cannot pass by what it believes of
itself. All times are of the machine's steady clock. A request starts when its first byte has come
in and ends when the last of its answer is handed to the kernel. So a client has started earlier and
ended later than the log says: the pauses in the log are never shorter than those that the client
kept, and a client that keeps its pauses is never found guilty. Exceptions are a request that the
client gave up, which the server notices late (see `cut_slack`), and an answer too large for the
kernel's buffers, which the small web has only if its pages are made huge.
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from rove.demo.robots import ROBOTS_PATH, ROBOTS_PATHS
from rove.demo.web import SmallWeb
from rove.urls.canonical import canonical, parse_base
from rove.urls.domain import domain_of

MAX_REQUESTS = 8
MAX_HOPS = 3
"""The bounds of a visit: requests, and redirects among them that lead to a page."""


class LogKind(enum.StrEnum):
    """What came in."""

    REQUEST = "request"
    RUBBISH = "rubbish"
    """Bytes that are no HTTP; they have no host, path or status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One line of the log."""

    kind: LogKind = LogKind.REQUEST
    start: float
    end: float
    host: str = ""
    path: str = ""
    """With query, as the client wrote it."""
    status: int = 0
    """0 if the client left before it was answered."""
    agent: str = ""
    location: str = ""
    """The target of a redirect, as sent."""
    size: int = 0
    """Bytes of the answer, head included; 0 if the client left before."""
    complete: bool = True
    """The whole answer, as announced, was handed over."""
    connected: bool = True
    """It came over a connection of its own, or was the first over one."""

    @property
    def url(self) -> str:
        """The canonical URL that was asked for."""
        found = canonical(f"http://{self.host}{self.path}")
        return f"http://{self.host}{self.path}" if found is None else found.text

    @property
    def target(self) -> str:
        """The canonical URL that the answer redirects to, or nothing."""
        found = canonical(self.location, parse_base(self.url)) if self.location else None
        return "" if found is None else found.text

    @property
    def for_robots(self) -> bool:
        """Asked for rules, not for a page."""
        return self.path in ROBOTS_PATHS


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(LoggedRequest)


def encode(entries: list[LoggedRequest]) -> bytes:
    """Lines of the log: one JSON object each."""
    return _encoder.encode_lines(entries)


def decode(lines: bytes) -> list[LoggedRequest]:
    """The entries of whole lines; a last line that is still being written is left out."""
    return _decoder.decode_lines(lines[: lines.rfind(b"\n") + 1])


def read_log(path: Path) -> list[LoggedRequest]:
    """All entries of a log file."""
    return decode(path.read_bytes())


@dataclass(frozen=True, slots=True)
class LoggedVisit:
    """Requests to one domain that belong together: rules where needed, one page, its redirects."""

    domain: str
    requests: tuple[LoggedRequest, ...]
    pages: int
    """Pages asked for that no redirect led to."""
    hops: int
    """Pages asked for because a redirect of the same visit led there."""


def visits(requests: Iterable[LoggedRequest], pause: float = math.inf) -> list[LoggedVisit]:
    """All visits, by domain and then by time; what is a pause or more apart is never one visit."""
    found = []
    for domain, own in _by_domain(requests).items():
        under_way: _VisitUnderWay | None = None
        for request in own:
            if under_way is None or not under_way.admits(request, pause):
                if under_way is not None:
                    found.append(under_way.visit())
                under_way = _VisitUnderWay(domain)
            under_way.add(request, request.end)
        if under_way is not None:
            found.append(under_way.visit())
    return found


class Manners(enum.StrEnum):
    """What a crawler must not do."""

    TOO_SOON = "too soon"
    """A visit less than the delay after the one before."""
    OVERLAP = "overlap"
    """Two requests to one domain at the same time."""
    FORBIDDEN = "forbidden"
    """A path that robots.txt closes."""
    RULES_UNKNOWN = "rules unknown"
    """A page of a host before its robots.txt was answered."""
    REPEATED = "repeated"
    """A URL again, although it had been answered."""
    LARGE_VISIT = "large visit"
    """More pages, redirects or requests than a visit may have."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A breach, and the requests that show it."""

    broken: Manners
    domain: str
    detail: str
    evidence: tuple[LoggedRequest, ...]

    def __str__(self) -> str:
        lines = [f"{self.broken}: {self.domain}: {self.detail}"]
        lines += [f"  {r.start:.3f} - {r.end:.3f} {r.status} {r.url}" for r in self.evidence]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogVerdict:
    """What the log says of a crawler."""

    violations: tuple[Violation, ...]
    requests: int
    visits: int
    domains: int
    hosts: int
    refetches: int
    """URLs asked for again although they had been answered, excused or not."""
    smallest_margin: float
    """By how much the shortest pause between visits was longer than required; infinite if none."""

    @property
    def polite(self) -> bool:
        """No rule was broken."""
        return not self.violations

    def __str__(self) -> str:
        counts = (
            f"{self.requests} requests in {self.visits} visits to {self.hosts} hosts of "
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
) -> LogVerdict:
    """Judge a crawler by the log of the web that it visited.

    `delay` is what it was told to keep between visits to a domain; a Crawl-delay may ask for more
    once it was served. `tolerance` takes so many seconds off what is required. `cut_slack` is how
    late the server may notice that a client gave up. `allowed_refetches` excuses so many repeated
    URLs, for crawls that were killed.
    """
    cases = [
        _Case(web, domain, own, delay, tolerance, cut_slack)
        for domain, own in _by_domain(requests).items()
    ]
    violations = [violation for case in cases for violation in case.violations]
    repeated = [violation for case in cases for violation in case.repeated]
    if len(repeated) > allowed_refetches:
        violations += repeated
    return LogVerdict(
        violations=tuple(violations),
        requests=sum(len(case.requests) for case in cases),
        visits=sum(case.visits for case in cases),
        domains=len(cases),
        hosts=len({request.host for case in cases for request in case.requests}),
        refetches=len(repeated),
        smallest_margin=min((case.smallest_margin for case in cases), default=math.inf),
    )


def _by_domain(requests: Iterable[LoggedRequest]) -> dict[str, list[LoggedRequest]]:
    domains: dict[str, list[LoggedRequest]] = defaultdict(list)
    for request in requests:
        if request.kind is LogKind.REQUEST:
            domains[domain_of(request.host)[0]].append(request)
    for own in domains.values():
        own.sort(key=lambda request: (request.start, request.end))
    return domains


@dataclass(slots=True)
class _VisitUnderWay:
    """A visit as it is read off the log."""

    domain: str
    requests: list[LoggedRequest] = field(default_factory=list)
    end: float = -math.inf
    pages: int = 0
    hops: int = 0
    awaited: str = ""
    """The URL that the last page redirected to and that was not asked for since."""

    def admits(self, request: LoggedRequest, pause: float) -> bool:
        """Whether a request goes on with this visit; otherwise it begins the next one."""
        last = self.requests[-1]
        if request.start - self.end >= pause:
            return False
        if last.target and request.url == last.target:
            return True
        if request.for_robots:
            return (
                request.path == ROBOTS_PATH
                and request.host != last.host
                and _host_of(last.target) == request.host
            )
        return last.for_robots and last.host == request.host

    def add(self, request: LoggedRequest, end: float) -> None:
        """Take the next request, which was over at `end`."""
        if not request.for_robots:
            if self.awaited and request.url == self.awaited:
                self.hops += 1
            else:
                self.pages += 1
            self.awaited = request.target
        self.requests.append(request)
        self.end = max(self.end, end)

    def visit(self) -> LoggedVisit:
        """All of it."""
        return LoggedVisit(self.domain, tuple(self.requests), self.pages, self.hops)


class _Case:
    """The requests to one domain, judged in the order in which they came."""

    def __init__(
        self,
        web: SmallWeb,
        domain: str,
        requests: list[LoggedRequest],
        delay: float,
        tolerance: float,
        cut_slack: float,
    ) -> None:
        self.domain = domain
        self.requests = requests
        self.violations: list[Violation] = []
        self.repeated: list[Violation] = []
        self.visits = 0
        self.smallest_margin = math.inf
        self._web = web
        self._required = delay
        """The delay that the crawler must keep by what it was told so far."""
        self._tolerance = tolerance
        self._cut_slack = cut_slack
        self._rules_answered: dict[str, float] = {}
        self._answered: dict[str, LoggedRequest] = {}
        self._hear()

    def _hear(self) -> None:
        under_way = _VisitUnderWay(self.domain)
        for request in self.requests:
            if under_way.requests:
                under_way = self._place(under_way, request)
            end = request.end
            if not request.complete:
                end = max(request.start, end - self._cut_slack)
            under_way.add(request, end)
            if request.for_robots:
                self._hear_rules(request)
            else:
                self._check_page(request)
        self._close(under_way.visit())

    def _place(self, under_way: _VisitUnderWay, request: LoggedRequest) -> _VisitUnderWay:
        """The visit that a request belongs to: the one under way, or a new one."""
        last = under_way.requests[-1]
        pause = request.start - under_way.end
        if pause < 0:
            self._accuse(Manners.OVERLAP, f"{-pause:.3f} s at the same time", last, request)
        if under_way.admits(request, self._required):
            return under_way
        margin = pause - self._required
        self.smallest_margin = min(self.smallest_margin, margin)
        if pause >= 0 and margin < -self._tolerance:
            detail = f"{pause:.3f} s after the visit before, {self._required:g} s are due"
            self._accuse(Manners.TOO_SOON, detail, last, request)
        self._close(under_way.visit())
        following = _VisitUnderWay(self.domain)
        following.end = under_way.end
        return following

    def _hear_rules(self, request: LoggedRequest) -> None:
        if not request.complete or request.location:
            return
        self._rules_answered.setdefault(request.host, request.end)
        if request.status == 200:
            self._required = max(self._required, self._web.crawl_delay(request.host))

    def _check_page(self, request: LoggedRequest) -> None:
        if not self._web.allowed(request.host, request.path):
            self._accuse(Manners.FORBIDDEN, "robots.txt closes this path", request)
        if request.start < self._rules_answered.get(request.host, math.inf):
            self._accuse(Manners.RULES_UNKNOWN, "robots.txt was not answered before", request)
        url = request.url
        before = self._answered.get(url)
        if before is not None:
            self.repeated.append(
                Violation(Manners.REPEATED, self.domain, "answered before", (before, request))
            )
        if request.complete and 0 < request.status < 500:
            self._answered[url] = request

    def _close(self, visit: LoggedVisit) -> None:
        self.visits += 1
        if visit.pages > 1 or visit.hops > MAX_HOPS or len(visit.requests) > MAX_REQUESTS:
            detail = f"{visit.pages} pages, {visit.hops} redirects, {len(visit.requests)} requests"
            self._accuse(Manners.LARGE_VISIT, detail, *visit.requests)

    def _accuse(self, broken: Manners, detail: str, *evidence: LoggedRequest) -> None:
        self.violations.append(Violation(broken, self.domain, detail, evidence))


def _host_of(url: str) -> str:
    found = canonical(url) if url else None
    return "" if found is None else found.host
