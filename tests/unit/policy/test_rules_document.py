"""docs/rules.md names every fact, with its type and the places where it is known."""

from __future__ import annotations

import re
from pathlib import Path

from rove.policy.expressions.expression import compiled
from rove.policy.expressions.facts import FACTS, Place
from rove.policy.expressions.syntax import Operator
from rove.policy.rules import RuleKind

DOCUMENT = (Path(__file__).parents[3] / "docs" / "rules.md").read_text("utf-8")
NAMES = {
    Place.LINK: ["accept", "reject"],
    Place.PAGE: ["store-if", "follow-if"],
    Place.LEDGER: ["where"],
}


def test_the_table_of_facts_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| .+? \| (.+?) \|$", DOCUMENT, re.MULTILINE)
    assert rows == [
        (
            name,
            fact.kind.value,
            "all" if fact.known == {*Place} else ", ".join(n for p in Place if p in fact.known for n in NAMES[p]),
        )
        for name, fact in FACTS.items()
    ]


def test_the_rules_in_it_mean_something_and_every_operator_is_named() -> None:
    examples = re.findall(r"--(accept|reject|store-if|follow-if) '([^']+)'", DOCUMENT)
    assert len(examples) >= 4
    for kind, expression in examples:
        compiled(expression, RuleKind(kind).place)
    assert all(f"`{operator}" in DOCUMENT for operator in Operator)
