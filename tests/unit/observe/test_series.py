"""Samples become curves: rates, levels and quantiles, with gaps where there is no sample."""

from __future__ import annotations

import pytest

from rove.model.samples import Distribution, Sample
from rove.observe.figures import is_known
from rove.observe.grid import Grid, grid_of
from rove.observe.panels import PANELS, Curve, Panel, Reading, Role, default_panels, panels_named
from rove.observe.series import MOST_OF_FAMILY, Collector, Line, PanelLines, Plot
from tests.unit.observe.made_up import START, samples

TEN = Grid(start=0.0, step=10.0, count=4)


def plot_of(*given: Sample, grid: Grid = TEN, panels: tuple[Panel, ...] = PANELS) -> Plot:
    collector = Collector(panels, grid)
    for sample in given:
        collector.add(sample)
    return collector.plot()


def panel(plot: Plot, name: str) -> PanelLines:
    return next(panel for panel in plot.panels if panel.name == name)


def line(plot: Plot, name: str, label: str) -> Line:
    return next(line for line in panel(plot, name).lines if line.label == label)


def at(ended: float, node: str = "one", seconds: float = 10.0, /, **figures: float) -> Sample:
    named = {name.replace("__", "."): value for name, value in figures.items()}
    return Sample(node=node, ended=round(1000 * ended), seconds=seconds, figures=named)


def test_counts_become_rates_and_missing_samples_gaps() -> None:
    plot = plot_of(at(10, pages__stored=40, pages__copy=10), at(20), at(40, pages__stored=5))
    assert line(plot, "pages", "pages").values == [5.0, 0.0, None, 0.5]


def test_a_gauge_that_was_not_measured_for_a_while_is_a_straight_line() -> None:
    plot = plot_of(at(10, in_flight=3), at(20), at(30, in_flight=5), at(40))
    assert line(plot, "in-flight", "in flight").values == [3.0, 4.0, 5.0, None]


def test_no_line_is_drawn_over_missing_samples_or_a_long_time() -> None:
    plot = plot_of(at(10, in_flight=3), at(30, in_flight=5), at(40, in_flight=6))
    assert line(plot, "in-flight", "in flight").values == [3.0, None, 5.0, 6.0]
    long = Grid(start=0.0, step=10.0, count=200)
    seldom = [at(10 * (n + 1), **({"in_flight": 1.0} if n % 100 == 0 else {})) for n in range(200)]
    values = line(plot_of(*seldom, grid=long), "in-flight", "in flight").values
    assert [step for step, value in enumerate(values) if value is not None] == [0, 100]


def test_a_sample_counts_for_all_steps_that_it_covers() -> None:
    plot = plot_of(at(40, "one", 40.0, pages__stored=80, in_flight=7))
    assert line(plot, "pages", "pages").values == [2.0] * 4
    assert line(plot, "in-flight", "in flight").values == [7.0] * 4


def test_samples_need_not_begin_when_steps_do() -> None:
    plot = plot_of(at(10.3, in_flight=2), at(20.3, in_flight=4), at(30.3, in_flight=6))
    first, second, third, last = line(plot, "in-flight", "in flight").values
    assert first == 2.0 and last is None
    assert second == pytest.approx(4.0, abs=0.1) and third == pytest.approx(6.0, abs=0.1)


def test_a_step_of_several_samples_has_their_bounds() -> None:
    wide = Grid(start=0.0, step=20.0, count=2)
    given = (at(10, pages__stored=100), at(20), at(30, pages__stored=10), at(40, pages__stored=30))
    pages = line(plot_of(*given, grid=wide), "pages", "pages")
    assert (pages.values, pages.low, pages.high) == ([5.0, 2.0], [0.0, 1.0], [10.0, 3.0])


def test_curves_without_bounds_leave_them_out() -> None:
    pages = line(plot_of(at(10, pages__stored=1)), "pages", "pages")
    assert pages.low == [] and pages.high == []


def test_the_longest_and_the_smallest_survive_a_long_step() -> None:
    wide = Grid(start=0.0, step=40.0, count=1)
    lags = (0.1, 2.5, 0.2, 0.1)
    given = [
        at(10 * (n + 1), lag__longest=lag, margin__smallest=1 - lag / 5, in_flight=n) for n, lag in enumerate(lags)
    ]
    plot = plot_of(*given, grid=wide)
    assert line(plot, "lag", "lag").values == [2.5]
    assert line(plot, "margin", "margin").values == [0.5]
    assert line(plot, "in-flight", "in flight").values == [1.5]


def test_machines_are_added_where_they_share_nothing() -> None:
    plot = plot_of(
        at(10, "one", pages__stored=10, urls__pending=500, ceiling=3.0, disk__free=7e9, rss__1=1e6, rss__2=2e6),
        at(12, "two", pages__stored=20, urls__pending=500, ceiling=3.0, disk__free=5e9, rss__1=4e6),
        at(20, "two", 8.0, pages__stored=16),
    )
    assert plot.machines == ["one", "two"]
    assert line(plot, "pages", "pages").values[0] == 3.0
    assert line(plot, "urls", "pending").values[0] == 500
    assert line(plot, "pages", "politeness allows").values[0] == 3.0
    assert line(plot, "disk", "disk").values[0] == 5e9
    assert [(one.label, one.values[0]) for one in panel(plot, "memory").lines] == [("one", 3e6), ("two", 4e6)]


def test_a_count_that_only_one_machine_has_is_zero_on_the_others() -> None:
    plot = plot_of(at(10, "one", pages__stored=1), at(20, "one"), at(20, "two", no_request__blocked=5))
    assert line(plot, "leases", "blocked").values == [0.0, 0.5, None, None]
    assert line(plot, "pages", "pages").values == [0.1, 0.0, None, None]


