"""Mistakes on the command line: one clear sentence, exit code 2, and nothing changed."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.command import (
    EMAIL,
    Completed,
    crawl_options,
    rove,
    rove_each,
    started,
    wait_for,
)
from tests.acceptance.results import frontier_rows, status_of
from tests.acceptance.site import Reply, site

Case = tuple[str, Sequence[object], str]
"""The name of a mistake, the arguments of the command, and a pattern that the error message must match."""


def complaint(result: Completed) -> str:
    """Return the error message of a refused command; nothing else is printed but the bad lines of a file."""
    assert result.returncode == 2, f"exit code {result.returncode}: {result.stderr}"
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    *bad_lines, message = result.stderr.splitlines()
    assert all(re.search(r", line \d+: ", line) for line in bad_lines), f"more than one line: {result.stderr}"
    assert message.startswith("rove: ")
    return message.removeprefix("rove: ")


def check_all(cases: Sequence[Case], **options: object) -> None:
    """Check that every command is refused with its message."""
    wrong = []
    for (name, _, wanted), result in zip(cases, rove_each([words for _, words, _ in cases], **options), strict=True):
        try:
            sentence = complaint(result)
            assert re.search(wanted, sentence), f"{sentence!r} does not say {wanted!r}"
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n\n".join(wrong)


def check_none_begun(folder: Path, cases: Sequence[Case], **options: object) -> None:
    """Check that every crawl is refused with its message and creates no data directory."""
    places = [folder / f"data of {number}" for number, _ in enumerate(cases)]
    check_all(
        [
            (name, ["crawl", *words, "--data-dir", place], wanted)
            for (name, words, wanted), place in zip(cases, places, strict=True)
        ],
        **options,
    )
    made = [name for (name, _, _), place in zip(cases, places, strict=True) if place.exists()]
    assert not made, f"a data directory was made for: {made}"


def contents(folder: Path) -> dict[str, str]:
    """Return a digest of every file in a folder, except the lock file, whose holder may change."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


@contextmanager
def unchanged(*folders: Path) -> Iterator[None]:
    """Check that nothing in these folders changes within the block."""
    before = [contents(folder) for folder in folders]
    yield
    assert [contents(folder) for folder in folders] == before


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.txt"
    path.write_text("example.test\n")
    return path


