"""The settings of a crawl: one frozen record, stored in the frontier and read when the crawl is resumed.

Every default that matters is in `Settings`. Those that make the crawl polite are defined in policy/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from rove.errors import UsageError
from rove.model.usage import Purpose
from rove.notation.humanize import size_text
from rove.policy.budget import DEFAULT_HORIZON
from rove.policy.constants import (
    DAY,
    DEFAULT_DELAY,
    DEFAULT_MAX_LINKS,
    DEFAULT_MAX_PARSED_SIZE,
    DEFAULT_PER_IP,
    DEFAULT_PER_IP_RATE,
    DEFAULT_REDIRECT_HOPS,
    VISIT_BUDGET,
)
from rove.policy.file_types import FileTypes, file_types_with
from rove.policy.identity import is_placeholder, is_plausible_email
from rove.policy.rules import MAX_RULES, Rule, RuleKind, Rules, check_rule, rules_with
from rove.policy.scope import SeedScope
from rove.urls.ignored_params import IgnoredParams, ignored_params_with, parse_names

AUTO: Literal["auto"] = "auto"
DEFAULT_TIMEOUT = 60.0
DEFAULT_MAX_PAGE_SIZE = 5 << 20
DEFAULT_MAX_MEMORY = 1 << 30
DEFAULT_MIN_FREE_DISK = 1 << 30
DEFAULT_WARC_SIZE = 1 << 30

LONGEST_DELAY = 365 * DAY
SHORTEST_TIMEOUT = 1.0
SMALLEST_MAX_PAGE_SIZE = 1 << 10
LARGEST_MAX_PAGE_SIZE = 64 << 20
"""Decoding a page blocks the event loop, so one page must not be much larger."""
SMALLEST_WARC_SIZE = 1 << 20
LARGEST_WARC_SIZE = 2_000_000_000
"""Indexes of WARC files hold offsets in 32 bits."""
LEAST_MEMORY = 256 << 20
"""With less memory, one page of the default size could exceed the ceiling."""
PAGES_IN_MEMORY = 24
"""Memory that one page needs at most while it is received and read, as a multiple of --max-page-size."""
REACHED_SECONDS = 1.0
REACHED_SHARE = 1e-3
"""A time limit counts as reached if less is left, in seconds or as a share. The clocks of the crawl's machines and of
its database differ a little."""

_INFO_URL = re.compile(r"https?://[!-'*-:=?-~]{1,500}")
"""Visible ASCII characters that do not end the comment of a User-Agent."""


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
    """Increases each time `max_pages_per_domain` changes."""

    @property
    def page_limit(self) -> int | None:
        """The number of pages that the crawl has stored when it reaches `max_pages`."""
        return None if self.max_pages is None else self.pages_before + self.max_pages

    def pages_left(self, pages: int) -> int | None:
        """Return how many pages are left until `max_pages`; `pages` counts all pages of the crawl."""
        return None if self.page_limit is None else self.page_limit - pages

    def seconds_left(self, seconds: float) -> float | None:
        """Return how many seconds are left until `max_duration`; `seconds` counts the whole time of the crawl."""
        return None if self.max_duration is None else self.seconds_before + self.max_duration - seconds

    def without_reached(self, *, pages: int, seconds: float) -> Limits:
        """Return the limits of the next run: those that an earlier run has reached have ended with it."""
        new = self
        pages_left, seconds_left = self.pages_left(pages), self.seconds_left(seconds)
        if pages_left is not None and pages_left <= 0:
            new = replace(new, max_pages=None, pages_before=0)
        if seconds_left is not None and seconds_left <= max(REACHED_SECONDS, REACHED_SHARE * (self.max_duration or 0)):
            new = replace(new, max_duration=None, seconds_before=0.0)
        return new


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
    concurrency: int | Literal["auto"] = AUTO
    """Fetches in flight. By default as many as the web needs and the machine allows (policy/concurrency.py)."""
    max_depth: int | None = None
    """Links to follow from a seed."""
    scope: SeedScope = SeedScope.ANYWHERE
    """How far links are followed from the seeds."""
    purpose: Purpose | None = None
    """What the pages are for, as webmasters are told. For training, pages whose site forbids it are not kept."""
    languages: tuple[str, ...] = ()
    """Codes of ISO 639-3: links that were found on pages in these languages come first."""
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
    warc_size: int = DEFAULT_WARC_SIZE
    """Bytes after which a WARC file is finished."""
    redirect_hops: int = DEFAULT_REDIRECT_HOPS
    """Redirects inside a domain that a visit follows at once."""
    per_ip: int = DEFAULT_PER_IP
    """Visits to one IP address at a time, from this machine; 0 means no limit."""
    per_ip_rate: float = DEFAULT_PER_IP_RATE
    """Visits to one IP address that begin in a second, from this machine; 0 means no limit."""
    sitemaps: bool = False
    """Read the sitemaps that robots.txt names. Off by default, because they can list millions of URLs."""
    max_links: int = DEFAULT_MAX_LINKS
    """Links taken from one page; a page with more is marked."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds that one request may take. With the default, a visit has time for three slow requests."""
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE
    """Bytes to receive of one page; the rest is cut off. Reading a page may take 20 times as much memory."""
    max_parsed_size: int = DEFAULT_MAX_PARSED_SIZE
    """Bytes to read of one page. While a page is read, the process does nothing else."""
    horizon: float | None = None
    """Seconds that the crawl is expected to run; None means `planned_seconds`."""
    longest_plan: float = 0.0
    """The longest `planned_seconds` so far, unless a shorter horizon was given since. Only `with_plan` changes it."""
    max_memory: int = DEFAULT_MAX_MEMORY
    """Bytes of memory that each crawling process may use. The default is enough for 5,000 fetches in flight."""
    min_free_disk: int = DEFAULT_MIN_FREE_DISK
    """Bytes that must stay free on the disk of the data directory, or the crawl pauses. 0 turns the check off."""
    limits: Limits = Limits()
    file_types: str = "skip"
    """'skip' or 'visit'. By default links to pictures, archives and the like are not taken: they hold no text."""
    skip_extensions: tuple[str, ...] = ()
    """More extensions of files whose links are not taken."""
    accept: tuple[str, ...] = ()
    """Expressions of which one must hold for a URL, or it is not taken (policy/rules.py)."""
    reject: tuple[str, ...] = ()
    """Expressions of which none may hold for a URL."""
    store_if: tuple[str, ...] = ()
    """Expressions of which one must hold for a page, or it is not stored."""
    follow_if: tuple[str, ...] = ()
    """Expressions of which one must hold for a page, or its links are not followed."""
    numbered_rules: tuple[str, ...] = ()
    """All rules that the crawl has ever had; the place of a rule is its number. Only `with_numbers` changes it."""
    drop_params: tuple[str, ...] = ()
    """More query parameters to remove from URLs. Cannot be changed later, because the stored URLs would not match."""

    @property
    def ignored_params(self) -> IgnoredParams:
        """The parameters that this crawl removes from URLs."""
        return ignored_params_with(self.drop_params)

    @property
    def skipped_file_types(self) -> FileTypes:
        """The types of files whose links this crawl does not take."""
        return file_types_with(self.skip_extensions, built_in=self.file_types == "skip")

    @property
    def rules(self) -> Rules:
        """The rules in force."""
        numbers = {text: number for number, text in enumerate(self.numbered_rules, start=1)}
        return rules_with(
            tuple(
                Rule(numbers[_rule_text(kind, expression)], kind, expression)
                for kind, expression in self._rule_expressions()
            )
        )

    def with_numbers(self) -> Settings:
        """Return the settings with a number for every rule; a rule that the crawl had before has its number again."""
        given = (_rule_text(kind, expression) for kind, expression in self._rule_expressions())
        return replace(self, numbered_rules=tuple(dict.fromkeys((*self.numbered_rules, *given))))

    def _rule_expressions(self) -> Iterator[tuple[RuleKind, str]]:
        for kind in RuleKind:
            for expression in dict.fromkeys(getattr(self, kind.setting)):
                yield kind, expression

    @property
    def planned_seconds(self) -> float:
        """How long the crawl is expected to run: the horizon, else the time limit, else the default horizon.

        It grows by itself, and becomes shorter only if a shorter horizon is given. URLs that were accepted for a longer
        crawl would have no room otherwise.
        """
        return self.horizon or max(self.longest_plan, self.limits.max_duration or DEFAULT_HORIZON)

    def with_plan(self) -> Settings:
        """Return the settings with `planned_seconds` remembered."""
        return replace(self, longest_plan=self.planned_seconds)

    def checked(self, sources: Mapping[str, str] | None = None) -> Settings:
        """Return these settings; UsageError if a value is not allowed.

        `sources` names the place that a field was given in, such as a file, if it was not the command line.
        """
        for check in (_identity_problems, _time_problems, _size_problems, _rule_problems):
            for field, problem in check(self):
                source = (sources or {}).get(field)
                raise UsageError(f"{source}: {problem}" if source else problem)
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


