"""`rove plot` of a real crawl: in the terminal, as SVG, HTML and PNG, of one crawl and of two."""

from __future__ import annotations

import os
import pty
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rove.observe.panels import default_panels
from tests.acceptance.command import crawl_options, rove, rove_alone, rove_each, write_lines
from tests.acceptance.site import Reply, site

PAGES = {
    "one.test/": Reply("<title>One</title><a href=/gone>x</a><a href=/more>y</a>"),
    "one.test/more": Reply("<title>More</title>"),
    "one.test/gone": Reply("gone", status=404),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("plot")
    with site(PAGES) as web:
        seeds = write_lines(folder / "seeds.txt", "http://one.test/")
        done = rove("crawl", seeds, *crawl_options(folder / "data", delay=0.1), *web.reach)
    assert done.returncode == 0, done.stderr
    yield folder / "data"


def test_a_plot_is_written_in_every_form(data: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(data, second)
    files = [tmp_path / f"plot.{end}" for end in ("svg", "html", "png")]
    both = tmp_path / "both.svg"
    results = rove_each(
        [
            *(["plot", "--data-dir", data, "--output", file] for file in files),
            ["plot", "--data-dir", data, "--data-dir", second, "--output", both],
        ]
    )
    for result, file in zip(results, [*files, both], strict=True):
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith(f"{file}: {len(default_panels())} panels, 20"), result.stdout
    svg, html, png = (file.read_bytes() for file in files)
    texts = "".join(ElementTree.fromstring(svg).itertext())
    for shown in ("Pages", "pages ", "status 4xx", "first byte", "claim", "process 1", "pending"):
        assert shown in texts, shown
    assert b"Content-Security-Policy" in html and b'<svg tabindex="0"' in html
    assert png.startswith(b"\x89PNG")
    overlay = both.read_text()
    assert str(second) in overlay and "again" in overlay and " / " in overlay


def test_a_plot_is_drawn_in_the_terminal(data: Path) -> None:
    plain = rove("plot", "--data-dir", data, "--panels", "pages,errors")
    assert plain.returncode == 0, plain.stderr
    assert re.search(r"^pages +▁* *█", plain.stdout, re.MULTILINE), plain.stdout
    assert max(map(len, plain.stdout.splitlines())) <= 80 and "\x1b" not in plain.stdout
    user_end, program_end = pty.openpty()
    os.set_blocking(user_end, False)
    with os.fdopen(user_end, "rb") as terminal:
        environment = {**os.environ, "COLUMNS": "60", "LINES": "40", "TERM": "xterm", "PYTHONIOENCODING": "latin-1"}
        words = ["plot", "--data-dir", data, "--panels", "pages"]
        result = rove_alone(*words, env=environment, capture_output=False, stdout=program_end)
        shown = terminal.read().decode("latin-1")
    os.close(program_end)
    assert result.returncode == 0
    assert "\x1b[1mPages" in shown and "pages" in shown and "\\u25" not in shown
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= 60 and re.search(r"^pages +[_.:=+*#-]+ ", "\n".join(lines), re.MULTILINE)


def test_a_time_without_samples_has_no_plot(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "plot.svg"
    result = rove("plot", "--data-dir", data, "--until", "2020-01-01", "--output", file)
    assert (result.returncode, result.stderr) == (
        1,
        "rove: there are no samples in this time; a crawl writes one every 10 s while it runs\n",
    )
    assert not file.exists()
