"""Purge: what is to go is gone, all else is where the database is told, killed at whatever point."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from rove.errors import DiskFull, StoreError
from rove.model.ledger import Content, Location
from rove.store.contract import Keep, Page, Stored
from rove.store.purge import Purge, Rewritten
from rove.store.purge_plan import Heir, Moves
from rove.store.reader import WarcReader
from rove.store.record import compress, decompress, text_record, warcinfo_record
from rove.store.recovery import RecoveryReport, recover
from rove.urls.fingerprint import fingerprint
from tests.unit.store.pages import files, page, passes_warcio_check, store, warcio_records

GOES = "https://gone.example/"


def is_purged(url: str) -> bool:
    return url.startswith(GOES)


def of_domain(domain: str, number: int, size: int = 1) -> Page:
    made = page(number, f"text {number} of {domain} " * size)
    return structs.replace(made, url=f"https://{domain}/{number}")


@dataclass(kw_only=True)
class Rows:
    """What the database of a crawl knows: where the records of each page are."""

    directory: Path
    places: dict[tuple[str, str], Location | None] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)

    def add(self, page: Page, stored: Stored) -> None:
        self.pages[page.url] = page
        for kind, place in (("raw", stored.raw), ("text", stored.text)):
            if place:
                self.places[page.url, kind] = place

    def update(self, done: Rewritten, at_most: int | None = None) -> None:
        """Tell of the move; `at_most` stops in the middle, as a kill does."""
        rows = [(key, at) for key, at in self.places.items() if at and at.file == done.old]
        for key, at in rows[:at_most]:
            offset = done.moved.get(at.offset)
            if offset is None:
                self.places[key] = None
            else:
                assert done.new is not None
                length = done.lengths.get(at.offset, at.length)
                self.places[key] = Location(file=done.new, offset=offset, length=length)

    def check(self) -> None:
        """Each row leads to its record, unless its page is one that goes."""
        reader = WarcReader(self.directory)
        for (url, kind), place in self.places.items():
            if place is None:
                assert is_purged(url)
            elif kind == "text":
                assert reader.read_text(place, url) == self.pages[url].text.decode()
            else:
                source = self.pages[url].source
                assert source is not None
                assert reader.read_raw(place, url).endswith(source.wire_body)

    def check_end(self, *unknown: str) -> None:
        """The state in which every purge ends; `unknown` are URLs in the files and in no row."""
        self.check()
        assert all((place is None) == is_purged(url) for (url, _), place in self.places.items())
        found = []
        for path in self.directory.iterdir():
            assert path.name.endswith(".warc.gz")
            assert passes_warcio_check(path)
            first, *rest = [record for record, _ in warcio_records(path)]
            assert first.rec_headers.get_header("WARC-Filename") == path.name
            assert rest
            found += [
                (record.rec_headers.get_header("WARC-Target-URI"), record.rec_type)
                for record in rest
            ]
        kinds = {"raw": "response", "text": "conversion"}
        expected = [(url, kinds[kind]) for (url, kind), place in self.places.items() if place]
        expected += [(url, "conversion") for url in unknown]
        assert sorted(found) == sorted(expected)


def stored(
    directory: Path, groups: Sequence[Sequence[Page]], keep: Keep = Keep.BOTH, **options: int
) -> Rows:
    """A store of one file for each group, and the rows about it."""
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
    """One file with both kinds of pages, one that stays as it is, one that goes as a whole."""
    mixed = [of_domain("gone.example" if n % 3 else "kept.example", n, n + 1) for n in range(20)]
    kept = [of_domain("kept.example", n) for n in range(20, 25)]
    gone = [of_domain("gone.example", n) for n in range(25, 30)]
    return stored(directory, [mixed, kept, gone])


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def run_purge(rows: Rows) -> list[Rewritten]:
    """What the caller of a purge does."""
    purge = Purge(rows.directory, is_purged)
    found = []
    for done in purge.rewrite():
        rows.check()
        rows.update(done)
        rows.check()
        purge.finish(done.old)
        rows.check()
        found.append(done)
    return found


def test_what_goes_is_gone_and_the_rest_is_where_it_is_said_to_be(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    mixed, kept, gone = files(tmp_path)
    before = {name: (tmp_path / name).stat() for name in (mixed, kept, gone)}
    first, second = run_purge(rows)
    rows.check_end()
    new = mixed.replace(".warc.gz", "-p1.warc.gz")
    assert files(tmp_path) == sorted([new, kept])
    assert (first.old, first.new, first.records, first.removed) == (mixed, new, 14, 26)
    assert first.bytes_freed == before[mixed].st_size - (tmp_path / new).stat().st_size
    assert (second.old, second.new, second.records, second.removed) == (gone, None, 0, 10)
    assert second.bytes_freed == before[gone].st_size
    assert (tmp_path / kept).stat().st_ino == before[kept].st_ino
    assert (tmp_path / kept).stat().st_mtime_ns == before[kept].st_mtime_ns


def test_what_stays_is_the_same_bytes(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    mixed = tmp_path / files(tmp_path)[0]
    data = mixed.read_bytes()
    first, _ = run_purge(rows)
    assert first.new is not None
    new = (tmp_path / first.new).read_bytes()
    lengths = [at.length for at in rows.places.values() if at is not None and at.file == first.new]
    assert len(lengths) == len(first.moved) == 14
    for (old_offset, new_offset), length in zip(first.moved.items(), lengths, strict=True):
        there, here = data[old_offset:][:length], new[new_offset:][:length]
        assert there == here


def test_the_opening_says_what_it_said_under_its_own_name(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    mixed = tmp_path / files(tmp_path)[0]
    before, fields = warcio_records(mixed)[0]
    first, _ = run_purge(rows)
    assert first.new is not None
    after, fields_after = warcio_records(tmp_path / first.new)[0]
    assert fields_after == fields and b"rove/test" in fields
    for name in ("WARC-Type", "WARC-Date", "Content-Type"):
        assert after.rec_headers.get_header(name) == before.rec_headers.get_header(name)
    ids = [each.rec_headers.get_header("WARC-Record-ID") for each in (before, after)]
    assert ids[0] != ids[1]


def test_nothing_to_purge_changes_nothing(tmp_path: Path) -> None:
    rows = stored(tmp_path, [[of_domain("kept.example", n) for n in range(5)]])
    before = {path.name: path.stat() for path in tmp_path.iterdir()}
    assert run_purge(rows) == []
    assert {path.name: path.stat() for path in tmp_path.iterdir()} == before


def test_no_directory_is_nothing_to_purge(tmp_path: Path) -> None:
    assert list(Purge(tmp_path / "none", is_purged).rewrite()) == []
    assert Purge(tmp_path / "none", is_purged).unfinished() is None
    assert not (tmp_path / "none").exists()


def test_a_second_purge_finds_nothing(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    run_purge(rows)
    names = files(tmp_path)
    assert run_purge(rows) == []
    assert files(tmp_path) == names


def is_of(domain: str, url: str) -> bool:
    return f"//{domain}/" in url


def test_a_file_may_be_purged_again_and_again(tmp_path: Path) -> None:
    domains = ["a.example", "b.example", "c.example"]
    pages = [of_domain(domain, n) for n in range(9) for domain in domains]
    rows = stored(tmp_path, [pages])
    (name,) = files(tmp_path)
    for number, domain in enumerate(domains[:2], 1):
        purge = Purge(tmp_path, partial(is_of, domain))
        for done in purge.rewrite():
            rows.update(done)
            purge.finish(done.old)
        assert files(tmp_path) == [name.replace(".warc.gz", f"-p{number}.warc.gz")]
    left = {url: at for (url, _), at in rows.places.items() if at}
    assert {url.split("/")[2] for url in left} == {"c.example"}
    reader = WarcReader(tmp_path)
    for (url, kind), at in rows.places.items():
        if at and kind == "text":
            assert reader.read_text(at, url) == rows.pages[url].text.decode()


def test_a_new_name_that_is_taken_is_not_used(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    mixed = files(tmp_path)[0]
    taken = [tmp_path / mixed.replace(".warc.gz", f"-p{n}.warc.gz") for n in (1, 2)]
    opening = compress(warcinfo_record(filename="x", created_at=0, fields={}), 2)
    for path in taken:
        path.write_bytes(opening)
    first, _ = run_purge(rows)
    assert first.new == mixed.replace(".warc.gz", "-p3.warc.gz")
    assert [path.read_bytes() for path in taken] == [opening] * 2


def test_records_of_all_kinds_and_those_no_row_knows_go_too(tmp_path: Path) -> None:
    rows = stored(tmp_path, [[of_domain("kept.example", 0)]])
    (path,) = tmp_path.iterdir()
    good = text_record(of_domain("gone.example", 1), refers_to=None)
    with path.open("ab") as file:
        for kind in (b"request", b"metadata", b"revisit", b"resource"):
            file.write(compress(good.replace(b"conversion", kind), 2))
        file.write(compress(text_record(of_domain("kept.example", 2), refers_to=None), 2))
        file.write(compress(good, 2))
    (done,) = run_purge(rows)
    assert (done.records, done.removed) == (3, 5)
    rows.check_end("https://kept.example/2")


def test_what_a_killed_crawl_left_open_is_purged_too(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    for path in list(tmp_path.iterdir()):
        with path.open("ab") as file:
            file.write(b"torn")
        path.rename(path.with_name(path.name + ".open"))
    run_purge(rows)
    rows.check_end()


def test_a_store_that_is_written_to_is_not_purged(tmp_path: Path) -> None:
    async def run() -> None:
        writer = store(tmp_path)
        await writer.write([of_domain("gone.example", 0)])
        before = contents(tmp_path)
        with pytest.raises(StoreError, match="stop it"):
            next(Purge(tmp_path, is_purged).rewrite())
        assert contents(tmp_path) == before
        await writer.close()

    asyncio.run(run())


@settings(max_examples=25, deadline=None)
@given(
    groups=st.lists(st.lists(st.booleans(), max_size=12), max_size=4),
    keep=st.sampled_from(Keep),
    max_file_bytes=st.sampled_from([1, 2_000, 1 << 30]),
)
def test_any_store_comes_out_right(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[list[bool]],
    keep: Keep,
    max_file_bytes: int,
) -> None:
    directory = tmp_path_factory.mktemp("purged")
    pages = [
        [
            of_domain("gone.example" if goes else "kept.example", 100 * g + n)
            for n, goes in enumerate(group)
        ]
        for g, group in enumerate(groups)
    ]
    rows = stored(directory, pages, keep, max_file_bytes=max_file_bytes)
    run_purge(rows)
    rows.check_end()


@given(st.sets(st.integers(0, 1 << 40)), st.integers(0, 1 << 40))
def test_moves_are_a_mapping(offsets: set[int], other: int) -> None:
    moves = Moves()
    for offset in sorted(offsets):
        moves.append(offset, offset // 2)
    expected = {offset: offset // 2 for offset in sorted(offsets)}
    assert dict(moves) == expected == dict(Moves(*moves.as_bytes()))
    assert moves.get(other) == expected.get(other)


# Texts that several pages have


SHARED = "A text that two domains have. " * 20


@dataclass(kw_only=True)
class Shared:
    """Where the database finds the texts that several pages have."""

    rows: Rows
    copies: list[Page]
    """The pages that refer to it."""
    place: Location | None

    def heirs(self, texts: Sequence[tuple[int, Location]]) -> dict[int, Heir]:
        left = [copy for copy in self.copies if not is_purged(copy.url)]
        for hash, where in texts:
            if hash == fingerprint(SHARED) and where == self.place:
                if left:
                    heir = left[0]
                    return {where.offset: Heir(url=heir.url, fetched_at=9.0, domain=3, visit=4)}
                self.place = None
        return {}

    def run(self) -> list[Rewritten]:
        """What the caller of a purge does, with a look at everything in between."""
        purge = Purge(self.rows.directory, is_purged, self.heirs)
        found = []
        for done in purge.rewrite():
            self.check()
            self.rows.update(done)
            self.check()
            self.update(done)
            self.check()
            purge.finish(done.old)
            self.check()
            found.append(done)
        return found

    def update(self, done: Rewritten) -> None:
        if self.place is None or self.place.file != done.old:
            return
        inherited = done.inherited.get(self.place.offset)
        if inherited is not None:
            assert done.new is not None
            assert (inherited.hash, inherited.domain, inherited.visit) == (
                fingerprint(SHARED),
                3,
                4,
            )
            self.place = Location(file=done.new, offset=inherited.offset, length=inherited.length)
        else:
            self.rows.places["shared", "at"] = self.place
            self.rows.update(done)
            self.place = self.rows.places.pop(("shared", "at"))

    def check(self) -> None:
        """Every page that stays has its text, and its own record."""
        reader = WarcReader(self.rows.directory)
        for (url, _), at in self.rows.places.items():
            if at is not None:
                assert decompress(_bytes_at(self.rows.directory, at)).headers[TARGET] == url
        if any(not is_purged(copy.url) for copy in self.copies):
            assert self.place is not None
            assert reader.read_text(self.place) == SHARED

    def check_end(self) -> None:
        """Nothing in the files names a page that goes."""
        self.check()
        for path in self.rows.directory.iterdir():
            assert passes_warcio_check(path)
            for record, body in warcio_records(path):
                assert "gone.example" not in str(record.rec_headers) + body.decode(
                    "utf-8", "replace"
                )


TARGET = "warc-target-uri"


def _bytes_at(directory: Path, at: Location) -> bytes:
    return (directory / at.file).read_bytes()[at.offset : at.offset + at.length]


def shared(directory: Path, *domains: Sequence[str], keep: Keep = Keep.BOTH) -> Shared:
    """Files of pages with the same text, and others in between; the first has it, the others refer to it."""
    rows = Rows(directory=directory)
    hash = fingerprint(SHARED)
    copies: list[Page] = []
    first: list[tuple[Page, Stored]] = []

    async def run() -> None:
        for number, group in enumerate(domains):
            writer = store(directory, keep)
            for index, domain in enumerate(group):
                one = of_domain(domain, 10 * number + index)
                same = structs.replace(
                    one, url=one.url + "/same", text=SHARED.encode(), content_hash=hash
                )
                known = {hash: _content(*first[0])} if first else {}
                for each, at in zip(
                    [one, same], await writer.write([one, same], known), strict=True
                ):
                    rows.add(each, at)
                if at.is_copy:
                    copies.append(same)
                else:
                    first.append((same, at))
            await writer.close()

    asyncio.run(run())
    assert len(first) == 1
    return Shared(rows=rows, copies=copies, place=first[0][1].text)


def _content(page: Page, stored: Stored) -> Content:
    assert stored.text is not None and stored.checked is not None and page.content_hash is not None
    return Content(
        hash=page.content_hash,
        checked=stored.checked,
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
def test_a_text_that_others_have_stays_for_them(
    tmp_path: Path, domains: list[list[str]], keep: Keep
) -> None:
    texts = shared(tmp_path, *domains, keep=keep)
    texts.run()
    texts.check_end()
    assert texts.place is not None
    heir = decompress(_bytes_at(tmp_path, texts.place)).headers
    first_stays = domains[0][0] == KEPT
    assert heir[TARGET].startswith("https://kept.example/")
    if not first_stays:
        assert heir["warc-date"] == "1970-01-01T00:00:09Z" and "warc-refers-to" not in heir
    names = files(tmp_path)
    assert texts.run() == [] and files(tmp_path) == names


def test_a_text_that_nobody_else_has_goes(tmp_path: Path) -> None:
    texts = shared(tmp_path, [GONE, GONE], [GONE])
    texts.run()
    assert texts.place is None and files(tmp_path) == []


def test_a_file_that_only_refers_to_what_goes_is_rewritten_too(tmp_path: Path) -> None:
    texts = shared(tmp_path, [GONE], [KEPT])
    _, second = files(tmp_path)
    done = texts.run()
    assert [(step.removed, step.records) for step in done] == [(4, 1), (0, 4)]
    assert list(done[1].lengths) and files(tmp_path)[1] == second.replace(".warc", "-p1.warc")
    texts.check_end()


def test_with_shared_texts_killed_at_any_change_of_the_disk_it_ends_in_the_same_state(
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


class Killed(BaseException):
    """The process ends here."""


class KillAfter:
    """Lets so many changes of the disk through, then none: not the cleaning up after it either."""

    def __init__(self, changes: int) -> None:
        self.left = changes

    def step(self) -> None:
        if not self.left:
            raise Killed
        self.left -= 1


CHANGING_CALLS = [
    (os, "write"),
    (os, "fsync"),
    (Path, "rename"),
    (Path, "unlink"),
]


def kill_after(monkeypatch: pytest.MonkeyPatch, changes: int) -> KillAfter:
    """Kill before the change that follows the first so many."""
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


def test_killed_at_any_change_of_the_disk_the_next_purge_ends_in_the_same_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for changes in range(1_000):
        directory = tmp_path / str(changes)
        rows = three_files(directory)
        with monkeypatch.context() as patch:
            kill = kill_after(patch, changes)
            try:
                run_purge(rows)
            except Killed:
                kill.left = -1  # what follows is a new process
        was_killed = kill.left < 0
        rows.check()
        recover(directory)
        rows.check()
        run_purge(rows)
        rows.check_end()
        if not was_killed:
            break
    else:
        raise AssertionError("there is no end of the changes")
    assert changes > 20


def test_killed_twice_it_still_ends_in_the_same_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in range(0, 28, 4):
        for second in range(1, 22, 3):
            rows = three_files(tmp_path / f"{first}-{second}")
            for changes in (first, second):
                with monkeypatch.context() as patch:
                    kill = kill_after(patch, changes)
                    try:
                        run_purge(rows)
                    except Killed:
                        kill.left = -1
                rows.check()
            run_purge(rows)
            rows.check_end()


@pytest.mark.parametrize("updated", range(0, 41, 4))
def test_rows_that_were_not_updated_yet_are_given_again(tmp_path: Path, updated: int) -> None:
    rows = three_files(tmp_path)
    left = next(Purge(tmp_path, is_purged).rewrite())
    rows.update(left, at_most=updated)
    rows.check()
    for _ in range(2):
        found = Purge(tmp_path, is_purged).unfinished()
        assert found is not None
        assert dict(found.moved) == dict(left.moved)
        assert replace(found, moved={}) == replace(left, moved={})
    first, _ = run_purge(rows)
    assert first.old == left.old
    assert Purge(tmp_path, is_purged).unfinished() is None
    rows.check_end()


def test_the_purge_of_another_domain_first_finishes_this_one(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    left = next(Purge(tmp_path, is_purged).rewrite())
    purge = Purge(tmp_path, lambda url: False)
    given = []
    for done in purge.rewrite():
        rows.update(done)
        purge.finish(done.old)
        given.append(done.old)
    assert given == [left.old]
    rows.check()
    run_purge(rows)
    rows.check_end()


def test_each_step_is_on_the_disk_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = [of_domain("gone.example", 0), of_domain("kept.example", 1)]
    stored(tmp_path, [mixed])
    (old,) = files(tmp_path)
    new = old.replace(".warc.gz", "-p1.warc.gz")
    steps: list[str] = []
    sync, rename, unlink = os.fsync, Path.rename, Path.unlink

    def noted_sync(fd: int) -> None:
        sync(fd)
        path = Path(f"/proc/self/fd/{fd}").readlink()
        steps.append("sync names" if path == tmp_path else f"sync {path.name}")

    def noted_rename(path: Path, target: Path) -> Path:
        steps.append(f"{path.name} -> {target.name}")
        return rename(path, target)

    def noted_unlink(path: Path, missing_ok: bool = False) -> None:
        if path.exists():
            steps.append(f"delete {path.name}")
        unlink(path, missing_ok)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    monkeypatch.setattr(Path, "unlink", noted_unlink)
    purge = Purge(tmp_path, is_purged)
    for done in purge.rewrite():
        steps.append("the database is told")
        purge.finish(done.old)
    assert steps == [
        f"sync {new}.purge",
        "sync names",
        "sync purge.json.partial",
        "purge.json.partial -> purge.json",
        "sync names",
        f"{new}.purge -> {new}",
        "sync names",
        "the database is told",
        f"delete {old}",
        "sync names",
        "delete purge.json",
        "sync names",
    ]


def test_a_crawl_may_go_on_in_the_middle_of_a_purge(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    next(Purge(tmp_path, is_purged).rewrite())
    (tmp_path / "other.warc.gz.purge").write_bytes(b"not decided")
    names = files(tmp_path)
    assert recover(tmp_path) == RecoveryReport()
    assert files(tmp_path) == names
    later = stored(tmp_path, [[of_domain("kept.example", 50), of_domain("gone.example", 51)]])
    rows.places |= later.places
    rows.pages |= later.pages
    assert recover(tmp_path) == RecoveryReport()
    assert len(run_purge(rows)) == 3
    rows.check_end()


def test_the_next_file_waits_until_this_one_is_finished(tmp_path: Path) -> None:
    three_files(tmp_path)
    purge = Purge(tmp_path, is_purged)
    rewriting = purge.rewrite()
    done = next(rewriting)
    with pytest.raises(RuntimeError, match="finish"):
        next(rewriting)
    purge.finish(done.old)
    with pytest.raises(RuntimeError, match="finish"):
        purge.finish(done.old)


KILLED = """
import sys
from pathlib import Path
from rove.store.purge import Purge

