"""Looking at a crawl: text from the web commands no terminal, an export is a table, and pages can be followed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rove.__main__ import run
from tests.acceptance.command import crawl_options, rove_alone, started, wait_for, write_lines
from tests.acceptance.hostile_text import ANSWERS, HOST, HOSTILE, PAGES, UNSAFE
from tests.acceptance.results import frontier_rows, secret_of, shows_secret
from tests.acceptance.site import Reply, site

KEYS = {
    "url": str,
    "fetched": str,
    "seconds": float,
    "status": int,
    "error": str | None,
    "type": str | None,
    "bytes": int,
    "redirect_to": str | None,
    "content_hash": str | None,
    "truncated": bool,
    "marks": list,
    "title": str | None,
    "language": str | None,
    "language_score": float | None,
    "languages": list,
    "simhash": str | None,
    "usage": str | None,
    "usage_from": list,
    "visit": int,
    "fate": str,
    "text_record": dict | None,
    "revisit_record": dict | None,
    "raw_record": dict | None,
    "copy_of": str | None,
    "id": str,
    "date": str,
    "domain": str,
    "depth": int | None,
    "copies": int,
    "text": str | None,
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A crawl of the hostile site, and everything that the crawl printed."""
    folder = tmp_path_factory.mktemp("hostile")
    seeds = write_lines(folder / "seeds.txt", f"http://{HOST}/", f"not a seed {HOSTILE}".replace("\r", ""))
    data = folder / "data"
    options = crawl_options(data, delay=0.01)
    with site(ANSWERS) as served:
        done = rove_alone("crawl", seeds, *options, *served.reach, "--store", "both", encoding="utf-8")
    assert done.returncode == 0, done.stderr
    yield data, done.stdout + done.stderr


@pytest.fixture
def data(crawled: tuple[Path, str]) -> Path:
    return crawled[0]


Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture
def answer(capfdbinary: pytest.CaptureFixture[bytes], data: Path) -> Answer:
    """Run a command in this process; return its exit code and what it printed."""

    def of(*words: object) -> tuple[int, str, str]:
        code = run([*map(str, words), "--data-dir", str(data)])
        printed = capfdbinary.readouterr()
        return code, printed.out.decode(), printed.err.decode()

    return of


def check_harmless(text: str) -> None:
    found = UNSAFE.search(text)
    assert found is None, text[max(0, found.start() - 200) : found.end() + 50]


def test_the_crawl_met_every_kind_of_hostile_text(data: Path) -> None:
    rows = frontier_rows(data, "SELECT url, status, error, media_type, target, title, is_copy FROM request")
    assert {row[1] for row in rows} >= {0, 200, 301, 302, 404}
    assert any(UNSAFE.search(row[3]) for row in rows), "a Content-Type"
    assert any(UNSAFE.search(row[4]) for row in rows), "a Location"
    assert any(UNSAFE.search(row[5]) for row in rows), "a title"
    assert any(row[6] for row in rows), "a copy"


def test_the_crawl_prints_and_logs_no_hostile_text(crawled: tuple[Path, str]) -> None:
    data, printed = crawled
    check_harmless(printed)
    assert "not a seed" in printed
    for log in data.glob("*.log"):
        check_harmless(log.read_text())


def test_no_command_prints_hostile_text_or_the_secret(answer: Answer, data: Path, tmp_path: Path) -> None:
    secret = secret_of(data)
    url = f"http://{HOST}/"
    commands: list[list[object]] = [
        ["status"],
        ["status", "--json"],
        ["pages", "--limit", 100],
        ["pages", "--limit", 100, "--json"],
        ["pages", "--error", HOSTILE],
        ["pages", "--mark", HOSTILE],
        ["pages", "--since", HOSTILE],
        ["pages", "--domain", HOSTILE],
        ["pages", "--domain", "hostile.tset"],
        ["explain", url],
        ["explain", f"http://{HOST}/private/{HOSTILE}"],
        ["explain", f"http://{HOST}/private/{HOSTILE}", "--json"],
        ["explain", HOSTILE],
        ["report", HOST],
        ["report", HOST, "--json"],
        ["report", HOST, "--html", tmp_path / "report.html"],
        ["audit"],
        ["audit", "--json"],
        ["nodes"],
        ["exclude", "other.test", "--reason", HOSTILE],
        ["exclude", HOSTILE],
        ["exclude", "--list"],
        ["include", HOSTILE],
        ["domains"],
        ["domains", "--json"],
        ["domains", "--search", HOSTILE],
        ["domains", "--by", HOSTILE],
        ["queue"],
        ["queue", "--domain", HOSTILE],
        ["queue", "--domain", HOST],
        ["skipped", "--reason", "file-type"],
        ["skipped", "--json"],
        ["skipped", "--domain", HOSTILE],
        ["explain-query"],
        ["explain-query", HOSTILE],
        ["export", "--all"],
        ["export", "--domain", HOSTILE],
        ["show", HOSTILE],
        ["show", f"http://{HOST}/{HOSTILE}?q={HOSTILE}"],
        ["show", f"http://{HOST}/unknown{HOSTILE}"],
        ["purge", HOSTILE, "--yes"],
        [HOSTILE],
    ]
    for command in commands:
        code, out, err = answer(*command)
        assert code in (0, 1, 2), command
        assert out or err, command
        check_harmless(out)
        check_harmless(err)
        assert not shows_secret((out + err).encode(), secret), command
        assert "Traceback" not in err, command
    written = (tmp_path / "report.html").read_text()
    check_harmless(written)
    assert not shows_secret(written.encode(), secret)


