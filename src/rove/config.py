"""The settings of a crawl: one frozen record, stored in the frontier and read when the crawl is resumed.

Every default that matters is in `Settings`. Those that make the crawl polite are defined in policy/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from rove.errors import UsageError
from rove.humanize import size_text
from rove.policy.budget import DEFAULT_HORIZON
from rove.policy.constants import DAY, DEFAULT_DELAY, DEFAULT_MAX_LINKS, DEFAULT_REDIRECT_HOPS, VISIT_BUDGET
from rove.policy.identity import is_placeholder, is_plausible_email
from rove.urls.ignored_params import IgnoredParams, ignored_params_with, parse_names

DEFAULT_CONCURRENCY = 500
DEFAULT_TIMEOUT = 60.0
DEFAULT_MAX_PAGE_SIZE = 5 << 20
DEFAULT_MAX_MEMORY = 1 << 30
DEFAULT_MIN_FREE_DISK = 1 << 30

LONGEST_DELAY = 365 * DAY
SHORTEST_TIMEOUT = 1.0
SMALLEST_MAX_PAGE_SIZE = 1 << 10
LARGEST_MAX_PAGE_SIZE = 64 << 20
"""Decoding a page blocks the event loop, so one page must not be much larger."""
LEAST_MEMORY = 256 << 20
"""With less memory, one page of the default size could exceed the ceiling."""
PAGES_IN_MEMORY = 24
"""Memory that one page needs at most while it is received and read, as a multiple of --max-page-size."""
LARGEST_NUMBER = 1e15
"""A larger size or duration is a typing error, and may not fit into a number."""

_INFO_URL = re.compile(r"https?://[!-'*-:=?-~]{1,500}")
"""Visible ASCII characters that do not end the comment of a User-Agent."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b?)", re.ASCII)
_SIZE_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)
_DURATION_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a crawl ends. Each limit counts from the state of the crawl when the limit was given."""

    max_pages: int | None = None
    max_duration: float | None = None
    max_pages_per_domain: int | None = None
    pages_before: int = 0
    """Pages stored before `max_pages` was given."""
    seconds_before: float = 0.0
    """Seconds crawled before `max_duration` was given."""
    epoch: int = 0
    """Increases each time `max_pages_per_domain` is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of a crawl that are stored with it. None means no limit unless the field says otherwise."""

    email: str
    """Sent with every request, so that a webmaster can complain. There is no default, because it must be yours."""
    info_url: str | None = None
    """A page about the crawl, sent with every request; None means that there is none."""
    delay: float = DEFAULT_DELAY
    """Seconds between two visits to a domain. The default allows 1,234 pages a day, which hardly show in a log."""
    allow_short_delay: bool = False
    """Allows a shorter delay than the default, for sites that are your own or have agreed."""
    concurrency: int = DEFAULT_CONCURRENCY
    """Fetches in flight. The default needs a small part of `max_memory`; it is lowered where open files are few."""
    max_depth: int | None = None
    """Links to follow from a seed."""
    seeds_only: bool = False
    """Stay on the domains of the seeds."""
    connect_to: tuple[str, ...] = ()
    """Rules PATTERN=ADDRESS[:PORT] that replace DNS for some hosts."""
    dns_servers: tuple[str, ...] = ()
    """Name servers to ask instead of the machine's own."""
    strict_tls: bool = False
    """Refuse pages with an invalid certificate or an old TLS version. By default they are stored and marked."""
    allow_private_addresses: bool = False
    """Connect to private addresses. By default a page on the web cannot lead the crawl into the local network."""
    store: str = "text"
    """'text', 'raw' or 'both'. By default only the text, which is much smaller than the response."""
    redirect_hops: int = DEFAULT_REDIRECT_HOPS
    """Redirects inside a domain that a visit follows at once."""
    per_ip: int | None = None
    """Connections to one address at a time, per process."""
    sitemaps: bool = False
    """Read the sitemaps that robots.txt names. Off by default, because they can list millions of URLs."""
    max_links: int = DEFAULT_MAX_LINKS
    """Links taken from one page; a page with more is marked."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds that one request may take. With the default, a visit has time for three slow requests."""
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE
    """Bytes to receive of one page; the rest is cut off. Reading a page may take 20 times as much memory."""
    horizon: float | None = None
    """Seconds that the crawl is expected to run; None means `planned_seconds`."""
    max_memory: int = DEFAULT_MAX_MEMORY
    """Bytes of memory that each crawling process may use. The default is enough for 5,000 fetches in flight."""
    min_free_disk: int = DEFAULT_MIN_FREE_DISK
    """Bytes that must stay free on the disk of the data directory, or the crawl pauses. 0 turns the check off."""
    limits: Limits = Limits()
    drop_params: tuple[str, ...] = ()
    """More query parameters to remove from URLs. Cannot be changed later, because the stored URLs would not match."""

    @property
    def ignored_params(self) -> IgnoredParams:
        """The parameters that this crawl removes from URLs."""
        return ignored_params_with(self.drop_params)

    @property
    def planned_seconds(self) -> float:
        """How long the crawl is expected to run: the horizon, else the time limit, else the default horizon."""
        return self.horizon or self.limits.max_duration or DEFAULT_HORIZON

    def checked(self) -> Settings:
        """Return these settings; UsageError if a value is not allowed."""
        for check in (_identity_problems, _time_problems, _size_problems):
            for problem in check(self):
                raise UsageError(problem)
        parse_names(self.drop_params)
        return self

    def to_json(self) -> str:
        """Encode the settings for the frontier."""
        return msgspec.json.encode(self).decode()


