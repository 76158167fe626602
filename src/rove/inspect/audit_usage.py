"""Was a page kept for training although its site does not want that?

The stored robots.txt is read again. What the headers and the page itself stated is in the ledger.
"""

from __future__ import annotations

from rove.inspect.audit_findings import AuditReport, Check
from rove.model.ledger import RequestRow, Settlement
from rove.model.usage import Purpose, forbids
from rove.policy.robots import Rules
from rove.policy.usage import combine
from rove.urls.origin import origin_of


def check_usage(report: AuditReport, row: RequestRow, visited: RequestRow, rules: Rules | None) -> None:
    """Check a page; `rules` are those in force when it was requested, None if they are unknown.

    Only pages that were kept for training are checked, because the other purposes keep every page.
    """
    if row.purpose != Purpose.TRAINING or row.settlement is not Settlement.SETTLED:
        return
    report.checked[Check.USAGE] += 1
    in_robots = combine(rules.usage_of(row.url)) if rules is not None else combine(())
    if in_robots.forbids(Purpose.TRAINING):
        where, values = f"{origin_of(row.url)}/robots.txt", in_robots.values
    elif forbids(row.usage, Purpose.TRAINING):
        where, values = f"its site ({', '.join(row.usage_from)})", row.usage
    else:
        return
    stated = " ".join(values)
    report.add(Check.USAGE, visited, f"kept for training, although {where} states {stated}", row, usage=stated)
