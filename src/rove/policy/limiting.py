"""Says what limits a crawl, in a sentence with numbers. A pure function of figures.

Something outside of the crawl comes first: a pause, a database or a line that is lost, a full disk. If domains are
ready and not visited, something on our side is short, and the figures say what. If all domains wait for their delay,
politeness is the limit, which is how a crawl should be; only more domains make it faster then.

Figures may be missing, and figures that were taken at different moments may contradict each other. What is not known is
never named as a limit.
"""

from __future__ import annotations

import enum

import msgspec

from rove.model.reasons import PauseCause
from rove.notation.humanize import counted, seconds_text, size_text
from rove.policy.concurrency import HeldBy
from rove.policy.headroom import BUSY_DATABASE, busiest_statement, domains_served
from rove.policy.situation import Load, Situation

FEW_READY = 0.1
"""Up to this share of the domains with work may be ready at any moment, although politeness is the limit."""
MANY_FAILED = 0.5
"""Share of failed requests from which on the sites are what limits the crawl."""
ENOUGH_REQUESTS = 10
"""With fewer requests, only a crawl in which every request failed is said to be limited by its sites."""
BACKLOG = 256
"""Visits of one process that are finished and wait to be written, from which on writing is what limits it."""
BUSY_STORE = 0.7
"""Share of the time that one process spends on writing pages, from which on the disk counts as the limit."""
NEARLY = 0.9
"""With this share of the visits that may be in flight, the crawl counts as using all of them."""
MOSTLY_OURS = 0.5
"""Below this share of the CPU time that the crawl could use, other programs must be using the rest."""
QUITE_BUSY = 0.4
"""If domains are ready and nothing is short, what is used for at least this share is named."""
WORTH_TELLING = 0.5
"""Seconds until the next domain is due, below which that is not told."""
ERRORS_NAMED = 3


class Factor(enum.StrEnum):
    """What may limit a crawl."""

    PAUSE = "pause"
    """The owner has paused it."""
    DATABASE = "database"
    REST = "rest"
    """Every domain rests, because the database may have lost its last transactions."""
    LINE = "line"
    DISK = "disk"
    MEMORY = "memory"
    FILES = "open-files"
    LIMIT = "limit"
    """A limit that the owner has set is reached, or nearly."""
    CPU = "cpu"
    CONCURRENCY = "concurrency"
    SEEDS = "seeds"
    """They are still being loaded."""
    SITES = "sites"
    """Most requests fail."""
    POLITENESS = "politeness"
    NOTHING = "nothing"
    """The crawl starts or grows, or has nothing left to fetch."""
    UNKNOWN = "unknown"
    """The figures do not say."""


