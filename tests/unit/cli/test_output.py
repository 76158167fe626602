"""What commands print: harmless on a terminal, exact in JSON, in UTF-8 whatever the locale."""

from __future__ import annotations

import io
import json
import os
import pty
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import rove
from rove.cli import output
from rove.notation.harmless import one_line, some_lines

HOSTILE = "a\x1b]0;owned\x07\x9b2J\u202egpj.exe\u2066\u2028b\r\nforged line\ufeff\x00\x7f"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff]")


class Stream(io.TextIOWrapper):
    """A standard stream in a narrow locale."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="latin-1", errors="backslashreplace", newline="\n")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    @property
    def written(self) -> bytes:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue()


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The standard streams. Pytest sets its own before each test, so that a fixture cannot set them in `sys`."""
    streams = SimpleNamespace(stdout=Stream(is_terminal=True), stderr=Stream(is_terminal=True))
    monkeypatch.setattr(output, "sys", streams)
    return streams


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def stdout(request: pytest.FixtureRequest, streams: SimpleNamespace) -> Stream:
    streams.stdout = Stream(is_terminal=request.param)
    stream: Stream = streams.stdout
    return stream


@pytest.fixture
def stderr(streams: SimpleNamespace) -> Stream:
    stream: Stream = streams.stderr
    return stream


def test_a_line_stays_one_harmless_line(stdout: Stream) -> None:
    output.print_lines([HOSTILE, "日本"])
    text = stdout.written.decode("latin-1")
    assert not UNSAFE.search(text)
    assert text.count("\n") == 2
    assert r"\x1b]0;owned\x07\x9b2J\u202egpj.exe" in text
    assert text.endswith("\\u65e5\\u672c\n"), "letters that the locale lacks are escaped"


def test_a_note_is_harmless(stdout: Stream, stderr: Stream) -> None:
    output.print_note(HOSTILE)
    assert stdout.written == b""
    assert not UNSAFE.search(stderr.written.decode("latin-1"))


def test_a_note_that_cannot_be_written_is_dropped(stderr: Stream) -> None:
    stderr.close()
    output.print_note("nobody reads this")


def test_text_is_exact_for_a_pipe_and_harmless_on_a_terminal(stdout: Stream) -> None:
    output.print_text(HOSTILE + "\n\t日本")
    if stdout.isatty():
        assert not UNSAFE.search(stdout.written.decode("latin-1"))
        assert b"\n\t" in stdout.written
    else:
        assert stdout.written.decode() == HOSTILE + "\n\t日本\n"


def test_a_response_is_exact_for_a_pipe_and_harmless_on_a_terminal(stdout: Stream) -> None:
    body = b"HTTP/1.1 200 OK\r\n\r\n\x1b[2J\xff"
    output.print_bytes(body)
    assert stdout.written == (b"HTTP/1.1 200 OK\n\n\\x1b[2J\\ufffd" if stdout.isatty() else body)


def test_json_is_exact_and_harmless(stdout: Stream) -> None:
    output.print_json({"title": HOSTILE + "日本"})
    line = stdout.written.decode("utf-8")
    assert not UNSAFE.search(line)
    assert line.count("\n") == 1
    assert json.loads(line) == {"title": HOSTILE + "日本"}


def test_json_replaces_lone_surrogates(stdout: Stream) -> None:
    output.print_json({"a\ud800": ["x\udfff", 1, {"b": ("\udc80",)}], "c": None})
    expected = {"a\ufffd": ["x\ufffd", 1, {"b": ["\ufffd"]}], "c": None}
    assert json.loads(stdout.written.decode("utf-8")) == expected


