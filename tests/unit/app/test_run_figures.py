from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from rove.app.run_figures import has_had_company, is_whole_crawl, stored_figures
from rove.crawl.progress import Counters
from rove.errors import Unreachable
from rove.frontier.runs import Participant
from rove.model.counts import Counts
from rove.model.request_counts import request_counts


def counts(pages: int, size: int, **requests: int) -> Counts:
    names = {name.replace("_", "."): number for name, number in requests.items()}
    return Counts(urls={}, domains={}, pages=pages, bytes=size, request_counts=request_counts(names))


def participant(*, is_here: bool, silent_for: float) -> Participant:
    values: dict[str, Any] = dict.fromkeys(Participant.__dataclass_fields__, 0)
    return Participant(**values | {"node": "n", "held_by": "", "is_here": is_here, "silent_for": silent_for})


def test_pages_that_nobody_reported_count_and_those_of_earlier_runs_do_not() -> None:
    reported = Counters(pages=96, visits=120, bytes=9, request_counters=Counter({"requests.page": 96}))
    before = counts(100, 1000, requests_page=110, errors_page_dns=10)
    after = counts(250, 3000, requests_page=265, errors_page_dns=12, requests_robots=3)
    figures = stored_figures(reported, before=before, after=after)
    assert (figures.pages, figures.bytes, figures.visits) == (150, 2000, 120)
    assert figures.request_counters == {"requests.page": 155, "errors.page.dns": 2, "requests.robots": 3}
    assert figures.requests == 158


@pytest.mark.parametrize(
    ("is_here", "silent_for", "expected"), [(True, 1.0, False), (False, 1.0, True), (False, 11.0, False)]
)
def test_another_machine_is_company_if_it_lived_during_the_run(
    is_here: bool, silent_for: float, expected: bool
) -> None:
    assert has_had_company([participant(is_here=is_here, silent_for=silent_for)], 10.0) is expected


class Taking:
    """A reader that knows who takes part; None while the database is away."""

    def __init__(self, *processes: Participant | None) -> None:
        self._processes = processes

    async def participants(self) -> list[Participant]:
        if None in self._processes:
            raise Unreachable("away")
        return [process for process in self._processes if process]


@pytest.mark.parametrize(
    ("is_first_run", "is_remote", "processes", "expected"),
    [
        (True, False, [], True),
        (False, False, [], False),
        (True, True, [participant(is_here=True, silent_for=1.0)], True),
        (True, True, [participant(is_here=False, silent_for=1_000.0)], False),
        (True, True, [None], True),
        (False, True, [participant(is_here=True, silent_for=1.0)], False),
    ],
)
async def test_a_first_run_without_company_is_the_whole_crawl(
    is_first_run: bool, is_remote: bool, processes: list[Participant | None], expected: bool
) -> None:
    context: Any = SimpleNamespace(
        is_first_run=is_first_run,
        remote="somewhere" if is_remote else None,
        backend=SimpleNamespace(reader=Taking(*processes)),
    )
    assert await is_whole_crawl(context) is expected
