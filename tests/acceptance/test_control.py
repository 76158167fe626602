"""`rove stop`, `rove pause` and `rove unpause`, and stops that come before the crawl runs."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.acceptance.command import (
    EMAIL,
    Completed,
    Process,
    crawl_options,
    logged,
    rove,
    rove_each,
    started,
    wait_for,
)
from tests.acceptance.results import check_audit, leased_domains, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.stopping import (
    MAX_SECONDS,
    STOP_SECONDS,
    check_clean_end,
    launched,
    seconds_until_end,
    under_way,
    web_and_seeds,
)
from tests.postgres import with_database

scenario = Scenarios()
QUIET_SECONDS = 1.0
"""How long a paused crawl is watched; it would make ten requests in this time."""
_shared: dict[str, str] = {}
"""The URL of the database server. Scenarios run in threads and cannot use fixtures."""


def told(*words: object) -> str:
    """Run a command that must succeed; return what it prints."""
    result = rove(*words)
    assert result.returncode == 0, result.stderr
    return result.stdout


@scenario
def a_crawl_is_paused_stopped_and_resumed_from_another_terminal(folder: Path) -> None:
    data = folder / "data"
    with web_and_seeds(folder) as (web, words):
        with logged(*words, *crawl_options(data, delay=0.3, processes=2)) as (process, output):
            under_way(web)
            assert "paused: no new visit starts" in told("pause", "--data-dir", data)
            wait_for(lambda: leased_domains(data) == 0)
            before = len(web.requests)
            time.sleep(QUIET_SECONDS)
            status = status_of(data)
            assert len(web.requests) == before, "a visit has started"
            assert status["running"] and status["paused"] and status["pauses"][0]["where"] == "this machine"
            assert "running, paused by " in told("status", "--data-dir", data)
            assert "2 processes, paused" in told("nodes", "--data-dir", data)
            assert "already paused by" in told("pause", "--data-dir", data)
            said = told("stop", "--data-dir", data)
            assert process.poll() is not None, "the command returns when the crawl has ended"
            assert said.startswith("stopped: ") and f"rove crawl --resume --data-dir {data}" in said
            assert "it stays paused by " in said and f"end that with: rove unpause --data-dir {data}" in said
            assert "stopped by rove stop: " in output() and "continue with: rove crawl --resume" in output()
            check_clean_end(process, data, 0)
        assert told("stop", "--data-dir", data).startswith("not running: ")
        resumed = rove("crawl", "--resume", "--data-dir", data, "--max-duration", "1s")
        assert resumed.returncode == 0 and "time limit reached" in resumed.stderr, "the old stop was obeyed again"
        assert "no new visit starts until 'rove unpause" in resumed.stderr
        assert len(web.requests) == before, "it stays paused over a restart"
        assert "no longer paused; the crawl is not running" in told("unpause", "--data-dir", data)
        with started("crawl", "--resume", "--data-dir", data, "--max-duration", "1h") as process:
            under_way(web, before)
            assert "not paused" in told("unpause", "--data-dir", data)
            (data / "stop.json").write_text("by hand")
            check_clean_end(process, data, 0)


@scenario
def one_machine_of_two_or_both_are_paused_and_stopped(folder: Path) -> None:
    name = f"control_{os.getpid()}"
    every = ["--frontier", _shared["url"], "--crawl-name", name]
    here, there = folder / "here", folder / "there"
    join = ["join", _shared["url"], "--crawl-name", name, "--data-dir", there, "--processes", 1]
    with (
        web_and_seeds(folder) as (web, words),
        started(*words, *crawl_options(here, delay=0.3, processes=2), *every) as first,
    ):
        under_way(web)
        with logged(*join) as (second, output):
            wait_for(lambda: told("nodes", "--data-dir", here).count("process") == 2)
            assert "paused: no new visit starts" in told("pause", *every)
            nodes = told("nodes", "--data-dir", there)
            assert nodes.count(", paused,") == 2, nodes
            assert "paused on all machines by" in told("status", "--data-dir", there)
            assert "paused on all machines by" in output()
            (advice,) = re.findall(r"no new visit starts until 'rove (.*)'", output())
            said = told("unpause", "--data-dir", there)
            assert "still paused on all machines by" in said and f"continue with: rove {advice}" in said
            before = len(web.requests)
            assert "no longer paused: visits start again" in told(*shlex.split(advice))
            under_way(web, before)
            assert told("stop", "--data-dir", there).startswith("stopped: ")
            assert second.wait(MAX_SECONDS) == 0 and "stopped by rove stop" in output()
        assert first.poll() is None, "only one machine was meant"
        said = told("stop", *every)
        assert said.startswith("stopped: ") and "on each machine" in said
        assert seconds_until_end(first) < STOP_SECONDS and first.returncode == 0
        assert told("stop", *every).startswith("not running: ")
        with logged(*join) as (third, output):
            under_way(web, len(web.requests))
            assert third.poll() is None, output()
            third.terminate()
            assert seconds_until_end(third) < STOP_SECONDS and third.returncode == 128 + signal.SIGTERM
        check_audit(here)
        check_reader_may_not_pause(name)


def check_reader_may_not_pause(name: str) -> None:
    """Check what a user of the database is told who may read the crawl and not change it."""
    role = f"reader_{os.getpid()}"

    async def create_role() -> None:
        connection = await asyncpg.connect(_shared["url"])
        await connection.execute(
            f"CREATE ROLE {role} LOGIN PASSWORD 'reader'; GRANT USAGE ON SCHEMA {name} TO {role}; "
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}"
        )
        await connection.close()

    asyncio.run(create_role())
    parts = urlsplit(_shared["url"])
    url = parts._replace(netloc=f"{role}:reader@{parts.netloc.rpartition('@')[2]}").geturl()
    refused = rove("pause", "--frontier", url, "--crawl-name", name)
    assert refused.returncode == 2 and "use the user who owns the crawl" in refused.stderr, refused.stderr
    assert "not paused" in told("unpause", "--frontier", url, "--crawl-name", name), "nothing was changed"


@scenario
def a_crawl_that_still_reads_its_seeds_obeys_signals_and_leaves_nothing(folder: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        data = folder / number.name
        pipe = subprocess.PIPE
        with launched("", "crawl", "-", "--email", EMAIL, "--data-dir", data, stdin=pipe, stderr=pipe) as process:
            wait_for((data / "seeds").exists)
            process.send_signal(number)
            assert seconds_until_end(process) < STOP_SECONDS
            assert process.stdin is not None and process.stderr is not None
            process.stdin.close()
            assert "before the crawl began" in process.stderr.read()
            process.stderr.close()
        assert process.returncode == 128 + number and not data.exists()


@scenario
def a_start_that_waits_for_old_processes_can_be_stopped(folder: Path) -> None:
    data, seeds = folder / "data", folder / "seeds.txt"
    seeds.write_text("http://nobody.test/\n")
    reach = ["--connect-to", "*.test=127.0.0.1:1", "--allow-private-addresses"]
    assert rove("crawl", seeds, *crawl_options(data), *reach, "--max-duration", "1s").returncode == 0

    def stop_with_signal(process: Process) -> None:
        process.terminate()

    def stop_with_command(_: Process) -> None:
        slow = rove("stop", "--data-dir", data, "--timeout", 2)
        assert slow.returncode == 1 and "not stopped after 2 s" in slow.stderr, "the old process still runs"

    with (data / "lock.workers").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # as a process of a supervisor that was killed
        check_stop_while_waiting(data, stop_with_command, 0)
        check_stop_while_waiting(data, stop_with_signal, 128 + signal.SIGTERM)


def check_stop_while_waiting(data: Path, stop: Callable[[Process], None], code: int) -> None:
    with logged("crawl", "--resume", "--data-dir", data) as (process, output):
        wait_for(lambda: "waiting for the processes of an earlier start" in output())
        stop(process)
        assert seconds_until_end(process) < STOP_SECONDS
        assert process.returncode == code, output()
        assert "before the crawl began" in output() and "rove crawl --resume" in output()


@scenario
def wrong_words_are_one_clear_sentence(folder: Path) -> None:
    empty = folder / "empty"
    empty.mkdir()
    cases: list[tuple[list[object], str]] = [
        (["stop", "--data-dir", empty], "holds no crawl"),
        (["pause", "--data-dir", folder / "none"], "holds no crawl"),
        (["unpause", "--crawl-name", "x"], "give --frontier too"),
        (["stop", "--data-dir", empty, "--frontier", _shared["url"]], "give one of them"),
        (["pause", "--frontier", _shared["url"], "--crawl-name", "not_there"], "holds no crawl"),
        (["stop", "--frontier", with_database(_shared["url"], "no_such_database")], "there is no database"),
        (["stop", "--frontier", "postgresql://user:secret@127.0.0.1:1/x"], "no PostgreSQL can be reached"),
    ]
    results: list[Completed] = rove_each([words for words, _ in cases])
    for result, (words, sentence) in zip(results, cases, strict=True):
        assert result.returncode == 2 and sentence in result.stderr, (words, result.stderr)
        assert len(result.stderr.splitlines()) == 1 and "secret" not in result.stderr, result.stderr
    assert not any(empty.iterdir())


@pytest.fixture(scope="module", autouse=True)
def database_server(postgres_url: str) -> None:
    _shared["url"] = postgres_url


@pytest.mark.parametrize("scenario", scenario.names)
def test_control(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
