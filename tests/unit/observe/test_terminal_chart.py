"""The drawing in a terminal: never wider than it, readable without colours, and gaps stay gaps."""

from __future__ import annotations

import pytest

from rove.model.samples import Sample
from rove.observe.panels import PANELS, panels_named
from rove.observe.series import Plot
from rove.observe.terminal_chart import Tone, chart_lines, steps_for
from tests.unit.observe.drawing import plot_of
from tests.unit.observe.made_up import START, sample, samples

HOUR = 3_600.0


def lines_of(*plots: Plot, width: int = 80, height: int = 24) -> list[str]:
    return ["".join(part.text for part in line) for line in chart_lines(plots, width=width, height=height)]


@pytest.mark.parametrize("width", [40, 41, 60, 79, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    name = "a-machine-with-a-long-name" * 3
    given = [*samples(HOUR, node=name, outage=(600, 1_200)), *samples(HOUR, node="b")]
    plot = plot_of(given, seconds=HOUR, steps=steps_for(width), panels=PANELS, label="x" * 300)
    lines = lines_of(plot, width=width)
    assert max(map(len, lines)) <= width
    assert sum(len(line) > width - 12 for line in lines) > 30, "and it is used"


@pytest.mark.parametrize("height", [10, 24, 50, 70, 100, 200])
def test_the_drawing_fills_the_terminal_and_does_not_scroll_if_it_is_high(height: int) -> None:
    plot = plot_of(samples(HOUR), seconds=HOUR, steps=steps_for(80))
    count = len(lines_of(plot, height=height))
    least = len(lines_of(plot, height=0))
    assert count <= max(height, least)
    if height >= 200:
        assert count > 2 * least


def test_values_are_heights_and_gaps_are_blank() -> None:
    given = [
        Sample(node="a", ended=round(1000 * (START + 10 * n)), seconds=10.0, figures={"pages.stored": 10.0 * n})
        for n in (1, 2, 3, 7, 8)
    ]
    plot = plot_of(given, seconds=80, panels=panels_named(["pages"]))
    drawn = next(line for line in chart_lines([plot], width=51, height=0) if line and line[0].text.startswith("pages "))
    assert drawn[1].tone is Tone.CURVE
    blocks = drawn[1].text
    assert (len(set(blocks)), blocks[0], blocks[-1]) == (6, "▂", "█")
    assert "▄" + " " * 11 + "▇" in blocks
    assert drawn[2].text.split() == ["8"]


def test_higher_curves_have_finer_steps() -> None:
    plot = plot_of(samples(HOUR), seconds=HOUR, steps=steps_for(80), panels=panels_named(["urls"]))
    rows = [line[1].text for line in chart_lines([plot], width=80, height=24) if len(line) == 3]
    assert len(rows) == 4
    assert rows[0].startswith("  ") and rows[0].endswith("▅") and set(rows[3][40:]) == {"█"}


def test_pauses_and_times_have_lines_of_their_own() -> None:
    plot = plot_of(samples(HOUR, outage=(600, 1_200)), seconds=HOUR, steps=steps_for(80))
    lines = lines_of(plot)
    assert "00:00" in lines[1] and "00:45" in lines[1]
    held = next(line for line in lines if line.startswith("connection lost"))
    assert "·█" in held and "█·" in held


def test_several_crawls_are_drawn_below_each_other() -> None:
    first = plot_of(samples(HOUR), seconds=HOUR, steps=60, label="first")
    second = plot_of(samples(HOUR / 2), seconds=HOUR / 2, steps=30, label="second")
    lines = lines_of(first, second)
    assert lines[0].startswith("A: first  2025-11-19 00:00Z") and lines[1].startswith("B: second")
    pages = [line for line in lines if " pages " in line]
    assert [line[0] for line in pages] == ["A", "B"]
    assert pages[1][19:].split()[0].strip("▁▂▃▄▅▆▇█") == "" and len(pages[1][19:].split()[0]) < 30


def test_nothing_and_little_can_be_drawn() -> None:
    assert any("no samples in this time" in line for line in lines_of(plot_of([], seconds=HOUR)))
    lines = lines_of(plot_of([sample(START + 10)], seconds=10))
    assert any(line.startswith("pages ") for line in lines)