purge = Purge(Path(sys.argv[1]), lambda url: url.startswith(sys.argv[2]))
for done in purge.rewrite():
    print(done.old, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.system
def test_killed_for_real_the_next_purge_ends_it(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), GOES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        old = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / old).exists()
    rows.check()
    first, _ = run_purge(rows)
    assert first.old == old
    rows.check_end()


# What goes wrong


def damaged(rows: Rows) -> tuple[Path, int]:
    """Break a record in the file with both kinds of pages; the file, and where the record is."""
    path = rows.directory / files(rows.directory)[0]
    at = rows.places["https://kept.example/9", "text"]
    assert at is not None
    data = bytearray(path.read_bytes())
    data[at.offset + at.length // 2] ^= 0xFF
    path.write_bytes(data)
    return path, at.offset


def test_a_damaged_file_stops_the_purge_and_stays_as_it_is(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    path, offset = damaged(rows)
    before = contents(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            run_purge(rows)
        assert str(path) in str(caught.value)
        assert f"byte {offset} " in str(caught.value)
        assert "\n" not in str(caught.value)
        assert contents(tmp_path) == before


@pytest.mark.parametrize("cut", [1, 30])
def test_a_file_that_ends_within_a_record_is_damaged(tmp_path: Path, cut: int) -> None:
    rows = three_files(tmp_path)
    path = tmp_path / files(tmp_path)[0]
    os.truncate(path, path.stat().st_size - cut)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="damaged at byte"):
        run_purge(rows)
    assert contents(tmp_path) == before


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """The kernel refuses to let files grow larger, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 10, 1_000, 2_000])
def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path, room: int) -> None:
    rows = three_files(tmp_path)
    before = contents(tmp_path)
    with no_file_above(room), pytest.raises(DiskFull, match="purge again"):
        run_purge(rows)
    assert contents(tmp_path) == before
    run_purge(rows)
    rows.check_end()


def test_a_disk_that_is_full_for_the_note_alone_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = three_files(tmp_path)
    before = contents(tmp_path)
    encode = msgspec.json.encode
    with monkeypatch.context() as patch, no_file_above(100_000):
        patch.setattr(msgspec.json, "encode", lambda step: encode(step) + b" " * 100_000)
        with pytest.raises(DiskFull):
            run_purge(rows)
    assert contents(tmp_path) == before


def test_a_bug_of_the_caller_changes_nothing(tmp_path: Path) -> None:
    three_files(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ZeroDivisionError):
        next(Purge(tmp_path, lambda url: bool(1 // 0)).rewrite())
    assert contents(tmp_path) == before


def test_a_new_file_that_somebody_took_away_is_said_and_the_old_one_stays(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    done = next(Purge(tmp_path, is_purged).rewrite())
    assert done.new is not None
    (tmp_path / done.new).unlink()
    with pytest.raises(StoreError, match="missing"):
        run_purge(rows)
    rows.check()


def test_a_note_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    three_files(tmp_path)
    (tmp_path / "purge.json").write_bytes(b"{")
    with pytest.raises(StoreError, match=r"could not read .*purge\.json"):
        next(Purge(tmp_path, is_purged).rewrite())


@pytest.mark.system
def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """A file of 20 MB is rewritten by a process that grows by less than half of that."""
    large = [page(n, os.urandom(500_000).hex()) for n in range(40)]
    rows = stored(tmp_path, [[*large, of_domain("gone.example", 0)]], Keep.TEXT)
    assert (tmp_path / files(tmp_path)[0]).stat().st_size > 20_000_000
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path), GOES],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) < 10_000, "KiB"
    (done,) = run_purge(rows)
    assert done.records == 40


MEASURED = """
import resource, sys
from pathlib import Path
from rove.store.purge import Purge

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
next(Purge(Path(sys.argv[1]), lambda url: url.startswith(sys.argv[2])).rewrite())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
