"""One frontier on PostgreSQL for many processes and data directories, checked in the web's log and in the database."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psutil
import pytest

from rove.urls.domain import domain_of
from tests.acceptance.command import (
    EMAIL,
    crawl_options,
    logged,
    rove,
    rove_each,
    started,
    wait_for,
)
from tests.acceptance.interruption import environment_with
from tests.acceptance.readers import in_one_process
from tests.acceptance.results import (
    check_audit,
    check_ledger,
    exported_urls,
    files_with_secret,
    shows_secret,
    status_of,
)
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.acceptance.small_web import ServedWeb, served
from tests.judge import judge
from tests.postgres import own_server, with_database

DELAY = 0.3
PASSWORD = "s3cret-and-unique"
KNOBS = ["crawl_delay=0.5"]
PAGES_PER_VISIT = 4

scenario = Scenarios()


@dataclass(frozen=True)
class OnPostgres:
    """A crawl in a PostgreSQL database."""

    url: str
    name: str

    @property
    def options(self) -> list[object]:
        return ["--frontier", self.url, "--crawl-name", self.name]

    def rows_outside(self, sql: str) -> None:
        """Run a statement outside of the crawl's schema."""

        async def work() -> None:
            connection = await asyncpg.connect(self.url)
            await connection.execute(sql)
            await connection.close()

        asyncio.run(work())

    def rows(self, sql: str) -> list[Any]:
        """Query the crawl's schema."""

        async def work() -> list[Any]:
            settings = {"search_path": f'"{self.name}"'}
            connection = await asyncpg.connect(self.url, server_settings=settings)
            try:
                found: list[Any] = await connection.fetch(sql)
                return found
            finally:
                await connection.close()

        return asyncio.run(work())


_shared: dict[str, str] = {}
"""The URL of the database server. Scenarios run in threads and cannot use fixtures."""


def database_for(name: str) -> OnPostgres:
    return OnPostgres(_shared["url"], f"acceptance_{name}_{os.getpid()}")


def check_end(web: ServedWeb, crawl: OnPostgres, *places: Path, cut_off: int) -> None:
    """Check delays and robots.txt, that only cut-off visits were repeated, and that nothing is lost."""
    found: set[str] = set()
    for place in places:
        pages = exported_urls(place)
        assert not pages & found, "a page is in two places"
        found |= pages
    assert found == web.expected()
    verdict = judge(web.web, web.requests(), DELAY, allowed_refetches=cut_off * PAGES_PER_VISIT)
    assert verdict.polite, verdict
    wrong = crawl.rows(
        "SELECT d.name FROM domain d LEFT JOIN url u ON u.domain = d.id AND u.state = 0 "
        "GROUP BY d.id HAVING d.pending <> count(u.domain) OR d.owner IS NOT NULL "
        "OR (d.pending > 0) <> (d.ready_at IS NOT NULL)"
    )
    assert not wrong, "counts and rows differ, or a lease was left"
    check_audit(places[0])
    entries = [(row[0], row[1]) for row in crawl.rows("SELECT url, status FROM request")]
    check_ledger(entries, web.requested_urls())


