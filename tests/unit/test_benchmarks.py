"""The conclusions of the benchmark from its figures. tests/acceptance/test_benchmarks.py checks that it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.limits import in_flight
from benchmarks.measure import Figures, longest_lag
from benchmarks.parts import FROM_TABLE, few_hosts, hostile_pages, not_binding, over_https, real_pages
from benchmarks.stages import GROUPS, OVERHEAD, STAGES, Profile, stage_of

import rove
from rove.demo.log import LoggedRequest


def figures(contestant: str, pages_per_s: float, **more: Any) -> Any:
    usual: dict[str, Any] = {
        "contestant": contestant,
        "pages_per_s": pages_per_s,
        "requests_per_s": 2 * pages_per_s,
        "connections_per_s": pages_per_s,
        "in_flight": 1.0,
        "crawler_ms": 1000 / pages_per_s,
        "database_ms": 0.0,
        "server_ms": 0.1,
        "crawler_cores": 1.0,
        "database_cores": 0.0,
        "server_cores": 0.1,
        "other_cores": 0.0,
        "peak_rss": 1,
        "peak_process_rss": 1,
        "in_flight_by_second": [1],
        "rss_by_second": [1],
        "errors": {},
        "pages_logged": 1,
        "pages_told": 1,
        "seconds": 1.0,
    }
    return Figures(**{**usual, **more})


@pytest.mark.parametrize(
    ("bare", "scrapy", "reached"),
    [(2_000, 50, True), (2_500, 50, False), (2_000, 51, False), (2_000, None, None)],
)
def test_a_crawl_is_held_against_the_bare_loop_and_scrapy(
    bare: float, scrapy: float | None, reached: bool | None
) -> None:
    on = {"rove-2": figures("rove-2", 600), "bare-2": figures("bare-2", bare)}
    if scrapy is not None:
        on["scrapy"] = figures("scrapy", scrapy)
    (verdict,) = not_binding({"40kb": on})
    assert verdict.is_reached is reached
    assert "600 pages/s" in verdict.numbers


@pytest.mark.parametrize(("others", "reached"), [(95.0, True), (94.0, False)])
def test_only_the_other_hosts_count_where_few_are_linked(others: float, reached: bool) -> None:
    clogged = figures("rove-2", 500, details={"other_pages_per_s": others})
    table = {"spread": {"rove-2": figures("rove-2", 100)}, "few": {"rove-2": clogged}}
    (verdict,) = few_hosts(table)
    assert verdict.is_reached is reached


@pytest.mark.parametrize(("alone", "reached"), [(125, True), (126, False), (1e-9, True)])
def test_https_is_held_against_handshakes(alone: float, reached: bool) -> None:
    handshakes = figures("handshakes-2", alone)
    (verdict,) = over_https({"https": {"rove-2": figures("rove-2", 100), "handshakes-2": handshakes}})
    assert verdict.is_reached is reached


def test_handshakes_are_added_to_what_a_plain_page_takes() -> None:
    crawled = figures("rove-2", 100, connections_per_s=200)
    table = {
        "40kb": {"rove-2": figures("rove-2", 200)},
        "https": {"rove-2": crawled, "handshakes-2": figures("handshakes-2", 400)},
    }
    (verdict,) = over_https(table)
    assert verdict.values["of_expected"] == pytest.approx(1.0), "5 ms and twice 2.5 make 10"


@pytest.mark.parametrize(("rate", "reached"), [(500, True), (499, False)])
def test_a_crawl_of_real_pages_is_held_against_lexbor(rate: float, reached: bool) -> None:
    loop = figures("lexbor-2", 1_000)
    table = {
        "real": {"rove-2": figures("rove-2", rate), "postgres-2": figures("postgres-2", 100), "lexbor-2": loop},
        "real-https": {"rove-2": figures("rove-2", 100), "lexbor-2": loop},
    }
    plain, database, https = real_pages(table)
    assert plain.is_reached is reached
    assert database.is_reached is None and https.is_reached is None, "these are only shown"
    assert "10% of 1,000" in https.numbers


@pytest.mark.parametrize(("web", "others", "reached"), [("hostile-1", 94.0, False), ("hostile-10", 80.0, True)])
def test_hostile_pages_may_take_little_from_the_others(web: str, others: float, reached: bool) -> None:
    disturbed = figures("rove-2", 500, details={"other_pages_per_s": others, "longest_lag_s": 0.25})
    (verdict,) = hostile_pages({"real": {"rove-2": figures("rove-2", 100)}, web: {"rove-2": disturbed}})
    assert verdict.is_reached is reached
    assert "0.25 s" in verdict.numbers


def test_the_longest_stop_is_read_from_the_log(tmp_path: Path) -> None:
    log = tmp_path / "rove.log"
    lines = ["minute open_files=7 longest_lag_s=0.01 paused_by=-", "minute longest_lag_s=1.5 paused_by=-", "end"]
    log.write_text("\n".join(lines))
    assert longest_lag(log) == 1.5
    log.write_text("end")
    assert longest_lag(log) == 0.0


def test_without_figures_there_is_no_verdict() -> None:
    assert [verdict for judge, _ in FROM_TABLE.values() for verdict in judge({})] == []


def test_requests_in_flight_are_those_between_start_and_end() -> None:
    log = [LoggedRequest(start=start, end=start + 2.0) for start in (0.0, 1.0, 5.0)]
    assert [in_flight(log, moment) for moment in (-1.0, 0.5, 1.5, 2.5, 4.0)] == [0, 1, 2, 1, 0]


def test_a_stack_belongs_to_its_innermost_stage() -> None:
    adding = ["thread (1): frontier_0", "work (x.py:2)", "add (rove/frontier/sqlite/add.py:1)"]
    assert stage_of(adding) == "add"
    resolving = ["MainThread", "fetch (rove/fetch/http.py:1)", "x (rove/fetch/dns.py:2)"]
    assert stage_of(resolving) == "dns"
    profile = Profile(pages=1, seconds=1.0, stages={("a", "text"): 1.0, ("a", "parse"): 2.0, ("b", "?"): 4.0})
    assert profile.groups == {**dict.fromkeys(GROUPS, 0.0), "parse": 3.0, OVERHEAD: 4.0}


def test_the_files_that_stages_name_exist() -> None:
    words = [word for _, words in STAGES for word in words if "rove/" in word]
    assert words
    for word in words:
        function, _, path = word.rpartition("(")
        file = Path(rove.__file__).parent.parent / path
        assert file.exists(), word
        assert not function or f"def {function.strip()}(" in file.read_text(), word
