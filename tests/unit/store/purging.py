"""Stores to purge, a stand-in for the database, and simulated kills."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import structs

from rove.model.ledger import Location
from rove.store.contract import Keep, Page, Stored
from rove.store.purge import Purge, Rewritten
from rove.store.reader import WarcReader
from tests.unit.store.pages import page, passes_warcio_check, store, warcio_records

PURGED = "https://gone.example/"


def is_purged(url: str) -> bool:
    return url.startswith(PURGED)


def of_domain(domain: str, number: int, size: int = 1) -> Page:
    made = page(number, f"text {number} of {domain} " * size)
    return structs.replace(made, url=f"https://{domain}/{number}")


@dataclass(kw_only=True)
class Rows:
    """Stands for the database: the locations of the records of each page."""

    directory: Path
    locations: dict[tuple[str, str], Location | None] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)

    def add(self, page: Page, stored: Stored) -> None:
        self.pages[page.url] = page
        for kind, location in (("raw", stored.raw), ("text", stored.text)):
            if location:
                self.locations[page.url, kind] = location

    def update(self, done: Rewritten, at_most: int | None = None) -> None:
        """Update the rows; `at_most` stops in the middle, like a kill."""
        rows = [(key, at) for key, at in self.locations.items() if at and at.file == done.old]
        for key, at in rows[:at_most]:
            offset = done.moved.get(at.offset)
            if offset is None:
                self.locations[key] = None
            else:
                assert done.new is not None
                length = done.lengths.get(at.offset, at.length)
                self.locations[key] = Location(file=done.new, offset=offset, length=length)

    def check(self) -> None:
        """Check that each row leads to its record, unless its page is purged."""
        reader = WarcReader(self.directory)
        for (url, kind), location in self.locations.items():
            if location is None:
                assert is_purged(url)
            elif kind == "text":
                assert reader.read_text(location, url) == self.pages[url].text.decode()
            else:
                source = self.pages[url].source
                assert source is not None
                assert reader.read_raw(location, url).endswith(source.wire_body)

    def check_end(self, *unknown: str) -> None:
        """Check the state after a purge; `unknown` are URLs that are in the files but in no row."""
        self.check()
        assert all((location is None) == is_purged(url) for (url, _), location in self.locations.items())
        results = []
        for path in self.directory.iterdir():
            assert path.name.endswith(".warc.gz")
            assert passes_warcio_check(path)
            first, *rest = [record for record, _ in warcio_records(path)]
            assert first.rec_headers.get_header("WARC-Filename") == path.name
            assert rest
            results += [(record.rec_headers.get_header("WARC-Target-URI"), record.rec_type) for record in rest]
        kinds = {"raw": "response", "text": "conversion"}
        expected = [(url, kinds[kind]) for (url, kind), location in self.locations.items() if location]
        expected += [(url, "conversion") for url in unknown]
        assert sorted(results) == sorted(expected)


def stored(directory: Path, groups: Sequence[Sequence[Page]], keep: Keep = Keep.TEXT, **options: int) -> Rows:
    """Make a store with one file per batch, and its rows."""
    rows = Rows(directory=directory)

    async def run() -> None:
        for group in groups:
            writer = store(directory, keep, **options)
            for one, at in zip(group, await writer.write(group), strict=True):
                rows.add(one, at)
            await writer.close()

    asyncio.run(run())
    return rows


def three_files(directory: Path) -> Rows:
    """Make one file with purged and other pages, one without purged pages, and one with nothing else."""
    mixed = [of_domain("gone.example" if n % 3 else "kept.example", n, n + 1) for n in range(20)]
    kept = [of_domain("kept.example", n) for n in range(20, 25)]
    gone = [of_domain("gone.example", n) for n in range(25, 30)]
    return stored(directory, [mixed, kept, gone])


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def purge_of(directory: Path, is_purged: Callable[[str], bool] = is_purged) -> Purge:
    """Prepare the purge of a store in which no pages share a text."""
    return Purge(directory, is_purged, lambda texts: {})


def run_purge(rows: Rows) -> list[Rewritten]:
    """Do what the caller of a purge does."""
    purge = purge_of(rows.directory)
    results = []
    for done in purge.rewrite():
        rows.check()
        rows.update(done)
        rows.check()
        purge.finish(done.old)
        rows.check()
        results.append(done)
    return results


class Killed(BaseException):
    """Stands for a kill of the process."""


class KillAfter:
    """Allows a number of changes to the disk, then none, so that no cleanup happens either."""

    def __init__(self, changes: int) -> None:
        self.left = changes

    def step(self) -> None:
        if not self.left:
            raise Killed
        self.left -= 1


CHANGING_CALLS = [(os, "write"), (os, "fsync"), (Path, "rename"), (Path, "unlink")]


def kill_after(monkeypatch: pytest.MonkeyPatch, changes: int) -> KillAfter:
    """Kill after this many changes to the disk."""
    kill = KillAfter(changes)

    def guarded(call: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **kwargs: object) -> object:
            kill.step()
            return call(*args, **kwargs)

        return run

    for owner, name in CHANGING_CALLS:
        monkeypatch.setattr(owner, name, guarded(getattr(owner, name)))
    opened = os.open

    def open_file(path: str | Path, flags: int, *args: int) -> int:
        if flags & os.O_CREAT:
            kill.step()
        return opened(path, flags, *args)

    monkeypatch.setattr(os, "open", open_file)
    return kill
