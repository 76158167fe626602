"""A purge keeps a text that pages of other domains share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec import structs

from rove.model.ledger import Content, Location
from rove.model.text_hash import text_hash
from rove.store.contract import Keep, Page, Stored
from rove.store.purge import Purge, Rewritten
from rove.store.purge_plan import Heir
from rove.store.reader import WarcReader
from rove.store.record import decompress
from tests.unit.store.pages import files, passes_warcio_check, store, warcio_records
from tests.unit.store.purging import Killed, Rows, is_purged, kill_after, of_domain

SHARED = "A text that two domains have. " * 20


@dataclass(kw_only=True)
class Shared:
    """Stands for the database: the locations of texts that several pages share."""

    rows: Rows
    copies: list[Page]
    """The pages that refer to the text."""
    location: Location | None

    def heirs(self, texts: Sequence[tuple[int, Location]]) -> dict[int, Heir]:
        left = [copy for copy in self.copies if not is_purged(copy.url)]
        for hash, where in texts:
            if hash == text_hash(SHARED.encode()) and where == self.location:
                if left:
                    heir = left[0]
                    raw = self.rows.locations.get((heir.url, "raw"))
                    response = None if raw is None else WarcReader(self.rows.directory).response_id(raw, heir.url)
                    return {where.offset: Heir(url=heir.url, fetched_at=9.0, domain=3, visit=4, response_id=response)}
                self.location = None
        return {}

    def run(self) -> list[Rewritten]:
        """Do what the caller of a purge does, and check everything in between."""
        purge = Purge(self.rows.directory, is_purged, self.heirs)
        results = []
        for done in purge.rewrite():
            self.check()
            self.rows.update(done)
            self.check()
            self.update(done)
            self.check()
            purge.finish(done.old)
            self.check()
            results.append(done)
        return results

    def update(self, done: Rewritten) -> None:
        if self.location is None or self.location.file != done.old:
            return
        inherited = done.inherited.get(self.location.offset)
        if inherited is not None:
            assert done.new is not None
            assert (inherited.hash, inherited.domain, inherited.visit) == (text_hash(SHARED.encode()), 3, 4)
            self.location = Location(file=done.new, offset=inherited.offset, length=inherited.length)
        else:
            self.rows.locations["shared", "at"] = self.location
            self.rows.update(done)
            self.location = self.rows.locations.pop(("shared", "at"))

    def check(self) -> None:
        """Check that every other page has its text and its own record."""
        reader = WarcReader(self.rows.directory)
        for (url, _), at in self.rows.locations.items():
            if at is not None:
                assert decompress(_bytes_at(self.rows.directory, at)).headers[TARGET] == url
        if any(not is_purged(copy.url) for copy in self.copies):
            assert self.location is not None
            assert reader.read_text(self.location) == SHARED

    def check_end(self) -> None:
        """Check that no file names a purged page."""
        self.check()
        for path in self.rows.directory.iterdir():
            assert passes_warcio_check(path)
            for record, body in warcio_records(path):
                assert "gone.example" not in str(record.rec_headers) + body.decode("utf-8", "replace")


TARGET = "warc-target-uri"


def _bytes_at(directory: Path, at: Location) -> bytes:
    return (directory / at.file).read_bytes()[at.offset : at.offset + at.length]


def shared(directory: Path, *domains: Sequence[str], keep: Keep = Keep.TEXT) -> Shared:
    """Make files of pages with the same text, which the first one has and the others refer to, and other pages."""
    rows = Rows(directory=directory)
    hash = text_hash(SHARED.encode())
    copies: list[Page] = []
    first: list[tuple[Page, Stored]] = []

    async def run() -> None:
        for number, group in enumerate(domains):
            writer = store(directory, keep)
            for index, domain in enumerate(group):
                one = of_domain(domain, 10 * number + index)
                same = structs.replace(one, url=one.url + "/same", text=SHARED.encode(), content_hash=hash)
                known = {hash: _content(*first[0])} if first else {}
                for each, at in zip([one, same], await writer.write([one, same], known), strict=True):
                    rows.add(each, at)
                if at.is_copy:
                    copies.append(same)
                else:
                    first.append((same, at))
            await writer.close()

    asyncio.run(run())
    assert len(first) == 1
    return Shared(rows=rows, copies=copies, location=first[0][1].text)


def _content(page: Page, stored: Stored) -> Content:
    assert stored.text is not None and stored.sha1_64 is not None and page.content_hash is not None
    return Content(
        hash=page.content_hash,
        sha1_64=stored.sha1_64,
        domain=1,
        visit=2,
        where=stored.text,
        url=page.url,
        fetched_at=page.fetched_at,
    )


GONE, KEPT = "gone.example", "kept.example"


@pytest.mark.parametrize("keep", [Keep.TEXT, Keep.BOTH])
@pytest.mark.parametrize(
    "domains",
    [
        [[GONE, KEPT, GONE, KEPT]],
        [[GONE, GONE], [KEPT, KEPT]],
        [[KEPT, GONE], [GONE], [KEPT]],
        [[GONE], [GONE], [KEPT, GONE]],
    ],
)
def test_a_shared_text_stays_for_the_other_pages(tmp_path: Path, domains: list[list[str]], keep: Keep) -> None:
    texts = shared(tmp_path, *domains, keep=keep)
    texts.run()
    texts.check_end()
    assert texts.location is not None
    heir = decompress(_bytes_at(tmp_path, texts.location)).headers
    first_stays = domains[0][0] == KEPT
    assert heir[TARGET].startswith("https://kept.example/")
    if not first_stays:
        assert heir["warc-date"] == "1970-01-01T00:00:09Z"
        raw = texts.rows.locations.get((heir[TARGET], "raw"))
        response = None if raw is None else decompress(_bytes_at(tmp_path, raw)).headers["warc-record-id"]
        assert heir.get("warc-refers-to") == response and (response is None) is (keep is Keep.TEXT)
    names = files(tmp_path)
    assert texts.run() == [] and files(tmp_path) == names


def test_a_text_without_heirs_is_deleted(tmp_path: Path) -> None:
    texts = shared(tmp_path, [GONE, GONE], [GONE])
    texts.run()
    assert texts.location is None and files(tmp_path) == []


def test_a_file_that_only_refers_to_purged_pages_is_rewritten(tmp_path: Path) -> None:
    texts = shared(tmp_path, [GONE], [KEPT])
    _, second = files(tmp_path)
    done = texts.run()
    assert [(step.removed, step.records) for step in done] == [(2, 1), (0, 2)]
    assert list(done[1].lengths) and files(tmp_path)[1] == second.replace(".warc", "-p1.warc")
    texts.check_end()


def test_after_a_kill_at_any_change_of_the_disk_shared_texts_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for changes in range(1_000):
        texts = shared(tmp_path / str(changes), [GONE, KEPT, GONE], [KEPT, GONE], keep=Keep.TEXT)
        with monkeypatch.context() as patch:
            kill = kill_after(patch, changes)
            try:
                texts.run()
            except Killed:
                kill.left = -1
        was_killed = kill.left < 0
        texts.check()
        texts.run()
        texts.check_end()
        if not was_killed:
            break
    assert changes > 15


# Killed
