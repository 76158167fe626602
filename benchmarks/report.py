"""Print the results of a benchmark as tables, and draw them as plots."""

from __future__ import annotations

import platform
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pycurl

from benchmarks import plot
from benchmarks.contestants import CRAWLS, LOOPS, NAMES, OTHER_TREE
from benchmarks.measure import Figures
from benchmarks.parts import Verdict
from benchmarks.webs import Arena

Rounds = Sequence[Sequence[Figures]]
_COLUMNS: dict[str, Callable[[Figures], str]] = {
    "best of the rounds": lambda f: NAMES[f.contestant],
    "pages/s": lambda f: f"{f.pages_per_s:,.0f}",
    "requests/s": lambda f: f"{f.requests_per_s:,.0f}",
    "connections/s": lambda f: f"{f.connections_per_s:,.0f}",
    "crawler ms/page": lambda f: f"{f.crawler_ms:.2f}",
    "database ms/page": lambda f: f"{f.database_ms:.2f}" if f.database_ms else "",
    "server ms/page": lambda f: f"{f.server_ms:.2f}",
    "crawler cores": lambda f: f"{f.crawler_cores:.2f}",
    "server cores": lambda f: f"{f.server_cores:.2f}",
    "other cores": lambda f: f"{f.other_cores:.2f}",
    "peak RSS MB, a process": lambda f: f"{f.peak_process_rss / 1e6:.0f}",
    "leases without a request": lambda f: f"{f.details['leases_unasked']:,.0f}" if f.details else "",
    "errors": lambda f: str(sum(f.errors.values())),
}
BUSY = 0.3
"""If other work keeps more cores than this busy, the rates mean nothing."""
_REACHED = {True: "reached", False: "NOT reached", None: "-"}


def best(rounds: Rounds) -> dict[str, Figures]:
    """Return each contestant's best round, because other work on the machine can only slow it down."""
    fastest: dict[str, Figures] = {}
    for figures in (f for one in rounds for f in one):
        known = fastest.get(figures.contestant)
        if known is None or figures.pages_per_s > known.pages_per_s:
            fastest[figures.contestant] = figures
    return fastest


