"""How many domains the machines of a crawl could serve. A pure function of measured figures."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rove.policy.concurrency import FULL_CPU, MOST
from rove.policy.situation import Load

BUSY_DATABASE = 0.8
"""Share of the time that the statements of a process take, from which on the database counts as fully used."""
ENOUGH_VISITS = 20
"""With fewer visits, the CPU time of a visit cannot be told from that of a process that waits."""


def busiest_statement(load: Load) -> tuple[str, float]:
    """Return the statement that took longest, and its share of the time; '' if none is known.

    >>> busiest_statement(Load(seconds=10.0, statements={"claim": 1.0, "commit": 4.0}))
    ('commit', 0.4)
    """
    if not load.statements:
        return "", 0.0
    name = max(load.statements, key=lambda name: load.statements[name])
    return name, min(1.0, load.statements[name] / load.session_seconds)


def domains_served(load: Load, *, with_work: int, in_flight: int, at_once: int | None) -> int | None:
    """Return about how many domains the machines could serve, if all were like these; None if that cannot be said.

    What the visits need grows with the number of domains, so the resource that is used most sets the limit. `with_work`
    is how many domains there are now; `at_once` is how many visits may be in flight, if that does not adapt itself.

    >>> load = Load(seconds=60.0, visits=600, cores=2, processes=2, cpu_seconds=6.0)
    >>> domains_served(load, with_work=700, in_flight=3, at_once=None)
    13000
    """
    if load.visits < ENOUGH_VISITS or load.cpu_seconds is None or not with_work:
        return None
    used = max(_used(load, in_flight, at_once), default=0.0)
    domains = with_work if load.domains is None else load.domains
    return max(with_work, _rounded(domains / used)) if used > 0 else None


def _used(load: Load, in_flight: int, at_once: int | None) -> Iterator[float]:
    """Iterate over the shares of the machines' resources that are used."""
    if load.cpu_busy is not None:
        yield load.cpu_busy / FULL_CPU
    if load.database_busy is not None:
        yield load.database_busy / BUSY_DATABASE
    yield in_flight / (at_once or MOST * max(1, load.processes))


def _rounded(count: float) -> int:
    """Round to two digits: the estimate is no better than that.

    >>> _rounded(12_857.0), _rounded(7.9)
    (13000, 8)
    """
    return int(round(count, 1 - math.floor(math.log10(max(count, 10.0)))))
