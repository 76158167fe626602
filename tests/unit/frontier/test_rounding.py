"""No delay ends early because times are stored in whole milliseconds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from rove.frontier.clock import Anchor, CrawlClock
from rove.frontier.records import Policy
from rove.frontier.rows.origins import origin_values
from rove.frontier.rows.visits import closing_rows, late_rows
from rove.model.visits import Lease, OriginRecord, RobotsStatus, VisitResult

LEASE = Lease(domain=1, name="a.test", token=2, crawl_delay=0.0, urls=())
ENDS = [100.0, 100.0004, 100.0006, 100.00099]
WAITS = [0.0, 0.0004, 0.0005, 0.0006, 0.00099, 0.2509]


@pytest.mark.parametrize("ended", ENDS)
@pytest.mark.parametrize("waited", WAITS)
@pytest.mark.parametrize("pause", [0.0, 70.0, 70.0003])
def test_a_settled_visit_is_taken_to_have_ended_no_earlier_than_it_did(
    ended: float, waited: float, pause: float
) -> None:
    settled_at = ended + waited
    now = CrawlClock(Anchor("boot", 0), steady=lambda: settled_at)()
    visit = VisitResult(lease=LEASE, requested=True, since_finish=settled_at - ended, pause=pause)
    ((_, _, _, since_finish, _, pause_ms, *_),) = closing_rows([visit], Counter())
    ((*_, since_late_finish, late_pause_ms),) = late_rows([visit])
    free_at = Fraction(now - since_finish + pause_ms, 1000)
    assert free_at >= Fraction(ended) + Fraction(pause)
    assert free_at <= Fraction(ended) + Fraction(pause) + Fraction(3, 1000)
    assert (since_late_finish, late_pause_ms) == (since_finish, pause_ms)


def test_delays_are_rounded_up() -> None:
    assert Policy(delay=70.0001, budget=180.0).delay_ms == 70_001
    record = OriginRecord(
        domain=1, origin="http://a.test", status=RobotsStatus.RULES, crawl_delay=0.3331, valid_for=1.0
    )
    assert origin_values(record)[4] == 334
