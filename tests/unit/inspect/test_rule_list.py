"""The rules of a crawl, with how often each has decided."""

from __future__ import annotations

from rove.config import Settings
from rove.inspect.rule_list import as_json, as_line, listed_rules
from rove.model.counts import Counts
from rove.model.reasons import not_stored_by_rules, rejected_by_rules


def test_counters_are_those_of_the_rules_that_they_name() -> None:
    settings = Settings(
        email="me@crawler.test", accept=("seed", "depth < 3"), reject=('path ~ "rule-1"',), store_if=("status == 200",)
    ).with_numbers()
    counts = Counts(
        urls={},
        domains={},
        pages=0,
        bytes=0,
        not_accepted={"rules-1-2": 7, "rule-3": 2, "rule-30": 9, "trap": 4, "rule-1": 1},
        blocked={
            "excluded": 3,
            rejected_by_rules("rules 1, 2: none of these accept rules holds"): 5,
            rejected_by_rules('rule 3: path ~ "rule 1:"'): 6,
            not_stored_by_rules("rule 4: store only if status == 200"): 8,
        },
    )
    listed = listed_rules(settings.rules.rules, counts)
    assert [(rule.not_taken, rule.blocked, rule.not_stored) for rule in listed] == [
        (8, 5, 0),
        (7, 5, 0),
        (2, 6, 0),
        (0, 0, 8),
    ]
    assert as_line(listed[0]) == "  1  accept seed  (8 not taken, 5 blocked)"
    assert as_json(listed[3]) == {
        "number": 4,
        "kind": "store-if",
        "expression": "status == 200",
        "not_taken": 0,
        "blocked": 0,
        "not_stored": 8,
    }
    fresh = listed_rules(settings.rules.rules, Counts(urls={}, domains={}, pages=0, bytes=0))
    assert as_line(fresh[2]) == '  3  reject path ~ "rule-1"  (has decided nothing yet)'
