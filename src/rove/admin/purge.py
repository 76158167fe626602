"""`rove purge`: delete the stored pages of a domain.

`rove.store.purge` rewrites the WARC files. This module tells it which pages share a deleted text, and updates the
locations in the frontier after each file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rove.datadir import DataDir
from rove.errors import StoreError
from rove.frontier.backends import opened_backend, saved_form
from rove.frontier.contract import Backend, FrontierReader
from rove.frontier.records import MovedContent
from rove.model.ledger import Location, RequestRow
from rove.notation.humanize import counted
from rove.policy.exclusions import Exclusions, domain_around
from rove.store.purge import Purge, Rewritten
from rove.store.purge_plan import Heir
from rove.store.reader import WarcReader
from rove.store.scan import ScannedRecord, scan
from rove.urls.canonical import UrlForm

RECORDS_PER_BATCH = 1_000


@dataclass(slots=True, kw_only=True)
class Purged:
    """The result of a purge."""

    files: int = 0
    records: int = 0
    """Records deleted."""
    remaining: int = 0
    """Records of other domains that moved to new files."""
    bytes_freed: int = 0
    titles: int = 0
    """Titles deleted from the ledger."""
    requests: int = 0
    """Requests to the purged hosts, which stay in the ledger."""


async def purge(data_dir: Path, pattern: str, say: Callable[[str], None]) -> Purged:
    """Delete the pages that a pattern covers from the WARC files here, and their titles from the ledger.

    Raise UsageError if a crawl is running here. The pattern must cover hosts of one domain.
    """
    data = DataDir(data_dir)
    covered = Exclusions([pattern])
    with data.held():
        await data.wait_for_workers(say)
        async with opened_backend(data) as backend:
            done, form = Purged(), await saved_form(backend.catalog)
            domain = domain_around(pattern)
            assert domain is not None, "the command refuses a pattern that is wider than one domain"
            await _forget_titles(backend, form.domain_id(domain), covered.covers_url, done)
            await _forget_skipped(backend, covered.covers_url)
            await _purge(data.warc, backend, form, covered.covers_url, say, done)
            return done


async def _forget_titles(backend: Backend, domain: int, is_purged: Callable[[str], bool], done: Purged) -> None:
    batch: list[tuple[int, int]] = []
    async for row in backend.reader.visits(domain):
        if not is_purged(row.url):
            continue
        done.requests += 1
        if row.title:
            done.titles += 1
            batch.append((row.visit, row.seq))
        if len(batch) == RECORDS_PER_BATCH:
            await backend.forget_titles(batch)
            batch = []
    await backend.forget_titles(batch)


async def _forget_skipped(backend: Backend, is_purged: Callable[[str], bool]) -> None:
    """Delete examples of links that were not taken and that lead to purged hosts or are on their pages."""
    links = [link for link in await backend.reader.skipped() if is_purged(link.url) or is_purged(link.page)]
    await backend.forget_skipped(links)


async def _purge(
    directory: Path,
    backend: Backend,
    form: UrlForm,
    is_purged: Callable[[str], bool],
    say: Callable[[str], None],
    done: Purged,
) -> None:
    loop = asyncio.get_running_loop()

    def heirs(texts: Sequence[tuple[int, Location]]) -> Mapping[int, Heir]:
        """Called in the thread that reads the files."""
        search = _heirs(backend, texts, is_purged, WarcReader(directory))
        return asyncio.run_coroutine_threadsafe(search, loop).result()

    work = Purge(directory, is_purged, heirs)
    files = work.rewrite()
    while (rewritten := await asyncio.to_thread(next, files, None)) is not None:
        await _update_locations(backend, form, directory, rewritten)
        await asyncio.to_thread(work.finish, rewritten.old)
        done.files += 1
        done.records += rewritten.removed
        done.remaining += rewritten.records
        done.bytes_freed += rewritten.bytes_freed
        say(f"{rewritten.old}: {counted(rewritten.removed, 'record')} removed")


async def _heirs(
    backend: Backend, texts: Sequence[tuple[int, Location]], is_purged: Callable[[str], bool], pages: WarcReader
) -> dict[int, Heir]:
    """Find, for each text of a deleted page, a remaining page with the same text; by the offset of the text.

    A text without one is forgotten before it is deleted. If it were deleted first, a purge that is killed in between
    would leave a crawl able to refer to a text that is gone. If another machine refers to the text at this very
    moment, that copy is lost too, and `rove show` says so.
    """
    known = await backend.reader.contents({hash for hash, _ in texts})
    heirs, forgotten = {}, []
    for hash, where in texts:
        content = known.get(hash)
        if content is None or content.node or content.where != where:
            continue  # no page refers to this record
        heir = await _heir(backend.reader, hash, is_purged, pages)
        if heir is None:
            forgotten.append((hash, where))
        else:
            heirs[where.offset] = heir
    await backend.forget_contents(forgotten)
    return heirs


async def _heir(reader: FrontierReader, hash: int, is_purged: Callable[[str], bool], pages: WarcReader) -> Heir | None:
    async for row in reader.copies(hash):
        if not is_purged(row.url):
            return Heir(
                url=row.url,
                fetched_at=row.started,
                domain=row.domain,
                visit=row.visit,
                response_id=_response_id(row, pages),
            )
    return None


def _response_id(row: RequestRow, pages: WarcReader) -> str | None:
    """Return the record id of a page's response, None if it is not stored here or cannot be read."""
    if row.raw is None or row.node:
        return None
    try:
        return pages.response_id(row.raw, row.url)
    except StoreError:
        return None  # a damaged response must not keep a text from being inherited


async def _update_locations(backend: Backend, form: UrlForm, directory: Path, rewritten: Rewritten) -> None:
    """Write to the database where the pages and texts of a rewritten file are now."""
    records = _members_of(directory / rewritten.old)
    while batch := await asyncio.to_thread(lambda: list(islice(records, RECORDS_PER_BATCH))):
        texts = [text for member in batch if (text := _moved_text(member, rewritten))]
        await backend.relocate_contents(texts)
        changed = {}
        for url in dict.fromkeys(member.headers.get("warc-target-uri") for member in batch):
            for row in await _rows_in(backend.reader, url, rewritten.old, form):
                changed[row.visit, row.seq] = row.replace(
                    text=_moved(row.text, rewritten), raw=_moved(row.raw, rewritten)
                )
        await backend.relocate_pages(list(changed.values()))


def _members_of(path: Path) -> Iterator[ScannedRecord]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield from scan(fd)
    finally:
        os.close(fd)


def _moved_text(member: ScannedRecord, rewritten: Rewritten) -> MovedContent | None:
    """Return where a text is in the new file, None if the record holds no text or is gone."""
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


async def _rows_in(reader: FrontierReader, text: str | None, file: str, form: UrlForm) -> list[RequestRow]:
    """Return the requests of the visit that settled a URL whose pages are in a file."""
    url = None if text is None else form.in_full.canonical(text)
    record = None if url is None else await reader.url(url.domain, url.fingerprint)
    if record is None or record.visit is None:
        return []
    return [
        row
        for row in await reader.requests(record.visit)
        if not row.node and any(where and where.file == file for where in (row.text, row.raw))
    ]


def _moved(where: Location | None, rewritten: Rewritten) -> Location | None:
    """Return where a record is in the new file, None if it is gone. A record of another file stays where it is."""
    if where is None or where.file != rewritten.old:
        return where
    offset = rewritten.moved.get(where.offset)
    if offset is None or rewritten.new is None:
        return None
    length = rewritten.lengths.get(where.offset, where.length)
    return Location(file=rewritten.new, offset=offset, length=length)
