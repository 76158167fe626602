"""What a person does to a crawl besides running it: exclude, include, purge."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rove.admin import apply_exclusions as enforce
from rove.config import settings_from_json
from rove.datadir import DataDir, this_person
from rove.errors import UsageError
from rove.frontier.backends import opened_backend, policy_of
from rove.frontier.contract import Backend, Exclusion, Frontier, FrontierReader, MovedContent
from rove.inspect.nodes import is_running
from rove.model.ledger import Location, RequestRow
from rove.policy.exclusions import Exclusions
from rove.store.members import Member, members
from rove.store.purge import Purge, Rewritten
from rove.store.purge_copy import Heir
from rove.urls.canonical import canonical

STRAGGLER_SECONDS = 2 * enforce.FOLLOW_SECONDS
"""After so long every process of a running crawl knows of an exclusion, and adds nothing of it any more."""
RECORDS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """What came of an exclusion."""

    new: Sequence[str]
    """The patterns that were not excluded before."""
    urls: int
    """URLs that left the queue."""
    is_running: bool


@dataclass(slots=True, kw_only=True)
class Purged:
    """What a purge has taken away."""

    files: int = 0
    records: int = 0
    kept: int = 0
    """Records of other domains that moved to new files."""
    bytes_freed: int = 0


async def exclude(data_dir: Path, patterns: Sequence[str], reason: str) -> Excluded:
    """Never touch these again, on any machine; what is pending leaves the queue."""
    data = DataDir(data_dir)
    async with opened_backend(data) as backend:
        new = await backend.catalog.add_exclusions(patterns, who=this_person(), reason=reason)
        frontier = await _frontier_of(backend)
        urls = await enforce.exclude(frontier, patterns)
        running = await _is_running(data, backend)
        if running:
            # Until they have heard of it, the processes of the crawl may still add URLs.
            await asyncio.sleep(STRAGGLER_SECONDS)
            urls += await enforce.exclude(frontier, patterns)
        return Excluded(new=new, urls=urls, is_running=running)


async def include(data_dir: Path, patterns: Sequence[str]) -> int:
    """Lift exclusions; return how many URLs are pending again."""
    data = DataDir(data_dir)
    async with opened_backend(data) as backend:
        known = set(await backend.catalog.exclusions())
        unknown = [pattern for pattern in patterns if pattern not in known]
        if unknown:
            raise UsageError(_not_excluded(unknown[0], Exclusions(known)))
        await backend.catalog.lift_exclusions(patterns, who=this_person())
        frontier = await _frontier_of(backend)
        still = Exclusions(await backend.catalog.exclusions())
        running = await _is_running(data, backend)
        if running:
            # A process that has not heard of it yet would block again what is opened.
            await asyncio.sleep(STRAGGLER_SECONDS)
        opened = await enforce.include(frontier, patterns, still)
        if running:
            await asyncio.sleep(STRAGGLER_SECONDS)
            await enforce.include(frontier, patterns, still)
        return opened


async def exclusions_of(data_dir: Path) -> list[Exclusion]:
    """All exclusions that there ever were."""
    async with opened_backend(DataDir(data_dir), read_only=True) as backend:
        return await backend.catalog.exclusion_history()


async def purge(data_dir: Path, pattern: str, say: Callable[[str], None]) -> Purged:
    """Rewrite the WARC files of this machine without what a pattern covers; nobody may be crawling here."""
    data = DataDir(data_dir)
    covered = Exclusions([pattern])
    done = Purged()
    with data.held():
        await data.wait_for_workers(say)
        async with opened_backend(data) as backend:
            loop = asyncio.get_running_loop()

            def heirs(texts: Sequence[tuple[int, Location]]) -> Mapping[int, Heir]:
                """Asked in the thread that reads the files."""
                asked = _heirs(backend, texts, covered.covers_url)
                return asyncio.run_coroutine_threadsafe(asked, loop).result()

            work = Purge(data.warc, covered.covers_url, heirs)
            files = work.rewrite()
            while (rewritten := await asyncio.to_thread(_next, files)) is not None:
                await _place_again(backend, data.warc, rewritten)
                await asyncio.to_thread(work.finish, rewritten.old)
                done.files += 1
                done.records += rewritten.removed
                done.kept += rewritten.records
                done.bytes_freed += rewritten.bytes_freed
                say(f"{rewritten.old}: {rewritten.removed:,} records removed")
    return done


async def _is_running(data: DataDir, backend: Backend) -> bool:
    return is_running(await backend.reader.participants(), in_use=data.in_use())


async def _frontier_of(backend: Backend) -> Frontier:
    """The frontier of a crawl, to look after it."""
    kept = await backend.catalog.settings()
    assert kept is not None, "a crawl that was opened has settings"
    return await backend.begin(policy_of(settings_from_json(kept)), None)


def _not_excluded(pattern: str, known: Exclusions) -> str:
    covering = known.covering(pattern.removeprefix("="))
    if covering is not None:
        return f"{pattern} is not excluded by itself but by {covering}; include that"
    return f"{pattern} is not excluded"


async def _heirs(
    backend: Backend, texts: Sequence[tuple[int, Location]], is_purged: Callable[[str], bool]
) -> dict[int, Heir]:
    """Of texts whose pages go: the pages that have no other and stay, by offset; the rest is forgotten.

    Forgotten before it is deleted: were the purge killed in between, a crawl could refer to it. What another machine
    refers to in this very moment is lost with it, and `show` says so.
    """
    known = await backend.reader.contents({hash for hash, _ in texts})
    found, forgotten = {}, []
    for hash, where in texts:
        content = known.get(hash)
        if content is None or content.place or content.where != where:
            continue  # nobody refers to this record
        heir = await _heir(backend.reader, hash, is_purged)
        if heir is None:
            forgotten.append((hash, where))
        else:
            found[where.offset] = heir
    await backend.forget_contents(forgotten)
    return found


async def _heir(reader: FrontierReader, hash: int, is_purged: Callable[[str], bool]) -> Heir | None:
    async for row in reader.copies(hash):
        if not is_purged(row.url):
            return Heir(url=row.url, fetched_at=row.started, domain=row.domain, visit=row.visit)
    return None


async def _place_again(backend: Backend, directory: Path, rewritten: Rewritten) -> None:
    """Tell the database where the pages and texts of a file are now."""
    records = _members_of(directory / rewritten.old)
    while some := await asyncio.to_thread(_some, records):
        texts = [text for member in some if (text := _moved_text(member, rewritten))]
        await backend.place_contents(texts)
        changed = {}
        for url in dict.fromkeys(member.headers.get("warc-target-uri") for member in some):
            for row in await _rows_in(backend.reader, url, rewritten.old):
                changed[row.visit, row.seq] = row.replace(
                    text=_moved(row.text, rewritten), raw=_moved(row.raw, rewritten)
                )
        await backend.place_again(list(changed.values()))


def _members_of(path: Path) -> Iterator[Member]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield from members(fd)
    finally:
        os.close(fd)


def _some(records: Iterator[Member]) -> list[Member]:
    return list(islice(records, RECORDS_AT_ONCE))


def _moved_text(member: Member, rewritten: Rewritten) -> MovedContent | None:
    """Where a text is after its file was rewritten, None if the record is none or is gone."""
    if member.text_hash is None or rewritten.new is None:
        return None
    old = Location(file=rewritten.old, offset=member.offset, length=member.length)
    inherited = rewritten.inherited.get(member.offset)
    if inherited is not None:
        new = Location(file=rewritten.new, offset=inherited.offset, length=inherited.length)
        heir = (inherited.domain, inherited.visit)
        return MovedContent(hash=member.text_hash, old=old, new=new, heir=heir)
    moved = _moved(old, rewritten)
    return None if moved is None else MovedContent(hash=member.text_hash, old=old, new=moved)


async def _rows_in(reader: FrontierReader, text: str | None, file: str) -> list[RequestRow]:
    """The requests for a URL whose page is in a file: those of the visit that settled it."""
    url = None if text is None else canonical(text)
    record = None if url is None else await reader.url(url.domain, url.fingerprint)
    if record is None or record.visit is None:
        return []
    return [
        row
        for row in await reader.requests(record.visit)
        if not row.place and any(where and where.file == file for where in (row.text, row.raw))
    ]


def _moved(where: Location | None, rewritten: Rewritten) -> Location | None:
    """Where a record is after its file was rewritten, None if it is gone."""
    if where is None or where.file != rewritten.old:
        return where
    offset = rewritten.moved.get(where.offset)
    if offset is None or rewritten.new is None:
        return None
    length = rewritten.lengths.get(where.offset, where.length)
    return Location(file=rewritten.new, offset=offset, length=length)


def _next(files: Iterator[Rewritten]) -> Rewritten | None:
    return next(files, None)
