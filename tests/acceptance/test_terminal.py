"""The owner can always stop a crawl: closed terminals, nohup, background jobs, double signals and broken output."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rove.cli.terminal import REPEAT_SECONDS
from tests.acceptance.command import Process, crawl_options, rove_alone, started, wait_for
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.acceptance.stopping import MAX_SECONDS, check_clean_end, launched, under_way, web_and_seeds

scenario = Scenarios()
OWN_TERMINAL = "fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
"""Makes standard input the controlling terminal, so that closing it sends SIGHUP."""
ROUNDS = 20
"""Rounds of each scenario in the long test."""


class Terminal:
    """A terminal whose user watches, and may close it."""

    def __init__(self) -> None:
        self.user_end, self.program_end = pty.openpty()
        self._shown: list[bytes] = []
        self._lock = threading.Lock()
        self._open = {self.user_end, self.program_end}
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def shown(self) -> str:
        """Everything that programs have written."""
        return b"".join(self._shown).decode(errors="replace")

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.user_end, keys)

    def leave_to_program(self) -> None:
        """Close the program's end here: the program has its own copy."""
        self._close(self.program_end)

    def close(self) -> None:
        """Close the terminal, as closing its window does."""
        self._close(self.user_end)

    def _close(self, end: int) -> None:
        with self._lock:
            if end in self._open:
                self._open.remove(end)
                os.close(end)

    def _watch(self) -> None:
        while True:
            with self._lock:
                if self.user_end not in self._open:
                    return
                readable, _, _ = select.select([self.user_end], [], [], 0)
                try:
                    data = os.read(self.user_end, 4096) if readable else b""
                except OSError:  # the program has ended
                    return
            if data:
                self._shown.append(data)
            else:
                time.sleep(0.02)


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Open a terminal."""
    opened = Terminal()
    try:
        yield opened
    finally:
        opened.leave_to_program()
        opened.close()


@contextmanager
def in_terminal(screen: Terminal, *arguments: object, setup: str = "", output: object = None) -> Iterator[Process]:
    """Start a rove command in a terminal of its own."""
    end = screen.program_end
    streams = {"stdin": end, "stdout": output or end, "stderr": output or end}
    with launched(f"{OWN_TERMINAL}\n{setup}", *arguments, **streams) as process:
        screen.leave_to_program()
        yield process


def check_closed_terminal(folder: Path, processes: int) -> None:
    data = folder / "data"
    with web_and_seeds(folder) as (web, words), terminal() as screen:
        options = crawl_options(data, delay=0.3, processes=processes)
        with in_terminal(screen, *words, *options) as process:
            under_way(web)
            screen.close()
            check_clean_end(process, data, 128 + signal.SIGHUP)


@scenario
def a_closed_terminal_stops_one_process(folder: Path) -> None:
    check_closed_terminal(folder, processes=1)


@scenario
def a_closed_terminal_stops_two_processes(folder: Path) -> None:
    check_closed_terminal(folder, processes=2)


@scenario
def nohup_outlives_the_terminal_and_obeys_sigterm(folder: Path) -> None:
    data = folder / "data"
    with (
        web_and_seeds(folder) as (web, words),
        terminal() as screen,
        (folder / "nohup.out").open("w") as output,
    ):
        setup = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
        options = crawl_options(data, delay=0.3, processes=2)
        with in_terminal(screen, *words, *options, setup=setup, output=output) as process:
            under_way(web)
            screen.close()
            under_way(web, len(web.requests) + 20)
            process.terminate()
            check_clean_end(process, data, 128 + signal.SIGTERM)


@scenario
def a_background_job_ignores_ctrl_c(folder: Path) -> None:
    data = folder / "data"
    setup, quiet = "signal.signal(signal.SIGINT, signal.SIG_IGN)", subprocess.DEVNULL
    with (
        web_and_seeds(folder) as (web, words),
        launched(setup, *words, *crawl_options(data, delay=0.3), stdin=quiet, stderr=quiet) as process,
    ):
        under_way(web)
        process.send_signal(signal.SIGINT)
        under_way(web, len(web.requests) + 20)
        process.terminate()
        check_clean_end(process, data, 128 + signal.SIGTERM)


@scenario
def a_signal_sent_twice_is_one_signal(folder: Path) -> None:
    """`timeout` signals the process and its group."""
    data = folder / "data"
    with web_and_seeds(folder) as (web, words), started(*words, *crawl_options(data, delay=0.3)) as process:
        under_way(web)
        process.terminate()
        process.terminate()
        output, _ = process.communicate(timeout=MAX_SECONDS)
        assert "stopped: " in output and "stopped at once" not in output
        check_clean_end(process, data, 128 + signal.SIGTERM)


@scenario
def a_second_ctrl_c_restores_the_terminal_and_says_how_to_resume(folder: Path) -> None:
    data = folder / "data"
    seeds = folder / "seeds.txt"
    seeds.write_text("http://held.test/\n")

    def reply(host: str, path: str) -> Reply:
        return Reply(status=404) if path == "/robots.txt" else Reply("late", held=True)

    with (
        site(reply) as held,
        terminal() as screen,
        in_terminal(screen, "crawl", seeds, *held.reach, *crawl_options(data)) as process,
    ):
        wait_for(lambda: held.pages)
        process.send_signal(signal.SIGINT)
        wait_for(lambda: "stopping: fetches" in screen.shown)
        wait_for(lambda: "stopping: 1 visit in flight may finish" in screen.shown)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2 * REPEAT_SECONDS)
        process.send_signal(signal.SIGINT)
        assert process.wait(MAX_SECONDS) == 128 + signal.SIGINT
        wait_for(lambda: "--resume" in screen.shown)
    text = screen.shown
    assert "stopped at once; continue with: rove crawl --resume" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor stays hidden"
    assert "rove, running for" in text
    assert "rove, running for" not in text[text.index("stopped at once") :], "the panel stays on the screen"


@scenario
def a_broken_pipe_does_not_stop_the_crawl(folder: Path) -> None:
    data = folder / "data"
    reading, writing = os.pipe()
    with (
        web_and_seeds(folder) as (web, words),
        started(*words, *crawl_options(data, delay=0.3), stdout=writing) as process,
    ):
        os.close(writing)
        os.close(reading)
        under_way(web)
        process.terminate()
        check_clean_end(process, data, 128 + signal.SIGTERM)


@scenario
def a_full_disk_under_the_output_does_not_stop_the_crawl(folder: Path) -> None:
    data = folder / "data"
    with (
        web_and_seeds(folder) as (web, words),
        Path("/dev/full").open("w") as full,
        started(*words, *crawl_options(data, delay=0.3, processes=2), stdout=full) as process,
    ):
        under_way(web)
        process.terminate()
        check_clean_end(process, data, 128 + signal.SIGTERM)


@scenario
def closed_standard_streams_do_not_matter(folder: Path) -> None:
    data = folder / "data"
    with (
        web_and_seeds(folder) as (web, words),
        launched("os.closerange(0, 3)", *words, *crawl_options(data, delay=0.3, processes=2)) as process,
    ):
        under_way(web)
        process.terminate()
        check_clean_end(process, data, 128 + signal.SIGTERM)


@scenario
def a_command_whose_output_cannot_be_written_says_so_in_one_sentence(folder: Path) -> None:
    (folder / "frontier.sqlite").touch()
    where = ["--data-dir", folder]
    commands: list[list[object]] = [["demo", "--hosts", 1], ["stop", *where], ["pause", *where], ["unpause", *where]]
    with Path("/dev/full").open("w") as full:
        for words in commands:
            result = rove_alone(*words, stdout=full, stderr=subprocess.PIPE, capture_output=False)
            assert result.returncode == 1
            done = "; everything else is done" if where[0] in words else ""
            assert result.stderr == f"rove: the output cannot be written: No space left on device{done}\n"


@pytest.mark.parametrize("scenario", scenario.names)
def test_terminal(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", scenario.names)
def test_many_rounds(name: str, tmp_path: Path) -> None:
    failures = scenario.failures(name, ROUNDS, tmp_path)
    assert not failures, f"{len(failures)} of {ROUNDS} rounds failed: {failures[0]!r}"
