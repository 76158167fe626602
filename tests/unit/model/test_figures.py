"""The table of figures covers the names that rove counts under, and each name has one entry."""

from __future__ import annotations

import pytest

from rove.model.figures import FIGURES, Combining, Unit, figure_of
from rove.model.ledger import RequestKind
from rove.model.request_counts import counter_names


def test_every_entry_is_there_once_and_explained() -> None:
    patterns = [figure.pattern for figure in FIGURES]
    assert len(patterns) == len(set(patterns))
    for figure in FIGURES:
        assert figure.help[0].isupper(), figure.pattern
        assert figure.help.endswith("."), figure.pattern


@pytest.mark.parametrize("kind", RequestKind)
@pytest.mark.parametrize("error", ["", "dns", "status-404", "wrong-type"])
def test_request_counters_are_figures(kind: RequestKind, error: str) -> None:
    assert [figure_of(name).unit for name in counter_names(kind, error)] == [Unit.REQUESTS] * (2 if error else 1)


def test_a_single_name_comes_before_a_family() -> None:
    assert figure_of("ceiling").over_time is Combining.MEAN
    assert figure_of("claims").is_count
    assert figure_of("claim").is_histogram
    assert figure_of("request.page").is_histogram
    assert figure_of("requests.page").is_count


def test_histograms_are_merged_both_ways() -> None:
    for figure in FIGURES:
        assert (figure.over_time is Combining.MERGE) == (figure.over_machines is Combining.MERGE)
        assert figure.is_histogram is (figure.over_time is Combining.MERGE)
