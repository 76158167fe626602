"""A purge deletes the records of a domain and moves all others."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.errors import StoreError
from rove.store.contract import Keep
from rove.store.purge_plan import Moves
from rove.store.reader import WarcReader
from rove.store.record import compress, text_record, warcinfo_record
from tests.unit.store.pages import files, store, warcio_records
from tests.unit.store.purging import contents, of_domain, purge_of, run_purge, stored, three_files


def test_purged_records_are_gone_and_the_rest_is_where_the_rows_say(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    mixed, kept, gone = files(tmp_path)
    before = {name: (tmp_path / name).stat() for name in (mixed, kept, gone)}
    first, second = run_purge(rows)
    rows.check_end()
    new = mixed.replace(".warc.gz", "-p1.warc.gz")
    assert files(tmp_path) == sorted([new, kept])
    assert (first.old, first.new, first.records, first.removed) == (mixed, new, 7, 13)
    assert first.bytes_freed == before[mixed].st_size - (tmp_path / new).stat().st_size
    assert (second.old, second.new, second.records, second.removed) == (gone, None, 0, 5)
    assert second.bytes_freed == before[gone].st_size
    assert (tmp_path / kept).stat().st_ino == before[kept].st_ino
    assert (tmp_path / kept).stat().st_mtime_ns == before[kept].st_mtime_ns


def test_remaining_records_keep_their_bytes(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    mixed = tmp_path / files(tmp_path)[0]
    data = mixed.read_bytes()
    first, _ = run_purge(rows)
    assert first.new is not None
    new = (tmp_path / first.new).read_bytes()
    lengths = [at.length for at in rows.locations.values() if at is not None and at.file == first.new]
    assert len(lengths) == len(first.moved) == 7
    for (old_offset, new_offset), length in zip(first.moved.items(), lengths, strict=True):
        there, here = data[old_offset:][:length], new[new_offset:][:length]
        assert there == here


def test_the_warcinfo_record_gets_the_new_file_name(tmp_path: Path) -> None:
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
    before = file_states(tmp_path)
    assert run_purge(rows) == []
    assert file_states(tmp_path) == before


def file_states(directory: Path) -> dict[str, tuple[int, int, int]]:
    """Return what a change of a file would change. The time of the last access is not part of it."""
    states = {path.name: path.stat() for path in directory.iterdir()}
    return {name: (state.st_ino, state.st_size, state.st_mtime_ns) for name, state in states.items()}


def test_a_missing_directory_has_nothing_to_purge(tmp_path: Path) -> None:
    assert list(purge_of(tmp_path / "none").rewrite()) == []
    assert purge_of(tmp_path / "none").unfinished() is None
    assert not (tmp_path / "none").exists()


def test_a_second_purge_changes_nothing(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    run_purge(rows)
    names = files(tmp_path)
    assert run_purge(rows) == []
    assert files(tmp_path) == names


def is_of_domain(domain: str, url: str) -> bool:
    return f"//{domain}/" in url


def test_a_file_may_be_purged_again_and_again(tmp_path: Path) -> None:
    domains = ["a.example", "b.example", "c.example"]
    pages = [of_domain(domain, n) for n in range(9) for domain in domains]
    rows = stored(tmp_path, [pages])
    (name,) = files(tmp_path)
    for number, domain in enumerate(domains[:2], 1):
        purge = purge_of(tmp_path, partial(is_of_domain, domain))
        for done in purge.rewrite():
            rows.update(done)
            purge.finish(done.old)
        assert files(tmp_path) == [name.replace(".warc.gz", f"-p{number}.warc.gz")]
    left = {url: at for (url, _), at in rows.locations.items() if at}
    assert {url.split("/")[2] for url in left} == {"c.example"}
    reader = WarcReader(tmp_path)
    for (url, kind), at in rows.locations.items():
        if at and kind == "text":
            assert reader.read_text(at, url) == rows.pages[url].text.decode()


def test_a_new_name_that_is_taken_is_not_used(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    mixed = files(tmp_path)[0]
    taken = [tmp_path / mixed.replace(".warc.gz", f"-p{n}.warc.gz") for n in (1, 2)]
    opening = compress(warcinfo_record(filename="x", created_at=0, fields={}))
    for path in taken:
        path.write_bytes(opening)
    first, _ = run_purge(rows)
    assert first.new == mixed.replace(".warc.gz", "-p3.warc.gz")
    assert [path.read_bytes() for path in taken] == [opening] * 2


def test_records_of_all_kinds_are_purged_even_without_a_row(tmp_path: Path) -> None:
    rows = stored(tmp_path, [[of_domain("kept.example", 0)]])
    (path,) = tmp_path.iterdir()
    good = text_record(of_domain("gone.example", 1), refers_to=None)
    with path.open("ab") as file:
        for kind in (b"request", b"metadata", b"revisit", b"resource"):
            file.write(compress(good.replace(b"conversion", kind)))
        file.write(compress(text_record(of_domain("kept.example", 2), refers_to=None)))
        file.write(compress(good))
    (done,) = run_purge(rows)
    assert (done.records, done.removed) == (2, 5)
    rows.check_end("https://kept.example/2")


def test_files_left_open_by_a_killed_crawl_are_purged(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    for path in list(tmp_path.iterdir()):
        with path.open("ab") as file:
            file.write(b"torn")
        path.rename(path.with_name(path.name + ".open"))
    run_purge(rows)
    rows.check_end()


def test_a_store_in_use_is_not_purged(tmp_path: Path) -> None:
    async def run() -> None:
        writer = store(tmp_path)
        await writer.write([of_domain("gone.example", 0)])
        before = contents(tmp_path)
        with pytest.raises(StoreError, match="stop it"):
            next(purge_of(tmp_path).rewrite())
        assert contents(tmp_path) == before
        await writer.close()

    asyncio.run(run())


@settings(max_examples=25, deadline=None)
@given(
    groups=st.lists(st.lists(st.booleans(), max_size=12), max_size=4),
    keep=st.sampled_from(Keep),
    max_file_bytes=st.sampled_from([1, 2_000, 1 << 30]),
)
def test_any_store_is_purged_correctly(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[bool]], keep: Keep, max_file_bytes: int
) -> None:
    directory = tmp_path_factory.mktemp("purged")
    pages = [
        [of_domain("gone.example" if goes else "kept.example", 100 * g + n) for n, goes in enumerate(group)]
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