@pytest.fixture(scope="module")
def old_crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished crawl of three pages."""
    folder = tmp_path_factory.mktemp("old")
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"http://host{i}.test\n" for i in range(3)))
    with site(lambda host, path: Reply("<title>a page</title>", 404 if "rob" in path else 200)) as web:
        result = rove("crawl", seeds, *crawl_options(folder / "data"), *web.reach)
    assert result.returncode == 0, result.stderr
    return folder / "data"


IMPLAUSIBLE = [
    "",
    "me",
    "@crawler.test",
    "me@127.0.0.1",
    "me@you@crawler.test",
    "<me@crawler.test>",
    "me@crawler.test, you@crawler.test",
    "me@crawler.test\nX-Header: 1",
    f"{'m' * 250}@crawler.test",
]


def test_implausible_email_addresses_are_refused(tmp_path: Path, seeds: Path) -> None:
    check_none_begun(tmp_path, [(email, [seeds, "--email", email], "e-?mail") for email in IMPLAUSIBLE])


SENSELESS: list[Case] = [
    ("unknown option", ["--fast"], "--fast"),
    ("short delay", ["--delay", 5], "--allow-short-delay"),
    ("negative delay", ["--allow-short-delay", "--delay", -1], "--delay"),
    ("delay that is no number", ["--delay", "nan"], "--delay"),
    ("delay without end", ["--delay", "inf"], "--delay"),
    ("duration in words", ["--max-duration", "soon"], "soon.*duration"),
    ("no duration", ["--max-duration", "0s"], "0s.*duration"),
    ("no patience", ["--timeout", 0.5], "--timeout"),
    ("no fetches", ["--concurrency", 0], "--concurrency"),
    ("negative depth", ["--max-depth", -1], "--max-depth"),
    ("unknown store", ["--store", "pictures"], "pictures"),
    ("info URL without scheme", ["--info-url", "example.org"], "--info-url"),
    ("info URL that adds headers", ["--info-url", "http://a.org/\r\nX: 1"], "--info-url"),
    ("every parameter dropped", ["--drop-param", "*"], "every parameter"),
    ("a parameter with its value dropped", ["--drop-param", "a=1"], "parameter name"),
    ("connect-to nowhere", ["--connect-to", "*.test"], "connect-to.*PATTERN"),
    ("connect-to a name", ["--connect-to", "*=localhost:80"], "localhost"),
    ("connect-to no port", ["--connect-to", "*=127.0.0.1:99999"], "port"),
    ("name server by name", ["--dns-server", "dns.test"], "name server.*ADDRESS"),
]


def test_options_that_make_no_sense_are_refused(tmp_path: Path, seeds: Path) -> None:
    cases = [(name, [seeds, "--email", EMAIL, *words], wanted) for name, words, wanted in SENSELESS]
    check_none_begun(tmp_path, [*cases, ("no e-mail", [seeds], "--email")])
    check_all([("unknown command", ["crwal", seeds], "crwal")])


def test_files_that_cannot_be_used_are_refused(tmp_path: Path, seeds: Path) -> None:
    empty, comments, rubbish = (tmp_path / name for name in ("empty", "comments", "rubbish"))
    empty.write_text("")
    comments.write_text("# nothing\n\n   \r\n# at all")
    rubbish.write_bytes(b"not a domain\n\xff\xfe\x00\n//\nmailto:me@crawler.test\n")
    typo = tmp_path / "typo"
    typo.write_text("example.org\nexa mple.com\n")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    a_file = tmp_path / "a-file"
    a_file.write_text("mine")
    missing, mine = tmp_path / "missing", ["--email", EMAIL]
    exclude = [seeds, *mine, "--exclude"]
    with unchanged(tmp_path):
        check_none_begun(
            tmp_path,
            [
                ("no seeds", mine, "SEEDS"),
                ("missing seeds", [missing, *mine], f"seed.*{missing}"),
                ("a directory of seeds", [tmp_path, *mine], f"seed.*{tmp_path}"),
                ("empty seeds", [empty, *mine], f"{empty}.*no domain"),
                ("only comments", [comments, *mine], f"{comments}.*no domain"),
                ("only rubbish", [rubbish, *mine], f"{rubbish}.*no domain"),
                ("empty standard input", ["-", *mine], "standard input.*no domain"),
                ("missing exclusions", [*exclude, missing], str(missing)),
                ("a directory of exclusions", [*exclude, tmp_path], str(tmp_path)),
                ("a typo in exclusions", [*exclude, typo], f"{typo}, line 2.*exa mple"),
                ("exclusions that are no text", [*exclude, binary], str(binary)),
                ("nothing to resume", ["--resume"], "no crawl"),
            ],
            stdin=subprocess.DEVNULL,
        )
        check_all(
            [
                (name, ["crawl", seeds, *mine, "--data-dir", place], str(a_file))
                for name, place in (("a file", a_file), ("below a file", a_file / "data"))
            ]
        )


def test_looking_into_no_crawl_is_refused(tmp_path: Path, old_crawl: Path) -> None:
    nothing, file = tmp_path / "nothing", tmp_path / "file"
    file.write_text("mine")
    commands: list[list[object]] = [["status"], ["pages"], ["export"]]
    commands.append(["show", "http://host0.test/"])
    cases: list[Case] = [
        (f"{words} in {place.name}", [*words, "--data-dir", place], f"{place}.*no crawl")
        for words in commands
        for place in (nothing, tmp_path, file)
        if place is nothing or words == ["status"]
    ]
    inside = ["--data-dir", old_crawl]
    cases += [
        ("unknown URL", ["show", "http://host0.test/no", *inside], "host0.test/no.*not known"),
        ("unknown domain", ["show", "elsewhere.test", *inside], "elsewhere.test.*not known"),
        ("no URL", ["show", "not a url", *inside], "not a url"),
        ("no domain", ["pages", "--domain", "a b", *inside], "a b"),
        ("no number", ["pages", "--limit", "0", *inside], "--limit"),
    ]
    with unchanged(tmp_path, old_crawl):
        check_all(cases)
    assert not nothing.exists()


def test_a_crawl_that_is_there_is_never_overwritten(tmp_path: Path, seeds: Path, old_crawl: Path) -> None:
    empty, typo, missing = (tmp_path / name for name in ("empty", "typo", "missing"))
    empty.write_text("\n")
    typo.write_text("no domain\n")
    before = status_of(old_crawl)
    assert before["pages"] == 3
    cases: list[Case] = [
        ("again", [seeds, "--email", EMAIL], r"3 pages.*--resume"),
        ("from standard input", ["-", "--email", EMAIL], r"3 pages.*--resume"),
        ("resumed by nobody", ["--resume", "--email", "me"], "e-mail"),
        ("resumed in haste", ["--resume", "--delay", -1], "--delay"),
        ("resumed with no seeds", ["--resume", missing], str(missing)),
        ("resumed with an empty file", ["--resume", empty], "no domain"),
        ("resumed with a typo", ["--resume", "--exclude", typo], "line 1"),
        ("resumed to nowhere", ["--resume", "--connect-to", "x"], "connect-to"),
    ]
    copies = [tmp_path / f"copy {name}" for name, _, _ in cases]
    for copy in copies:
        shutil.copytree(old_crawl, copy)
    with unchanged(*copies):
        check_all(
            [
                (name, ["crawl", *words, "--data-dir", copy], wanted)
                for (name, words, wanted), copy in zip(cases, copies, strict=True)
            ],
            input="example.test\n",
        )
    assert status_of(copies[0]) == before


def test_a_running_crawl_keeps_its_directory(tmp_path: Path, seeds: Path) -> None:
    data = tmp_path / "data"
    words = ["crawl", seeds, *crawl_options(data, delay=60)]
    with site({"example.test/": Reply(held=True)}) as web, started(*words, *web.reach) as running:
        wait_for(lambda: web.requests)
        in_use = rf"{data} is in use.*{running.pid}"
        check_all(
            [
                ("a second crawl", [*words, *web.reach], in_use),
                ("a resumed one", ["crawl", "--resume", "--data-dir", data], in_use),
            ]
        )
        assert status_of(data)["running"] is True
        assert running.poll() is None


def test_a_crawl_that_still_reads_its_seeds_keeps_its_directory(tmp_path: Path, seeds: Path) -> None:
    data = tmp_path / "data"
    options = crawl_options(data)
    with (
        site({}) as web,
        started("crawl", "-", *options, *web.reach, stdin=subprocess.PIPE) as first,
    ):
        assert first.stdin is not None
        wait_for(lambda: (data / "lock").exists() and (data / "lock").read_text())
        wait_for(lambda: list((data / "seeds").glob("*")))
        check_all([("a second crawl", ["crawl", seeds, *options, *web.reach], "in use")])
        first.stdin.write("http://first.test/\n")
        first.stdin.close()
        assert first.wait(30) == 3, first.stdout and first.stdout.read()
    assert frontier_rows(data, "SELECT url FROM url") == [("http://first.test/",)]


def test_a_refused_crawl_leaves_what_it_did_not_make(tmp_path: Path) -> None:
    """A data directory may hold a user's own files, even files with names that rove uses."""
    data = tmp_path / "data"
    (data / "seeds").mkdir(parents=True)
    (data / "seeds" / "mine.txt").write_text("# nothing good\n")
    (data / "rove.log").write_text("mine too")
    seeds = data / "seeds" / "mine.txt"
    with unchanged(data):
        sentence = complaint(rove("crawl", seeds, "--email", EMAIL, "--data-dir", data))
    assert "no domain" in sentence


def test_a_frontier_that_cannot_be_read_is_left_alone(tmp_path: Path, seeds: Path, old_crawl: Path) -> None:
    newer, rubbish = tmp_path / "newer", tmp_path / "rubbish"
    shutil.copytree(old_crawl, newer)
    with closing(sqlite3.connect(newer / "frontier.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 999")
    rubbish.mkdir()
    (rubbish / "frontier.sqlite").write_bytes(b"This is no database at all. " * 200)
    cases: list[Case] = []
    copies: list[Path] = []
    for data, wanted in ((newer, "newer.*999"), (rubbish, "frontier.sqlite is not")):
        for words in (["crawl", seeds, "--email", EMAIL], ["crawl", "--resume"], ["status"]):
            copies.append(tmp_path / f"{data.name} {len(copies)}")
            shutil.copytree(data, copies[-1])
            cases.append((f"{words[:2]} {data.name}", [*words, "--data-dir", copies[-1]], wanted))
    with unchanged(*copies):
        check_all(cases)


def test_nothing_at_all_is_answered_with_help() -> None:
    result = rove()
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert (result.stdout + result.stderr).startswith("Usage: rove")
    for command in ("crawl", "status", "pages", "show", "export", "demo"):
        assert command in result.stdout + result.stderr
