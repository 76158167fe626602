"""The ceiling of politeness, from the domains with work and from recent visits."""

from __future__ import annotations

import pytest

from rove.model.samples import Distribution, Sample
from rove.observe.ceiling import Ceiling

DOMAINS = {"idle": 50, "waiting": 70, "ready": 20, "leased": 10, "excluded": 1}


def sample(visits: int, *, rest: float = 70.0, request: float = 1.0, pages: int | None = None) -> Sample:
    def times(seconds: float) -> Distribution:
        return Distribution(count=visits, total=visits * seconds, longest=seconds, buckets={19: visits})

    return Sample(
        node="a",
        ended=0,
        seconds=10.0,
        figures={"visits": visits, "pages.stored": visits if pages is None else pages},
        histograms={"rest": times(rest), "request.page": times(request)},
    )


def test_each_domain_with_work_is_visited_once_in_a_cycle() -> None:
    figures = Ceiling().figures(sample(40, rest=70.0, request=1.0), DOMAINS)
    assert figures == {"ceiling.used": 0.8, "ceiling": pytest.approx(100 / 71)}


def test_visits_that_bring_no_page_do_not_count() -> None:
    figures = Ceiling().figures(sample(40, pages=10), DOMAINS)
    assert figures["ceiling"] == pytest.approx(100 / 71 / 4)


def test_without_visits_the_last_ones_count() -> None:
    ceiling = Ceiling()
    before = ceiling.figures(sample(40), DOMAINS)
    for _ in range(100):
        after = ceiling.figures(Sample(node="a", ended=0, seconds=10.0), DOMAINS)
    assert after == {"ceiling.used": 0.8, "ceiling": pytest.approx(before["ceiling"])}


def test_new_visits_count_more_than_old_ones() -> None:
    ceiling = Ceiling()
    ceiling.figures(sample(40, rest=70.0), DOMAINS)
    for _ in range(200):
        figures = ceiling.figures(sample(40, rest=9.0), DOMAINS)
    assert figures["ceiling"] == pytest.approx(10.0, rel=0.01)


def test_before_the_first_visit_and_without_work_there_is_no_ceiling() -> None:
    nothing = Sample(node="a", ended=0, seconds=10.0)
    assert Ceiling().figures(nothing, DOMAINS) == {"ceiling.used": 0.8}
    assert Ceiling().figures(nothing, {**DOMAINS, "waiting": 0, "ready": 0, "leased": 0}) == {}