def settings_from_json(text: str) -> Settings:
    """Decode settings from the frontier."""
    try:
        return msgspec.json.decode(text, type=Settings)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the settings of this crawl are damaged ({error}); restore them from a backup") from error


def _identity_problems(settings: Settings) -> Iterator[str]:
    if not is_plausible_email(settings.email):
        yield f"{settings.email!r} is not an e-mail address that a webmaster could write to; give yours with --email"
    elif is_placeholder(settings.email):
        yield (
            f"{settings.email} is the address of an example, where nobody reads mail; "
            "give your own with --email, so that webmasters can reach you"
        )
    if settings.info_url is not None and not _INFO_URL.fullmatch(settings.info_url):
        yield f"--info-url {settings.info_url!r} is not an http or https URL in ASCII, at most 500 characters long"


def _time_problems(settings: Settings) -> Iterator[str]:
    delay, timeout = settings.delay, settings.timeout
    if not 0 <= delay <= LONGEST_DELAY:
        yield f"a --delay of {delay:g} s is not between 0 and {LONGEST_DELAY:,.0f} s"
    if delay < DEFAULT_DELAY and not settings.allow_short_delay:
        yield (
            f"a --delay of {delay:g} s is below {DEFAULT_DELAY:g} s; add --allow-short-delay if the "
            "sites are your own or have agreed"
        )
    if not SHORTEST_TIMEOUT <= timeout <= VISIT_BUDGET:
        yield f"a --timeout of {timeout:g} s is not between {SHORTEST_TIMEOUT:g} and {VISIT_BUDGET:g} s"


def _size_problems(settings: Settings) -> Iterator[str]:
    memory, page_size = settings.max_memory, settings.max_page_size
    if settings.concurrency < 1:
        yield "--concurrency must be at least 1"
    if not SMALLEST_MAX_PAGE_SIZE <= page_size <= LARGEST_MAX_PAGE_SIZE:
        yield (
            f"a --max-page-size of {size_text(page_size)} is not between "
            f"{size_text(SMALLEST_MAX_PAGE_SIZE)} and {size_text(LARGEST_MAX_PAGE_SIZE)}"
        )
    least = LEAST_MEMORY + PAGES_IN_MEMORY * max(0, page_size - DEFAULT_MAX_PAGE_SIZE)
    if memory < least:
        yield (
            f"--max-memory {size_text(memory)} is too little for pages of up to {size_text(page_size)}; "
            f"give at least {size_text(least)}"
        )
    if settings.min_free_disk < 0:
        yield "--min-free-disk must not be negative"


def with_limits(
    old: Limits,
    *,
    max_pages: int | None,
    max_duration: float | None,
    max_pages_per_domain: int | None,
    pages: int,
    seconds: float,
) -> Limits:
    """Replace the limits that are given. `pages` and `seconds` are what the crawl has done so far."""
    new = old
    if max_pages is not None:
        new = replace(new, max_pages=max_pages, pages_before=pages)
    if max_duration is not None:
        new = replace(new, max_duration=max_duration, seconds_before=seconds)
    if max_pages_per_domain is not None:
        new = replace(new, max_pages_per_domain=max_pages_per_domain, epoch=old.epoch + 1)
    return new


def parse_size(text: str) -> int:
    """Parse '512MiB', '1.5G', '800M', '64k' or a number of bytes. Units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or float(match[1]) > LARGEST_NUMBER:
        raise UsageError(f"{text!r} is not a size; write 512MiB, 2GiB, 1.5G or a number of bytes")
    return int(float(match[1]) * (1 << _SIZE_UNITS[match[2] or ""]))


def parse_duration(text: str) -> float:
    """Parse '90s', '30m', '24h', '2d' or a number of seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or not 0 < float(match[1]) <= LARGEST_NUMBER:
        raise UsageError(f"{text!r} is not a duration; write 90s, 30m, 24h or 2d")
    return float(match[1]) * _DURATION_UNITS[match[2]]