@pytest.mark.parametrize("path", PAGES)
def test_showing_a_page_prints_only_its_own_text_exactly(answer: Answer, data: Path, path: str) -> None:
    """What is said about a page is harmless. Its text goes to a pipe as it is stored, without control characters."""
    code, out, err = answer("show", f"http://{HOST}{path}")
    about, _, text = out.partition("\n\n")
    check_harmless(about + err)
    if path in ("/", "/copy"):
        (page,) = [p for p in map(json.loads, answer("export")[1].splitlines()) if p["url"].endswith(path)]
        assert text == page["text"] + "\n"
        assert "\u202e" in text and "\x1b" not in text
    assert code == 0 or path.startswith("/private")


def test_a_terminal_gets_harmless_text(data: Path) -> None:
    user_end, program_end = pty.openpty()
    command = [sys.executable, "-m", "rove", "show", f"http://{HOST}/", "--data-dir", str(data)]
    with subprocess.Popen(command, stdout=program_end, stderr=program_end) as process:
        os.close(program_end)
        shown = b""
        while True:
            try:
                shown += os.read(user_end, 65_536)
            except OSError:  # the program has ended
                break
        assert process.wait() == 0
    os.close(user_end)
    text = shown.decode().replace("\r\n", "\n")  # the terminal adds the carriage returns
    check_harmless(text)
    assert r"\u202e" in text and "enough of them to be stored once" in text


def test_raw_bytes_are_exact_in_a_pipe(capfdbinary: pytest.CaptureFixture[bytes], data: Path) -> None:
    assert run(["show", f"http://{HOST}/", "--raw", "--data-dir", str(data)]) == 0
    body = ANSWERS[f"{HOST}/"].body
    assert isinstance(body, str)
    assert capfdbinary.readouterr().out.endswith(body.encode())


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_has_every_key_of_the_same_type_on_every_line(answer: Answer) -> None:
    code, out, err = answer("export", "--all")
    assert (code, err) == (0, "")
    pages = lines_of(out)
    for page in pages:
        assert list(page) == list(KEYS)
        for key, kind in KEYS.items():
            assert isinstance(page[key], kind), (key, page[key])
        for key in ("text_record", "revisit_record", "raw_record"):
            assert page[key] is None or list(page[key]) == ["file", "offset", "length"]
    by_path = {page["url"].removeprefix(f"http://{HOST}"): page for page in pages}
    assert by_path["/redirect"]["redirect_to"].startswith("/target\x1b]0;owned")
    assert (by_path["/missing"]["error"], by_path["/missing"]["text"]) == ("status-404", None)
    assert by_path["/reset"]["status"] == 0 and by_path["/reset"]["error"] == "reset"
    copies = [page for page in pages if page["copy_of"]]
    assert [(copy["copy_of"], copy["url"]) for copy in copies] == [(f"http://{HOST}/", f"http://{HOST}/copy")]
    assert copies[0]["text"] == by_path["/"]["text"]
    filled = {key for page in pages[:8] for key, value in page.items() if value not in (None, [])}
    assert filled == set(KEYS) - {"marks", "usage", "usage_from"}, "the first lines have examples of every column"
    stored = lines_of(answer("export")[1])
    assert {page["url"] for page in stored} == {page["url"] for page in pages if page["text"] is not None}