def _identity_problems(settings: Settings) -> Iterator[tuple[str, str]]:
    if not is_plausible_email(settings.email):
        yield (
            "email",
            f"{settings.email!r} is not an e-mail address that a webmaster could write to; give yours with --email",
        )
    elif is_placeholder(settings.email):
        yield (
            "email",
            (
                f"{settings.email} is the address of an example, where nobody reads mail; "
                "give your own with --email, so that webmasters can reach you"
            ),
        )
    if settings.info_url is not None and not _INFO_URL.fullmatch(settings.info_url):
        yield (
            "info_url",
            f"--info-url {settings.info_url!r} is not an http or https URL in ASCII, at most 500 characters long",
        )


def _time_problems(settings: Settings) -> Iterator[tuple[str, str]]:
    delay, timeout = settings.delay, settings.timeout
    if not 0 <= delay <= LONGEST_DELAY:
        yield "delay", f"a --delay of {delay:g} s is not between 0 and {LONGEST_DELAY:,.0f} s"
    if delay < DEFAULT_DELAY and not settings.allow_short_delay:
        yield (
            "delay",
            (
                f"a --delay of {delay:g} s is below {DEFAULT_DELAY:g} s; add --allow-short-delay if the "
                "sites are your own or have agreed"
            ),
        )
    if not SHORTEST_TIMEOUT <= timeout <= VISIT_BUDGET:
        yield "timeout", f"a --timeout of {timeout:g} s is not between {SHORTEST_TIMEOUT:g} and {VISIT_BUDGET:g} s"


