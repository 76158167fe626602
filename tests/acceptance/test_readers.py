"""A crawl can be read by somebody who may not write: while it runs, after a kill, and when it has ended."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command import crawl_options, kill_hard, rove, started, wait_for, write_lines
from tests.acceptance.readers import Answer, as_another_user, on_read_only_mount
from tests.acceptance.results import frontier_rows
from tests.acceptance.site import Reply, Site, site

PAGES = [f"http://a.test/{number}" for number in range(6)]
ANSWERS = {
    "a.test/": Reply("<title>Start</title>" + "".join(f"<a href='{url}'>x</a>" for url in [*PAGES, "/file.pdf"])),
    **{url.removeprefix("http://"): Reply(f"<title>Title</title>text of {url}") for url in PAGES},
    "held.test/": Reply(held=True, status=404),
}
LOG, INDEX = "frontier.sqlite-wal", "frontier.sqlite-shm"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may read, unlike pytest's own. Temporary files of commands go to `tmp` in it."""
    with tempfile.TemporaryDirectory(prefix="rove-readers-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)
        monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
        yield folder


@pytest.fixture
def web() -> Iterator[Site]:
    with site(ANSWERS) as web:
        yield web


def reading_commands(data: Path) -> list[list[object]]:
    where = ["--data-dir", data]
    return [
        ["status", "--json", *where],
        ["pages", *where],
        ["show", PAGES[-1], *where],
        ["export", *where],
        ["audit", *where],
        ["explain", PAGES[0], *where],
        ["report", "a.test", *where],
        ["nodes", *where],
        ["domains", *where, "--json"],
        ["queue", *where, "--json"],
        ["skipped", *where],
        ["explain-query", "domains_in_slice", *where],
    ]


def check_answers(answers: list[Answer], *, running: bool, copied: bool = False) -> None:
    """Check that every command saw the whole crawl."""
    for answer in answers:
        assert answer.code == 0, answer
        assert ("temporary copy" in answer.err) == copied, answer
        assert copied or not answer.err, answer
    status, pages, shown, exported, audit, explained, report, nodes, *lists, plan = (answer.out for answer in answers)
    assert json.loads(status)["pages"] == len(PAGES) + 1
    assert json.loads(status)["running"] == running
    assert pages.count("Title") == len(PAGES)
    assert f"text of {PAGES[-1]}" in shown
    texts = {page["url"]: page["text"] for page in map(json.loads, exported.splitlines())}
    assert {url: texts[url] for url in PAGES} == {url: f"text of {url}" for url in PAGES}
    assert audit.startswith("no violations"), audit
    assert PAGES[0] in explained and PAGES[0] in report
    assert "pages" in nodes
    assert {json.loads(line)["domain"] for line in lists[0].splitlines()} == {"a.test", "held.test"}
    assert all(json.loads(line)["domain"] == "held.test" for line in lists[1].splitlines()) and "SEARCH domain" in plan
    assert lists[2].endswith("  http://a.test/file.pdf  on http://a.test/\n")


def files_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of change of every file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.name != INDEX  # a reader's locks are in it
    }


def all_stored(data: Path) -> bool:
    return len(frontier_rows(data, "SELECT 1 FROM url WHERE state = 1")) == len(PAGES) + 1


def test_another_user_reads_a_crawl_at_every_stage(folder: Path, web: Site) -> None:
    data = folder / "data"
    seeds = write_lines(folder / "seeds.txt", "http://a.test/", "http://held.test/")
    commands = reading_commands(data)
    with started("crawl", seeds, *crawl_options(data, delay=0.02), *web.reach) as crawl:
        wait_for(lambda: all_stored(data))
        check_answers(as_another_user(commands), running=True)
        kill_hard(crawl)
    assert (data / LOG).stat().st_size > 0, "the kill must leave a log"
    before = files_in(data)
    check_answers(as_another_user(commands), running=False)
    # A snapshot often has no index. Then the log can only be read in a copy.
    (data / INDEX).unlink()
    check_answers(on_read_only_mount(data, commands), running=False, copied=True)
    assert files_in(data) == before
    web.release.set()
    ended = rove("crawl", "--resume", "--data-dir", data)
    assert ended.returncode == 0, ended.stderr
    assert not (data / LOG).exists(), "a crawl that ended leaves no log"
    before = files_in(data)
    *answers, history = as_another_user([*commands, ["history", "--json", "--data-dir", data]])
    check_answers(answers, running=False)
    assert sum(json.loads(line).get("requests.page", 0) for line in history.out.splitlines()) > 0, history
    assert files_in(data) == before
    assert not list((folder / "tmp").iterdir())