class Limiting(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a crawl."""

    factor: Factor
    why: str
    """The numbers, as one or two sentences without the last full stop."""
    domains_served: int | None = None
    """If politeness is the limit: how many domains the machines could serve; None if too little was measured."""

    @property
    def sentence(self) -> str:
        """The factor and the numbers."""
        return f"{self.factor}: {self.why}"


def limiting(now: Situation) -> Limiting:
    """Return what limits a crawl that runs.

    >>> limiting(Situation(domains={"waiting": 2_439}, next_due=41.0)).sentence
    'politeness: 2,439 domains, all waiting; the next is due in 41 s. More domains would help, more machines would not'
    """
    return (
        _from_outside(now) or _in_preparation(now) or _on_our_side(now) or _from_the_sites(now) or _from_politeness(now)
    )


def _found(factor: Factor, why: str) -> Limiting:
    return Limiting(factor=factor, why=why)


_TROUBLES = {
    PauseCause.DATABASE: (Factor.DATABASE, "it is away; nothing can be claimed or written until it is back"),
    PauseCause.REST: (Factor.REST, "every domain rests, because the database may have lost its last transactions"),
    PauseCause.OUTAGE: (Factor.LINE, "no site answers; is this machine online?"),
    PauseCause.DISK: (Factor.DISK, "too little is free on the disk of the data directory"),
    PauseCause.MEMORY: (Factor.MEMORY, "fetches wait for memory. A larger --max-memory would help"),
}
"""Troubles that stop or slow the crawl whatever else is true, the worst first, and the words for each."""


def _from_outside(now: Situation) -> Limiting | None:
    """Return what stops the crawl, or keeps it from starting visits, whatever the domains are doing."""
    if now.is_stopping:
        return _found(Factor.NOTHING, f"the crawl stops; {counted(now.in_flight, 'visit')} in flight may finish")
    if now.paused_by:
        return _found(Factor.PAUSE, f"{now.paused_by}. Continue with 'rove unpause'")
    for cause, (factor, words) in _TROUBLES.items():
        if cause in now.troubles:
            sentence = now.troubles[cause]
            return _found(factor, sentence.removeprefix("paused: ").removeprefix("waiting: ") or words)
    if now.seconds_left is not None and now.seconds_left <= 0:
        return _found(Factor.LIMIT, "--max-duration is reached")
    if now.pages_left is not None and now.pages_left <= 0:
        return _found(Factor.LIMIT, "--max-pages is reached")
    if now.pages_left is not None and now.pages_left <= now.in_flight:
        visits = counted(now.in_flight, "visit")
        return _found(
            Factor.LIMIT, f"{counted(now.pages_left, 'page')} left until --max-pages, for which {visits} are in flight"
        )
    return None


def _in_preparation(now: Situation) -> Limiting | None:
    """Return why there is nothing to judge yet, or no longer."""
    if now.domains is None:
        return _found(Factor.UNKNOWN, "the database has not told how many domains wait")
    if now.seeds_loading is not None:
        loaded = counted(now.seeds_loading, "seed")
        return _found(Factor.SEEDS, f"{loaded} loaded so far; until all are, a process makes at most 100 visits/s")
    if now.with_work:
        return None
    if now.in_flight or now.unsettled:
        return _found(Factor.NOTHING, f"the last {counted(now.in_flight + now.unsettled, 'visit')} end")
    if now.pending:
        urls = counted(now.pending, "URL")
        return _found(Factor.LIMIT, f"{urls} pending, all of domains that have reached --max-pages-per-domain")
    return _found(Factor.NOTHING, "nothing is left to fetch. More seeds would help")


def _on_our_side(now: Situation) -> Limiting | None:
    """Return what keeps domains that are ready from being visited."""
    if now.ready <= max(1.0, FEW_READY * now.with_work):
        return None
    if found := _behind(now):
        return found
    ready = f"{counted(now.ready, 'domain')} {'is' if now.ready == 1 else 'are'} ready"
    fetches = f"{counted(now.in_flight, 'fetch', 'fetches')} in flight of at most {now.at_once:,}"
    match _held_by(now):
        case HeldBy.CPU:
            return _found(Factor.CPU, f"{_cpu_text(now.load)}{ready}, {fetches}. More cores or machines would help")
        case HeldBy.MEMORY:
            return _found(Factor.MEMORY, f"{ready}, {fetches}. More memory or a larger --max-memory would help")
        case HeldBy.FILES:
            return _found(Factor.FILES, f"{ready}, {fetches}. A higher limit of open files (ulimit -n) would help")
        case HeldBy.LINE:
            return _found(Factor.LINE, f"it loses answers{_speed_text(now.load)}; {ready}, {fetches}")
        case HeldBy.MOST if _is_full(now):
            return _found(Factor.CONCURRENCY, f"{ready}, {fetches}. More processes would help")
        case HeldBy.USER if _is_full(now):
            return _found(Factor.CONCURRENCY, f"{ready}, {fetches}. A higher --concurrency would help")
        case HeldBy.NOTHING:
            return _found(Factor.NOTHING, f"the number of fetches grows; {ready}, {fetches}")
        case None:
            return _found(Factor.NOTHING, f"the crawl begins; {ready}")
    return _from_the_sites(now) or _busiest(now, f"{ready}, {fetches}")


def _behind(now: Situation) -> Limiting | None:
    """Return what keeps finished visits from being written, if many wait for that."""
    load = now.load
    visits = f"{counted(now.unsettled, 'finished visit')} {'waits' if now.unsettled == 1 else 'wait'} to be written"
    store = (load.store_seconds or 0.0) / load.process_seconds
    is_behind = now.unsettled >= BACKLOG * load.processes
    if store >= BUSY_STORE:
        return _found(Factor.DISK, f"writing pages takes {_percent(store)} of the time of each process; {visits}")
    if load.database_busy is not None and load.database_busy >= BUSY_DATABASE:
        return _found(Factor.DATABASE, f"{_busy_text(load)}; {visits}")
    if is_behind and _held_by(now) is HeldBy.CPU:
        return None  # all threads of a process share its CPU time
    if is_behind:
        busiest, _ = busiest_statement(load)
        return _found(Factor.DATABASE, visits + (f"; its busiest statement is {busiest}" if busiest else ""))
    return None


def _busiest(now: Situation, ready: str) -> Limiting:
    """Return what is used most, if no part says that it is short: domains are claimed or written too slowly."""
    load = now.load
    cpu, database = load.cpu_busy or 0.0, load.database_busy or 0.0
    if max(cpu, database) < QUITE_BUSY:
        measured = load.cpu_busy is not None
        shares = f"; CPU {_percent(cpu)} used, database {_percent(database)} busy" if measured else ""
        return _found(Factor.UNKNOWN, f"{ready}{shares}")
    if database > cpu:
        return _found(Factor.DATABASE, f"{_busy_text(load)}; {ready}")
    return _found(Factor.CPU, f"{_cpu_text(load)}{ready}. More cores or machines would help")


def _from_the_sites(now: Situation) -> Limiting | None:
    failed = sum(now.errors.values())
    all_failed = 0 < now.requests <= failed
    if not all_failed and (now.requests < ENOUGH_REQUESTS or failed < MANY_FAILED * now.requests):
        return None
    commonest = sorted(now.errors.items(), key=lambda item: (-item[1], item[0]))[:ERRORS_NAMED]
    errors = ", ".join(f"{name} {count:,}" for name, count in commonest)
    of = "the only request" if now.requests == 1 else f"{min(failed, now.requests):,} of {now.requests:,} requests"
    due = "" if now.next_due is None else f"; the next visit is due in {seconds_text(now.next_due, whole=True)}"
    return _found(Factor.SITES, f"{of} failed ({errors}){due}. Other seeds would help")


def _from_politeness(now: Situation) -> Limiting:
    served = domains_served(now.load, with_work=now.with_work, in_flight=now.in_flight, at_once=_most_at_once(now))
    states = (("waiting", now.waiting), ("being visited", now.leased), ("ready", now.ready))
    present = [(name, count) for name, count in states if count]
    domains = counted(now.with_work, "domain")
    if len(present) == 1:
        every = "" if now.with_work == 1 else "all "
        text = f"{domains}, {every}{present[0][0]}"
    else:
        text = f"{domains}, {', '.join(f'{count:,} {name}' for name, count in present)}"
    if now.next_due is not None and now.next_due >= WORTH_TELLING and not now.ready:
        due = seconds_text(now.next_due, whole=True)
        text += f"; {'it' if now.with_work == 1 else 'the next'} is due in {due}"
    machines = "this machine" if now.load.machines == 1 else f"these {now.load.machines:,} machines"
    could = "" if served is None else f" ({machines} could serve about {served:,})"
    return Limiting(
        factor=Factor.POLITENESS,
        why=f"{text}. More domains would help{could}, more machines would not",
        domains_served=served,
    )


def _held_by(now: Situation) -> HeldBy | None:
    """Return why most processes have no more visits in flight."""
    known = {reason: count for reason, count in now.held_by.items() if count > 0 and reason in list(HeldBy)}
    return HeldBy(max(known, key=lambda reason: known[reason])) if known else None


def _most_at_once(now: Situation) -> int | None:
    """Return how many visits could be in flight if there were more domains; None if that number adapts itself."""
    return now.at_once if _held_by(now) is HeldBy.USER else None


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.0f} %"


def _is_full(now: Situation) -> bool:
    """Whether as many visits are in flight as may be, apart from one that is about to begin."""
    return now.in_flight + 1 >= NEARLY * now.at_once


def _cpu_text(load: Load) -> str:
    if load.cpu_seconds is None:
        return ""
    used = load.per_second(load.cpu_seconds)
    others = ", and other programs take the rest" if used < MOSTLY_OURS * load.usable_cores else ""
    return f"the crawl gets {used:.1f} of {counted(load.usable_cores, 'core')}{others}; "


def _speed_text(load: Load) -> str:
    return "" if load.received is None else f" at {size_text(load.per_second(load.received))}/s"


def _busy_text(load: Load) -> str:
    busiest, share = busiest_statement(load)
    return f"its statements take {_percent(load.database_busy)} of the time; {busiest} alone takes {_percent(share)}"
