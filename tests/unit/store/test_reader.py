"""The reader returns records, or says in one sentence what is wrong with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from rove.errors import StoreError
from rove.model.ledger import Location
from rove.store.reader import WarcReader
from tests.unit.store.pages import page, whole_file, write


@pytest.fixture
def text(tmp_path: Path) -> Location:
    """Store three texts and return the location of the second."""
    _, stored, _ = write(tmp_path, [page(n, f"text {n}") for n in range(3)])
    assert stored.text is not None
    return stored.text


def complaint(directory: Path, location: Location, expect_url: str | None = None) -> str:
    with pytest.raises(StoreError) as caught:
        WarcReader(directory).read_text(location, expect_url)
    message = str(caught.value)
    assert "\n" not in message
    assert location.file in message
    return message


def test_the_record_of_the_expected_url_is_read(tmp_path: Path, text: Location) -> None:
    reader = WarcReader(tmp_path)
    assert reader.read_text(text) == "text 1"
    assert reader.read_text(text, expect_url="https://example.com/1") == "text 1"


def test_a_record_of_another_url_is_refused(tmp_path: Path, text: Location) -> None:
    message = complaint(tmp_path, text, "https://example.com/2")
    assert "https://example.com/1" in message
    assert "https://example.com/2" in message


def test_a_missing_file_is_reported(tmp_path: Path, text: Location) -> None:
    whole_file(tmp_path).unlink()
    assert "missing" in complaint(tmp_path, text)


def test_a_file_that_is_still_open_is_read(tmp_path: Path, text: Location) -> None:
    path = whole_file(tmp_path)
    path.rename(path.with_name(path.name + ".open"))
    assert WarcReader(tmp_path).read_text(text) == "text 1"


def test_a_file_that_is_being_finished_is_read(tmp_path: Path, text: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    final = whole_file(tmp_path)
    opened = final.with_name(final.name + ".open")
    final.rename(opened)
    look = os.open

    def finish_then_look(path: Path, flags: int) -> int:
        if path == opened:
            opened.rename(final)
        return look(path, flags)

    monkeypatch.setattr(os, "open", finish_then_look)
    assert WarcReader(tmp_path).read_text(text) == "text 1"


@pytest.mark.parametrize("change", [-1, 1, 1_000_000])
def test_a_wrong_offset_is_reported(tmp_path: Path, text: Location, change: int) -> None:
    assert "damaged" in complaint(tmp_path, replace(text, offset=text.offset + change))


@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_length_is_reported(tmp_path: Path, text: Location, change: int) -> None:
    assert "damaged" in complaint(tmp_path, replace(text, length=text.length + change))


def test_a_damaged_record_does_not_affect_its_neighbours(tmp_path: Path) -> None:
    places = [item.text for item in write(tmp_path, [page(n, f"text {n}") for n in range(3)]) if item.text]
    path = whole_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[places[1].offset + places[1].length // 2] ^= 0xFF
    path.write_bytes(data)
    assert "damaged" in complaint(tmp_path, places[1])
    assert [WarcReader(tmp_path).read_text(places[n]) for n in (0, 2)] == ["text 0", "text 2"]


def test_a_record_of_another_kind_is_refused(tmp_path: Path, text: Location) -> None:
    with pytest.raises(StoreError, match="'conversion' record, not a 'response' one"):
        WarcReader(tmp_path).read_raw(text)
    with pytest.raises(StoreError, match="'warcinfo' record"):
        first = replace(text, offset=0, length=_first_length(tmp_path))
        WarcReader(tmp_path).read_raw(first)


def _first_length(directory: Path) -> int:
    data = whole_file(directory).read_bytes()
    return data.index(b"\x1f\x8b\x08", 3)


def test_an_unreadable_file_is_reported(tmp_path: Path, text: Location) -> None:
    path = whole_file(tmp_path)
    path.unlink()
    path.mkdir()
    assert "cannot be read" in complaint(tmp_path, text)
