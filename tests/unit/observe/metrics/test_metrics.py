"""From samples to the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from rove import __version__
from rove.model.samples import Distribution, Sample
from rove.observe.metrics.accumulator import HELD, HELD_OF_CRAWL, Accumulator
from rove.observe.metrics.collector import ReadingCollector
from rove.observe.metrics.endpoint import PATH, MetricsEndpoint
from rove.observe.metrics.formats import Format
from rove.observe.metrics.http import Request
from rove.observe.metrics.metric import Kind
from rove.observe.metrics.table import METRICS
from rove.policy.limiting import Factor, Limiting

Series = tuple[str, tuple[tuple[str, str], ...]]


def sample(
    figures: Mapping[str, float], histograms: Mapping[str, Distribution] | None = None, ended: int = 1_000
) -> Sample:
    return Sample(node="n", ended=ended, seconds=10.0, figures=figures, histograms=histograms or {})


def collected(*samples: Sample) -> Accumulator:
    accumulator = Accumulator()
    for each in samples:
        accumulator.take(each)
    return accumulator


def families(accumulator: Accumulator, format: Format = Format.OPENMETRICS) -> list[Metric]:
    """Return the metrics as a client of this format reads them."""
    text = format.encoded(ReadingCollector(accumulator.reading())).decode()
    parse = parse_openmetrics if format is Format.OPENMETRICS else parse_prometheus
    return list(parse(text))


def values(found: Iterable[Metric]) -> dict[Series, float]:
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in found for s in family.samples}


def value(accumulator: Accumulator, name: str, **labels: str) -> float | None:
    return values(families(accumulator)).get((name, tuple(sorted(labels.items()))))


def test_counts_add_up_and_gauges_are_replaced() -> None:
    both = collected(
        sample({"pages.stored": 3.0, "in_flight": 7.0, "queued": 1.0, "cpu.1": 0.5}),
        sample({"pages.stored": 4.0, "pages.copy": 1.0, "in_flight": 2.0, "cpu.1": 0.25}),
    )
    assert value(both, "rove_pages_total", outcome="stored") == 7.0
    assert value(both, "rove_pages_total", outcome="copy") == 1.0
    assert value(both, "rove_fetches_in_flight") == 2.0
    assert value(both, "rove_leases_queued") is None, "not measured in the latest interval"
    assert value(both, "rove_cpu_seconds_total", process="1") == 0.75


def test_a_count_is_zero_before_it_happens() -> None:
    nothing = collected()
    assert value(nothing, "rove_pages_total", outcome="stored") == 0.0
    assert value(nothing, "rove_challenges_total") == 0.0
    assert value(nothing, "rove_throttled_total", cause="retry-after") == 0.0
    assert value(nothing, "rove_request_phase_seconds_count", phase="tls") == 0.0
    assert value(nothing, "rove_build_info", version=__version__) == 1.0


def test_a_process_that_is_gone_is_down_and_keeps_its_cpu_time() -> None:
    gone = collected(
        sample({"rss.supervisor": 1e6, "rss.1": 5e6, "cpu.1": 2.0}),
        sample({"rss.supervisor": 1e6, "cpu.supervisor": 1.0}),
    )
    assert value(gone, "rove_process_up", process="supervisor") == 1.0
    assert value(gone, "rove_process_up", process="1") == 0.0
    assert value(gone, "rove_memory_bytes", process="1") is None
    assert value(gone, "rove_cpu_seconds_total", process="1") == 2.0


def test_a_short_stop_or_a_small_margin_is_shown_for_a_while() -> None:
    bad, good = {"margin.smallest": -1.0, "lag.longest": 3.0}, {"margin.smallest": 0.5, "lag.longest": 0.1}
    seen = collected(sample(bad), *(HELD - 1) * [sample(good)])
    assert value(seen, "rove_politeness_smallest_margin_seconds") == -1.0
    assert value(seen, "rove_loop_lag_seconds") == 3.0
    seen.take(sample(good))
    assert value(seen, "rove_politeness_smallest_margin_seconds") == 0.5
    assert value(seen, "rove_loop_lag_seconds") == 0.1


def test_the_figures_of_the_crawl_are_shown_for_a_while_when_the_database_is_slow() -> None:
    seen = collected(sample({"urls.pending": 5.0, "rss.1": 1e6}), *(HELD_OF_CRAWL - 1) * [sample({})])
    assert value(seen, "rove_frontier_urls", state="pending") == 5.0
    assert value(seen, "rove_memory_bytes", process="1") is None
    seen.take(sample({}))
    assert value(seen, "rove_frontier_urls", state="pending") is None


def test_open_files_are_shown_by_process() -> None:
    both = [sample({"rss.1": 1e6, "open_files.web": 3.0}), sample({"rss.2": 1e6, "open_files.web": 4.0})]
    seen, together = collected(), sample({"rss.1": 1e6, "rss.2": 1e6, "open_files.web": 7.0})
    seen.noted(both)
    seen.take(together)
    assert value(seen, "rove_open_files", process="2", kind="web") == 4.0
    seen.noted(both[:1])
    seen.take(sample({"rss.1": 1e6}))
    assert value(seen, "rove_open_files", process="2", kind="web") is None


def test_the_process_that_tries_suspects_comes_and_goes() -> None:
    seen = collected(sample({"rss.trial": 1e6, "cpu.trial": 1.0}))
    assert value(seen, "rove_process_up", process="trial") == 1.0
    seen.take(sample({}))
    assert value(seen, "rove_process_up", process="trial") is None
    assert value(seen, "rove_cpu_seconds_total", process="trial") == 1.0


def test_shares_of_the_interval_become_yes_or_no() -> None:
    seen = collected(sample({"paused.disk": 0.2, "database.up": 0.9, "held_by.cpu": 0.5}))
    assert value(seen, "rove_paused", cause="disk") == 1.0
    assert value(seen, "rove_paused", cause="operator") == 0.0
    assert value(seen, "rove_database_up") == 0.0
    assert value(seen, "rove_concurrency_held_by", reason="cpu") == 0.5


def test_exactly_one_factor_limits_the_crawl() -> None:
    seen = collected(sample({}))
    assert value(seen, "rove_limiting_factor", factor="unknown") == 1.0
    seen.take(sample({}), limiting=Limiting(factor=Factor.LINE, why="it loses answers"))
    factors = {labels: number for (name, labels), number in values(families(seen)).items() if "limiting" in name}
    assert [labels for labels, number in factors.items() if number] == [(("factor", "line"),)]
    assert len(factors) == len(Factor)


def test_requests_are_split_by_result() -> None:
    seen = collected(
        sample(
            {
                "requests.page": 10.0,
                "errors.page.dns": 2.0,
                "errors.page.status-404": 1.0,
                "without_content.page.other-type": 3.0,
                "requests.robots": 5.0,
                "without_content.robots.no-robots-txt": 5.0,
            }
        )
    )
    assert value(seen, "rove_requests_total", kind="page", result="ok") == 4.0
    assert value(seen, "rove_requests_total", kind="page", result="failed") == 3.0
    assert value(seen, "rove_requests_total", kind="page", result="without-content") == 3.0
    assert value(seen, "rove_requests_total", kind="robots", result="ok") == 0.0
    assert value(seen, "rove_request_errors_total", kind="page", error="status-404") == 1.0


def test_a_server_that_invents_statuses_makes_one_series() -> None:
    invented = collected(
        sample({"requests.page": 400.0} | {f"errors.page.status-{status}": 1.0 for status in range(600, 1000)})
    )
    assert value(invented, "rove_request_errors_total", kind="page", error="status-other") == 400.0


def test_the_last_page_is_dated() -> None:
    assert value(collected(sample({"visits": 3.0})), "rove_last_page_timestamp_seconds") is None
    later = collected(sample({"pages.copy": 1.0}, ended=5_000), sample({"visits": 1.0}, ended=15_000))
    assert value(later, "rove_last_page_timestamp_seconds") == 5.0


def test_buckets_are_cumulative_and_the_last_one_holds_all() -> None:
    first = Distribution(count=3, total=60.3, longest=60.0, buckets={0: 1, 10: 1, 20: 1})
    twice = collected(sample({}, {"claim": first}), sample({}, {"claim": first}))
    assert value(twice, "rove_claim_duration_seconds_bucket", le="0.0001") == 2.0
    assert value(twice, "rove_claim_duration_seconds_bucket", le="0.1024") == 4.0
    assert value(twice, "rove_claim_duration_seconds_bucket", le="52.4288") == 4.0
    assert value(twice, "rove_claim_duration_seconds_bucket", le="+Inf") == 6.0
    assert value(twice, "rove_claim_duration_seconds_count") == 6.0
    assert value(twice, "rove_claim_duration_seconds_sum") == pytest.approx(120.6)


def test_sizes_have_buckets_of_their_own() -> None:
    sizes = Distribution(count=1, total=5_000.0, longest=5_000.0, buckets={7: 1}, first=64.0)
    seen = collected(sample({}, {"page_size": sizes}))
    assert value(seen, "rove_page_size_bytes_bucket", le="4096.0") == 0.0
    assert value(seen, "rove_page_size_bytes_bucket", le="8192.0") == 1.0


def test_both_formats_say_the_same() -> None:
    seen = collected(
        sample({"pages.stored": 3.0, "paused.disk": 1.0}, {"query.claim": Distribution(count=1, total=1.0)})
    )
    modern, old = (values(families(seen, format)) for format in Format)
    assert modern == old and modern


def test_names_and_labels_follow_the_rules_of_prometheus() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert metric.name.startswith("rove_")
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        assert metric.help.endswith("."), metric.name
        assert not {"domain", "url", "host"} & set(metric.labels), metric.name


async def test_the_endpoint_serves_its_two_pages() -> None:
    endpoint = MetricsEndpoint(collected().reading)
    hint = await endpoint.respond(Request("/"))
    assert hint.status is HTTPStatus.OK and hint.body.count(b"\n") == 1 and PATH.encode() in hint.body
    assert (await endpoint.respond(Request("/metrics/"))).status is HTTPStatus.NOT_FOUND
    old = await endpoint.respond(Request(PATH))
    modern = await endpoint.respond(Request(PATH, {"accept": "application/openmetrics-text"}))
    assert (old.media_type, modern.media_type) == (Format.PROMETHEUS.media_type, Format.OPENMETRICS.media_type)
    assert modern.body.endswith(b"# EOF\n") and b"# EOF" not in old.body


async def test_many_requests_cost_no_more_than_one() -> None:
    accumulator = collected()
    endpoint = MetricsEndpoint(accumulator.reading)
    first = await endpoint.respond(Request(PATH))
    assert (await endpoint.respond(Request(PATH))).body is first.body
    accumulator.take(sample({"visits": 1.0}))
    assert b"rove_visits_total 1.0" in (await endpoint.respond(Request(PATH))).body
