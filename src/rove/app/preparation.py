"""Turns the options that the user gave into a crawl that can start, or refuses them and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rove.admin.apply_rules import fully_applied
from rove.admin.exclude import current_user
from rove.app.horizon import shorten_horizon
from rove.app.limits_line import option_name
from rove.app.panel import PLAIN_SECONDS
from rove.app.seed_copy import SeedInput, copied_seeds, without_repeated_copy
from rove.config import Limits, Settings, settings_from_json, with_limits
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.dns import parse_name_server
from rove.fetch.tls import authorities_for
from rove.frontier.contract import Backend
from rove.frontier.dsn import redacted
from rove.frontier.runs import crawled_seconds
from rove.notation.humanize import counted
from rove.observe.listening import ListenAddress
from rove.policy.exclusions import parse_exclusions


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOptions:
    """The options of `rove crawl` or `rove join`, as the user gave them."""

    data_dir: Path
    seeds: str | None = None
    """A file, or '-' for standard input."""
    resume: bool = False
    join: bool = False
    """Take part in a crawl that another machine started, without changing it."""
    exclude: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """The fields of Settings that were given; saved with the crawl."""
    machine_settings: dict[str, Any] = field(default_factory=dict)
    """The fields of Settings that apply to this machine alone."""
    limits: dict[str, Any] = field(default_factory=dict)
    """The limits that were given, by their names in Limits; None lifts one."""
    sources: dict[str, str] = field(default_factory=dict)
    """The configuration file that a field of `settings` or `limits` was given in, if it was not the command line."""
    yes: bool = False
    """Confirms that a shorter horizon may drop URLs."""
    frontier: str | None = None
    """A PostgreSQL URL; None: the database that the data directory belongs to."""
    crawl_name: str | None = None
    processes: int | None = None
    log_level: str = "info"
    dashboard: str | None = None
    """The address of the dashboard that is started beside the crawl; None: there is none."""
    quiet: bool = False
    """Print nothing but errors."""
    progress_interval: float = PLAIN_SECONDS
    """Seconds between two progress lines where there is no terminal."""
    metrics: ListenAddress | None = None
    """Where the metrics of this machine are served; None: nowhere."""


def check_directory(options: CrawlOptions, data: DataDir) -> None:
    """Refuse to start a new crawl in a data directory that belongs to a crawl in PostgreSQL."""
    remote = data.remote()
    if remote is not None and remote.crawl and not (options.resume or options.join):
        raise UsageError(
            f"{data.root} belongs to the crawl {remote.crawl_name!r} at {redacted(remote.url)}; "
            "add --resume to continue it, or choose another --data-dir"
        )


async def check(options: CrawlOptions, backend: Backend) -> None:
    """Refuse bad options before any file or table is created."""
    _check_syntax(options)
    _check_files(options)
    if options.join:
        if not await backend.exists():
            raise UsageError(f"{backend.location} holds no crawl to join; start one with 'rove crawl --frontier'")
    elif not (options.resume and await backend.exists()):
        _new(options, backend)


def _new(options: CrawlOptions, backend: Backend) -> Settings:
    """Return the settings of a new crawl; refuse one without seeds or with bad settings."""
    if options.seeds is None:
        raise UsageError(
            f"{backend.location} holds no crawl to resume; to start one, add a seed file and --email ADDRESS"
            if options.resume
            else "no seeds given: rove crawl SEEDS --email ADDRESS"
        )
    if "email" not in options.settings:
        raise UsageError("--email is missing: webmasters must be able to reach you")
    limits = with_limits(Limits(), options.limits, pages=0, seconds=0.0)
    return Settings(**options.settings, limits=limits).checked(options.sources).with_plan().with_numbers()


async def prepare(
    options: CrawlOptions,
    data: DataDir,
    backend: Backend,
    *,
    identity: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> Settings:
    """Open or create the crawl and save its settings and seeds; this process must hold the data directory.

    `identity` is that of the crawl which the data directory belongs to, or '' if it belongs to none yet. `say` shows a
    sentence to the user.
    """
    exclusions = read_exclusions(options.exclude)
    given = None if options.seeds is None else SeedInput(options.seeds, yes=options.yes)
    with nullcontext() if given is None else given.opened() as seeds:
        saved = await _saved(options, backend, identity)
        if saved is None:
            settings = _new(options, backend)
        else:
            settings = _changed(saved, options)
            if options.join:
                return settings
            settings = replace(settings, limits=await _limits(options, settings.limits, backend, say)).with_plan()
            await shorten_horizon(backend, saved, settings, confirmed=options.yes, say=say)
        earlier = [] if saved is None else await backend.catalog.seed_sources()
        source = None
        if given is not None and seeds is not None:
            source = without_repeated_copy(data, copied_seeds(data, given, seeds, say=say), earlier)
    try:
        await backend.open(create=True)
        await backend.catalog.add_exclusions(exclusions, who=current_user(), reason=f"in {options.exclude}")
        await backend.catalog.save(settings.to_json(), source)
        if saved is None:
            await backend.catalog.save_rules_applied(fully_applied(settings.rules))
    except BaseException:
        if source is not None and all(source.path != known.path for known in earlier):
            (data.root / source.path).unlink(missing_ok=True)
        raise
    return settings


def _check_syntax(options: CrawlOptions) -> None:
    """Check the settings that only the parts which use them can parse."""
    for rule in options.settings.get("connect_to", ()):
        parse_connect_to(rule)
    for server in options.settings.get("dns_servers", ()):
        parse_name_server(server)
    if options.settings.get("strict_tls"):
        authorities_for(strict=True)


def _check_files(options: CrawlOptions) -> None:
    if options.seeds is not None:
        SeedInput(options.seeds).check("rove crawl -")
    if options.exclude is not None and not options.exclude.is_file():
        raise UsageError(f"there is no exclusion file {options.exclude}")


async def _saved(options: CrawlOptions, backend: Backend, identity: str) -> Settings | None:
    """Open the existing crawl and return its settings; None if there is none, so that a new one may begin."""
    if not await backend.exists():
        return None
    # A machine that joins must not migrate the schema while others use it.
    await backend.open(create=options.resume)
    if identity and await backend.catalog.identity() != identity:
        raise UsageError(
            f"{options.data_dir} belongs to another crawl than the one in {backend.location}; choose another --data-dir"
        )
    saved = await backend.catalog.settings()
    if saved is None:
        if options.join:
            raise UsageError(f"{backend.location} holds no crawl to join yet; start one with 'rove crawl --frontier'")
        return None
    if not (options.resume or options.join):
        pages = (await backend.reader.counts()).pages
        raise UsageError(
            f"{backend.location} already holds a crawl with {counted(pages, 'page')}; add --resume to continue it, "
            "or start the new crawl elsewhere"
        )
    return settings_from_json(saved)


def _changed(old: Settings, options: CrawlOptions) -> Settings:
    """Return the settings of an existing crawl, changed as the options say."""
    new = replace(old, **options.settings)
    if new.drop_params != old.drop_params:
        raise UsageError(
            f"this crawl was started {_drop_params_text(old)} and cannot change that, because it would no longer "
            "recognize its own URLs; leave --drop-param out, or start a new crawl"
        )
    return new.checked(options.sources).with_numbers()


def _drop_params_text(settings: Settings) -> str:
    names = " ".join(f"--drop-param {name}" for name in settings.drop_params)
    return f"with {names}" if names else "without --drop-param"


async def _limits(options: CrawlOptions, old: Limits, backend: Backend, say: Callable[[str], None]) -> Limits:
    """Return the limits of an existing crawl; new ones count from the pages and the time so far."""
    pages = (await backend.reader.counts()).pages
    seconds = crawled_seconds(await backend.reader.runs())
    kept = old.without_reached(pages=pages, seconds=seconds)
    for name in ("max_pages", "max_duration"):
        if getattr(kept, name) != getattr(old, name) and name not in options.limits:
            say(f"an earlier run reached {option_name(name)}; this one continues without it")
    return with_limits(kept, options.limits, pages=pages, seconds=seconds)


def read_exclusions(path: Path | None) -> list[str]:
    """Return the patterns in an exclusion file; none without a file."""
    if path is None:
        return []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return parse_exclusions(lines, str(path))
    except OSError as error:
        raise UsageError(f"the exclusion file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the exclusion file {path} is not UTF-8 text") from error
