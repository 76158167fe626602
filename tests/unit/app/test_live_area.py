"""The live area at the bottom of a terminal, on a small terminal emulator that wraps and reflows like a real one."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from rove.app.live_area import LiveArea

_CODES = re.compile(r"\x1b\[(\??\d*)([A-Za-z])")


class Screen(io.StringIO):
    """Remembers logical lines and wraps them at its width. It knows the control codes of the live area only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self._lines = [""]
        self._rows_erased = 0

    def write(self, text: str) -> int:
        position = 0
        while position < len(text):
            code = _CODES.match(text, position)
            if code is not None:
                self._control(code[1], code[2])
                position = code.end()
                continue
            character = text[position]
            position += 1
            if character != "\r":
                self._take_erased_away()
            if character == "\n":
                self._lines.append("")
            elif character != "\r":
                self._lines[-1] += character
        return len(text)

    def _rows_of(self, line: str) -> int:
        return max(1, -(-len(line) // self.width))

    def _control(self, number: str, letter: str) -> None:
        if letter == "K":
            assert number == "2"
            self._rows_erased += 1

    def _take_erased_away(self) -> None:
        if self._rows_erased:
            while self._rows_erased > 0:
                self._rows_erased -= self._rows_of(self._lines.pop())
            assert self._rows_erased == 0, "a line was erased only in part, or one above the area"
            self._lines.append("")

    @property
    def shown(self) -> list[str]:
        self._take_erased_away()
        return [line.rstrip() for line in self._lines]


def area_on(screen: Screen) -> tuple[Console, LiveArea]:
    console = Console(file=screen, width=screen.width, height=10, force_terminal=True, color_system=None)
    return console, LiveArea(console)


def picture(name: str, width: int, lines: int = 3) -> Text:
    return Text("\n".join(f"{name}{i}".ljust(width, ".") for i in range(lines)), no_wrap=True)


def test_messages_stand_above_the_picture() -> None:
    screen = Screen(20)
    console, area = area_on(screen)
    with area:
        area.draw(picture("a", 20))
        console.print("one")
        area.draw(picture("b", 20, lines=2))
        console.print("two")
        assert [line[:3].rstrip(".") for line in screen.shown] == ["one", "two", "b0", "b1", ""]
    assert screen.shown == ["one", "two", ""], "the picture is erased at the end"


@pytest.mark.parametrize("narrow", [7, 10, 13, 19])
def test_nothing_of_the_old_picture_is_left_on_a_terminal_that_got_narrower(narrow: int) -> None:
    screen = Screen(20)
    console, area = area_on(screen)
    with area:
        console.print("above")
        area.draw(picture("a", 20))
        screen.width = console.width = narrow
        area.draw(picture("b", narrow))
        assert [line[:2] for line in screen.shown] == ["ab", "b0", "b1", "b2", ""]
        screen.width = console.width = 30
        area.draw(picture("c", 30))
        assert [line[:2] for line in screen.shown] == ["ab", "c0", "c1", "c2", ""]


def test_a_picture_is_cut_off_at_the_height_of_the_terminal() -> None:
    screen = Screen(20)
    _, area = area_on(screen)
    with area:
        area.draw(picture("a", 20, lines=30))
        assert len(screen.shown) == 10


@pytest.mark.parametrize("echo", ["^C", "^C^C", "hello", "x" * 20])
def test_keys_that_the_terminal_echoes_leave_nothing_of_the_picture(echo: str) -> None:
    screen = Screen(20)
    console, area = area_on(screen)
    with area:
        console.print("above")
        area.draw(picture("a", 20))
        screen.write(echo)
        console.print("stopping")
        area.draw(picture("b", 20))
        assert [line[:8].rstrip(".") for line in screen.shown] == ["above", "stopping", "b0", "b1", "b2", ""]
