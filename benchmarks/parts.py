"""The claims that the benchmark checks: each with its numbers and whether it is reached.

Some follow from the table of the webs. The others need runs of their own (below, and in limits.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from benchmarks import fill
from benchmarks.contestants import NAMES, SCRAPY, SCRAPY_DELAYED, SCRAPY_PLAIN, is_there
from benchmarks.measure import Figures, Ground, measure
from benchmarks.webs import DELAY, Arena

BACKENDS = ("rove-2", "postgres-2")
LEAST_OF_SCRAPY, LEAST_OF_BARE = 12.0, 0.25
AIMED_RATE, AIMED_OF_BARE = 2_000.0, 0.40
LEAST_OF_CEILING = 0.98
MOST_SLOWER = 0.05
LEAST_OF_HANDSHAKES = 0.80
LEAST_OF_LEXBOR = 0.50
LEAST_WITH_HOSTILE = {"hostile-1": 0.95, "hostile-10": 0.80}
"""By the web: the least share of the pages/s that the other hosts keep."""
MANY_URLS = 10_000_000

Table = Mapping[str, Mapping[str, Figures]]
"""The best figures by web and contestant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A claim, and whether it is reached."""

    part: str
    claim: str
    is_reached: bool | None
    """None if a figure that it needs was not measured."""
    numbers: str
    values: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        return asdict(self)


Verdicts = list[Verdict]


def not_binding(table: Table) -> Verdicts:
    """(a) Judge the crawl of the 40 KB web, where the delay does not bind."""
    on = table.get("40kb", {})
    verdicts = []
    for name in BACKENDS:
        if name not in on or "bare-2" not in on:
            continue
        rate = on[name].pages_per_s
        of_bare = _ratio(rate, on["bare-2"].pages_per_s)
        words = [f"{rate:,.0f} pages/s, {of_bare:.0%} of the bare loop"]
        reached: bool | None = of_bare >= LEAST_OF_BARE
        # Unlike rates, CPU time is the same on a busy machine.
        cpu = _cpu_ms(on[name])
        values = {
            "pages_per_s": rate,
            "of_bare": of_bare,
            "cpu_of_bare": _ratio(_cpu_ms(on["bare-2"]), cpu),
        }
        words.append(f"by CPU time {values['cpu_of_bare']:.0%}")
        scrapy = [on[one] for one in (SCRAPY, SCRAPY_PLAIN) if one in on]
        if scrapy:
            fastest = max(figures.pages_per_s for figures in scrapy)
            times = values["times_scrapy"] = _ratio(rate, fastest)
            values["cpu_times_scrapy"] = _ratio(min(map(_cpu_ms, scrapy)), cpu)
            words.append(
                f"{times:.1f} times Scrapy ({fastest:,.0f}), by CPU time per page "
                f"{values['cpu_times_scrapy']:.1f} times"
            )
            reached = reached and times >= LEAST_OF_SCRAPY
        else:
            words.append("Scrapy was not measured")
            reached = None if reached else False
        is_aim = rate >= AIMED_RATE and of_bare >= AIMED_OF_BARE
        words.append("the aim is reached too" if is_aim else "the aim is not reached")
        claim = (
            f"delay not binding, {NAMES[name]}: {LEAST_OF_SCRAPY:g} times Scrapy and {LEAST_OF_BARE:.0%} of the "
            f"bare loop (aim: {AIMED_RATE:,.0f} pages/s, {AIMED_OF_BARE:.0%})"
        )
        verdicts.append(Verdict(part="a", claim=claim, is_reached=reached, numbers="; ".join(words), values=values))
    return verdicts


def few_hosts(table: Table) -> Verdicts:
    """(d) Compare crawls of pages whose links lead to few hosts and to all hosts."""
    verdicts = []
    for name in BACKENDS:
        if name not in table.get("spread", {}) or name not in table.get("few", {}):
            continue
        spread, clogged = table["spread"][name], table["few"][name]
        rate, others = spread.pages_per_s, clogged.details["other_pages_per_s"]
        share = _ratio(others, rate)
        verdicts.append(
            Verdict(
                part="d",
                claim=f"all links to few hosts, their pages ahead in the queue, {NAMES[name]}: no slower for others",
                is_reached=share >= 1 - MOST_SLOWER,
                numbers=f"{others:,.0f} pages/s of the other hosts, {rate:,.0f} with links to all ({share:.0%})",
                values={"others_per_s": others, "spread_per_s": rate},
            )
        )
    return verdicts


def over_https(table: Table) -> Verdicts:
    """(f) Compare the pages/s of a crawl with the handshakes/s of a loop that does little else: a visit needs one."""
    on = table.get("https", {})
    verdicts = []
    for name in BACKENDS:
        if name not in on or "handshakes-2" not in on:
            continue
        crawl, alone = on[name], on["handshakes-2"].connections_per_s
        share = _ratio(crawl.pages_per_s, alone)
        per_page = _ratio(crawl.connections_per_s, crawl.pages_per_s)
        numbers = (
            f"{crawl.pages_per_s:,.0f} pages/s, {share:.0%} of {alone:,.0f} handshakes/s; "
            f"{per_page:.2f} handshakes a page in {_ratio(crawl.requests_per_s, crawl.pages_per_s):.2f} requests"
        )
        values = {"of_handshakes": share, "handshakes_per_s": alone, "handshakes_a_page": per_page}
        plain = table.get("40kb", {}).get(name)
        if plain is not None and plain.pages_per_s and alone:
            # The time of a page in the plain crawl plus the time of its handshakes.
            expected = 1 / (1 / plain.pages_per_s + per_page / alone)
            values["of_expected"] = crawl.pages_per_s / expected
            numbers += f"; {values['of_expected']:.0%} of what the plain crawl plus handshakes would allow"
        verdicts.append(
            Verdict(
                part="f",
                claim=f"https, {NAMES[name]}: {LEAST_OF_HANDSHAKES:.0%} of what one handshake a page alone allows",
                is_reached=share >= LEAST_OF_HANDSHAKES,
                numbers=numbers,
                values=values,
            )
        )
    return verdicts


def real_pages(table: Table) -> Verdicts:
    """(j) Hold a crawl of real-like pages against the loop of pycurl and Lexbor."""
    verdicts = []
    for web in ("real", "real-https"):
        on = table.get(web, {})
        for name in BACKENDS:
            if name not in on or "lexbor-2" not in on:
                continue
            crawl, loop = on[name], on["lexbor-2"]
            share = _ratio(crawl.pages_per_s, loop.pages_per_s)
            is_claim = (web, name) == ("real", "rove-2")
            claim = f"{web}, {NAMES[name]}: " + (f"{LEAST_OF_LEXBOR:.0%} of" if is_claim else "share of")
            verdicts.append(
                Verdict(
                    part="j",
                    claim=f"{claim} the loop of pycurl and Lexbor",
                    is_reached=share >= LEAST_OF_LEXBOR if is_claim else None,
                    numbers=(
                        f"{crawl.pages_per_s:,.0f} pages/s, {share:.0%} of {loop.pages_per_s:,.0f}; "
                        f"CPU time per page {_cpu_ms(crawl):.2f} and {_cpu_ms(loop):.2f} ms"
                    ),
                    values={"of_lexbor": share, "cpu_of_lexbor": _ratio(_cpu_ms(loop), _cpu_ms(crawl))},
                )
            )
    return verdicts


def hostile_pages(table: Table) -> Verdicts:
    """(k) Compare the pages/s of the ordinary hosts with and without hosts that serve hostile pages."""
    verdicts = []
    for web, least in LEAST_WITH_HOSTILE.items():
        for name in BACKENDS:
            if name not in table.get(web, {}) or name not in table.get("real", {}):
                continue
            disturbed, calm = table[web][name], table["real"][name]
            others = disturbed.details["other_pages_per_s"]
            share = _ratio(others, calm.pages_per_s)
            lags = [figures.details.get("longest_lag_s", 0.0) for figures in (disturbed, calm)]
            verdicts.append(
                Verdict(
                    part="k",
                    claim=f"{web}, {NAMES[name]}: {least:.0%} of the pages/s on the other hosts",
                    is_reached=share >= least,
                    numbers=(
                        f"{others:,.0f} pages/s on the other hosts, {calm.pages_per_s:,.0f} without hostile ones "
                        f"({share:.0%}); longest stop of the event loop: {lags[0]:.2f} s, {lags[1]:.2f} s without"
                    ),
                    values={"others_per_s": others, "of_calm": share, "longest_lag_s": lags[0]},
                )
            )
    return verdicts


def binding(arenas: Mapping[str, Arena], chosen: Sequence[str], *, quick: bool) -> Verdicts:
    """(b) Measure a crawl whose delay binds, after its first rounds, which are spread out."""
    base = arenas["40kb"].trial
    trial = (
        replace(base, delay=1.0, warm_up=3.0, seconds=2.0)
        if quick
        else replace(base, delay=DELAY, warm_up=3 * DELAY, seconds=3 * DELAY)
    )
    # Measure whole rounds: hosts are visited in the rhythm of the delay, and a part of a round would count some twice.
    verdicts = []
    for name in (*BACKENDS, SCRAPY_DELAYED):
        if name not in chosen or not is_there(name) or (quick and name == SCRAPY_DELAYED):
            continue
        figures = measure(name, trial)
        ceiling = figures.details.get("politeness_ceiling", trial.plan.hosts / trial.delay)
        share = figures.pages_per_s / ceiling
        is_rove = name in BACKENDS
        claim = f"{trial.plan.hosts:,} hosts, delay {trial.delay:g} s, {NAMES[name]}"
        claim += f": {LEAST_OF_CEILING:.0%} of the ceiling" if is_rove else " (to compare)"
        numbers = f"{figures.pages_per_s:,.1f} of {ceiling:,.1f} pages/s ({share:.1%})"
        if is_rove:
            numbers += f", {figures.details['rules_broken']:.0f} rules broken"
        verdicts.append(
            Verdict(
                part="b",
                claim=claim,
                is_reached=share >= LEAST_OF_CEILING if is_rove else None,
                numbers=numbers,
                values={"share": share, **figures.as_json()},
            )
        )
    return verdicts


def large_frontier(arenas: Mapping[str, Arena], chosen: Sequence[str], *, quick: bool, rounds: int = 2) -> Verdicts:
    """(c) Measure the same crawl with and without ten million more URLs in the frontier, in turns."""
    trial = arenas["40kb"].trial
    many = 20_000 if quick else MANY_URLS
    verdicts = []
    for name in BACKENDS:
        if name not in chosen:
            continue

        def prepare(here: Ground, *, name: str, urls: int) -> None:
            fill.begin(name, trial, here)
            fill.fill(trial, here, urls)

        runs: dict[int, list[Figures]] = {0: [], many: []}
        for number in range(rounds):
            for urls in (0, many) if number % 2 == 0 else (many, 0):
                figures = measure(name, trial, partial(prepare, name=name, urls=urls))
                runs[urls].append(figures)
        small, large = (max(one.pages_per_s for one in runs[urls]) for urls in (0, many))
        cheap, dear = (min(map(_cpu_ms, runs[urls])) for urls in (0, many))
        slower = 1 - _ratio(large, small)
        verdicts.append(
            Verdict(
                part="c",
                claim=f"{many:,} URLs more in the frontier, {NAMES[name]}: at most {MOST_SLOWER:.0%} slower",
                is_reached=slower <= MOST_SLOWER,
                numbers=(
                    f"{large:,.0f} pages/s, {small:,.0f} without them ({-slower:+.0%}); "
                    f"CPU time per page {dear:.2f} and {cheap:.2f} ms"
                ),
                values={name: [one.as_json() for one in runs[urls]] for name, urls in (("with", many), ("without", 0))},
            )
        )
    return verdicts


def _cpu_ms(figures: Figures) -> float:
    """Return the CPU time per page, including the database."""
    return figures.crawler_ms + figures.database_ms


def _ratio(one: float, other: float) -> float:
    """Return the ratio, or 0 if there is nothing to compare with."""
    return one / other if other else 0.0


FROM_TABLE: dict[str, tuple[Callable[[Table], Verdicts], tuple[str, ...]]] = {
    "a": (not_binding, ("40kb",)),
    "d": (few_hosts, ("few", "spread")),
    "f": (over_https, ("40kb", "https")),
    "j": (real_pages, ("real", "real-https")),
    "k": (hostile_pages, ("real", "hostile-1", "hostile-10")),
}
"""The parts that are judged from the table, with the webs that each needs."""
