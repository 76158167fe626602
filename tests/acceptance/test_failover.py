"""A standby that lags behind is promoted: nobody is visited too early, although the database has lost its last claims.

`python -m benchmarks.failover` measures this with a synchronous standby and with different lags.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.failover import PROMOTED, Plan, fail_over

pytestmark = pytest.mark.system


def test_no_delay_is_broken_by_a_standby_that_lags(tmp_path: Path) -> None:
    result = fail_over(Plan(lag_requests=20), tmp_path)
    assert result.verdict.polite, result.verdict
    assert result.given_twice == 0, "a visit number was given out twice"
    assert result.audit.startswith("no violations"), result.audit
    assert result.lost_urls > 0, "nothing was lost: nothing was shown"
    assert result.missing == 0, "the lost URLs were found again"
    assert result.output.count(PROMOTED) == 1, result.output
    assert "is on a former primary" in result.refusal and "--frontier" in result.refusal
