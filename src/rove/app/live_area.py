"""The lowest lines of a terminal, drawn again and again. Messages that are printed appear above them.

Rich has this as `Live`, but that one counts the lines it has drawn and not the rows that they take. When a terminal
gets narrower, each line wraps, and parts of the old picture would stay on the screen.

The cursor waits on a row of its own below the picture. There the terminal echoes keys, such as the `^C` of a Ctrl-C,
without moving the picture.
"""

from __future__ import annotations

from typing import Self

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.control import Control
from rich.segment import ControlType, Segment


class LiveArea(RenderHook):
    """Draws a picture at the bottom of the terminal until it is closed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._picture: ConsoleRenderable | None = None
        self._widths: list[int] = []
        """Width of each line on the screen."""
        self._is_open = False

    def __enter__(self) -> Self:
        self._is_open = True
        self._console.show_cursor(False)
        self._console.push_render_hook(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Erase the picture, if that is not done yet."""
        if not self._is_open:
            return
        self._is_open = False
        self._picture = None
        self._refresh()
        self._console.pop_render_hook()
        self._console.show_cursor(True)

    def draw(self, picture: ConsoleRenderable) -> None:
        """Replace the picture."""
        self._picture = picture
        self._refresh()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Print messages where the picture was, and the picture below them."""
        return [_Erased(self._widths), *renderables, self]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the picture, cut off at the height of the terminal."""
        self._widths = []
        if self._picture is None:
            return
        height = max(1, options.size.height - 1)
        for line in console.render_lines(self._picture, options.update(height=None), pad=False)[:height]:
            yield from line
            yield Segment.line()
            self._widths.append(Segment.get_line_length(line))
        yield _control("\x1b[J")

    def _refresh(self) -> None:
        with self._console:
            self._console.print(Control())


class _Erased:
    """Erases lines of these widths, and the row of the cursor below them."""

    def __init__(self, widths: list[int]) -> None:
        self._widths = widths

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(1, options.size.width)
        rows = sum(max(1, -(-line // width)) for line in self._widths)
        if rows:
            # Row by row: tmux copies a screen that is cleared as a whole into its history, once a second.
            yield _control("\r\x1b[2K" + "\x1b[1A\x1b[2K" * rows)


def _control(codes: str) -> Segment:
    """Return control codes as a segment; any control type keeps rich from measuring and cutting them like text."""
    return Segment(codes, None, [(ControlType.CARRIAGE_RETURN,)])
