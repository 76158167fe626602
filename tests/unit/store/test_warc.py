"""Stored pages are complete, durable, at the returned locations, and readable by other tools."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.errors import DiskFull, StoreError
from rove.model.ledger import Location
from rove.store.contract import Keep, Page, Store, Stored
from rove.store.files import store_error
from rove.store.reader import WarcReader
from rove.store.record import decompress
from tests.unit.store.pages import (
    files,
    max_file_size,
    member,
    page,
    passes_warcio_check,
    store,
    texts,
    warcio_records,
    whole_file,
    write,
)

PAGES = [
    page(0, "plain"),
    page(1, ""),
    page(2, "Grüße, Жизнь, 生活, 🦀\r\n\r\nWARC/1.1\r\n\0"),
    page(3, "a line\n" * 750_000),
    page(4, "after the large one", body=os.urandom(100_000)),
]


@pytest.mark.parametrize("keep", Keep)
def test_the_requested_parts_are_stored_and_read_back(tmp_path: Path, keep: Keep) -> None:
    stored = write(tmp_path, PAGES, keep)
    reader = WarcReader(tmp_path)
    for item, source in zip(stored, PAGES, strict=True):
        if keep is Keep.RAW:
            assert item.text is None
        else:
            assert item.text is not None
            assert reader.read_text(item.text, source.url) == source.text.decode()
        if keep is Keep.TEXT:
            assert item.raw is None
        else:
            assert item.raw is not None and source.source is not None
            message = reader.read_raw(item.raw, source.url)
            assert message.partition(b"\r\n\r\n")[2] == source.source.wire_body
    kinds = {"raw": "response", "text": "conversion"}
    if keep is not Keep.BOTH:
        kinds = {keep.value: kinds[keep.value]}
    assert len(files(tmp_path)) == len(kinds), "texts and responses are in files of their own"
    for kind, record_type in kinds.items():
        path = whole_file(tmp_path, kind)
        assert passes_warcio_check(path)
        assert [record.rec_type for record, _ in warcio_records(path)] == ["warcinfo", *[record_type] * len(PAGES)]


def test_a_text_record_refers_to_its_response_record(tmp_path: Path) -> None:
    write(tmp_path, PAGES[:2], Keep.BOTH)
    raws, texts = (warcio_records(whole_file(tmp_path, kind))[1:] for kind in ("raw", "text"))
    for (raw, _), (text, _) in zip(raws, texts, strict=True):
        assert text.rec_headers.get_header("WARC-Refers-To") == raw.rec_headers.get_header("WARC-Record-ID")


def test_locations_are_exact(tmp_path: Path) -> None:
    stored = write(tmp_path, PAGES, Keep.BOTH)
    for kind in ("raw", "text"):
        path = whole_file(tmp_path, kind)
        locations: list[Location] = [getattr(item, kind) for item in stored]
        assert all(location.file == path.name for location in locations)
        for location in locations:
            decompress(member(path, location))
        ends = [location.offset + location.length for location in locations]
        assert ends[:-1] == [location.offset for location in locations[1:]]
        assert ends[-1] == path.stat().st_size


def test_each_file_starts_with_a_warcinfo_record(tmp_path: Path) -> None:
    async def run() -> None:
        writer = store(tmp_path, info={"operator": "someone@crawler.test"})
        await writer.write([page()])
        await writer.close()

    asyncio.run(run())
    path = whole_file(tmp_path)
    record, content = warcio_records(path)[0]
    assert record.rec_type == "warcinfo"
    assert record.rec_headers.get_header("WARC-Filename") == path.name
    assert b"software: rove/test\r\n" in content
    assert b"operator: someone@crawler.test\r\n" in content


def test_a_file_has_its_final_name_only_when_closed(tmp_path: Path) -> None:
    async def run() -> None:
        writer: Store = store(tmp_path)
        (stored,) = await writer.write([page(0, "now")])
        assert stored.text is not None
        assert files(tmp_path) == [stored.text.file + ".open"]
        assert WarcReader(tmp_path).read_text(stored.text) == "now"
        await writer.close()
        assert files(tmp_path) == [stored.text.file]
        assert WarcReader(tmp_path).read_text(stored.text) == "now"

    asyncio.run(run())


def test_an_unused_store_creates_no_file(tmp_path: Path) -> None:
    async def run() -> None:
        writer = store(tmp_path / "none")
        assert await writer.write([]) == []
        await writer.close()

    asyncio.run(run())
    assert files(tmp_path) == []


def test_the_directory_is_created(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b", [page()])
    assert len(files(tmp_path / "a" / "b")) == 1


def test_a_batch_may_span_several_files(tmp_path: Path) -> None:
    async def run() -> list[Stored]:
        writer = store(tmp_path, Keep.BOTH, max_file_bytes=1_500)
        stored = await writer.write([page(n, f"text {n}") for n in range(10)])
        assert sum(name.endswith(".open") for name in files(tmp_path)) == 2
        await writer.close()
        return stored

    stored = asyncio.run(run())
    used = {location.file for item in stored for location in (item.text, item.raw) if location}
    assert len(used) > 4
    assert files(tmp_path) == sorted(used)
    reader = WarcReader(tmp_path)
    for number, item in enumerate(stored):
        assert item.text and item.raw
        assert reader.read_text(item.text, f"https://example.com/{number}") == f"text {number}"
    for name in used:
        assert passes_warcio_check(tmp_path / name)
        locations = [at for item in stored for at in (item.text, item.raw) if at and at.file == name]
        assert locations[-1].offset < 1_500


def test_files_of_many_stores_do_not_collide(tmp_path: Path) -> None:
    async def run() -> None:
        writers = [store(tmp_path) for _ in range(4)]
        await asyncio.gather(*(w.write([page(n)]) for n, w in enumerate(writers)))
        await writers[0].close()
        late = store(tmp_path)
        await late.write([page(4)])
        for writer in [*writers[1:], late]:
            await writer.close()

    asyncio.run(run())
    assert len(files(tmp_path)) == 5
    records = [record for path in tmp_path.iterdir() for record, _ in warcio_records(path)]
    urls = {record.rec_headers.get_header("WARC-Target-URI") for record in records}
    assert urls == {None, *(f"https://example.com/{n}" for n in range(5))}


def test_concurrent_batches_do_not_mix(tmp_path: Path) -> None:
    async def run() -> list[list[Stored]]:
        writer = store(tmp_path, max_file_bytes=5_000)
        groups = ([page(g * 10 + n, f"{g}.{n}") for n in range(10)] for g in range(8))
        stored = await asyncio.gather(*(writer.write(group) for group in groups))
        await writer.close()
        return stored

    reader = WarcReader(tmp_path)
    for number, group in enumerate(asyncio.run(run())):
        stored_texts = [reader.read_text(item.text) for item in group if item.text]
        assert stored_texts == [f"{number}.{n}" for n in range(10)]


def test_writing_does_not_block_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (released.wait(60), sync(fd))[1])

    async def run() -> None:
        writer = store(tmp_path)
        writing = asyncio.create_task(writer.write([page()]))
        await asyncio.sleep(0)
        assert not writing.done()
        released.set()
        await writing
        await writer.close()

    asyncio.run(run())


class SyncLog:
    """Records, in order, what was synced to the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: dict[int, int] = {}
        self.listings: list[list[str]] = []
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._noting(getattr(os, name)))

    def _noting(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def noted(fd: int) -> None:
            call(fd)
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                self.listings.append(sorted(os.listdir(fd)))
            else:
                self.synced[status.st_ino] = status.st_size

        return noted


def sizes(directory: Path) -> dict[int, int]:
    return {path.stat().st_ino: path.stat().st_size for path in directory.iterdir()}


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_everything_is_on_the_disk_before_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SyncLog(monkeypatch)

    async def run() -> None:
        writer = store(tmp_path, max_file_bytes=2_000)
        for group in range(4):
            await writer.write([page(group * 10 + n) for n in range(3 if group % 2 else 12)])
            assert log.synced == sizes(tmp_path)
            assert log.listings[-1] == files(tmp_path)
        await writer.close()
        assert log.listings[-1] == files(tmp_path)

    asyncio.run(run())
    assert len(files(tmp_path)) > 3


def incompressible(number: int) -> Page:
    return page(number, os.urandom(40_000).hex())


def test_after_a_full_disk_the_batch_can_be_written_again(tmp_path: Path) -> None:
    group = [incompressible(n) for n in range(1, 201)]

    async def run() -> list[Stored]:
        writer = store(tmp_path)
        first = await writer.write([page(0, "before")])
        path = whole_file(tmp_path)
        before = path.read_bytes()
        for _ in range(2):
            with max_file_size(5_000_000), pytest.raises(DiskFull) as caught:
                await writer.write(group)
            assert path.read_bytes() == before
            assert str(tmp_path) in str(caught.value)
        stored = await writer.write(group)
        await writer.close()
        return first + stored

    reader = WarcReader(tmp_path)
    for item, source in zip(asyncio.run(run()), [page(0, "before"), *group], strict=True):
        assert item.text is not None
        assert reader.read_text(item.text, source.url) == source.text.decode()
    assert passes_warcio_check(whole_file(tmp_path))


def test_a_full_disk_at_the_first_batch_leaves_no_file(tmp_path: Path) -> None:
    async def run() -> None:
        writer = store(tmp_path)
        with max_file_size(1_000), pytest.raises(DiskFull):
            await writer.write([incompressible(0)])
        assert files(tmp_path) == []
        await writer.write([page(1)])
        await writer.close()

    asyncio.run(run())
    assert len(files(tmp_path)) == 1


def test_a_full_disk_after_a_rotation_rolls_back_the_whole_batch(tmp_path: Path) -> None:
    async def run() -> None:
        writer = store(tmp_path, max_file_bytes=150_000)
        await writer.write([page(0)])
        before = contents(tmp_path)
        group = [*(page(n, "x" * 10_000) for n in range(5)), *map(incompressible, range(5, 12))]
        with max_file_size(100_000), pytest.raises(DiskFull):
            await writer.write(group)
        assert contents(tmp_path) == before
        await writer.write(group)
        await writer.close()

    asyncio.run(run())
    stored_texts = [text for path in tmp_path.iterdir() for text in texts(path.read_bytes())]
    assert len(stored_texts) == 13


@pytest.mark.parametrize("call", ["fdatasync", "write", "ftruncate"])
def test_a_failing_disk_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def run() -> Location:
        writer = store(tmp_path)
        await writer.write([page(0, "kept")])
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            patch.setattr(os, "fdatasync", fail)
            with pytest.raises(StoreError, match="Input/output error") as caught:
                await writer.write([page(1, "lost")])
            assert not isinstance(caught.value, DiskFull)
        (stored,) = await writer.write([page(2, "again")])
        await writer.close()
        assert stored.text is not None
        return stored.text

    location = asyncio.run(run())
    assert WarcReader(tmp_path).read_text(location) == "again"
    names = files(tmp_path)
    if call == "ftruncate":  # the file could not be cut back: it is left for recovery
        assert len(names) == 2
        assert names[0].endswith(".open")
    else:
        assert texts(whole_file(tmp_path).read_bytes()) == ["kept", "again"]


def test_a_file_that_cannot_be_finished_is_left_for_recovery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    async def run() -> None:
        writer = store(tmp_path)
        await writer.write([page()])
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", fail)
            with pytest.raises(StoreError, match="Permission denied"):
                await writer.close()

    asyncio.run(run())
    assert whole_file(tmp_path).name.endswith(".open")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_distinguished_from_other_errors(code: int) -> None:
    assert isinstance(store_error(OSError(code, os.strerror(code)), "write pages"), DiskFull)
    assert not isinstance(store_error(OSError(errno.EIO, "Input/output"), "write pages"), DiskFull)


@settings(max_examples=40, deadline=None)
@given(
    groups=st.lists(st.lists(st.text(), min_size=1, max_size=6), max_size=4),
    keep=st.sampled_from(Keep),
    max_file_bytes=st.sampled_from([1, 900, 3_000, 1 << 30]),
)
def test_any_batches_are_read_back_in_order(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[str]], keep: Keep, max_file_bytes: int
) -> None:
    directory = tmp_path_factory.mktemp("groups")

    async def run() -> list[Stored]:
        writer = store(directory, keep, max_file_bytes=max_file_bytes)
        stored: list[Stored] = []
        for group in groups:
            stored += await writer.write([page(0, text, body=text.encode()) for text in group])
        await writer.close()
        return stored

    reader = WarcReader(directory)
    stored = asyncio.run(run())
    for item, text in zip(stored, chain(*groups), strict=True):
        if item.text:
            assert reader.read_text(item.text) == text
        if item.raw:
            assert reader.read_raw(item.raw).endswith(b"\r\n\r\n" + text.encode())
    assert all(passes_warcio_check(path) for path in directory.iterdir())


def open_file(folder: Path) -> Path:
    (path,) = folder.glob("*.open")
    return path


def delete(path: Path) -> None:
    path.unlink()


def replace_by_a_copy(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def append_to(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"not a WARC record")


@pytest.mark.parametrize("change", [delete, replace_by_a_copy, truncate, append_to])
def test_a_file_changed_by_somebody_else_fails_the_next_batch(tmp_path: Path, change: Callable[[Path], None]) -> None:
    async def run() -> None:
        writer = store(tmp_path)
        await writer.write([page(1, "before")])
        path = open_file(tmp_path)
        change(path)
        with pytest.raises(StoreError, match=r"was deleted, replaced or truncated while rove was writing it"):
            await writer.write([page(2, "after")])
        (stored,) = await writer.write([page(3, "in a new file")])
        await writer.close()
        assert stored.text is not None and stored.text.file != path.name.removesuffix(".open")
        assert WarcReader(tmp_path).read_text(stored.text, page(3).url) == "in a new file"

    asyncio.run(run())
