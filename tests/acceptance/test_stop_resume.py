"""Clean stops, limits, scope, and resuming without repeating any option."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest

from rove.cli.terminal import REPEAT_SECONDS
from rove.urls.domain import domain_of
from tests.acceptance.command import (
    Process,
    crawl_options,
    kill_hard,
    logged,
    rove,
    start,
    started,
    wait_for,
)
from tests.acceptance.results import exported_urls, frontier_rows, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.acceptance.small_web import ServedWeb, served
from tests.judge import judge
from tests.oracle import all_hosts
from tests.urls import canonical

KNOBS = ["crawl_delay=0.2"]
NO_RULES = Reply(status=404)
scenario = Scenarios()


def domains_asked(web: ServedWeb) -> set[str]:
    return {domain_of(request.host) for request in web.requests()}


def domain_of_url(url: str) -> str:
    found = canonical(url)
    assert found is not None
    return found.domain_name


def links(*paths: str) -> Reply:
    return Reply("<title>page</title>" + "".join(f'<a href="{path}">x</a>' for path in paths))


@scenario
def ctrl_c_ends_the_crawl_in_good_order(tmp_path: Path) -> None:
    check_signal(tmp_path, SIGINT, 130)


@scenario
def sigterm_ends_the_crawl_in_good_order(tmp_path: Path) -> None:
    check_signal(tmp_path, SIGTERM, 143)


def check_signal(tmp_path: Path, sent: Signals, code: int) -> None:
    data = tmp_path / "data"
    with served(tmp_path, hosts=12, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        with started("crawl", seeds, *crawl_options(data, delay=0.3), *web.reach) as process:
            wait_for(lambda: len(web.requests()) > 25)
            assert (data / "warc").exists()
            process.send_signal(sent)
            begun = time.monotonic()
            output, _ = process.communicate(timeout=20)
            assert time.monotonic() - begun < 5
        assert process.returncode == code, output
        assert "stopped: " in output and "--resume" in output and "Traceback" not in output

        status = status_of(data)
        assert status["domains"]["leased"] == 0 and status["running"] is False
        assert 0 < status["pages"] == len(exported_urls(data))
        assert status["urls"]["pending"] > 0
        assert not list((data / "warc").glob("*.open")), "a file is left open"
        assert not list(data.glob("frontier.sqlite-wal")), "the database was not closed"

        result = rove("crawl", "--resume", "--data-dir", data)
        assert result.returncode == 0, result.stderr
        assert exported_urls(data) == web.expected()
    verdict = judge(web.web, web.requests(), 0.3)
    assert verdict.polite, verdict
    assert {request.agent for request in web.requests()} == {web.requests()[0].agent}


@scenario
def a_crawl_that_waits_for_seeds_can_be_stopped(tmp_path: Path) -> None:
    """A crawl that reads seeds from a terminal stops at the first signal, before anything has begun."""
    data = tmp_path / "data"
    with started("crawl", "-", *crawl_options(data), stdin=subprocess.PIPE) as process:
        wait_for(lambda: (data / "seeds").exists())
        process.send_signal(SIGINT)
        assert process.wait(5) == 130
        assert process.stdout is not None and "Traceback" not in process.stdout.read()
    assert not data.exists()


@scenario
def fetches_that_hang_are_cut_off_and_unused_leases_given_back(tmp_path: Path) -> None:
    """One crawl gets one signal, another gets two, while the sites of both never answer."""
    hosts = [f"host{i}.test" for i in range(30)]
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"http://{host}/\n" for host in hosts))

    def never(host: str, path: str) -> Reply:
        return NO_RULES if path == "/robots.txt" else Reply(held=True)

    with site(never) as first, site(never) as second:
        patient, hasty = tmp_path / "patient", tmp_path / "hasty"
        words = [["crawl", seeds, *crawl_options(data, delay=60, concurrency=8)] for data in (patient, hasty)]
        with started(*words[0], *first.reach) as once, started(*words[1], *second.reach) as twice:
            wait_for(lambda: len(first.pages) == len(second.pages) == 8)
            once.send_signal(SIGINT)
            stopped_at = time.monotonic()
            check_second_signal(twice)
            output, _ = once.communicate(timeout=20)
            assert time.monotonic() - stopped_at < 10
            assert once.returncode == 130, output
        check_leases(patient, asked=first.pages, hosts=hosts)
        assert len(first.pages) == 8, "a fetch was begun after the signal"
        # After a hard stop, the leases are still held. A resume takes them back and waits for the delay.
        with started("crawl", "--resume", "--data-dir", hasty) as again:
            wait_for(lambda: len(second.pages) == 16)
            assert len(set(second.pages)) == 16, "a domain was asked again before its delay"
            kill_hard(again)


def check_second_signal(process: Process) -> None:
    process.send_signal(SIGINT)
    assert process.stdout is not None
    assert any("stopping" in line for line in process.stdout)
    with suppress(subprocess.TimeoutExpired):  # sooner, a second signal counts as the first
        process.wait(2 * REPEAT_SECONDS)
    process.send_signal(SIGINT)
    begun = time.monotonic()
    process.communicate(timeout=20)
    assert time.monotonic() - begun < 3
    assert process.returncode == 130


def check_leases(data: Path, *, asked: list[str], hosts: list[str]) -> None:
    """Check that requested domains wait for their delay and that all others are still ready."""
    status = status_of(data)
    assert status["urls"]["pending"] == len(hosts)
    expected = {"leased": 0, "waiting": len(asked), "ready": len(hosts) - len(asked)}
    assert {name: status["domains"][name] for name in expected} == expected
    waiting = frontier_rows(data, "SELECT name FROM domain WHERE ready_at > (SELECT max(seen) FROM process) + 1000")
    assert {row[0] for row in waiting} == {domain_of_url(url) for url in asked}


@scenario
def one_command_starts_and_resumes_and_its_page_limit_is_kept_exactly(tmp_path: Path) -> None:
    """The command that a service manager repeats, with a limit from a file. A plain resume goes on without it."""
    data, config = tmp_path / "data", tmp_path / "rove.toml"
    config.write_text("max-pages = 17\n")
    with served(tmp_path, hosts=12, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        command = ["crawl", seeds, *crawl_options(data, delay=0.05), *web.reach, "--resume", "--config", config]
        result = rove(*command)
        assert result.returncode == 0, result.stderr
        assert "page limit reached: 17 pages" in result.stderr
        assert f"; from {config}: --max-pages 17; default: " in result.stderr and "limits given now: " in result.stderr
        assert len(exported_urls(data)) == status_of(data)["pages"] == 17

        result = rove(*command)
        assert result.returncode == 0 and "page limit reached: 17 pages" in result.stderr, result.stderr
        assert f"{seeds}: 12 seeds: 0 new" in result.stderr
        assert len(list((data / "seeds").iterdir())) == 1
        assert len(exported_urls(data)) == 34

        result = rove("crawl", "--resume", "--data-dir", data, "--processes", 1)
        assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
        assert "an earlier run reached --max-pages; this one continues without it" in result.stderr
        assert "limits remembered: --delay 0.05s" in result.stderr
    assert exported_urls(data) == web.expected()


@scenario
def a_limit_of_time_is_kept_and_ends_with_the_run_that_reaches_it(tmp_path: Path) -> None:
    """Time spent waiting counts too; here the crawl does nothing else."""
    data, seeds = tmp_path / "data", tmp_path / "seeds.txt"
    seeds.write_text("http://start.test/\n")
    times = [0.0]
    resume = ["--resume", "--data-dir", data, "--processes", 1]
    with site({"start.test/": links("/later")}) as web:
        for words in (
            [seeds, *crawl_options(data, delay=60), *web.reach, "--max-duration", "2s"],
            [*resume, "--max-duration", "1s"],
        ):
            result = rove("crawl", *words)
            assert result.returncode == 0, result.stderr
            assert "time limit reached" in result.stderr
            assert "; continue with: rove crawl --resume --data-dir" in result.stderr
            times.append(status_of(data)["elapsed_s"])
        check_stopped([*resume, "--max-duration", "1h"], "limits given now: --max-duration 1h")
        check_stopped(resume, "limits remembered: --max-duration 1h (")
        result = rove("crawl", *resume, "--max-duration", "0.5s")
        assert "time limit reached" in result.stderr, result.stderr
        check_stopped(resume, "an earlier run reached --max-duration; this one continues without it")
    first, second = (after - before for before, after in pairwise(times))
    assert 1.8 < first < 5
    assert 0.8 < second < 4
    assert web.pages == ["http://start.test/"]


def check_stopped(words: Sequence[object], sentence: str) -> None:
    """Start a crawl and stop it as soon as it has said this."""
    with logged("crawl", *words) as (process, said):
        wait_for(lambda: sentence in said())
        process.send_signal(SIGINT)
        assert process.wait(30) == 130, said()


@scenario
def no_links_are_followed_from_the_seeds(tmp_path: Path) -> None:
    check_depth(tmp_path, 0)


@scenario
def links_are_followed_as_deep_as_asked(tmp_path: Path) -> None:
    check_depth(tmp_path, 1)


def check_depth(tmp_path: Path, depth: int) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("http://start.test/\n")
    pages = {
        "start.test/": links("/one", "http://other.test/"),
        "start.test/one": links("/two"),
        "other.test/": Reply(status=302, headers={"Location": "/moved"}),
        "other.test/moved": links("/two"),
    }
    with site(pages) as web:
        options = [*crawl_options(tmp_path / "data", delay=0.01), *web.reach]
        result = rove("crawl", seeds, *options, "--max-depth", depth)
    assert result.returncode == 0, result.stderr
    wanted = {f"http://{page}" for page in (pages if depth else ["start.test/"])}
    assert set(web.pages) == wanted
    refused = status_of(tmp_path / "data")["not_accepted"]
    assert refused == {"too-deep": 2}, "what is not followed is counted"


@scenario
def pages_of_a_domain_are_limited(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(tmp_path, hosts=12, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = [*crawl_options(data, delay=0.05), *web.reach]
        of_domain = Counter(domain_of_url(url) for url in web.expected())
        result = rove("crawl", seeds, *options, "--max-pages-per-domain", 3)
        assert result.returncode == 0, result.stderr
        found = Counter(domain_of_url(url) for url in exported_urls(data))
        assert found == {domain: min(3, count) for domain, count in of_domain.items()}
        result = rove("crawl", "--resume", "--data-dir", data, "--max-pages-per-domain", 2)
        assert result.returncode == 0, result.stderr
        found = Counter(domain_of_url(url) for url in exported_urls(data))
        assert found == {domain: min(5, count) for domain, count in of_domain.items()}


@scenario
def only_the_domains_of_the_seeds_are_visited(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(tmp_path, hosts=16, profile="calm", knobs=KNOBS) as web:
        chosen = [web.web.host_name(index) for index in range(6)]
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("".join(f"http://{host}\n" for host in chosen))
        options = [*crawl_options(data, delay=0.05), *web.reach]
        result = rove("crawl", seeds, *options, "--scope", "domain", "--max-pages", 8)
        assert result.returncode == 0, result.stderr
        result = rove("crawl", "--resume", "--data-dir", data, "--max-pages", 10_000)
        assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
    assert domains_asked(web) == set(chosen)
    own = [host for host in all_hosts(web.web) if domain_of(host) in chosen]
    assert exported_urls(data) == web.expected(own)
    assert status_of(data)["not_accepted"]["out-of-scope"] > 0


@scenario
def excluded_domains_are_never_asked(tmp_path: Path) -> None:
    data, exclude = tmp_path / "data", tmp_path / "exclude.txt"
    with served(tmp_path, hosts=16, profile="calm", knobs=KNOBS) as web:
        hosts = list(all_hosts(web.web))
        with_more_hosts = [domain_of(host) for host in hosts if host.startswith("www.")]
        whole = {with_more_hosts[0], web.web.host_name(0), web.web.host_name(1)}
        blog = next(host for host in hosts if host.startswith("blog.") and domain_of(host) not in whole)
        later = next(name for name in with_more_hosts if name not in whole)
        exclude.write_text("# not these\r\n" + "".join(f"{name.upper()}\r\n" for name in sorted(whole)) + blog)
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = [*crawl_options(data, delay=0.05), *web.reach]
        result = rove("crawl", seeds, *options, "--exclude", exclude, "--max-pages", 10)
        assert result.returncode == 0, result.stderr
        resumed = time.monotonic()

        exclude.write_text(f"{later}\n")
        words = ["--resume", "--data-dir", data, "--max-pages", 10_000, "--exclude", exclude]
        result = rove("crawl", *words)
        assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr

    asked = Counter(domain_of(request.host) for request in web.requests())
    assert not whole & set(asked), "an excluded domain was asked"
    assert blog not in {request.host for request in web.requests()}
    after = [r.url for r in web.requests() if domain_of(r.host) == later and r.start > resumed]
    assert not after, "a domain was asked that had been excluded on resume"
    open_hosts = [host for host in hosts if domain_of(host) not in {*whole, later} and host != blog]
    assert exported_urls(data) == web.expected(open_hosts), "what is excluded is not exported"
    status = status_of(data)
    assert status["domains"]["excluded"] == len(whole) + 1
    assert sum(status["domains"].values()) == web.web.hosts
    assert status["urls"]["pending"] == 0


@scenario
def a_crawl_delay_outlives_a_kill(tmp_path: Path) -> None:
    data, hosts = tmp_path / "data", 8
    kinds = "none empty open private closed stricter shut-out laxer wildcard messy moved html"
    knobs = ["crawl_delay=6", *(f"robots.{kind}=0" for kind in kinds.split())]
    with served(tmp_path, hosts=hosts, profile="calm", knobs=knobs) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        process = start("crawl", seeds, *crawl_options(data, delay=0.1), *web.reach)

        def pages() -> list[str]:
            return [r.url for r in web.requests() if not r.for_robots] if web.log.exists() else []

        wait_for(lambda: len(pages()) >= hosts)
        kill_hard(process)
        wait_for(lambda: len(pages()) >= hosts)
        asked = len(pages())
        options = ["--resume", "--data-dir", data, "--max-duration", "15s"]
        result = rove("crawl", *options)
        assert result.returncode == 0, result.stderr
    assert len(pages()) >= asked + hosts, "no second visit to each, so nothing is shown"
    verdict = judge(web.web, web.requests(), 0.1, allowed_refetches=hosts)
    assert verdict.polite, verdict
    assert verdict.smallest_margin < 60, "every domain waited for the whole lease of its lost visit"


@pytest.mark.parametrize("scenario", scenario.names)
def test_stop_and_resume(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