@scenario
def two_machines_share_a_crawl_and_know_of_each_other(tmp_path: Path) -> None:
    crawl = with_password(database_for("two"))
    here, there = tmp_path / "here", tmp_path / "there"
    with served(tmp_path, hosts=160, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(here, delay=DELAY, concurrency=3, processes=1)
        with started("crawl", seeds, *options, *web.reach, *crawl.options) as first:
            wait_for(lambda: len(web.requests()) > 20)
            words = ["join", crawl.url, "--crawl-name", crawl.name, "--data-dir", there]
            with started(*words, "--processes", 2, "--concurrency", 4) as second:
                wait_for(lambda: any((there / "warc").glob("*")))
                wait_for(lambda: len(running_nodes(here)) == 2)
                assert status_of(there)["running"]
                workers = psutil.Process(second.pid).children(recursive=True)
                named = "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'rove: crawl, process 2, %:/%'"
                wait_for(lambda: crawl.rows(named))
                assert len(workers) == 2 and not any(PASSWORD in " ".join(worker.cmdline()) for worker in workers)
                assert first.communicate(timeout=150)[1] is None and first.returncode == 0
                said, _ = second.communicate(timeout=60)
                assert second.returncode == 0 and "exhausted" in said, said
        check_end(web, crawl, here, there, cut_off=0)
        check_where_to_look(here, there)
        check_look_from_anywhere(crawl, here, there, tmp_path / "nothing here")
    check_no_password_in_files(here, there)
    assert not files_with_secret(here, secret_in(crawl)) and not files_with_secret(there, secret_in(crawl))


def secret_in(crawl: OnPostgres) -> bytes:
    """Return the secret of a crawl on PostgreSQL."""
    ((text,),) = crawl.rows("SELECT value FROM meta WHERE key = 'secret'")
    return bytes.fromhex(text)


def with_password(crawl: OnPostgres) -> OnPostgres:
    """Return the crawl with a password in its URL. The server trusts everybody and does not look at it."""
    parts = urlsplit(crawl.url)
    if parts.password is not None:
        return crawl
    return replace(crawl, url=urlunsplit(parts._replace(netloc=parts.netloc.replace("@", f":{PASSWORD}@"))))


def check_look_from_anywhere(crawl: OnPostgres, here: Path, there: Path, nowhere: Path) -> None:
    """Check that every reading command works with nothing but the URL of the database."""
    pages = {place: exported_urls(place) for place in (here, there)}
    url = min(pages[there])
    site = domain_of(urlsplit(url).hostname or "")
    reading = [["status", "--json"], ["nodes", "--json"], ["pages"], ["show", url], ["export"], ["audit"]]
    reading += [["explain", url], ["report", site], ["history", "--json"], ["history", "--machine", str(there)]]
    reading += [["domains", "--search", site], ["queue", "--json"], ["skipped"], ["explain-query", "lease"]]
    reading += [["show", url, "--raw"]]
    answers = in_one_process([[*words, *crawl.options, "--data-dir", nowhere] for words in reading])
    *good, raw = answers
    assert [answer.code for answer in good] == [0] * len(good), good
    status, nodes, listed, shown, exported, audit, explained, report, *more = (answer.out for answer in good)
    history, theirs, domains, _, _, plan = more
    assert json.loads(status)["pages"] == sum(map(len, pages.values()))
    places = {json.loads(line)["place"]: json.loads(line)["here"] for line in nodes.splitlines()}
    assert len(places) == 2 and not any(places.values())
    assert listed.count("\n") == 20 and audit.startswith("no violations")
    assert site in domains and "actual time" in plan
    assert str(there) in shown and url in explained and url in report
    samples = [json.loads(line) for line in history.splitlines()]
    # The end of a run waits only some seconds for its last sample to be written.
    sampled = sum(sample.get("pages.stored", 0) + sample.get("pages.copy", 0) for sample in samples)
    assert 0 < sampled <= len(pages[here] | pages[there])
    assert any("cpu.2" in sample for sample in samples) and theirs.startswith("until "), theirs
    assert not exported, "no page is stored here"
    for place, urls in pages.items():
        assert re.search(rf"{len(urls):,} pages .*{place}$", good[4].err, re.MULTILINE), good[4].err
    assert raw.code == 2 and "raw" in raw.err
    merged = rove("export", "--from", here, "--from", there)
    assert (merged.returncode, merged.stderr) == (0, ""), merged.stderr
    merged_urls = [json.loads(line)["url"] for line in merged.stdout.splitlines()]
    assert sorted(merged_urls) == sorted(set().union(*pages.values()))
    printed = "".join(answer.out + answer.err for answer in answers)
    assert PASSWORD not in printed and not shows_secret(printed.encode(), secret_in(crawl))
    assert not nowhere.exists()


def check_no_password_in_files(*places: Path) -> None:
    """Check that the password is in one file alone, which only its owner can read."""
    for place in places:
        files = [path for path in place.rglob("*") if path.is_file()]
        holding = [path for path in files if PASSWORD.encode() in path.read_bytes()]
        assert [path.name for path in holding] == ["frontier.json"]
        assert holding[0].stat().st_mode & 0o777 == 0o600


def running_nodes(data: Path) -> list[dict[str, Any]]:
    result = rove("nodes", "--json", "--data-dir", data)
    assert result.returncode == 0, result.stderr
    nodes = [json.loads(line) for line in result.stdout.splitlines()]
    return [node for node in nodes if node["state"] == "running"]


def check_where_to_look(here: Path, there: Path) -> None:
    """Check that a page of the other machine is known here, and that its text is not."""
    url = min(exported_urls(there))
    shown = rove("show", url, "--data-dir", here)
    assert shown.returncode == 0, shown.stderr
    assert f":{there.resolve()}; run 'rove show' there" in shown.stdout
    assert "done" in shown.stdout
    exported = rove("export", "--data-dir", here)
    assert f"pages are not here but at {os.uname().nodename}:{there.resolve()}" in exported.stderr
    left = rove("nodes", "--data-dir", there).stdout.splitlines()
    assert len(left) == 2 and all("left" in line for line in left), left


@scenario
def a_machine_whose_clock_is_an_hour_wrong_is_no_less_polite(tmp_path: Path) -> None:
    """One machine's clock is an hour ahead, the other's an hour behind, and both share the domains."""
    crawl = database_for("clocks")
    ahead, behind = tmp_path / "ahead", tmp_path / "behind"
    with served(tmp_path, hosts=60, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(ahead, delay=DELAY, concurrency=8, processes=2)
        with started(
            *["crawl", seeds, *options, *web.reach, *crawl.options],
            env=wrong_clock(tmp_path / "plus", 3600),
        ) as first:
            wait_for(lambda: len(web.requests()) > 20)
            with started(
                *["join", crawl.url, "--crawl-name", crawl.name, "--data-dir", behind],
                *["--concurrency", 8],
                env=wrong_clock(tmp_path / "minus", -3600),
            ) as second:
                for process in (first, second):
                    output, _ = process.communicate(timeout=150)
                    assert process.returncode == 0 and "exhausted" in output, output
        check_end(web, crawl, ahead, behind, cut_off=0)
        times = crawl.rows("SELECT max(started) - min(started) FROM request")
        assert times[0][0] > 7000, "the clocks were not wrong: nothing was shown"


def wrong_clock(folder: Path, seconds: float) -> dict[str, str]:
    """Return an environment in which Python's wall clock is wrong by this much."""
    return environment_with(
        folder,
        "import time\n"
        "_time, _ns = time.time, time.time_ns\n"
        f"time.time = lambda: _time() + {seconds}\n"
        f"time.time_ns = lambda: _ns() + {int(seconds)} * 10**9\n",
    )


@scenario
def settings_that_are_changed_on_one_machine_hold_on_all(tmp_path: Path) -> None:
    """The new delay is so long that no domain may be visited twice, not even by the machine that only joined."""
    crawl = database_for("changed")
    here, there, delay = tmp_path / "here", tmp_path / "there", 1.0
    with served(tmp_path, hosts=40, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(here, delay=delay, concurrency=4, processes=1)
        asked = ["crawl", seeds, *options, *web.reach, *crawl.options, "--max-pages", 5]
        assert rove(*asked).returncode == 0
        more = ["crawl", "--resume", "--data-dir", here, "--max-pages", 100_000]
        assert rove(*more, "--delay", delay, "--max-duration", "1s").returncode == 0
        resume = ["crawl", "--resume", "--data-dir", here, "--max-duration", "1h"]
        words = ["join", crawl.url, "--crawl-name", crawl.name, "--data-dir", there]
        with ExitStack() as stack:
            first = stack.enter_context(started(*resume, "--delay", delay))
            wait_for(lambda: len(running_nodes(here)) == 1)
            second, output = stack.enter_context(logged(*words))
            wait_for(lambda: any((there / "warc").glob("*")))
            first.send_signal(signal.SIGINT)
            first.wait(120)
            stack.enter_context(started(*resume, "--delay", 3000))
            wait_for(lambda: "the settings of the crawl were changed" in output())
            changed_at = time.monotonic()
            # A domain whose old delay was running may be visited once more, but not twice.
            time.sleep(3 * delay)
            visits: dict[str, list[float]] = {}
            for request in web.requests():
                if request.start > changed_at:
                    visits.setdefault(domain_of(request.host), []).append(request.start)
            again = {name for name, starts in visits.items() if starts[-1] - starts[0] >= delay}
            assert not again, "the joined machine kept the old delay"
            assert second.poll() is None, output()


@scenario
def a_crawl_is_moved_from_sqlite_to_postgres_and_goes_on(tmp_path: Path) -> None:
    crawl = database_for("moved")
    data = tmp_path / "data"
    with served(tmp_path, hosts=60, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(data, delay=DELAY, concurrency=12)
        result = rove("crawl", seeds, *options, *web.reach, "--max-pages", 80)
        assert result.returncode == 0, result.stderr
        before = status_of(data)
        moved = rove("move", "--to", crawl.url, "--crawl-name", crawl.name, "--data-dir", data)
        assert moved.returncode == 0, moved.stderr
        after = status_of(data)
        assert {**after, "domains": None} == {**before, "domains": None}
        assert not (data / "frontier.sqlite").exists()
        again = rove("move", "--to", crawl.url, "--crawl-name", crawl.name, "--data-dir", data)
        assert again.returncode == 2 and "moved already" in again.stderr
        result = rove("crawl", "--resume", "--data-dir", data, "--max-pages", 100_000)
        assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
        assert "rests" not in result.stderr, "nothing was lost"
        check_end(web, crawl, data, cut_off=0)


@scenario
def a_data_directory_keeps_to_its_crawl(tmp_path: Path) -> None:
    """Neither a wrong option nor a copy of the directory makes it part of another crawl, or of the same crawl twice."""
    crawl = database_for("keeps")
    elsewhere = OnPostgres(with_database(crawl.url, f"second_{os.getpid()}"), crawl.name)
    crawl.rows_outside(f"CREATE DATABASE second_{os.getpid()}")
    data, other, copy = tmp_path / "data", tmp_path / "other", tmp_path / "copy"
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"http://host{i}.test/\n" for i in range(20)))
    with site(lambda host, path: Reply('<a href="/later">later</a>')) as web:
        first = ["crawl", seeds, *crawl_options(data, delay=60), *web.reach]
        second = ["crawl", seeds, *crawl_options(other, delay=60), *web.reach]
        assert rove(*second, *elsewhere.options, "--max-pages", 2).returncode == 0
        assert rove(*first, *crawl.options, "--max-pages", 2).returncode == 0
        before = (data / "frontier.json").read_bytes()
        wrong = [
            (first + elsewhere.options, "belongs to the crawl"),
            (["join", elsewhere.url, *elsewhere.options[2:], "--data-dir", data], "another crawl"),
            (["crawl", "--resume", "--data-dir", data, *elsewhere.options], "another crawl"),
        ]
        for words, sentence in wrong:
            result = rove(*words)
            assert result.returncode == 2 and sentence in result.stderr, result.stderr
            assert (data / "frontier.json").read_bytes() == before
        resume = ["crawl", "--resume", "--max-pages", 100, "--data-dir"]
        with started(*resume, data) as running:
            wait_for(lambda: len(running_nodes(data)) == 1)
            shutil.copytree(data, copy)
            result = rove(*resume, copy)
            assert result.returncode == 2 and "is a copy of" in result.stderr, result.stderr
            running.send_signal(signal.SIGHUP)
            running.communicate(timeout=30)
            assert running.returncode == 128 + signal.SIGHUP


@scenario
def a_database_that_cannot_be_used_is_one_clear_sentence(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("a.test\n")
    url = _shared["url"]
    cases = [
        ("postgresql://127.0.0.1:1/postgres", "no PostgreSQL can be reached"),
        (with_database(url, "no_such_database"), "there is no database 'no_such_database'"),
        ("postgresql://user:secret@nowhere.invalid/x", "is unknown"),
        ("mysql://127.0.0.1/x", "begins with postgresql://"),
        ("postgresql://127.0.0.1:port/x", "is not the URL of a PostgreSQL"),
    ]
    places = [tmp_path / f"data{i}" for i in range(len(cases))]
    commands: list[list[object]] = [
        ["crawl", seeds, "--email", EMAIL, "--data-dir", place, "--frontier", case[0]]
        for case, place in zip(cases, places, strict=True)
    ]
    commands += [["join", cases[0][0], "--data-dir", tmp_path / "joined"]]
    commands += [["join", url, "--crawl-name", "not_there", "--data-dir", tmp_path / "joined"]]
    sentences = [case[1] for case in cases]
    sentences += ["no PostgreSQL can be reached", "holds no crawl to join"]
    for result, sentence in zip(rove_each(commands), sentences, strict=True):
        assert result.returncode == 2, result.stderr
        assert len(result.stderr.splitlines()) == 1 and sentence in result.stderr, result.stderr
        assert "secret" not in result.stderr
    assert not any(place.exists() for place in places), "something was left behind"


@scenario
def neither_a_stop_nor_a_time_limit_waits_for_a_database_that_is_away(tmp_path: Path) -> None:
    seeds, addresses = tmp_path / "seeds.txt", {f"http://host{i}.test/" for i in range(400)}
    seeds.write_text("".join(f"{address}\n" for address in addresses))
    stopped, limited = tmp_path / "stopped", tmp_path / "limited"

    def options(data: Path, processes: int) -> list[object]:
        politeness = crawl_options(data, delay=0.5, concurrency=8, processes=processes)
        return ["crawl", seeds, *politeness, *web.reach, *OnPostgres(server.url, data.name).options]

    with own_server() as server, site(lambda host, path: Reply("hello")) as web:
        with (
            logged(*options(stopped, 2)) as (process, output),
            logged(*options(limited, 1), "--max-duration", "15s") as (brief, brief_output),
        ):
            wait_for(lambda: len(web.pages) > 40)
            server.stop()
            wait_for(lambda: "the database is away" in output() and "the database is away" in brief_output())
            told = rove("stop", "--data-dir", stopped)
            assert told.returncode == 0 and "the database cannot be read" in told.stdout, told.stderr
            assert process.wait(120) == 1 and "Traceback" not in output(), output()
            assert brief.wait(120) == 1 and "Traceback" not in brief_output(), brief_output()
        server.start()
        for data in (stopped, limited):
            result = rove("crawl", "--resume", "--data-dir", data)
            assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
            assert exported_urls(data) == addresses


@pytest.fixture(scope="module", autouse=True)
def database_server(postgres_url: str) -> None:
    _shared["url"] = postgres_url


@pytest.mark.parametrize("scenario", scenario.names)
def test_machines(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
