"""Run the tests of one file side by side, because most of their time they wait for a delay to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

SIDE_BY_SIDE = 4
"""Scenarios of one file that run at the same time."""

Scenario = Callable[[Path], None]
Outcomes = dict[str, Future[None]]


class Scenarios:
    """The scenarios of one file, collected by using the instance as a decorator.

    A scenario is a function that takes a folder. The fixture `outcomes` starts the selected ones in threads. Each is a
    test of its own, which waits for its scenario and fails if that failed.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Scenario] = {}

    def __call__(self, scenario: Scenario) -> Scenario:
        self._by_name[scenario.__name__] = scenario
        return scenario

    @property
    def names(self) -> list[str]:
        """The names of all scenarios, to parametrize the test with."""
        return list(self._by_name)

    def failures(self, name: str, rounds: int, folder: Path) -> list[BaseException]:
        """Run one scenario many times, several at a time; return the exceptions of the rounds that failed."""

        def run(number: int) -> None:
            own_folder = folder / str(number)
            own_folder.mkdir()
            self._by_name[name](own_folder)

        with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE) as threads:
            outcomes = [threads.submit(run, number) for number in range(rounds)]
        return [failure for outcome in outcomes if (failure := outcome.exception()) is not None]

    @contextmanager
    def running(self, names: Sequence[str], folder: Path) -> Iterator[Outcomes]:
        """Start these scenarios, each with a folder of its own."""
        with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE) as threads:
            outcomes = {}
            for name in names:
                own_folder = folder / name
                own_folder.mkdir()
                outcomes[name] = threads.submit(self._by_name[name], own_folder)
            try:
                yield outcomes
            finally:
                threads.shutdown(cancel_futures=True)