def test_an_export_is_utf_8_whatever_the_locale(data: Path, answer: Answer) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = rove_alone("export", "--all", "--data-dir", data, env=environment, text=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == answer("export", "--all")[1].encode()


def test_an_export_to_a_file(answer: Answer, tmp_path: Path) -> None:
    file = tmp_path / "pages.jsonl"
    code, out, _ = answer("export", "--all", "--output", file)
    assert (code, out) == (0, f"{file}: {len(lines_of(file.read_text()))} pages\n")
    assert list(tmp_path.iterdir()) == [file], "no other file is left"
    before = file.read_bytes()
    code, out, err = answer("export", "--limit", 1, "--output", file)
    assert (code, out) == (2, "") and "add --force to replace it" in err
    assert file.read_bytes() == before
    assert answer("export", "--limit", 1, "--output", file, "--force")[0] == 0
    assert len(lines_of(file.read_text())) == 1
    assert "not an ordinary file" in answer("export", "--output", "/dev/null", "--force")[2]


def test_an_export_of_a_time_and_a_domain(answer: Answer) -> None:
    everything = lines_of(answer("export", "--all")[1])
    times = sorted(page["fetched"] for page in everything)
    middle = times[len(times) // 2]
    since = lines_of(answer("export", "--all", "--since", middle)[1])
    until = lines_of(answer("export", "--all", "--until", middle)[1])
    assert {page["fetched"] for page in since} == {time for time in times if time >= middle}
    assert len(since) + len(until) == len(everything)
    assert len(lines_of(answer("export", "--limit", 1)[1])) == 1
    code, out, err = answer("export", "--domain", "hostle.test")
    assert (code, out) == (0, "") and "no stored page of hostle.test; did you mean hostile.test?" in err
    assert "no stored page since" in answer("export", "--since", "1s")[2]


def test_pages_are_filtered(answer: Answer) -> None:
    def urls(*options: object) -> list[str]:
        return [page["url"].removeprefix(f"http://{HOST}") for page in lines_of(answer("pages", "--json", *options)[1])]

    assert urls("--error", "reset") == ["/reset"] * len(urls("--error", "reset")) != []
    assert "/missing" in urls("--error", "status-404") and "/" not in urls("--error", "any")
    assert urls("--error", "wrong-type") == ["/type"]
    assert urls("--since", "1h") == urls()
    assert "rove: no page before 20" in answer("pages", "--until", "1h")[2]
    assert "rove: no page with the mark body-cut" in answer("pages", "--mark", "body-cut")[2]
    code, _, err = answer("pages", "--error", "rest")
    assert code == 2 and "choose one of aborted, address-refused" in err
    assert answer("pages", "--follow", "--until", "1h")[0] == 2


def test_a_broken_pipe_ends_a_command_quietly(data: Path) -> None:
    command = [sys.executable, "-m", "rove", "export", "--all", "--data-dir", str(data)]
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_following_a_crawl(tmp_path: Path) -> None:
    """New pages appear while the crawl runs; Ctrl-C ends it without a traceback, and so does a reader that leaves."""
    links = "".join(f'<a href="/{n}"></a>' for n in range(3))
    answers = {"a.test/": Reply(f"<title>first</title>{links}")}
    answers |= {f"a.test/{n}": Reply(f"<title>page {n}</title>", held=True) for n in range(3)}
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/")
    follow = ["pages", "--follow", "--data-dir", data]
    with site(answers) as served, started("crawl", seeds, *crawl_options(data, delay=0.01), *served.reach) as crawl:
        wait_for(lambda: frontier_rows(data, "SELECT 1 FROM request WHERE kind = 'page'"))
        errors = (tmp_path / "errors").open("w+")
        with started(*follow, stderr=errors) as watcher, started(*follow, "--json", stderr=errors) as left:
            assert watcher.stdout is not None and left.stdout is not None
            assert watcher.stdout.readline().endswith("http://a.test/  first\n")
            assert json.loads(left.stdout.readline())["title"] == "first"
            left.stdout.close()
            assert left.wait(timeout=60) == 0, "it notices without a new page"
            served.release.set()
            titles = {watcher.stdout.readline().split("  ")[-1].strip() for _ in range(3)}
            assert titles == {"page 0", "page 1", "page 2"}
            assert crawl.wait(timeout=60) == 0
            watcher.send_signal(signal.SIGINT)
            assert watcher.wait(timeout=60) == 130
            assert watcher.stdout.read() == ""
        errors.seek(0)
        assert errors.read().strip() == "", "no traceback"
        errors.close()