def machine() -> dict[str, Any]:
    """Describe the machine and the time of the measurement."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "libcurl": pycurl.version_info()[1],
        "load_before": [round(load, 2) for load in psutil.getloadavg()],
    }


def as_text(
    about: dict[str, Any],
    arenas: Mapping[str, Arena],
    rounds: Mapping[str, Rounds],
    verdicts: Sequence[Verdict],
    failures: Sequence[str],
    *,
    quick: bool,
) -> str:
    """Return the tables and remarks in Markdown."""
    lines: list[str] = []
    for name, arena in arenas.items():
        chosen = best(rounds[name])
        if not chosen:
            continue
        rows = [[show(chosen[n]) for show in _COLUMNS.values()] for n in NAMES if n in chosen]
        lines += [f"**{name}**: {arena.about}", "", *_table(list(_COLUMNS), rows), ""]
        busy = max(f.other_cores for f in chosen.values())
        if busy > BUSY:
            lines.append(f"- **{busy:.1f} cores were busy with other work: the rates are too low**; CPU ms/page holds")
        lines += [_about_rounds(rounds[name], n) for n in NAMES if n in chosen]
        lines += [_about_crawl(f) for n, f in chosen.items() if n in CRAWLS]
        lines.append("")
    if verdicts:
        says = dict.fromkeys(_REACHED, "works") if quick else _REACHED
        rows = [[f"({v.part})", v.claim, says[v.is_reached], v.numbers] for v in verdicts]
        lines += [*_table(["", "what", "", "measured"], rows, numbers=False), ""]
    lines += [f"- FAILED: {failure}" for failure in failures]
    lines.append(about_machine(about))
    return "\n".join(lines)


def against(rounds: Rounds) -> str:
    """Compare this tree with the other one, round by round, and by the means of all rounds."""
    ratios = []
    for figures in rounds:
        by_name = {one.contestant: one for one in figures}
        if not {"rove-2", OTHER_TREE} <= set(by_name):
            continue
        ours, other = by_name["rove-2"], by_name[OTHER_TREE]
        ratios.append((_ratio(ours.pages_per_s, other.pages_per_s), _ratio(ours.crawler_ms, other.crawler_ms)))
    if not ratios:
        return "- this tree and the other one were not measured in the same round"
    lines = [
        f"- round {number}: {rate:.3f} times the other tree's pages/s, {cpu:.3f} times its CPU time per page"
        for number, (rate, cpu) in enumerate(ratios, start=1)
    ]
    rate, cpu = (sum(column) / len(ratios) for column in zip(*ratios, strict=True))
    lines.append(f"- mean: {rate:.3f} times the pages/s, {cpu:.3f} times the CPU time per page")
    return "\n".join(lines)


def _ratio(one: float, other: float) -> float:
    return one / other if other else 0.0


def plotted(path: Path, rounds: Mapping[str, Rounds]) -> list[Path]:
    """Draw pages per second and memory over time, and return the files; nothing without matplotlib."""
    table = {name: chosen for name, own in rounds.items() if (chosen := best(own))}
    if not table or find_spec("matplotlib") is None:
        return []
    groups = {name: {NAMES[n]: chosen[n].pages_per_s for n in NAMES if n in chosen} for name, chosen in table.items()}
    plot.bars(path, groups, title="A crawl on one machine", y="pages/s", log=True)
    sizes = {
        f"{name}: {NAMES[n]}": list(enumerate(rss / 1e6 for rss in chosen[n].rss_by_second))
        for name, chosen in table.items()
        for n in NAMES
        if n in chosen and n not in LOOPS
    }
    if not sizes:
        return [path]
    over_time = path.with_suffix(".rss.svg")
    title = "Memory of the largest process"
    plot.lines(over_time, sizes, title=title, x="seconds", y="RSS MB", log=False)
    return [path, over_time]


def _about_rounds(rounds: Rounds, name: str) -> str:
    rates = [f"{f.pages_per_s:,.0f}" for one in rounds for f in one if f.contestant == name]
    return f"- {NAMES[name]}, pages/s by round: {', '.join(rates)}"


def _about_crawl(figures: Figures) -> str:
    details = figures.details
    told = "agrees with" if agrees(figures) else "DIFFERS FROM"
    return (
        f"- {NAMES[figures.contestant]}: its own count {told} the server's log ({figures.pages_told:,} and "
        f"{figures.pages_logged:,} pages, {details['requests_told']:,} and {details['requests_logged']:,} requests); "
        f"{details['rules_broken']:.0f} rules broken, {details['refetches']:.0f} pages fetched twice; "
        f"{details['share_of_ceiling']:.1%} of what politeness allows; {details['urls_per_page']:.0f} URLs per page; "
        f"{details['leases']:,.0f} leases, {details['visits_logged']:,.0f} visits in the log"
    )


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def about_machine(about: dict[str, Any]) -> str:
    """Describe the machine in one line."""
    load = " ".join(map(str, about["load_before"]))
    return (
        f"- machine: {about['cores']} cores, {about['cpu']}, {about['memory_gb']} GB, {about['system']}, "
        f"Python {about['python']}, SQLite {about['sqlite']}, libcurl {about['libcurl']}; "
        f"load before {load}; {about['date']}"
    )


def agrees(figures: Figures) -> bool:
    """Tell whether a crawl's own counts agree with the server's log."""
    return (
        figures.pages_told == figures.pages_logged
        and figures.details["requests_told"] == figures.details["requests_logged"]
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> list[str]:
    cells = [heads, *rows]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]

    def line(words: Sequence[str]) -> str:
        parts = [
            word.rjust(width) if column and numbers else word.ljust(width)
            for column, (word, width) in enumerate(zip(words, widths, strict=True))
        ]
        return f"| {' | '.join(parts)} |"

    rule = ["-" * (width + 1) + (":" if column and numbers else "-") for column, width in enumerate(widths)]
    return [line(heads), f"|{'|'.join(rule)}|", *map(line, rows)]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
