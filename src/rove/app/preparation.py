"""From what a person asked for to a crawl that can start: checked, remembered, nothing changed if it cannot be."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from rove.admin.exclude import current_user
from rove.app.seeds import has_good_line
from rove.config import Limits, Settings, settings_from_json, with_limits
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.dns import parse_name_server
from rove.fetch.tls import authorities_for
from rove.frontier.contract import Backend, SeedSource
from rove.frontier.runs import crawled_seconds
from rove.humanize import counted
from rove.policy.exclusions import parse_exclusions


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOrder:
    """What a person asked for."""

    data_dir: Path
    seeds: str | None = None
    """A file, or '-' for standard input."""
    resume: bool = False
    exclude: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """The fields of Settings that were given."""
    max_pages: int | None = None
    max_duration: float | None = None
    max_pages_per_domain: int | None = None
    log_level: str = "info"
    frontier: str | None = None
    """The URL of a PostgreSQL; None: the data directory knows."""
    crawl_name: str | None = None
    join: bool = False
    """Take part in a crawl that somebody else started: nothing of it can be changed."""
    processes: int | None = None
    crawl_identity: str = ""
    """Of the crawl that the data directory belongs to; '' if that is not known."""
    own_concurrency: int | None = None
    """Fetches in flight on this machine, whatever the crawl's settings say."""
    own: dict[str, Any] = field(default_factory=dict)
    """Fields of Settings that hold on this machine alone."""


async def prepare(order: CrawlOrder, data: DataDir, backend: Backend) -> Settings:
    """Open the crawl that is asked for, and save its settings and seeds; the data directory is held."""
    if order.join:
        return await _old(order, backend)
    exclusions = read_exclusions(order.exclude)
    with _opened(order.seeds) as seeds:
        settings = await (_old if order.resume else _new)(order, backend)
        source = None if seeds is None else _take_seeds(order, data, seeds)
    try:
        await backend.open(create=True)
        settings = replace(settings, limits=await _limits(order, settings, backend))
        await backend.catalog.add_exclusions(
            exclusions, who=current_user(), reason=f"in {order.exclude}"
        )
        await backend.catalog.save(settings.to_json(), source)
    except BaseException:
        if source is not None:
            (data.root / source.path).unlink(missing_ok=True)
        raise
    return settings


async def check(order: CrawlOrder, backend: Backend) -> None:
    """Refuse what can be seen to be wrong before anything is touched."""
    _check_options(order)
    _check_files(order)
    if order.join:
        if not await backend.exists():
            raise UsageError(
                f"{backend.location} holds no crawl to join; start one with 'rove crawl --frontier'"
            )
    elif order.resume:
        if not await backend.exists():
            raise UsageError(f"{backend.location} holds no crawl to resume")
    else:
        if order.seeds is None:
            raise UsageError("say where to start: rove crawl SEEDS --email ADDRESS")
        if "email" not in order.options:
            raise UsageError("--email is missing: webmasters must be able to reach you")
        Settings(**order.options).checked()


def _check_options(order: CrawlOrder) -> None:
    """What only the parts that use it can judge."""
    for rule in order.options.get("connect_to", ()):
        parse_connect_to(rule)
    for server in order.options.get("dns_servers", ()):
        parse_name_server(server)
    if order.options.get("strict_tls"):
        authorities_for(strict=True)


def _check_files(order: CrawlOrder) -> None:
    if order.seeds not in (None, "-") and not Path(str(order.seeds)).is_file():
        if Path(str(order.seeds)).exists():
            raise UsageError(
                f"the seed file {order.seeds} is no file; what comes from a pipe is read with 'rove crawl -'"
            )
        raise UsageError(f"there is no seed file {order.seeds}")
    if order.exclude is not None and not order.exclude.is_file():
        raise UsageError(f"there is no exclusion file {order.exclude}")


async def _new(order: CrawlOrder, backend: Backend) -> Settings:
    if await backend.exists():
        await backend.open()
        if await backend.catalog.settings() is not None:
            pages = (await backend.reader.counts()).pages
            raise UsageError(
                f"{backend.location} already holds a crawl with {counted(pages, 'page')}; add --resume to go on with "
                "it, or choose another place for this one"
            )
    return Settings(**order.options).checked()


async def _old(order: CrawlOrder, backend: Backend) -> Settings:
    # Who joins must not change the schema under the others.
    await backend.open(create=order.resume)
    if order.crawl_identity and await backend.catalog.identity() != order.crawl_identity:
        raise UsageError(
            f"{order.data_dir} belongs to another crawl than the one in {backend.location}; "
            "choose another --data-dir"
        )
    kept = await backend.catalog.settings()
    if kept is None:
        raise UsageError(f"{backend.location} holds no crawl to resume")
    old = settings_from_json(kept)
    new = replace(old, **order.options)
    if new.drop_params != old.drop_params:
        raise UsageError(
            f"this crawl was started {_drops_text(old)}; that cannot be changed, "
            "as it would not know its own URLs any more: leave --drop-param out, or start a new crawl"
        )
    return new.checked()


def _drops_text(settings: Settings) -> str:
    names = " ".join(f"--drop-param {name}" for name in settings.drop_params)
    return f"with {names}" if names else "without --drop-param"


async def _limits(order: CrawlOrder, settings: Settings, backend: Backend) -> Limits:
    """Limits that are given count from where the crawl stands now."""
    return with_limits(
        settings.limits,
        max_pages=order.max_pages,
        max_duration=order.max_duration,
        max_pages_per_domain=order.max_pages_per_domain,
        pages=(await backend.reader.counts()).pages,
        seconds=crawled_seconds(await backend.reader.runs()),
    )


def _take_seeds(order: CrawlOrder, data: DataDir, seeds: BinaryIO) -> SeedSource:
    name = "standard input" if order.seeds == "-" else str(order.seeds)
    with _interruptible():
        path = data.save_seeds(seeds)
    if not has_good_line(path):
        path.unlink()
        raise UsageError(f"{name} holds no domain or URL to start from")
    return SeedSource(id=0, path=str(path.relative_to(data.root)), name=name)


def read_exclusions(path: Path | None) -> list[str]:
    """The patterns in a file of exclusions; none without a file."""
    if path is None:
        return []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return parse_exclusions(lines, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the exclusion file {path} cannot be read: {error}") from error


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end a wait for somebody to type: the event loop, which would hear it, is waiting too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _opened(seeds: str | None) -> Iterator[BinaryIO | None]:
    if seeds is None:
        yield None
    elif seeds == "-":
        yield sys.stdin.buffer
    else:
        try:
            file = Path(seeds).open("rb")  # noqa: SIM115 - closed below
        except OSError as error:
            raise UsageError(f"the seed file {seeds} cannot be read: {error.strerror}") from error
        with file:
            yield file
