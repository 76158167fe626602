"""The columns of the history: what users write, and what they see."""

from __future__ import annotations

import pytest

from rove.errors import UsageError
from rove.model.samples import Distribution, Sample
from rove.observe.columns import DEFAULT_COLUMNS, Column, Part, check_columns, columns_for

NAMES = ["pages.stored", "errors.page.dns", "errors.page.reset", "errors.robots.dns", "cpu.1", "claim", "page_size"]
SAMPLE = Sample(
    node="a",
    ended=1,
    seconds=20.0,
    figures={
        "pages.stored": 30,
        "pages.copy": 10,
        "errors.page.dns": 4,
        "errors.page.reset": 1,
        "errors.robots.dns": 2,
        "cpu.1": 10.0,
        "cpu.2": 4.0,
        "rss.1": 3 << 20,
        "in_flight": 12.345,
        "ceiling.used": 0.876,
        "margin.smallest": 0.0124,
        "oldest_due": 1234.56,
        "urls.pending": 1_234_567,
    },
    histograms={
        "claim": Distribution(count=4, total=1.0, longest=0.7, buckets={3: 3, 13: 1}),
        "page_size": Distribution(count=1, total=3_000.0, longest=3_000.0, buckets={6: 1}, first=64.0),
    },
)


def shown(text: str) -> dict[str, str]:
    check_columns([text])
    return {column.title: column.text(SAMPLE) for column in columns_for([text], NAMES)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pages.stored", "30"),
        ("pages.stored/s", "1.5"),
        ("pages", "40"),
        ("pages/s", "2"),
        ("errors", "7"),
        ("errors.page", "5"),
        ("errors.sitemap", "0"),
        ("cpu", "14.0 s"),
        ("cpu/s", "0.7"),
        ("cpu.2/s", "0.2"),
        ("rss", "3.0 MiB"),
        ("in_flight", "12.3"),
        ("ceiling.used", "88 %"),
        ("margin.smallest", "0.012 s"),
        ("oldest_due", "1,234.6 s"),
        ("urls.pending", "1,234,567"),
        ("next_due", "-"),
        ("visits", "0"),
        ("paused.disk", "0 %"),
        ("claim:p50", "0.001 s"),
        ("claim:max", "0.700 s"),
        ("claim:count", "4"),
        ("page_size:mean", "2.9 KiB"),
        ("add:p95", "-"),
    ],
)
def test_one_column(text: str, expected: str) -> None:
    assert shown(text) == {text: expected}


def test_a_rate_of_what_is_no_count_is_the_value() -> None:
    assert shown("in_flight/s") == {"in_flight": "12.3"}
    assert shown("rss/s") == {"rss": "3.0 MiB"}


def test_stars_stand_for_what_there_is() -> None:
    assert shown("errors.*.dns/s") == {"errors.page.dns/s": "0.2", "errors.robots.dns/s": "0.1"}
    assert shown("errors.page.*") == {"errors.page.dns": "4", "errors.page.reset": "1"}
    assert shown("disk.*") == {}


def test_a_histogram_has_several_columns() -> None:
    assert list(shown("claim")) == ["claim:count", "claim:mean", "claim:p50", "claim:p95", "claim:max"]
    assert list(shown("*:p99")) == [*NAMES[:5], "claim:p99", "page_size:p99"]


def test_values_for_programs() -> None:
    assert Column(name="next_due").value(SAMPLE) is None
    assert Column(name="visits").value(SAMPLE) == 0.0
    assert Column(name="claim", part=Part.P95).value(SAMPLE) == 0.7
    assert Column(name="visits", is_rate=True).value(Sample(node="", ended=1, seconds=0.0)) is None


def test_the_default_columns_exist() -> None:
    check_columns(DEFAULT_COLUMNS)
    assert [column.title for column in columns_for(DEFAULT_COLUMNS, NAMES)] == list(DEFAULT_COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("requsts", "there is no figure 'requsts'; did you mean 'requests'?"),
        ("zzz", "there is no figure 'zzz'; choose from add, at_once, "),
        ("visits:p95", "'visits:p95': visits is no histogram and has no p95; leave out ':p95'"),
        ("claim:p42", "there is no figure 'claim:p42'; did you mean 'claim'?"),
    ],
)
def test_what_does_not_exist_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_columns(["visits", text])
    assert str(raised.value).startswith(message)
