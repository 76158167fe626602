"""Turns the options that the user gave into a crawl that can start, or refuses them and changes nothing."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from rove.admin.exclude import current_user
from rove.app.seeds import has_good_line
from rove.config import Limits, Settings, settings_from_json, with_limits
from rove.datadir import DataDir
from rove.errors import Interrupted, UsageError
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.dns import parse_name_server
from rove.fetch.tls import authorities_for
from rove.frontier.contract import Backend, SeedSource
from rove.frontier.dsn import redacted
from rove.frontier.runs import crawled_seconds
from rove.humanize import counted
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
    max_pages: int | None = None
    max_duration: float | None = None
    max_pages_per_domain: int | None = None
    frontier: str | None = None
    """A PostgreSQL URL; None: the database that the data directory belongs to."""
    crawl_name: str | None = None
    processes: int | None = None
    log_level: str = "info"


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
    elif options.resume:
        if not await backend.exists():
            raise UsageError(f"{backend.location} holds no crawl to resume")
    else:
        if options.seeds is None:
            raise UsageError("no seeds given: rove crawl SEEDS --email ADDRESS")
        if "email" not in options.settings:
            raise UsageError("--email is missing: webmasters must be able to reach you")
        Settings(**options.settings).checked()


async def prepare(options: CrawlOptions, data: DataDir, backend: Backend, *, identity: str = "") -> Settings:
    """Open or create the crawl and save its settings and seeds; this process must hold the data directory.

    `identity` is that of the crawl which the data directory belongs to, or '' if it belongs to none yet.
    """
    if options.join:
        return await _saved_settings(options, backend, identity)
    exclusions = read_exclusions(options.exclude)
    with _opened(options.seeds) as seeds:
        if options.resume:
            settings = await _saved_settings(options, backend, identity)
        else:
            settings = await _new_settings(options, backend)
        source = None if seeds is None else _copy_seeds(options, data, seeds)
    try:
        await backend.open(create=True)
        settings = replace(settings, limits=await _limits(options, settings, backend))
        await backend.catalog.add_exclusions(exclusions, who=current_user(), reason=f"in {options.exclude}")
        await backend.catalog.save(settings.to_json(), source)
    except BaseException:
        if source is not None:
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
    seeds = None if options.seeds in (None, "-") else Path(options.seeds)
    if seeds is not None and not seeds.is_file():
        if seeds.exists():
            raise UsageError(
                f"the seed file {options.seeds} is not a regular file; to read seeds from a pipe, use 'rove crawl -'"
            )
        raise UsageError(f"there is no seed file {options.seeds}")
    if options.exclude is not None and not options.exclude.is_file():
        raise UsageError(f"there is no exclusion file {options.exclude}")


async def _new_settings(options: CrawlOptions, backend: Backend) -> Settings:
    if await backend.exists():
        await backend.open()
        if await backend.catalog.settings() is not None:
            pages = (await backend.reader.counts()).pages
            raise UsageError(
                f"{backend.location} already holds a crawl with {counted(pages, 'page')}; add --resume to continue it, "
                "or start the new crawl elsewhere"
            )
    return Settings(**options.settings).checked()


async def _saved_settings(options: CrawlOptions, backend: Backend, identity: str) -> Settings:
    """Return the settings of the existing crawl, changed as the options say."""
    # A machine that joins must not migrate the schema while others use it.
    await backend.open(create=options.resume)
    if identity and await backend.catalog.identity() != identity:
        raise UsageError(
            f"{options.data_dir} belongs to another crawl than the one in {backend.location}; choose another --data-dir"
        )
    saved = await backend.catalog.settings()
    if saved is None:
        raise UsageError(f"{backend.location} holds no crawl to resume")
    old = settings_from_json(saved)
    new = replace(old, **options.settings)
    if new.drop_params != old.drop_params:
        raise UsageError(
            f"this crawl was started {_drop_params_text(old)} and cannot change that, because it would no longer "
            "recognize its own URLs; leave --drop-param out, or start a new crawl"
        )
    return new.checked()


def _drop_params_text(settings: Settings) -> str:
    names = " ".join(f"--drop-param {name}" for name in settings.drop_params)
    return f"with {names}" if names else "without --drop-param"


async def _limits(options: CrawlOptions, settings: Settings, backend: Backend) -> Limits:
    """Return the limits of the crawl; new ones count from the pages and the time so far."""
    return with_limits(
        settings.limits,
        max_pages=options.max_pages,
        max_duration=options.max_duration,
        max_pages_per_domain=options.max_pages_per_domain,
        pages=(await backend.reader.counts()).pages,
        seconds=crawled_seconds(await backend.reader.runs()),
    )


def _copy_seeds(options: CrawlOptions, data: DataDir, seeds: BinaryIO) -> SeedSource:
    name = "standard input" if options.seeds == "-" else str(options.seeds)
    with _interruptible():
        path = data.save_seeds(seeds)
    if not has_good_line(path):
        path.unlink()
        raise UsageError(f"{name} holds no domain or URL to start from")
    return SeedSource(id=0, path=str(path.relative_to(data.root)), name=name)


def read_exclusions(path: Path | None) -> list[str]:
    """Return the patterns in an exclusion file; none without a file."""
    if path is None:
        return []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return parse_exclusions(lines, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the exclusion file {path} cannot be read: {error}") from error


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let signals interrupt a blocking read: the event loop, which usually handles them, is blocked too."""
    numbers: Sequence[int] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        numbers = ()
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _: object) -> None:
    raise Interrupted(number)


def _opened(seeds: str | None) -> AbstractContextManager[BinaryIO | None]:
    if seeds is None:
        return nullcontext()
    if seeds == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(seeds).open("rb")
    except OSError as error:
        raise UsageError(f"the seed file {seeds} cannot be read: {error.strerror}") from error
