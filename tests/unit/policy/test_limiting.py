"""What limits a crawl, on made-up figures: every factor, its borders, and figures that contradict each other."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rove.policy.concurrency import HeldBy
from rove.policy.headroom import BUSY_DATABASE, ENOUGH_VISITS, domains_served
from rove.policy.limiting import BACKLOG, Factor, Limiting, limiting
from rove.policy.situation import Load, Situation

POLITE = Situation(
    domains={"idle": 7, "waiting": 2_400, "ready": 3, "leased": 36, "excluded": 5},
    pending=1_000_000,
    in_flight=36,
    at_once=500,
    held_by={"demand": 2},
    requests=2_000,
    errors={"status-404": 100},
    load=Load(seconds=60.0, processes=2, cores=2, visits=2_000, received=60 << 20, cpu_seconds=5.4),
)
"""A healthy crawl that waits for the delays of its domains."""
BUSY = replace(POLITE, domains={"waiting": 1_000, "ready": 400, "leased": 500}, in_flight=500, at_once=500)
"""The same with more domains than it visits."""


def found(situation: Situation = POLITE, **changes: Any) -> Limiting:
    return limiting(replace(situation, **changes))


def held(by: HeldBy, **changes: Any) -> Limiting:
    return found(BUSY, held_by={str(by): 2}, **changes)


def test_politeness_is_named_with_the_domains_that_the_machine_could_serve() -> None:
    polite = found()
    assert polite.sentence == (
        "politeness: 2,439 domains, 2,400 waiting, 36 being visited, 3 ready. "
        "More domains would help (this machine could serve about 49,000), more machines would not"
    )
    assert polite.domains_served == 49_000, "5 % of the CPU time are used"


def test_several_machines_could_serve_the_domains_together() -> None:
    assert "these 3 machines could serve about" in found(load=replace(POLITE.load, machines=3)).why


@pytest.mark.parametrize(
    ("domains", "next_due", "begin"),
    [
        ({"waiting": 2_439}, 41.2, "politeness: 2,439 domains, all waiting; the next is due in 41 s."),
        ({"waiting": 1}, 50.6, "politeness: 1 domain, waiting; it is due in 51 s."),
        ({"leased": 1}, None, "politeness: 1 domain, being visited."),
        ({"ready": 1}, 0.0, "politeness: 1 domain, ready."),
        (
            {"waiting": 9, "leased": 1},
            0.0,
            "politeness: 10 domains, 9 waiting, 1 being visited. More domains",
        ),
        ({"waiting": 5}, None, "politeness: 5 domains, all waiting. More domains"),
        ({"waiting": 2}, 7_300.0, "politeness: 2 domains, all waiting; the next is due in 2 h 01 min."),
    ],
)
def test_small_crawls_that_wait(domains: dict[str, int], next_due: float | None, begin: str) -> None:
    sentence = found(domains=domains, next_due=next_due, load=Load()).sentence
    assert sentence.startswith(begin)
    assert "could serve" not in sentence, "too little was measured"


@pytest.mark.parametrize(
    ("ready", "factor"), [(0, Factor.POLITENESS), (100, Factor.POLITENESS), (101, Factor.CPU), (1_000, Factor.CPU)]
)
def test_a_few_domains_may_be_ready_at_any_moment(ready: int, factor: Factor) -> None:
    domains = {"waiting": 1_000 - ready, "ready": ready}
    assert held(HeldBy.CPU, domains=domains).factor is factor


def test_the_cpu() -> None:
    load = replace(BUSY.load, cpu_seconds=108.0)
    assert held(HeldBy.CPU, load=load).sentence == (
        "cpu: the crawl gets 1.8 of 2 cores; 400 domains are ready, 500 fetches in flight of at most 500. "
        "More cores or machines would help"
    )
    assert "gets 0.1 of 2 cores, and other programs take the rest; 400 domains" in held(HeldBy.CPU).why
    unmeasured = held(HeldBy.CPU, load=replace(load, cpu_seconds=None)).sentence
    assert unmeasured.startswith("cpu: 400 domains are ready, ")
    one_process = held(HeldBy.CPU, load=replace(load, processes=1, cpu_seconds=57.0))
    assert "gets 0.9 of 1 core;" in one_process.why or "gets 1.0 of 1 core;" in one_process.why


@pytest.mark.parametrize(
    ("by", "factor", "help"),
    [
        (HeldBy.MEMORY, Factor.MEMORY, "a larger --max-memory would help"),
        (HeldBy.FILES, Factor.FILES, "(ulimit -n) would help"),
        (HeldBy.LINE, Factor.LINE, "it loses answers at 1.0 MiB/s; 400 domains are ready"),
        (HeldBy.MOST, Factor.CONCURRENCY, "More processes would help"),
        (HeldBy.USER, Factor.CONCURRENCY, "A higher --concurrency would help"),
        (HeldBy.NOTHING, Factor.NOTHING, "the number of fetches grows; 400 domains are ready"),
    ],
)
def test_what_keeps_the_number_in_flight_from_growing(by: HeldBy, factor: Factor, help: str) -> None:
    result = held(by)
    assert result.factor is factor
    assert help in result.why and "400 domains are ready, 500 fetches in flight of at most 500" in result.why


@pytest.mark.parametrize(("in_flight", "factor"), [(1, Factor.CONCURRENCY), (0, Factor.CONCURRENCY)])
def test_one_fetch_at_a_time(in_flight: int, factor: Factor) -> None:
    result = held(HeldBy.USER, in_flight=in_flight, at_once=1, domains={"ready": 8, "waiting": 2})
    assert result.factor is factor, "a moment between two visits changes nothing"
    assert f"{in_flight} fetch{'' if in_flight == 1 else 'es'} in flight of at most 1" in result.why


def test_a_chosen_number_that_is_not_used_is_no_limit() -> None:
    assert held(HeldBy.USER, in_flight=100).factor is Factor.UNKNOWN
    assert held(HeldBy.USER, in_flight=449).factor is Factor.CONCURRENCY
    assert found(held_by={"concurrency": 1}).factor is Factor.POLITENESS


def test_the_commonest_reason_of_the_processes_counts() -> None:
    assert found(BUSY, held_by={"cpu": 1, "memory": 3}).factor is Factor.MEMORY
    assert found(BUSY, held_by={"cpu": 0, "memory": 1, "of a later version": 9}).factor is Factor.MEMORY


@pytest.mark.parametrize("by", list(HeldBy))
def test_a_database_that_is_busy_all_the_time(by: HeldBy) -> None:
    load = replace(BUSY.load, statements={"commit": 80.0, "lease": 20.0})
    assert held(by, load=load, unsettled=700).sentence == (
        "database: its statements take 83 % of the time; commit alone takes 67 %; "
        "700 finished visits wait to be written"
    )
    almost = replace(load, statements={"commit": 0.99 * BUSY_DATABASE * 120})
    assert held(HeldBy.MEMORY, load=almost).factor is Factor.MEMORY


def test_a_database_with_several_sessions_is_busy_when_all_are() -> None:
    load = replace(BUSY.load, statements={"lease": 120.0}, sessions=3)
    assert held(HeldBy.MEMORY, load=load).factor is Factor.MEMORY
    busy = replace(load, statements={"lease": 300.0, "insert_urls": 40.0})
    assert "its statements take 94 % of the time; lease alone takes 83 %" in held(HeldBy.MEMORY, load=busy).why


def test_visits_that_wait_to_be_written() -> None:
    behind = {"unsettled": 2 * BACKLOG, "load": replace(BUSY.load, statements={"insert_urls": 10.0})}
    assert held(HeldBy.DEMAND, **behind).sentence == (
        "database: 512 finished visits wait to be written; its busiest statement is insert_urls"
    )
    assert held(HeldBy.CPU, **behind).factor is Factor.CPU, "the threads share the CPU time"
    assert held(HeldBy.DEMAND, unsettled=2 * BACKLOG).why == "512 finished visits wait to be written"
    assert held(HeldBy.DEMAND, unsettled=2 * BACKLOG - 1).factor is Factor.UNKNOWN


def test_a_slow_disk() -> None:
    load = replace(BUSY.load, store_seconds=90.0)
    result = held(HeldBy.NOTHING, load=load, unsettled=1)
    assert result.sentence == (
        "disk: writing pages takes 75 % of the time of each process; 1 finished visit waits to be written"
    )
    assert held(HeldBy.NOTHING, load=replace(load, store_seconds=80.0)).factor is Factor.NOTHING


def test_if_nothing_is_short_what_is_used_most_is_named() -> None:
    load = replace(BUSY.load, statements={"lease": 60.0})
    assert held(HeldBy.DEMAND, load=load).sentence == (
        "database: its statements take 50 % of the time; lease alone takes 50 %; "
        "400 domains are ready, 500 fetches in flight of at most 500"
    )
    assert held(HeldBy.DEMAND, load=replace(load, cpu_seconds=72.0)).why.startswith(
        "the crawl gets 1.2 of 2 cores; 400"
    )
    assert held(HeldBy.DEMAND).sentence == (
        "unknown: 400 domains are ready, 500 fetches in flight of at most 500; CPU 5 % used, database 0 % busy"
    )


def test_nothing_is_named_without_a_reason() -> None:
    assert held(HeldBy.DEMAND, load=Load()).sentence == (
        "unknown: 400 domains are ready, 500 fetches in flight of at most 500"
    )
    assert found(domains=None).sentence == "unknown: the database has not told how many domains wait"


@pytest.mark.parametrize(
    ("cause", "sentence", "begin"),
    [
        ("disk", "paused: less than 1.0 GiB is free on /srv", "disk: less than 1.0 GiB is free on /srv"),
        ("disk", "", "disk: too little is free on the disk"),
        ("memory", "slowed: 3 fetches waiting for memory", "memory: slowed: 3 fetches waiting for memory"),
        ("outage", "waiting: no site has answered for 3 min 12 s", "line: no site has answered for 3 min 12 s"),
        ("outage", "", "line: no site answers; is this machine online?"),
        ("database", "the database is away (refused); waiting for it", "database: the database is away (refused)"),
        ("rest", "", "rest: every domain rests"),
    ],
)
def test_what_pauses_the_crawl_comes_before_everything_else(cause: str, sentence: str, begin: str) -> None:
    for situation in (POLITE, BUSY, Situation()):
        assert found(situation, troubles={cause: sentence}).sentence.startswith(begin)
    assert found(troubles={cause: sentence, "fetches": "slowed"}).sentence.startswith(begin)


def test_of_several_pauses_the_worst_is_named() -> None:
    troubles = {"memory": "", "disk": "", "outage": "", "database": "", "rest": ""}
    assert found(troubles=troubles).factor is Factor.DATABASE
    paused = found(troubles=troubles, paused_by="by ann@host since 2026-11-19 03:00:00Z")
    assert paused.sentence == "pause: by ann@host since 2026-11-19 03:00:00Z. Continue with 'rove unpause'"
    stopping = found(is_stopping=True, paused_by="by ann@host", in_flight=1)
    assert stopping.sentence == "nothing: the crawl stops; 1 visit in flight may finish"


def test_slower_fetches_alone_are_no_pause() -> None:
    assert found(troubles={"fetches": "slowed: 20 fetches at once"}).factor is Factor.POLITENESS


@pytest.mark.parametrize(
    ("changes", "begin"),
    [
        ({"seconds_left": 0.0}, "limit: --max-duration is reached"),
        ({"pages_left": 0}, "limit: --max-pages is reached"),
        ({"pages_left": -2}, "limit: --max-pages is reached"),
        ({"pages_left": 36}, "limit: 36 pages left until --max-pages, for which 36 visits are in flight"),
        ({"pages_left": 37}, "politeness"),
        ({"seconds_left": 0.1}, "politeness"),
        ({"domains": {"idle": 3}, "in_flight": 0}, "limit: 1,000,000 URLs pending, all of domains that have reached"),
        ({"domains": {"idle": 3}, "in_flight": 0, "pending": 0}, "nothing: nothing is left to fetch"),
        ({"domains": {"idle": 3}, "in_flight": 2, "unsettled": 1}, "nothing: the last 3 visits end"),
        ({"seeds_loading": 12_000}, "seeds: 12,000 seeds loaded so far; until all are, a process makes at most 100"),
        ({"seeds_loading": 0, "domains": {}, "in_flight": 0}, "seeds: 0 seeds loaded so far"),
    ],
)
def test_limits_and_the_begin_and_end_of_a_crawl(changes: dict[str, Any], begin: str) -> None:
    assert found(**changes).sentence.startswith(begin)


def test_the_first_seconds() -> None:
    assert limiting(Situation()).factor is Factor.UNKNOWN
    assert limiting(Situation(domains={"ready": 30})).sentence == "nothing: the crawl begins; 30 domains are ready"
    assert limiting(Situation(domains={"ready": 0, "waiting": 0})).factor is Factor.NOTHING


@pytest.mark.parametrize(
    ("requests", "errors", "factor"),
    [
        (0, {}, Factor.POLITENESS),
        (1, {"dns": 1}, Factor.SITES),
        (9, {"dns": 8}, Factor.POLITENESS),
        (10, {"dns": 4}, Factor.POLITENESS),
        (10, {"dns": 4, "connect": 1}, Factor.SITES),
        (1_000, {"status-404": 499}, Factor.POLITENESS),
        (1_000, {"status-404": 500}, Factor.SITES),
    ],
)
def test_sites_that_fail(requests: int, errors: dict[str, int], factor: Factor) -> None:
    assert found(requests=requests, errors=errors).factor is factor


def test_the_commonest_errors_are_named() -> None:
    errors = {"tls": 5, "dns": 700, "connect": 40, "reset": 5, "status-404": 5}
    assert found(requests=1_200, errors=errors, next_due=12.0).sentence == (
        "sites: 755 of 1,200 requests failed (dns 700, connect 40, reset 5); the next visit is due in 12 s. "
        "Other seeds would help"
    )
    assert found(requests=1, errors={"dns": 1}).why.startswith("the only request failed (dns 1)")
    # The two counters may have been read at different moments.
    assert found(requests=3, errors={"dns": 4}).why.startswith("3 of 3 requests failed")


def test_what_is_short_here_comes_before_sites_that_fail() -> None:
    failing = {"requests": 100, "errors": {"timeout-connect": 100}}
    assert held(HeldBy.USER, **failing).factor is Factor.CONCURRENCY
    assert held(HeldBy.DEMAND, **failing).factor is Factor.SITES


def test_how_many_domains_a_machine_could_serve() -> None:
    def served(load: Load, in_flight: int = 1, at_once: int | None = None) -> int | None:
        return domains_served(load, with_work=100, in_flight=in_flight, at_once=at_once)

    load = Load(seconds=10.0, visits=100, cores=2, processes=1, cpu_seconds=0.9)
    assert served(load) == 1_000, "one process uses one core at most"
    assert served(replace(load, cpu_seconds=9.9)) == 100, "it serves these already"
    assert served(replace(load, statements={"commit": 4.0})) == 200, "the database is used most"
    assert served(load, in_flight=50, at_once=100) == 200, "--concurrency is used most"
    assert served(load, in_flight=5_000) == 200, "a process may have 10,000 fetches in flight"
    assert served(replace(load, visits=ENOUGH_VISITS - 1)) is None
    assert served(replace(load, cpu_seconds=None)) is None
    assert served(replace(load, cpu_seconds=0.0), in_flight=0) is None
    assert served(replace(load, domains=50.0)) == 500, "those of the interval in which the load was measured"
    assert served(replace(load, domains=0.0)) == 100
    assert domains_served(load, with_work=0, in_flight=0, at_once=None) is None


COUNTS = st.integers(0, 10**12)
SECONDS = st.floats(0, 1e9)
LOADS = st.builds(
    Load,
    seconds=SECONDS,
    machines=st.integers(1, 100),
    processes=st.integers(0, 1_000),
    cores=st.none() | st.integers(0, 1_000),
    sessions=st.integers(0, 10),
    domains=st.none() | SECONDS,
    visits=COUNTS,
    received=st.none() | COUNTS,
    cpu_seconds=st.none() | SECONDS,
    store_seconds=st.none() | SECONDS,
    statements=st.dictionaries(st.sampled_from(["commit", "lease"]), SECONDS),
)
SITUATIONS = st.builds(
    Situation,
    is_stopping=st.booleans(),
    paused_by=st.sampled_from(["", "by ann"]),
    troubles=st.dictionaries(st.sampled_from(["disk", "memory", "later"]), st.sampled_from(["", "paused: x"])),
    domains=st.none() | st.dictionaries(st.sampled_from(["waiting", "ready", "leased", "idle"]), COUNTS),
    pending=COUNTS,
    next_due=st.none() | st.floats(-1e6, 1e9),
    in_flight=COUNTS,
    at_once=COUNTS,
    held_by=st.dictionaries(st.sampled_from([*HeldBy, "later"]), st.integers(0, 99)),
    unsettled=COUNTS,
    pages_left=st.none() | st.integers(-5, 10**9),
    seconds_left=st.none() | st.floats(-5, 1e9),
    seeds_loading=st.none() | COUNTS,
    requests=COUNTS,
    errors=st.dictionaries(st.sampled_from(["dns", "connect"]), COUNTS),
    load=LOADS,
)


@given(SITUATIONS)
def test_any_figures_give_one_sentence(situation: Situation) -> None:
    result = limiting(situation)
    assert result.factor in Factor and result.why
    assert "\n" not in result.why and not result.why.endswith(".") and len(result.why) < 250
    assert "nan" not in result.why and "inf" not in result.why
    if result.domains_served is not None:
        assert result.factor is Factor.POLITENESS and math.isfinite(result.domains_served)