def _size_problems(settings: Settings) -> Iterator[tuple[str, str]]:
    memory, page_size = settings.max_memory, settings.max_page_size
    if settings.concurrency != AUTO and settings.concurrency < 1:
        yield "concurrency", "--concurrency must be at least 1"
    for field, size in (("max_page_size", page_size), ("max_parsed_size", settings.max_parsed_size)):
        if not SMALLEST_MAX_PAGE_SIZE <= size <= LARGEST_MAX_PAGE_SIZE:
            yield (
                field,
                (
                    f"a --{field.replace('_', '-')} of {size_text(size)} is not between "
                    f"{size_text(SMALLEST_MAX_PAGE_SIZE)} and {size_text(LARGEST_MAX_PAGE_SIZE)}"
                ),
            )
    if not SMALLEST_WARC_SIZE <= settings.warc_size <= LARGEST_WARC_SIZE:
        yield (
            "warc_size",
            (
                f"a --warc-size of {size_text(settings.warc_size)} is not between {size_text(SMALLEST_WARC_SIZE)} "
                f"and {size_text(LARGEST_WARC_SIZE)}"
            ),
        )
    least = LEAST_MEMORY + PAGES_IN_MEMORY * max(0, page_size - DEFAULT_MAX_PAGE_SIZE)
    if memory < least:
        yield (
            "max_memory",
            (
                f"--max-memory {size_text(memory)} is too little for pages of up to {size_text(page_size)}; "
                f"give at least {size_text(least)}"
            ),
        )
    if settings.min_free_disk < 0:
        yield "min_free_disk", "--min-free-disk must not be negative"


def _rule_problems(settings: Settings) -> Iterator[tuple[str, str]]:
    count = 0
    for kind in RuleKind:
        expressions = getattr(settings, kind.setting)
        count += len(expressions)
        if count > MAX_RULES:
            yield kind.setting, f"there are more than {MAX_RULES} rules; join some of them with 'or'"
        for expression in expressions:
            try:
                check_rule(kind, expression)
            except UsageError as error:
                yield kind.setting, f"--{kind}: {error}"


def _rule_text(kind: RuleKind, expression: str) -> str:
    return f"{kind} {expression}"


def with_limits(old: Limits, given: Mapping[str, Any], *, pages: int, seconds: float) -> Limits:
    """Replace the limits that are given; None lifts one. `pages` and `seconds` are what the crawl has done so far.

    A limit per domain that is given again counts on, so that the same command can be repeated.
    """
    new = replace(old, **given)
    if "max_pages" in given:
        new = replace(new, pages_before=pages if new.max_pages else 0)
    if "max_duration" in given:
        new = replace(new, seconds_before=seconds if new.max_duration else 0.0)
    if new.max_pages_per_domain != old.max_pages_per_domain:
        new = replace(new, epoch=old.epoch + 1)
    return new