def test_a_drawing_has_styles_on_a_terminal_only(stdout: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    output.print_drawing([[("[red]title", "bold"), (f" {HOSTILE}", "red")], [], [("x" * 500, "")]])
    text = stdout.written.decode("latin-1")
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert (text != plain) == stdout.isatty()
    assert not UNSAFE.search(plain)
    lines = plain.splitlines()
    assert lines[0].startswith("[red]title a") and lines[1:] == ["", "x" * 500]


def test_block_characters_need_an_encoding_that_has_them(stdout: Stream) -> None:
    assert output.can_print("plain") and not output.can_print("▁")
    stdout.reconfigure(encoding="utf-8")
    assert output.can_print("▁")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_of_any_text_is_exact(text: str) -> None:
    file = io.BytesIO()
    output.write_json(text, file)
    line = file.getvalue().decode()
    assert json.loads(line) == text
    assert not UNSAFE.search(line)
    assert len(line.splitlines()) == 1


@given(st.text(st.characters()))
def test_any_text_is_harmless(text: str) -> None:
    assert not UNSAFE.search(one_line(text)) and "\n" not in one_line(text)
    assert not UNSAFE.search(some_lines(text))
    one_line(text).encode()  # no surrogate is left


@pytest.mark.parametrize(
    "draw",
    [
        lambda text: text,
        lambda text: Text(text, style="bold"),
        lambda text: Text.assemble("a ", (text, "red")),
        lambda text: _table(text),
    ],
    ids=["str", "text", "styled", "table"],
)
def test_the_console_escapes_whatever_it_draws(stderr: Stream, draw: Callable[[str], object]) -> None:
    output.crawl_console().print(draw(HOSTILE))
    text = stderr.written.decode("latin-1")
    assert not UNSAFE.search(re.sub(r"\x1b\[[0-9;]*m", "", text))
    assert "owned" in text


def _table(text: str) -> Table:
    table = Table.grid()
    table.add_row("title", text)
    return table


def test_the_console_shows_words_between_colons_and_brackets(stderr: Stream) -> None:
    output.crawl_console().print("a :smile: [bold]b[/bold]")
    assert stderr.written == b"a :smile: [bold]b[/bold]\n"


@pytest.mark.parametrize(
    ("sentence", "lines"),
    [
        ("limits default: --delay 70s, --max-links 2000", ["limits default: ", "--delay 70s, ", "--max-links 2000"]),
        ("continue with: rove crawl --resume", ["continue with: rove crawl --resume"]),
    ],
)
def test_a_sentence_breaks_between_words_and_a_command_does_not(
    stderr: Stream, sentence: str, lines: list[str]
) -> None:
    console = output.crawl_console()
    console.width = 17
    output.print_sentence(console, sentence)
    printed = stderr.written.decode().splitlines()
    assert [line.strip() for line in printed] == [line.strip() for line in lines]
    assert all(len(line) <= 17 for line in printed) or len(printed) == 1


def test_a_sentence_in_a_file_is_one_line(streams: SimpleNamespace) -> None:
    streams.stderr = Stream(is_terminal=False)
    console = output.crawl_console()
    console.width = 17
    output.print_sentence(console, "limits default: --delay 70s, --max-links 2000")
    assert streams.stderr.written == b"limits default: --delay 70s, --max-links 2000\n"


def test_a_closed_pipe_is_noticed_without_writing(streams: SimpleNamespace) -> None:
    reader, writer = os.pipe()
    streams.stdout = SimpleNamespace(fileno=lambda: writer)
    assert not output.is_output_closed()
    os.close(reader)
    assert output.is_output_closed()
    os.close(writer)


def test_an_open_terminal_and_a_file_are_not_closed(streams: SimpleNamespace, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    with (tmp_path / "file").open("w") as file:
        for descriptor in (slave, file.fileno()):
            streams.stdout = SimpleNamespace(fileno=lambda number=descriptor: number)
            assert not output.is_output_closed()
    os.close(slave)
    os.close(master)


def test_only_one_module_creates_consoles() -> None:
    """Ruff keeps all other modules from printing; a console it cannot tell from the name of its type."""
    package = Path(rove.__file__).parent
    creating = {
        str(path.relative_to(package)) for path in package.rglob("*.py") if re.search(r"Console\(", path.read_text())
    }
    assert creating == {"cli/output.py", "cli/pictures.py"}
