"""Rules: which of them decides, what it is called, and rules files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rove.config import Settings
from rove.errors import UsageError
from rove.model.reasons import is_not_stored_by_rules, is_rejected_by_rules, not_stored_by_rules
from rove.policy.expressions.facts import Subject
from rove.policy.rules import MAX_RULES, NO_RULES, RuledOut, RuleKind, needs_source, parse_rules

BASE = Settings(email="me@crawler.test")


def settings(**rules: Any) -> Settings:
    return replace(BASE, **rules).checked().with_numbers()


def against(url: str, *, depth: int = 1, same_domain: bool = True, **rules: Any) -> RuledOut | None:
    return settings(**rules).rules.against_link(Subject(url, depth=depth, same_domain=same_domain))


def test_without_rules_everything_is_taken() -> None:
    assert not NO_RULES.about_links and not NO_RULES.about_pages
    assert NO_RULES.against_link(Subject("http://a.test/")) is None
    assert NO_RULES.against_known("http://a.test/", 3) is None
    assert NO_RULES.against_storing(Subject("http://a.test/")) is None
    assert NO_RULES.against_following(Subject("http://a.test/")) is None


GERMAN, AUSTRIAN, TAGS = 'tld == "de"', 'tld == "at"', 'path ~ "/tag/"'


@pytest.mark.parametrize(
    ("url", "rules", "counter", "reason"),
    [
        ("http://a.de/", {"accept": (GERMAN,)}, None, None),
        ("http://a.ch/", {"accept": (GERMAN,)}, "rule-1", 'rejected by rule 1: accept only tld == "de"'),
        ("http://a.at/", {"accept": (GERMAN, AUSTRIAN)}, None, None),
        (
            "http://a.ch/",
            {"accept": (GERMAN, AUSTRIAN)},
            "rules-1-2",
            "rejected by rules 1, 2: none of these accept rules holds",
        ),
        ("http://a.de/x", {"reject": (TAGS,)}, None, None),
        ("http://a.de/tag/x", {"reject": ("seed", TAGS)}, "rule-2", 'rejected by rule 2: path ~ "/tag/"'),
        ("http://a.de/tag/x", {"accept": (GERMAN,), "reject": (TAGS,)}, "rule-2", 'rejected by rule 2: path ~ "/tag/"'),
        ("http://a.ch/tag/x", {"accept": (GERMAN,), "reject": (TAGS,)}, "rule-1", None),
    ],
)
def test_which_rule_decides_about_a_link(
    url: str, rules: dict[str, Any], counter: str | None, reason: str | None
) -> None:
    ruled_out = against(url, **rules)
    assert (ruled_out.counter if ruled_out else None) == counter
    if ruled_out is not None and reason is not None:
        assert ruled_out.reason == reason and is_rejected_by_rules(reason)


def test_rules_about_pages() -> None:
    rules = settings(store_if=("text_length > 2", "seed"), follow_if=("status == 200",)).rules
    assert rules.about_pages and not rules.about_links
    long, short = (
        Subject("http://a.test/", depth=1, text="äöü".encode()),
        Subject("http://a.test/", depth=1, text=b"ab"),
    )
    assert rules.against_storing(long) is None
    not_stored = rules.against_storing(short)
    assert not_stored is not None and not_stored.rules == "rules 1, 2: none of these store-if rules holds"
    assert is_not_stored_by_rules(not_stored_by_rules(not_stored.rules))
    assert rules.against_storing(Subject("http://a.test/")) is None, "a seed"
    assert rules.against_following(Subject("http://a.test/", status=200)) is None
    assert rules.against_following(long) == RuledOut((3,), "follow only if status == 200")


@pytest.mark.parametrize(
    ("rules", "url", "is_rejected"),
    [
        ({"accept": ("same_domain",)}, "http://a.test/", False),
        ({"reject": ("not same_host",)}, "http://a.test/", False),
        ({"accept": (f"same_domain and {GERMAN}",)}, "http://a.test/", True),
        ({"reject": (f"not same_host or {GERMAN}",)}, "http://a.de/", True),
        ({"reject": (GERMAN,)}, "http://a.de/", True),
        ({"reject": ("seed",)}, "http://a.de/", False),
    ],
)
def test_a_known_url_is_rejected_only_if_its_source_cannot_matter(
    rules: dict[str, Any], url: str, is_rejected: bool
) -> None:
    assert (settings(**rules).rules.against_known(url, 1) is not None) is is_rejected
    assert [needs_source(rule) for rule in settings(**rules).rules.rules] == ["same_" in str(rules)]


def test_a_rule_keeps_its_number() -> None:
    first = settings(accept=(GERMAN,), reject=(TAGS,))
    assert [rule.number for rule in first.rules.rules] == [1, 2]
    without = replace(first, accept=()).with_numbers()
    assert [(rule.number, str(rule)) for rule in without.rules.rules] == [(2, f"reject {TAGS}")]
    more = replace(without, accept=(AUSTRIAN, GERMAN, GERMAN), store_if=("seed",)).with_numbers()
    numbers = {str(rule): rule.number for rule in more.rules.rules}
    assert numbers == {f"accept {AUSTRIAN}": 3, f"accept {GERMAN}": 1, f"reject {TAGS}": 2, "store-if seed": 4}
    assert more.with_numbers() == more


def test_bad_and_too_many_rules_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^--reject: column 6 of 'host like \"a\"': expected an operator after host"):
        replace(BASE, reject=('host like "a"',)).checked()
    with pytest.raises(UsageError, match="more than 200 rules; join some of them with 'or'"):
        replace(BASE, reject=("seed",) * MAX_RULES, store_if=("seed",)).checked()


def test_rules_files() -> None:
    lines = [
        "\ufeff# comment\n",
        "\n",
        f"accept {GERMAN}\n",
        f"  reject   {TAGS}  \r\n",
        "reject seed",
        "store-if seed",
    ]
    assert parse_rules(lines, "my") == {
        RuleKind.ACCEPT: (GERMAN,),
        RuleKind.REJECT: (TAGS, "seed"),
        RuleKind.STORE_IF: ("seed",),
        RuleKind.FOLLOW_IF: (),
    }
    with pytest.raises(UsageError, match=r"my, line 2: expected accept, reject, store-if, follow-if or '#' .* 'deny'"):
        parse_rules(["accept seed", "deny seed"], "my")
    with pytest.raises(UsageError, match="my, line 1, after accept: column 1 of 'status == 2': status is not known in"):
        parse_rules(["accept status == 2"], "my")
    with pytest.raises(UsageError, match="my, line 1, after accept: column 1 of '': expected a fact"):
        parse_rules(["accept"], "my")
