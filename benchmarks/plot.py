"""Tables in Markdown, plots as SVG, and results as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Points = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT = 7.0, 4.0


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table with one line per row. The keys of the first row are its head."""
    heads = list(rows[0])
    cells = [[_word(row.get(head)) for head in heads] for row in rows]
    is_number = [_is_number(rows, head) for head in heads]
    rule = ["--:" if right else "---" for right in is_number]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *cells])


def save_json(path: Path, figures: Any) -> None:
    """Save results for the next comparison."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n")


def lines(
    path: Path,
    series: Mapping[str, Points],
    *,
    title: str,
    x: str,
    y: str,
    target: float | None = None,
    log: bool = True,
) -> None:
    """Draw one line per series, over a logarithmic x axis by default."""
    figure, axes = _axes(_WIDTH)
    for name, points in series.items():
        axes.plot(*zip(*points, strict=True), marker="o" if log else "", label=name)
    if target is not None:
        axes.axhline(target, color="grey", linestyle=":", label="target")
    axes.set_xscale("log" if log else "linear")
    axes.set_ylim(bottom=0)
    _save(path, figure, axes, title, x, y)


def bars(
    path: Path,
    groups: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    y: str,
    log: bool = False,
) -> None:
    """Draw groups of bars, with one bar per name in each."""
    figure, axes = _axes(_WIDTH + 2)
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    width = 0.8 / len(names)
    for index, name in enumerate(names):
        at = [number + (index - (len(names) - 1) / 2) * width for number in range(len(groups))]
        heights = [group.get(name, 0.0) for group in groups.values()]
        drawn = axes.bar(at, heights, width, label=name)
        labels = [_word(float(group[name])) if name in group else "" for group in groups.values()]
        axes.bar_label(drawn, labels=labels, fontsize=7)
    axes.set_xticks(range(len(groups)), list(groups))
    if log:
        axes.set_yscale("symlog", linthresh=10)
    _save(path, figure, axes, title, "", y)


def stacked(path: Path, columns: Mapping[str, Mapping[str, float]], *, title: str, y: str) -> None:
    """Draw one stacked bar per column."""
    figure, axes = _axes(_WIDTH)
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    below = [0.0] * len(columns)
    for name in names:
        heights = [column.get(name, 0.0) for column in columns.values()]
        drawn = axes.bar(list(columns), heights, 0.5, bottom=below, label=name)
        labels = [f"{height:.2f}" if height > 0.04 * max(map(_total, columns.values())) else "" for height in heights]
        axes.bar_label(drawn, labels=labels, label_type="center", fontsize=7)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_xlim(-0.6, len(columns) - 0.4)
    _save(path, figure, axes, title, "", y)


def _total(column: Mapping[str, float]) -> float:
    return sum(column.values())


def _axes(width: float) -> tuple[Any, Any]:
    """Return an empty plot. matplotlib is imported here because processes that only measure do not need it."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "rove"  # the same figures give the same file
    figure = Figure(figsize=(width, _HEIGHT))
    return figure, figure.subplots()


def _save(path: Path, figure: Any, axes: Any, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.margins(y=0.1)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})


def _is_number(rows: Sequence[Mapping[str, Any]], head: str) -> bool:
    return any(isinstance(row.get(head), int | float) for row in rows)


def _word(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
