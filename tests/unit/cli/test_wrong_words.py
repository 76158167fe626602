"""What rove answers to a command line that it cannot use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rove.__main__ import run


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("crwal", "there is no command 'crwal'; did you mean 'rove crawl'? (see rove --help)"),
        ("stauts", "there is no command 'stauts'; did you mean 'rove status'? (see rove --help)"),
        ("page", "there is no command 'page'; did you mean 'rove pages'? (see rove --help)"),
        ("frobnicate", "there is no command 'frobnicate' (see rove --help)"),
        (
            "seeds.txt",
            "; a crawl starts with 'rove crawl SEEDS --email ADDRESS' (see rove --help)",
        ),
        ("help crawl", "there is no command 'help'; add --help to a command instead (see rove --help)\n"),
        ("crawl --mail x", "rove: there is no option '--mail'; did you mean '--email'? (see rove crawl --help)\n"),
        ("crawl --sitemap", "no option '--sitemap'; did you mean '--no-sitemaps' or '--sitemaps'"),
        ("crawl --xyzzy", "rove: there is no option '--xyzzy' (see rove crawl --help)\n"),
        ("status now", "rove: 'rove status' does not take the argument 'now' (see rove status --help)\n"),
        (
            "status /",
            "; to name the data directory, use --data-dir / (see rove status --help)\n",
        ),
        ("demo /", "rove: 'rove demo' does not take the argument '/' (see rove demo --help)\n"),
        ("show", "rove: Missing argument 'URL' (see rove show --help)\n"),
        ("export --output", "rove: Option '--output' requires an argument (see rove export --help)\n"),
        ("pages --status abc", "'abc' is not a whole number from 0 to 999 (see rove pages --help)\n"),
        ("retry --status 4", "'4' is not a whole number from 100 to 999 (see rove retry --help)\n"),
        ("crawl --max-pages 10k", "'10k' is not a whole number from 1 to 1,000,000,000"),
        ("crawl --max-pages 0", "'0' is not a whole number from 1 to 1,000,000,000"),
        ("crawl --max-links x", "'x' is not a whole number from 0 to 50,000"),
        ("crawl --concurrency 0", "'0' is neither 'auto' nor a whole number of at least 1"),
        ("crawl --per-ip-rate fast", "'fast' is not a number of at least 0"),
        ("crawl --per-ip-rate nan", "'nan' is not a number of at least 0"),
        ("crawl --per-ip-rate inf", "'inf' is not a number of at least 0"),
        ("stop --timeout 0", "'0' is not a number above 0"),
        ("crawl --delay none", "'none' means nothing here; to lift what the crawl remembers, write 'default'"),
        ("crawl --max-links none", "'none' means nothing here; to lift what the crawl remembers, write 'default'"),
        ("crawl --max-depth default", "'default' means nothing here; to lift what the crawl remembers, write 'none'"),
        ("plot --panels page", "there is no panel 'page'; did you mean 'pages'? (see rove plot --help)"),
        ("plot --panels all,x", "there is no panel 'x'; the panels are pages, leases, phases, errors,"),
        ("plot --output x.gif", "x.gif: a plot is written as .svg, .html or .png; end the name with one of these"),
        ("plot --data-dir a --data-dir b --frontier c", "give either --frontier or several --data-dir, not both"),
        ("crawl --horizon off", "'off' means nothing here; to lift what the crawl remembers, write 'none'"),
    ],
)
def test_the_answer_says_what_is_wrong(words: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words.split()) == 2
    said = capsys.readouterr().err
    assert answer in said and said.count("\n") == 1, said


@pytest.mark.system
@pytest.mark.parametrize("words", ["--help", "--version", "crawl --help", "status -h"])
def test_a_help_text_that_cannot_be_written_is_one_sentence(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "rove", *words.split()]
        said = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (said.returncode, said.stderr) == (1, "rove: the output cannot be written: No space left on device\n")
