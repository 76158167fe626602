"""What samples tell about how busy the machines are."""

from __future__ import annotations

from rove.model.samples import Distribution, Sample
from rove.policy.measured import POSTGRES_SESSIONS, errors_of, load_of, requests_of, troubles_of
from rove.policy.situation import Load

FIGURES = {
    "processes": 2,
    "visits": 300,
    "bytes.received": 1_000,
    "cpu.supervisor": 0.5,
    "cpu.1": 4.0,
    "cpu.2": 3.5,
    "domains.waiting": 90,
    "domains.ready": 1,
    "domains.leased": 9,
    "domains.idle": 1_000,
    "requests.page": 400,
    "requests.robots": 30,
    "errors.page.status-404": 20,
    "errors.page.dns": 1,
    "errors.robots.dns": 2,
    "paused.disk": 0.6,
    "paused.memory": 0.3,
}


def times(total: float) -> Distribution:
    return Distribution(count=1, total=total, longest=total)


SAMPLE = Sample(
    node="here",
    ended=1_000_000,
    seconds=10.0,
    figures=FIGURES,
    histograms={
        "query.commit": times(2.0),
        "query.lease": times(1.0),
        "query.connection held: claim": times(9.0),
        "flush": times(3.0),
        "page_size": times(1e9),
    },
)


def test_the_load_of_the_machines() -> None:
    assert load_of(SAMPLE, machines=2, cores=4) == Load(
        seconds=10.0,
        machines=2,
        processes=2,
        cores=4,
        domains=100,
        visits=300,
        received=1_000,
        cpu_seconds=8.0,
        store_seconds=3.0,
        statements={"commit": 2.0, "lease": 1.0},
    )


def test_a_process_has_several_sessions_on_a_database_server() -> None:
    with_server = Sample(node="", ended=0, seconds=10.0, figures={"database.connections.busy": 0})
    assert load_of(with_server).sessions == POSTGRES_SESSIONS
    assert load_of(SAMPLE).sessions == 1


def test_a_sample_without_figures_says_little() -> None:
    load = load_of(Sample(node="", ended=0, seconds=0.0))
    assert (load.processes, load.domains, load.store_seconds, load.database_busy) == (1, None, None, None)


def test_requests_errors_and_pauses() -> None:
    assert requests_of(SAMPLE) == 430
    assert errors_of(SAMPLE) == {"status-404": 20, "dns": 3}
    assert troubles_of(SAMPLE) == {"disk": ""}
