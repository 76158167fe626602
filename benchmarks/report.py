"""What was measured, as a table for people and as JSON for the next comparison."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pycurl

from contestants import ROVE, Figures, Trial

NAMES = {
    "raw": "server: bare sockets",
    "fetch": "fetch alone",
    "bare": "bare loop: fetch + parse",
    ROVE: "rove crawl",
    "rove-2": "rove, SQLite, 2 processes",
    "rove-4": "rove, SQLite, 4 processes",
    "postgres": "rove, PostgreSQL",
    "postgres-2": "rove, PostgreSQL, 2 processes",
    "postgres-4": "rove, PostgreSQL, 4 processes",
}
_COLUMNS: dict[str, Callable[[Figures], str]] = {
    "best of the rounds": lambda f: NAMES[f.contestant],
    "pages/s": lambda f: f"{f.pages_per_s:,.0f}",
    "requests/s": lambda f: f"{f.requests_per_s:,.0f}",
    "crawler ms/page": lambda f: f"{f.crawler_ms:.2f}",
    "server ms/page": lambda f: f"{f.server_ms:.2f}",
    "crawler cores": lambda f: f"{f.crawler_cores:.2f}",
    "server cores": lambda f: f"{f.server_cores:.2f}",
    "other cores": lambda f: f"{f.other_cores:.2f}",
    "peak RSS MB": lambda f: f"{f.peak_rss / 1e6:.0f}",
    "errors": lambda f: str(sum(f.errors.values())),
}


def best(rounds: Sequence[Sequence[Figures]]) -> dict[str, Figures]:
    """Each contestant's best round: what else the machine does can only slow it down."""
    found: dict[str, Figures] = {}
    for figures in (f for one in rounds for f in one):
        held = found.get(figures.contestant)
        if held is None or figures.pages_per_s > held.pages_per_s:
            found[figures.contestant] = figures
    return found


def machine() -> dict[str, Any]:
    """What this was measured on, and when."""
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


def as_json(
    about: dict[str, Any], trial: Trial, rounds: Sequence[Sequence[Figures]]
) -> dict[str, Any]:
    """Everything."""
    return {
        "machine": about,
        "trial": asdict(trial),
        "best": {name: figures.as_json() for name, figures in best(rounds).items()},
        "rounds": [[figures.as_json() for figures in one] for one in rounds],
    }


def as_text(about: dict[str, Any], trial: Trial, rounds: Sequence[Sequence[Figures]]) -> str:
    """The table and what is to be known with it, in Markdown."""
    chosen = best(rounds)
    order = [name for name in NAMES if name in chosen]
    lines = [*_table([chosen[name] for name in order]), ""]
    for name in order:
        rates = ", ".join(
            f"{f.pages_per_s:,.0f}" for one in rounds for f in one if f.contestant == name
        )
        lines.append(f"- {NAMES[name]}, pages/s by round: {rates}")
    if ROVE in chosen and "bare" in chosen:
        ratio = chosen[ROVE].pages_per_s / chosen["bare"].pages_per_s
        each = ", ".join(f"{ratio:.0%}" for ratio in map(_ratio, rounds))
        lines.append(f"- rove / bare loop: {ratio:.0%} (best to best; by round: {each})")
    if ROVE in chosen:
        lines += _about_rove(chosen[ROVE], trial)
    lines += [_about_web(trial), about_machine(about)]
    return "\n".join(lines)


def _about_rove(rove: Figures, trial: Trial) -> list[str]:
    details = rove.details
    told = "agrees with" if _agrees(rove) else "DIFFERS FROM"
    count = (
        f"- rove's own count {told} the server's log: {rove.pages_told:,} and {rove.pages_logged:,} pages, "
        f"{details['requests_told']:,} and {details['requests_logged']:,} requests"
    )
    manners = (
        f"- politeness does not bind: a delay of {trial.delay:g} s allows "
        f"{details['politeness_ceiling']:,.0f} visits/s, of which {details['share_of_ceiling']:.1%} were made; "
        f"by the log {details['rules_broken']:.0f} rules were broken and {details['refetches']:.0f} pages "
        "fetched twice"
    )
    work = (
        f"- rove met {details['urls_per_page']:.0f} new URLs per page and visited each host "
        f"{details['visits_per_host']:.1f} times"
    )
    return [count, manners, work]


def _about_web(trial: Trial) -> str:
    profile = trial.plan.profile
    return (
        f"- web: {trial.plan.hosts:,} hosts, pages of {profile.page_bytes[0]:,} bytes with "
        f"{profile.links_per_page[0]} links; {trial.concurrency} fetches in flight; "
        f"measured for {trial.seconds:g} s (loops: half) after {trial.warm_up:g} s"
    )


def about_machine(about: dict[str, Any]) -> str:
    """The machine in one line."""
    load = " ".join(map(str, about["load_before"]))
    return (
        f"- machine: {about['cores']} cores, {about['cpu']}, {about['memory_gb']} GB, {about['system']}, "
        f"Python {about['python']}, SQLite {about['sqlite']}, libcurl {about['libcurl']}; "
        f"load before {load}; {about['date']}"
    )


def _agrees(figures: Figures) -> bool:
    return (
        figures.pages_told == figures.pages_logged
        and figures.details["requests_told"] == figures.details["requests_logged"]
    )


def _ratio(figures: Sequence[Figures]) -> float:
    rates = {f.contestant: f.pages_per_s for f in figures}
    return rates[ROVE] / rates["bare"]


def _table(rows: Sequence[Figures]) -> list[str]:
    cells = [list(_COLUMNS), *([show(row) for show in _COLUMNS.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def line(words: Sequence[str]) -> str:
        first, *rest = (pair for pair in zip(words, widths, strict=True))
        parts = [first[0].ljust(first[1]), *(word.rjust(width) for word, width in rest)]
        return f"| {' | '.join(parts)} |"

    rule = (
        "|"
        + "|".join("-" * (width + 1) + (":" if i else "-") for i, width in enumerate(widths))
        + "|"
    )
    return [line(cells[0]), rule, *map(line, cells[1:])]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
