"""The SVG and the HTML file: well-formed, self-contained, harmless and of bounded size."""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from hashlib import sha256
from xml.etree import ElementTree

import msgspec
import pytest

from rove.model.samples import Sample
from rove.observe.panels import PANELS
from rove.observe.plot_html import as_html
from rove.observe.png import as_png
from rove.observe.series import Line, Plot
from rove.observe.svg_chart import as_svg, drawn
from rove.observe.svg_text import area_path, line_path
from tests.unit.observe.drawing import plot_of
from tests.unit.observe.made_up import START, sample, samples

HOSTILE = "<script>alert(1)</script>\"'&]]>\x1b[2J\x00\u202e\ufffe"
HOUR = 3_600.0
SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.encode())


def texts(svg: str) -> list[str]:
    return ["".join(part for part in text.itertext()) for text in parsed(svg).iter(f"{SVG}text")]


def paths(svg: str, kind: str) -> list[str]:
    return [one.get("d", "") for one in parsed(svg).iter(f"{SVG}path") if kind in one.get("class", "").split()]


def test_all_panels_have_titles_scales_and_legends() -> None:
    plot = plot_of(samples(HOUR), seconds=HOUR, panels=PANELS)
    shown = "\n".join(texts(as_svg([plot])))
    for panel in PANELS:
        assert panel.title in shown
    for words in ("politeness allows", "first byte", "timeout", "waiting", "process 2", "MiB", "00:30", "19 Nov 2025"):
        assert words in shown, words
    assert "none in this time" not in shown


def test_an_outage_is_a_gap_and_a_pause_is_shaded() -> None:
    plot = plot_of(samples(HOUR, outage=(600, 1_200), missing=(2_000, 2_600)), seconds=HOUR)
    svg = as_svg([plot])
    pages = paths(svg, "l0")[0]
    assert pages.count("M") == 2, "the curve is broken once"
    held = [one for one in parsed(svg).iter(f"{SVG}rect") if one.get("class") == "held"]
    assert len(held) == len([panel for panel in plot.panels if panel.lines])
    assert "connection lost" in texts(svg)


def test_paths_have_gaps_and_dots() -> None:
    assert line_path([None, (1, 1), None]) == "M1 1h0"
    assert line_path([]) == line_path([None, None]) == ""
    assert area_path([], []) == ""


def test_nothing_and_little_can_be_drawn() -> None:
    nothing = plot_of([], seconds=HOUR)
    assert "no samples in this time" in "".join(texts(as_svg([nothing])))
    one = plot_of([sample(START + 10)], seconds=10)
    svg = as_svg([one])
    assert "h0" in paths(svg, "l0")[0], "a single sample is a dot"
    empty = plot_of([Sample(node="a", ended=round(1000 * START) + 10_000, seconds=10.0)], seconds=10)
    assert "none in this time" in "".join(texts(as_svg([empty])))


def test_hostile_names_stay_text() -> None:
    given = [*samples(HOUR, node=HOSTILE), *samples(HOUR, node="other")]
    plot = plot_of(given, seconds=HOUR, label=HOSTILE)
    page = as_html([plot])
    assert "<script>alert" not in page and "\x1b" not in page and "\x00" not in page
    svg = page[page.index("<svg ") : page.index("</svg>") + 6]
    assert any("<script>" in text for text in texts(svg)), "the name is shown as it is"
    assert [one.tag for one in parsed(svg).iter() if "script" in one.tag] == []


def test_the_page_runs_its_own_script_only() -> None:
    page = as_html([plot_of(samples(HOUR), seconds=HOUR)])
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page and "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\"' <]+", page)) == {"http://www.w3.org/2000/svg"}


def test_the_page_has_the_values_of_all_legends_at_every_step() -> None:
    plot = plot_of(samples(HOUR, missing=(1_000, 2_000)), seconds=HOUR)
    page = as_html([plot])
    found = re.search(r'id="values">(.*?)</script>', page)
    assert found
    values = json.loads(found[1])
    legends = [one for one in parsed(as_svg([plot])).iter(f"{SVG}tspan") if "now" in one.get("class", "").split()]
    assert len(values["values"]) == len(legends) > 20
    assert {len(line) for line in values["values"]} == {plot.count} == {len(values["times"])}
    assert [line[-1] for line in values["values"]] == [one.text for one in legends], "the latest values"
    assert values["values"][0][150] == "–" and values["times"][1] == "2025-11-19 00:00:10Z"


def test_several_crawls_are_drawn_over_each_other() -> None:
    first = plot_of(samples(HOUR), seconds=HOUR, steps=120, label="first")
    second = plot_of(samples(HOUR / 2, seed=1), seconds=HOUR / 2, steps=60, label="second")
    chart = drawn([first, second])
    shown = texts(chart.svg)
    assert any(text.startswith("second") for text in shown) and "30 min" in shown
    assert len(paths(chart.svg, "again")) > 20 and not paths(chart.svg, "stacked")
    pages = next(text for text in shown if text.startswith("pages "))
    assert re.fullmatch(r"pages [\d.]+ / [\d.]+pages", pages), pages
    page = as_html([first, second])
    assert "1 h" in page


def test_a_year_is_drawn_in_bounded_time_and_size() -> None:
    year = 365 * 86_400.0
    began = time.process_time()
    plot = plot_of(samples(year, every=21_600.0, outage=(1e7, 1.2e7)), seconds=year)
    svg = as_svg([plot])
    page = as_html([plot])
    assert len(svg) < 600_000 and len(page) < 1_200_000
    assert time.process_time() - began < 30
    assert "1 Nov" in texts(svg)


def test_every_number_in_the_drawing_is_finite() -> None:
    steps: list[float | None] = [9e17, None, -9e17, 5e-324, 0.0]
    plot = plot_of(samples(HOUR), seconds=50)
    odd = [Line(label="odd", role=line.role, values=steps) for panel in plot.panels for line in panel.lines[:1]]
    panels = [msgspec.structs.replace(panel, lines=[line]) for panel, line in zip(plot.panels, odd, strict=True)]
    svg = as_svg([msgspec.structs.replace(plot, panels=panels)])
    numbers = " ".join(paths(svg, "line") + paths(svg, "stacked"))
    assert "nan" not in numbers and "inf" not in numbers


def test_the_plot_can_be_sent_as_json() -> None:
    plot = plot_of(samples(HOUR), seconds=HOUR)
    again = msgspec.json.decode(msgspec.json.encode(plot), type=Plot)
    assert again == plot


def test_a_picture_looks_like_the_chart() -> None:
    svg = as_svg([plot_of(samples(HOUR), seconds=HOUR)])
    png = as_png(svg)
    assert png.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(png[place : place + 4], "big") for place in (16, 20))
    wanted = parsed(svg)
    assert (width, height) == (2 * int(wanted.get("width", 0)), 2 * int(float(wanted.get("height", 0))))


def test_a_picture_without_fonts_is_refused() -> None:
    with pytest.raises(Exception, match="install one, such as the package fonts-dejavu-core"):
        as_png(as_svg([plot_of([], seconds=HOUR)]), has_system_fonts=False)


def test_without_the_library_a_picture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(Exception, match=r"pip install \"rove\[plot\]\""):
        as_png("<svg/>")
