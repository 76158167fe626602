"""Seed files of every kind become plain lines."""

from __future__ import annotations

import codecs
import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.app import seed_files
from rove.app.seed_files import plain_lines
from rove.errors import UsageError

TRANCO = "1,one.test\n2,two.test\n"
UMBRELLA = "1,one.test\r\n2,two.test\r\n"
MAJESTIC = (
    "GlobalRank,TldRank,Domain,TLD,RefSubNets,RefIPs,IDN_Domain,IDN_TLD\n"
    "1,1,one.test,test,519221,2679834,one.test,test\n2,2,two.test,test,9,9,two.test,test\n"
)
SEEDS = ["one.test", "two.test"]


class Pipe(io.RawIOBase):
    """Bytes that arrive in small pieces and cannot be read twice."""

    def __init__(self, data: bytes, size: int = 7) -> None:
        self._data = io.BytesIO(data)
        self._size = size

    def read(self, size: int = -1) -> bytes:
        return self._data.read(self._size)


def tarred(text: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("seeds.txt")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    return file.getvalue()


def plain(data: bytes) -> bytes:
    whole = b"".join(plain_lines(io.BytesIO(data), "mine"))
    in_pieces = b"".join(plain_lines(Pipe(data), "mine")) if not data.startswith(b"PK") else whole  # type: ignore[arg-type]
    assert in_pieces == whole, "the size of the pieces must not matter"
    return whole


def seeds(data: bytes) -> list[str]:
    lines = plain(data).decode(errors="replace").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def zipped(*files: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, text in enumerate(files):
            archive.writestr(f"list-{number}.csv", text)
    return file.getvalue()


@pytest.mark.parametrize("text", [TRANCO, UMBRELLA, MAJESTIC, "rank,domain\n" + TRANCO], ids=list("TUMH"))
@pytest.mark.parametrize(
    "encoded",
    [
        str.encode,
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: text.replace("\r", "").replace("\n", "\r").encode(),
        lambda text: text.replace("\n", "\r\n", 1).encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: gzip.compress(text[:9].encode()) + gzip.compress(text[9:].encode()) + b"\0\0",
        lambda text: gzip.compress(text.encode("utf-16")),
        zipped,
    ],
    ids=["utf8", "bom", "utf16", "utf16be", "utf32", "cr", "mixed", "gzip", "members", "gzip16", "zip"],
)
def test_lists_of_every_kind_are_read(text: str, encoded: object) -> None:
    assert seeds(encoded(text)) == SEEDS  # type: ignore[operator]


@pytest.mark.parametrize(
    ("line", "seed"),
    [
        ("example.org", "example.org"),
        ("https://a.test/x,y", "https://a.test/x,y"),
        ("a.test/x;y=1", "a.test/x;y=1"),
        ("7, example.org", "example.org"),
        ("7;example.org", "example.org"),
        ("7\texample.org", "example.org"),
        ('"7","example.org"', "example.org"),
        ('"https://a.test/x",9', "https://a.test/x"),
        ("https://www.a.test,1000", "https://www.a.test"),
        ("example.org,1000", "example.org"),
        ("3,example.org # why", "example.org"),
        ("one.test,two.test", "one.test,two.test"),
        ("1,2,3", "1,2,3"),
        ("# 1,a.test", "# 1,a.test"),
    ],
)
def test_a_row_of_a_table_becomes_its_seed(line: str, seed: str) -> None:
    assert plain(line.encode()) == seed.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("domain\na.test\n", ["a.test"]),
        ("URL\nhttp://a.test/x,y\n", ["http://a.test/x"]),
        ("origin,rank\nhttps://a.test,1000\n", ["https://a.test"]),
        ("\n# a list\nRank;Url;Domain\n1;http://a.test/x;a.test\n2\n", ["http://a.test/x", "2"]),
        ('rank,domain\n1,"a.test"\n', ["a.test"]),
    ],
)
def test_the_names_of_columns_tell_which_one_holds_the_seeds(text: str, expected: list[str]) -> None:
    assert seeds(text.encode()) == expected


def test_every_line_stays_one_line() -> None:
    data = b"rank,domain\r\n1,a.test\r\n\r\nbad line\r\n\xff,\xfe\r\n2,b.test"
    assert plain(data) == b"# rank,domain\na.test\n\n\n\xff,\xfe\nb.test".replace(b"\n\n\n", b"\n\nbad line\n")


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read_in_pieces_of_any_size(data: bytes) -> None:
    if data.startswith((b"PK", b"\x1f\x8b")):
        return
    plain(data)


def test_an_endless_line_is_not_held_in_memory() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * seed_files.PIECE

    class Endless(io.RawIOBase):
        pieces = endless()

        def read(self, size: int = -1) -> bytes:
            return next(self.pieces, b"")

    longest = max(len(piece) for piece in plain_lines(Endless(), "mine"))  # type: ignore[arg-type]
    assert longest <= 3 * seed_files.PIECE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b"a.test\n" * 100, mtime=0)[:-9], "mine is a damaged gzip file"),
        (b"\x1f\x8b" + b"junk" * 9, "mine is a damaged gzip file"),
        (b"PK\x03\x04junk", "mine is a zip archive that cannot be read"),
        (zipped(TRANCO, TRANCO), "zip archive of 2 files"),
        (tarred(TRANCO), "mine is a tar archive; unpack it and give the seed file in it"),
        (gzip.compress(tarred(TRANCO), mtime=0), "mine is a tar archive"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(plain_lines(io.BytesIO(data), "mine"))


def test_a_zip_archive_cannot_be_read_from_a_pipe() -> None:
    with pytest.raises(UsageError, match="give the file itself"):
        list(plain_lines(Pipe(zipped(TRANCO), 9999), "mine"))  # type: ignore[arg-type]
