"""`rove watch`: the panel of a running crawl, in a real terminal and without one."""

from __future__ import annotations

import re
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.command import Process, crawl_options, rove, started, wait_for
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import site
from tests.acceptance.stopping import MAX_SECONDS
from tests.acceptance.test_limiting import HOSTS, reply, seeds_in
from tests.acceptance.test_terminal import Terminal, in_terminal, terminal

scenario = Scenarios()
SHOWN = "wait for their delay"
"""A line that only the panel has."""


@contextmanager
def crawling(folder: Path) -> Iterator[tuple[Path, Process]]:
    """Run a crawl whose domains all wait after their first visit."""
    data = folder / "data"
    options = crawl_options(data, delay=600.0)
    with site(reply) as web, started("crawl", seeds_in(folder), *web.reach, *options) as process:
        wait_for(lambda: len(web.pages) == len(HOSTS))
        wait_for(lambda: " 12 waiting" in rove("status", "--data-dir", data).stdout)
        yield data, process


def finish(process: Process) -> None:
    process.send_signal(signal.SIGINT)
    assert process.wait(MAX_SECONDS) == 128 + signal.SIGINT


def local_modes(screen: Terminal) -> int:
    """Return the flags of the terminal that say whether it echoes and waits for whole lines."""
    flags: int = termios.tcgetattr(screen.user_end)[3]
    return flags & (termios.ECHO | termios.ICANON)


def words_of(screen: Terminal) -> str:
    """Return the words on a screen, without frames, colours and cursor movements."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|│", " ", screen.shown).split())


def check_left(screen: Terminal, watching: Process, modes: int) -> None:
    assert watching.wait(MAX_SECONDS) == 0
    wait_for(lambda: screen.shown.rstrip().endswith("\x1b[?25h"))
    assert local_modes(screen) == modes, "the terminal is as it was"
    assert "Traceback" not in screen.shown


@scenario
def a_crawl_is_watched_and_left_alone(folder: Path) -> None:
    with crawling(folder) as (data, process):
        for by_key in (True, False):
            with terminal() as screen:
                modes = local_modes(screen)
                with in_terminal(screen, "watch", "--data-dir", data) as watching:
                    wait_for(lambda: SHOWN in screen.shown)
                    assert local_modes(screen) == 0, "keys are read one by one"
                    screen.type(b"x\r")  # means nothing
                    if by_key:
                        screen.type(b"q")
                    else:
                        watching.send_signal(signal.SIGINT)
                    check_left(screen, watching, modes)
                text = words_of(screen)
                assert "limited by politeness: 12 domains, all waiting; the next is due in " in text
                assert "pages stored 12" in text and "rove, running for" in text
        assert process.poll() is None, "it still crawls"
        finish(process)


@scenario
def without_a_terminal_there_are_lines_until_the_crawl_ends(folder: Path) -> None:
    with crawling(folder) as (data, process):
        words = ["watch", "--data-dir", data, "--progress-interval", "0.2s"]
        with started(*words) as watching, started(*words) as closed:
            assert watching.stdout is not None and closed.stdout is not None
            assert ": 12 pages, " in watching.stdout.readline()
            assert "limited by politeness" in watching.stdout.readline()
            closed.stdout.readline()
            closed.stdout.close()
            assert closed.wait(MAX_SECONDS) == 0, "nobody reads it"
            assert rove("pause", "--data-dir", data).returncode == 0
            while "paused by " not in (line := watching.stdout.readline()):
                assert line, "it ended"
            finish(process)
            rest = watching.stdout.read().splitlines()
            assert watching.wait(MAX_SECONDS) == 0
        assert rest[-2:] == [
            "the crawl has ended: 12 pages stored, 12 URLs pending",
            f"continue with: rove crawl --resume --data-dir {data}",
        ]
    after = rove("watch", "--data-dir", data)
    assert after.returncode == 0
    assert after.stdout.splitlines()[0] == "the crawl is not running: 12 pages stored, 12 URLs pending"
    nothing = rove("watch", "--data-dir", folder / "nothing")
    assert (nothing.returncode, nothing.stdout) == (2, "") and "holds no crawl" in nothing.stderr


@scenario
def a_terminal_that_is_closed_ends_only_the_watching(folder: Path) -> None:
    with crawling(folder) as (data, process), terminal() as screen:
        with in_terminal(screen, "watch", "--data-dir", data) as watching:
            wait_for(lambda: SHOWN in screen.shown)
            screen.close()
            watching.wait(MAX_SECONDS)
        assert process.poll() is None
        finish(process)


@pytest.mark.parametrize("scenario", scenario.names)
def test_watch(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
