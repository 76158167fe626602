"""Figures are listed in the order of the table, and chosen by patterns."""

from __future__ import annotations

from rove.model.samples import Distribution, Sample
from rove.observe.figures import is_known, names_in, selected


def test_names_come_in_the_order_of_the_table() -> None:
    first = Sample(node="a", ended=1, seconds=1.0, figures={"disk.free": 1, "errors.page.reset": 1, "visits": 2})
    second = Sample(
        node="a", ended=2, seconds=1.0, figures={"errors.page.dns": 1}, histograms={"claim": Distribution()}
    )
    assert names_in([first, second]) == ["visits", "errors.page.dns", "errors.page.reset", "disk.free", "claim"]


def test_patterns_choose_each_name_once() -> None:
    names = ["visits", "errors.page.dns", "errors.robots.dns"]
    assert selected(["errors.*.dns", "visits", "*"], names) == ["errors.page.dns", "errors.robots.dns", "visits"]
    assert selected(["claims"], names) == []


def test_a_pattern_is_known_if_the_table_has_such_names() -> None:
    assert all(is_known(pattern) for pattern in ("visits", "cpu.1", "cpu.*", "errors.page.*", "ceiling*", "*"))
    assert not any(is_known(pattern) for pattern in ("visit", "pages.", "page*s", "nonsense.*"))
