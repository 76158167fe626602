"""The webs of the benchmark, and which contestants are measured on each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.contestants import SCRAPY, SCRAPY_PLAIN, Trial
from benchmarks.web import WebPlan

LATENCY = "latency=0,0.05"
REAL = ("real=true", "pages_per_host=1000")
DELAY = 70.0
"""rove's default."""
NOT_BINDING = 0.5
FEW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """A web and the contestants that are measured on it."""

    about: str
    trial: Trial
    contestants: tuple[str, ...]


QUICK = {
    "40kb": ("raw", "bare-2", "rove-2", "postgres-2", SCRAPY),
    "https": ("handshakes-2", "rove-2"),
    "real": ("lexbor-2", "rove-2"),
    "real-https": ("lexbor-2", "rove-2"),
}
"""The contestants of the quick runs; on other webs only rove-2."""
CRAWLERS = ("rove-2", "postgres-2", SCRAPY)


def arenas(*, quick: bool) -> dict[str, Arena]:
    """Return the webs by name; with `quick`, tiny ones."""
    many_pages = "pages_per_host=100000"
    # In a crawl of days, requests for robots.txt are rare. So the measurement starts when every host has been visited.
    usual = Trial(
        plan=WebPlan(hosts=20_000, knobs=(LATENCY,)),
        concurrency=500,
        delay=NOT_BINDING,
        warm_up=45.0,
        seconds=20.0,
    )
    # Every host is visited once in the time, at the delay of a real crawl. The seeds load in the first seconds.
    wide = replace(usual, plan=WebPlan(hosts=200_000, knobs=(LATENCY,)), delay=DELAY, warm_up=15.0)
    real = replace(usual, plan=usual.plan.with_knobs(*REAL), warm_up=100.0)
    webs = {
        "40kb": Arena(
            about="20,000 hosts, pages of 40 KB with 60 links, a delay that does not bind",
            trial=usual,
            contestants=("raw", "bare-2", *CRAWLERS, SCRAPY_PLAIN),
        ),
        "240kb": Arena(
            about="the same with pages of 240 KB",
            trial=replace(usual, plan=usual.plan.with_knobs("page_bytes=240000"), warm_up=100.0),
            contestants=("raw", "bare-2", *CRAWLERS),
        ),
        "https": Arena(
            about="40 KB over https, a certificate for all names, no session resumed",
            trial=replace(
                usual,
                plan=replace(usual.plan.with_knobs("secure=true"), processes=2),
                warm_up=100.0,
            ),
            contestants=("raw-2", "handshakes-2", "bare-2", *CRAWLERS),
        ),
        "real": Arena(
            about="20,000 hosts, pages like real ones (165 KB, 33 KB gzipped, 145 links), a delay that does not bind",
            trial=real,
            contestants=("raw", "lexbor-2", "rove-2", "postgres-2"),
        ),
        "real-https": Arena(
            about="the same over https",
            trial=replace(real, plan=replace(real.plan.with_knobs("secure=true"), processes=2), warm_up=150.0),
            contestants=("lexbor-2", "rove-2", "postgres-2"),
        ),
        "hostile-1": Arena(
            about="the same, and 1 % of the hosts serve hostile pages",
            trial=replace(real, plan=real.plan.with_knobs("hostile=0.01")),
            contestants=("rove-2",),
        ),
        "hostile-10": Arena(
            about="the same with 10 % of the hosts",
            trial=replace(real, plan=real.plan.with_knobs("hostile=0.1")),
            contestants=("rove-2",),
        ),
        "200k": Arena(
            about="200,000 hosts, 40 KB, the default delay of 70 s, which does not bind either",
            trial=wide,
            contestants=("bare-2", *CRAWLERS),
        ),
        "few": Arena(
            about="200,000 hosts whose links all lead to 10 of them, 50,000 of their pages ahead in the queue; 70 s",
            trial=replace(
                wide,
                plan=replace(wide.plan.with_knobs(f"linked_hosts={FEW}", many_pages), clogged=50_000),
            ),
            contestants=("rove-2", "postgres-2"),
        ),
        "spread": Arena(
            about="the same with links to all 200,000 hosts and nothing ahead in the queue",
            trial=replace(wide, plan=wide.plan.with_knobs("linked_hosts=200000", many_pages)),
            contestants=("rove-2", "postgres-2"),
        ),
    }
    return {name: _tiny(name, arena) for name, arena in webs.items()} if quick else webs


def _tiny(name: str, arena: Arena) -> Arena:
    trial = arena.trial
    chosen = QUICK.get(name, ("rove-2",))
    hosts = 300 if trial.plan.hosts == 20_000 else 3_000
    plan = trial.plan.with_knobs("templates=20", "hostile_scale=0.02") if trial.plan.profile.real else trial.plan
    plan = replace(plan, hosts=hosts, clogged=min(trial.plan.clogged, 1_000))
    trial = replace(trial, plan=plan, concurrency=50, warm_up=0.5, seconds=1.0)
    return replace(arena, trial=trial, contestants=chosen)
