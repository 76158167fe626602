"""The settings of a crawl: one frozen record, remembered in the frontier and read back on resume."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import msgspec

from rove.errors import UsageError
from rove.humanize import size_text
from rove.policy.budget import DEFAULT_HORIZON, DomainBudget
from rove.policy.constants import (
    DEFAULT_DELAY,
    DEFAULT_MAX_LINKS,
    DEFAULT_REDIRECT_HOPS,
    VISIT_BUDGET,
    is_plausible_email,
)
from rove.urls.ignored_params import IgnoredParams, ignored_params_with, parse_names

DEFAULT_CONCURRENCY = 500
LONGEST_DELAY = 365 * 86_400.0
DEFAULT_TIMEOUT = 60.0
SHORTEST_TIMEOUT = 1.0
DEFAULT_MAX_BODY = 5 * 1024 * 1024
DEFAULT_MAX_MEMORY = 1 << 30
LEAST_MEMORY = 256 << 20
"""With less, one page of the largest size could go over the ceiling."""
DEFAULT_MIN_FREE_DISK = 1 << 30
LARGEST_NUMBER = 1e15
"""In a size or a duration: what is over it is a slip, and might be more than a number can hold."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b?)", re.ASCII)
_SIZE_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a crawl ends. Each counts from where the crawl stood when it was given."""

    max_pages: int | None = None
    max_duration: float | None = None
    max_pages_per_domain: int | None = None
    pages_before: int = 0
    """Pages stored before `max_pages` was given."""
    seconds_before: float = 0.0
    """Seconds crawled before `max_duration` was given."""
    epoch: int = 0
    """Rises when `max_pages_per_domain` is given anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that a crawl remembers of how it was started."""

    email: str
    info_url: str | None = None
    delay: float = DEFAULT_DELAY
    allow_short_delay: bool = False
    concurrency: int = DEFAULT_CONCURRENCY
    max_depth: int | None = None
    seeds_only: bool = False
    connect_to: tuple[str, ...] = ()
    dns_servers: tuple[str, ...] = ()
    """Name servers to ask instead of the machine's own."""
    strict_tls: bool = False
    """Pages behind certificates that do not hold, or behind old TLS, are refused, not marked."""
    allow_private_addresses: bool = False
    store: str = "text"
    redirect_hops: int = DEFAULT_REDIRECT_HOPS
    per_ip: int | None = None
    """Connections at once to one address, within a process; None: as many as it comes to."""
    sitemaps: bool = False
    max_links: int = DEFAULT_MAX_LINKS
    timeout: float = DEFAULT_TIMEOUT
    """Seconds that one request may take."""
    max_body: int = DEFAULT_MAX_BODY
    horizon: float | None = None
    """Seconds that the crawl is reckoned to go on for; None: see `planned_seconds`."""
    max_memory: int = DEFAULT_MAX_MEMORY
    """Bytes that each crawling process may have in memory."""
    min_free_disk: int = DEFAULT_MIN_FREE_DISK
    """Bytes that must be free on the disk of the data directory for the crawl to go on; 0: none."""
    limits: Limits = Limits()
    drop_params: tuple[str, ...] = ()
    """Parameters that are left out of URLs besides those that the canonical form leaves out; never changed."""

    @property
    def ignored_params(self) -> IgnoredParams:
        """The parameters that this crawl removes from URLs."""
        return ignored_params_with(self.drop_params)

    def checked(self) -> Settings:
        """These settings, if they make sense together; a UsageError that says what does not."""
        if not is_plausible_email(self.email):
            raise UsageError(
                f"{self.email!r} is not an e-mail address that a webmaster could write to; "
                "give yours with --email"
            )
        if not 0 <= self.delay <= LONGEST_DELAY:
            raise UsageError(
                f"a --delay of {self.delay:g} s is not between 0 and {LONGEST_DELAY:,.0f} s"
            )
        if self.delay < DEFAULT_DELAY and not self.allow_short_delay:
            raise UsageError(
                f"a --delay of {self.delay:g} s is below {DEFAULT_DELAY:g} s; add --allow-short-delay if the "
                "sites are your own or have agreed"
            )
        if not SHORTEST_TIMEOUT <= self.timeout <= VISIT_BUDGET:
            raise UsageError(
                f"a --timeout of {self.timeout:g} s is not between {SHORTEST_TIMEOUT:g} and {VISIT_BUDGET:g} s"
            )
        if self.concurrency < 1:
            raise UsageError("--concurrency must be at least 1")
        if self.max_memory < LEAST_MEMORY:
            raise UsageError(
                f"--max-memory {size_text(self.max_memory)} is too little: a process needs at least "
                f"{size_text(LEAST_MEMORY)}"
            )
        if self.min_free_disk < 0:
            raise UsageError("--min-free-disk must not be negative")
        if self.info_url is not None and not re.fullmatch(r"https?://[^\s()<>;]+", self.info_url):
            raise UsageError(f"--info-url {self.info_url!r} is not an http or https URL")
        parse_names(self.drop_params)
        return self

    @property
    def planned_seconds(self) -> float:
        """How long the crawl is reckoned to go on for: as given, else its time limit, else as good as for ever."""
        return self.horizon or self.limits.max_duration or DEFAULT_HORIZON

    @property
    def domain_budget(self) -> DomainBudget:
        """What the crawl has for each domain."""
        return DomainBudget(
            horizon=self.planned_seconds,
            delay=self.delay,
            max_pages=self.limits.max_pages_per_domain,
        )

    def to_json(self) -> str:
        """As it is kept in the frontier."""
        return msgspec.json.encode(self).decode()


def settings_from_json(text: str) -> Settings:
    """Settings as they were kept."""
    return msgspec.json.decode(text, type=Settings)


def with_limits(
    old: Limits,
    *,
    max_pages: int | None,
    max_duration: float | None,
    max_pages_per_domain: int | None,
    pages: int,
    seconds: float,
) -> Limits:
    """Limits of which some are given anew, with the crawl standing at so many pages and seconds."""
    new = old
    if max_pages is not None:
        new = replace(new, max_pages=max_pages, pages_before=pages)
    if max_duration is not None:
        new = replace(new, max_duration=max_duration, seconds_before=seconds)
    if max_pages_per_domain is not None:
        new = replace(new, max_pages_per_domain=max_pages_per_domain, epoch=old.epoch + 1)
    return new


def parse_size(text: str) -> int:
    """Bytes of '512MiB', '1.5G', '800M', '64k' or a plain number of bytes; units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or float(match[1]) > LARGEST_NUMBER:
        raise UsageError(f"{text!r} is not a size; write 512MiB, 2GiB, 1.5G or a number of bytes")
    return int(float(match[1]) * (1 << _SIZE_UNITS[match[2] or ""]))


def parse_duration(text: str) -> float:
    """Seconds of '90s', '30m', '24h', '2d' or a plain number of seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or not 0 < float(match[1]) <= LARGEST_NUMBER:
        raise UsageError(f"{text!r} is not a duration; write 90s, 30m, 24h or 2d")
    return float(match[1]) * _UNITS[match[2]]
