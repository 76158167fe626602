"""May this URL be fetched, and may it enter the frontier? Exclusions, scope and robots.txt, decided without I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from rove.errors import UsageError
from rove.model import NotAccepted, OriginRecord, RobotsStatus
from rove.politeness import MAX_REDIRECT_CHAIN
from rove.retry import keeps_failing
from rove.robots import Rules
from rove.url import CrawlUrl, canonical, is_address


@dataclass(frozen=True, slots=True)
class Allowed:
    """Go ahead."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Never."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsRobots:
    """The origin's robots.txt must be asked first."""


@dataclass(frozen=True, slots=True)
class Held:
    """Not now: the origin's robots.txt could not be had."""

    seconds: float
    failing: bool


Verdict = Allowed | Blocked | NeedsRobots | Held


class Exclusions:
    """Domains and hosts never to be touched, each with its subdomains."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(names)

    def __len__(self) -> int:
        return len(self._names)

    def covers(self, host: str) -> bool:
        """Whether a host is excluded, by its own name or by one above it."""
        if not self._names:
            return False
        if is_address(host):
            return host in self._names
        name = host
        while name not in self._names:
            _, dot, name = name.partition(".")
            if not dot:
                return False
        return True


@lru_cache(maxsize=64)
def _rules(body: bytes) -> Rules:
    """A visit may put one robots.txt to thousands of URLs."""
    return Rules(body)


class Gate:
    """The decisions of one crawl."""

    def __init__(self, exclusions: Exclusions, *, max_depth: int | None = None) -> None:
        self._exclusions = exclusions
        self._max_depth = max_depth

    def excludes(self, url: CrawlUrl) -> bool:
        """Whether a URL's host is never to be touched."""
        return self._exclusions.covers(url.host)

    def refuses(self, url: CrawlUrl, *, depth: int, hops: int = 0) -> NotAccepted | None:
        """Why a URL may not enter the frontier, if it may not."""
        if self._exclusions.covers(url.host):
            return NotAccepted.EXCLUDED
        if self._max_depth is not None and depth > self._max_depth:
            return NotAccepted.TOO_DEEP
        if hops > MAX_REDIRECT_CHAIN:
            return NotAccepted.REDIRECTS
        return None

    def judge(self, url: CrawlUrl, origin: OriginRecord | None) -> Verdict:
        """Whether a URL may be asked for now, given what is known of its origin's robots.txt."""
        if self._exclusions.covers(url.host):
            return Blocked("excluded")
        if origin is None or origin.valid_for <= 0:
            return NeedsRobots()
        match origin.status:
            case RobotsStatus.UNREACHABLE:
                return Held(origin.valid_for, keeps_failing(origin.failures))
            case RobotsStatus.NONE:
                return Allowed()
            case RobotsStatus.RULES:
                rules = _rules(origin.body)
                return Allowed() if rules.allows(url.text) else Blocked("robots.txt")


def parse_exclusions(lines: Iterable[str], name: str) -> list[str]:
    """The host names in a file of exclusions; a line that is none is an error, as a typo would be impolite."""
    found: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.lstrip("\ufeff").partition("#")[0].strip()
        if not text:
            continue
        url = canonical(text if "://" in text else f"http://{text.removeprefix('*.')}")
        if url is None:
            raise UsageError(f"{name}, line {number}: {text!r} is not a domain")
        found.append(url.host)
    return found