def test_one_machine_is_shown_by_process() -> None:
    plot = plot_of(at(10, cpu__1=5, cpu__10=1, cpu__2=9, cpu__supervisor=0.5))
    labels = [one.label for one in panel(plot, "cpu").lines]
    assert labels == ["process 1", "process 2", "process 10", "supervisor"]
    assert line(plot, "cpu", "process 2").values[0] == 0.9


def test_any_name_of_a_machine_can_be_sorted() -> None:
    names = ["²", "node-10", "node-2", "٣", "", "9" * 50]
    plot = plot_of(*(at(10, name, cpu__1=1) for name in names))
    assert [one.label for one in panel(plot, "cpu").lines] == ["", "node-2", "node-10", "²", "٣", "9" * 50]


def test_errors_are_put_into_classes_and_the_rest_is_added_up() -> None:
    statuses = {f"errors__page__status-{status}": 10.0 for status in range(400, 418)}
    kinds = {f"errors__page__kind{number}": float(number) for number in range(1, 10)}
    plot = plot_of(at(10, **statuses, **kinds))
    shown = {one.label: one.values[0] for one in panel(plot, "errors").lines}
    assert shown["status 4xx"] == 18.0
    assert len(shown) == MOST_OF_FAMILY + 1 and shown["4 others"] == pytest.approx(1.0)


def test_members_of_a_family_that_are_always_zero_are_left_out() -> None:
    plot = plot_of(at(10, no_request__blocked=0, domains__ready=3, domains__excluded=0))
    assert [one.label for one in panel(plot, "leases").lines] == []
    assert [one.label for one in panel(plot, "domains").lines] == ["ready"]


def test_quantiles_are_those_of_all_machines() -> None:
    quick = Distribution(count=99, total=0.1, longest=0.001, buckets={3: 99})
    slow = Distribution(count=11, total=11, longest=1.0, buckets={14: 11})
    given = [
        Sample(node=node, ended=10_000, seconds=10, histograms={"claim": times})
        for node, times in (("one", quick), ("two", slow))
    ]
    assert line(plot_of(given[0]), "database", "claim").values[0] == pytest.approx(0.00097)
    assert line(plot_of(*given), "database", "claim").values[0] == pytest.approx(0.91, abs=0.01)


def test_times_in_which_the_crawl_was_held_up_are_bands() -> None:
    plot = plot_of(
        at(10, paused__disk=0.01),
        at(20, paused__outage=1.0, paused__fetches=1.0),
        at(30, paused__outage=0.5),
        at(40),
    )
    assert [(band.label, band.first, band.last) for band in plot.bands] == [("connection lost", 1, 2)]


def test_broken_numbers_and_unknown_names_are_skipped() -> None:
    plot = plot_of(
        at(10, pages__stored=float("nan"), in_flight=float("inf"), queued=1e300, from_the_future=1.0),
        at(20, "one", 0.0, pages__stored=5),
        at(30, "one", float("nan"), pages__stored=5),
        at(-500, pages__stored=5),
        at(5_000, pages__stored=5),
    )
    assert plot.machines == ["one"]
    assert not any(one.values != [None] * 4 and any(one.values) for group in plot.panels for one in group.lines)


def test_no_sample_makes_an_empty_plot() -> None:
    plot = plot_of()
    assert plot.machines == [] and all(not group.lines for group in plot.panels)


def test_a_year_has_few_steps() -> None:
    year = 365 * 86_400.0
    grid = grid_of(START, START + year, most=480)
    assert grid.count <= 480 and grid.step == 86_400
    plot = plot_of(*samples(year, every=86_400.0 / 4), grid=grid, panels=default_panels())
    pages = line(plot, "pages", "pages")
    assert len(pages.values) == grid.count and None not in pages.values
    assert pages.high and all(high > low for low, high in zip(pages.low, pages.high, strict=True) if high and low)


@pytest.mark.parametrize(
    ("seconds", "step", "count"),
    [(0.0, 10, 1), (5.0, 10, 1), (600.0, 10, 60), (3_600.0, 10, 360), (86_400.0, 300, 288), (5e8, 1_123_200, 446)],
)
def test_steps_have_round_lengths(seconds: float, step: float, count: int) -> None:
    grid = grid_of(0.0, seconds, most=480)
    assert (grid.step, grid.count) == (step, count)


def test_a_grid_that_is_not_aligned_begins_exactly() -> None:
    assert grid_of(7.0, 107.0, most=480, is_aligned=False) == Grid(start=7.0, step=10.0, count=10)


def test_every_panel_shows_figures_that_exist() -> None:
    shown = [name for panel in PANELS for curve in panel.curves for name in curve.figures.split()]
    assert [name for name in shown if not is_known(name)] == []
    assert len({panel.name for panel in PANELS}) == len(PANELS)


def test_the_limit_of_a_panel_says_so() -> None:
    limits = [curve for panel in PANELS for curve in panel.curves if curve.role is Role.LIMIT]
    assert [curve.figures for curve in limits] == ["ceiling", "at_once"]
    assert all(curve.reading is Reading.LEVEL for curve in limits)


def test_the_panels_that_are_drawn_by_default_come_first() -> None:
    assert PANELS[: len(default_panels())] == default_panels()


def test_panels_can_be_named() -> None:
    assert panels_named(["all"]) == PANELS
    assert [one.name for one in panels_named(["lag", "pages"])] == ["lag", "pages"]


def test_a_family_has_a_function_for_its_labels() -> None:
    families = [curve for panel in PANELS for curve in panel.curves if curve.is_family]
    assert all(not isinstance(curve.label, str) for curve in families)
    assert Curve(figures="a b", label="both", reading=Reading.RATE).label_of("b") == "both"
