"""Three processes on one PostgreSQL server, while processes, the server and a second machine are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.command import (
    crawl_options,
    kill_hard,
    logged,
    rove,
    start,
    wait_for,
)
from tests.acceptance.small_web import served
from tests.acceptance.test_machines import DELAY, KNOBS, OnPostgres, check_end
from tests.acceptance.test_processes import workers_of
from tests.postgres import own_server


@pytest.mark.parametrize("comes_back", [True, pytest.param(False, marks=pytest.mark.long)])
def test_three_processes_through_kills_and_a_restart_of_the_server(tmp_path: Path, comes_back: bool) -> None:
    """One process is killed, the server is restarted, and a second machine joins and is killed.

    That machine comes back, or the crawl waits until its leases have run out, which takes minutes; what it had asked
    last is in its own spool until it is started again. Some sites ask for a longer delay: one that was read, and not
    written while the database was away, is known from the spool after a kill.
    """
    data, other = tmp_path / "data", tmp_path / "other"
    with (
        own_server() as server,
        served(tmp_path, hosts=120, profile="calm", knobs=KNOBS) as web,
    ):
        crawl = OnPostgres(server.url, "three")
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(data, delay=DELAY, concurrency=18, processes=3)
        with logged("crawl", seeds, *options, *web.reach, *crawl.options) as (main, output):
            wait_for(lambda: len(web.requests()) > 100)
            workers_of(main)[1].kill()
            join = ["join", server.url, "--crawl-name", "three", "--data-dir", other]
            joined = start(*join, "--processes", 1, "--concurrency", 8)
            wait_for(lambda: any((other / "warc").glob("*")))
            server.stop()
            wait_for(lambda: "the database is away" in output())
            server.start()
            asked = len(web.requests())
            wait_for(lambda: len(web.requests()) > asked + 50)
            kill_hard(joined)
            if comes_back:
                again = rove(*join)
            main.wait(200)
            printed = output()
        if not comes_back:
            again = rove(*join)
        assert again.returncode == 0 and "exhausted" in again.stderr, again.stderr
        assert main.returncode == 0, printed
        assert "exhausted" in printed and "Traceback" not in printed
        # A line of figures may name the trouble too.
        news = [line for line in printed.splitlines() if line.startswith("the database is")]
        assert [" ".join(line.split()[:4]) for line in news] == ["the database is away", "the database is back"], (
            printed
        )
        check_end(web, crawl, data, other, cut_off=18 + 8 + 18)
