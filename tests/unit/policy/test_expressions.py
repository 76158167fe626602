"""The language of rules: what expressions mean, which errors they give, and that none takes long."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.policy.expressions.expression import compiled, facts_in
from rove.policy.expressions.facts import FACTS, SOURCE_FACTS, FactKind, Place, Subject
from rove.policy.expressions.pattern import searcher
from rove.policy.expressions.syntax import MAX_DEPTH
from rove.policy.expressions.tokens import MAX_LENGTH, ExpressionError

URL = "https://shop.example.co.uk:8443/Blog/tag/A.HTML?page=2&q=/x"
PAGE = Subject(URL, depth=2, same_host=False, status=200, type="text/html", title="Größe 7", text="fünf".encode())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('host == "shop.example.co.uk"', True),
        ('domain == "example.co.uk"', True),
        ('tld in ("de", "uk")', True),
        ('scheme == "http"', False),
        ('path startswith "/Blog/"', True),
        ('path endswith ".HTML"', True),
        ('extension == "html"', True),
        ('query == "page=2&q=/x"', True),
        ('query ~ "^q="', False),
        ('path ~ "/tag/"', True),
        ('path ~ "/TAG/"', False),
        ('path ~ "(?i)/TAG/[a-z]"', True),
        ("path ~ '\\.HTML$'", True),
        ('path ~ "x"', False),
        ("url_length == 59", True),
        ("depth < 3", True),
        ("depth < 2 or depth > 2", False),
        ("depth <= 2 and depth >= 2", True),
        ("depth != 2", False),
        ("depth in (1, 2, 3)", True),
        ("seed", False),
        ("same_domain and not same_host", True),
        ('not (tld == "uk") or not seed', True),
        ('tld == "de" or tld == "at" or tld == "uk"', True),
        ('not not tld == "uk"', True),
        ('tld != "uk"', False),
        # `and` binds more tightly than `or`, and `not` than both.
        ("not seed or seed and seed", True),
        ("(not seed or seed) and seed", False),
    ],
)
def test_expressions_about_links(expression: str, expected: bool) -> None:
    assert compiled(expression, Place.LINK)(PAGE) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("status == 200", True),
        ('type in ("text/html", "text/plain")', True),
        ('title ~ "größe"', False),
        ('title ~ "Gr.ße \\\\d$"', True),
        ('title == "Größe 7"', True),
        ("text_length == 4", True),
    ],
)
def test_expressions_about_pages(expression: str, expected: bool) -> None:
    assert compiled(expression.replace("\\\\", "\\"), Place.PAGE)(PAGE) is expected


@pytest.mark.parametrize(
    ("url", "tld", "domain", "extension"),
    [
        ("http://192.0.2.7/", "", "192.0.2.7", ""),
        ("http://[2001:db8::1]:8080/a.b/c", "", "[2001:db8::1]", ""),
        ("https://xn--mnchen-3ya.de/.htaccess", "de", "xn--mnchen-3ya.de", ""),
        ("https://localhost/a.tar.gz?x.png", "localhost", "localhost", "gz"),
        ("https://a.test/?b.png", "test", "a.test", ""),
        ("https://a.test/node.js%20x", "test", "a.test", ""),
    ],
)
def test_facts_of_unusual_urls(url: str, tld: str, domain: str, extension: str) -> None:
    assert [FACTS[name].read(Subject(url)) for name in ("tld", "domain", "extension")] == [tld, domain, extension]


@pytest.mark.parametrize(
    ("expression", "column", "problem"),
    [
        ("", 1, "expected a fact such as host, 'not' or '(', found the end"),
        ("host", 5, "expected one of == != in ~ startswith endswith after host, a text"),
        ("host =", 6, "expected '==', found '='"),
        ("host ==", 8, "expected a text in quotes or a number, found the end"),
        ("host == example", 9, "expected a text in quotes or a number, found 'example'"),
        ("host == 7", 9, "expected a text in quotes, because host is a text, found '7'"),
        ('depth == "7"', 10, "expected a number without quotes, because depth is a number, found the text '7'"),
        ("depth == 1.5", 10, "expected a whole number of at most 12 digits"),
        ("depth == 3x", 10, "expected a whole number of at most 12 digits"),
        ('depth ~ "7"', 7, "expected one of == != in < <= > >= after depth, a number, found '~'"),
        ("host < 7", 6, "after host, a text, found '<'"),
        ('host like "a"', 6, "expected an operator after host, found 'like'"),
        ('host "a"', 6, "expected an operator after host, found the text 'a'"),
        ('host in "a"', 9, "expected '(' after in, found the text 'a'"),
        ('host in ("a" "b")', 14, "expected ',' or ')', found the text 'b'"),
        ("host in ()", 10, "expected a text in quotes or a number, found ')'"),
        ('host in ("a", 7)', 15, "because host is a text"),
        ('hots == "a"', 1, "there is no fact hots; did you mean host?"),
        ('zzz == "a"', 1, "there is no fact zzz; the facts are host, domain"),
        ('not == "a"', 5, "expected a fact such as host, 'not' or '(', found '=='"),
        ('"a" == host', 1, "expected a fact"),
        ("seed == 1", 6, "seed is true or false by itself: write seed or not seed"),
        ("seed and", 9, "found the end"),
        ("seed seed", 6, "expected an operator after seed, found 'seed'"),
        ("(seed", 6, "expected ')', 'and' or 'or', found the end"),
        ("seed)", 5, "expected 'and', 'or' or the end, found ')'"),
        ("seed && seed", 6, "expected the word and, found '&&'"),
        ("seed | seed", 6, "expected the word or, found '|'"),
        ("!seed", 1, "expected the word not, found '!'"),
        ("seed; seed", 5, "expected a fact, a text in quotes or a number, found ';'"),
        ('host == "a', 9, 'the text that begins here does not end; add the closing "'),
        ('host == "a\\"', 9, "does not end"),
        ('host == "a\x1bb"', 9, "the text holds '\\x1b'"),
        ('path ~ "(a"', 8, "RE2 cannot read the pattern: missing ): (a"),
        ('path ~ "(?=a)"', 8, "RE2 cannot read the pattern: invalid perl operator: (?="),
        ('text_length < 5 or lang == "de"', 1, "text_length is not known in --accept and --reject, only in --store-if"),
    ],
)
def test_errors_name_the_column_and_what_was_expected(expression: str, column: int, problem: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(problem)) as raised:
        compiled(expression, Place.LINK)
    assert raised.value.column == column
    assert str(raised.value).startswith(f"column {column} of ")


@pytest.mark.parametrize("place", Place)
def test_facts_that_are_not_known_there_are_refused(place: Place) -> None:
    for name, fact in FACTS.items():
        values = {FactKind.TEXT: ' == "a"', FactKind.NUMBER: " == 1", FactKind.FLAG: ""}
        if place in fact.known:
            assert compiled(name + values[fact.kind], place)(PAGE) in (True, False)
            continue
        with pytest.raises(ExpressionError, match=f"{name} is not known in {place}"):
            compiled(name + values[fact.kind], place)


def test_facts_are_found() -> None:
    assert facts_in('not (tld == "de" or path ~ "a") and seed') == {"tld", "path", "seed"}


# Facts that are forgotten

FLAGS = {"seed": "seed", "same_domain": "same_domain", "same_host": "same_host", "depth": "depth < 2"}
TREES = st.recursive(
    st.sampled_from(sorted(FLAGS)),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=4)),
    ),
    max_leaves=12,
)
SUBJECTS = st.builds(
    Subject, st.just("https://a.test/"), depth=st.integers(0, 3), same_domain=st.booleans(), same_host=st.booleans()
)


def text_of(tree: object) -> str:
    match tree:
        case ("not", inner):
            return f"not {text_of(inner)}"
        case (str(word), list(parts)):
            return "(" + f" {word} ".join(map(text_of, parts)) + ")"
        case _:
            return FLAGS[str(tree)]


def value_of(tree: object, subject: Subject) -> bool:
    match tree:
        case ("not", inner):
            return not value_of(inner, subject)
        case ("and", list(parts)):
            return all(value_of(part, subject) for part in parts)
        case ("or", list(parts)):
            return any(value_of(part, subject) for part in parts)
        case _:
            return subject.depth < 2 if tree == "depth" else bool(FACTS[str(tree)].read(subject))


@given(TREES, SUBJECTS)
def test_expressions_mean_what_they_say(tree: object, subject: Subject) -> None:
    assert compiled(text_of(tree), Place.LINK)(subject) is value_of(tree, subject)


@given(TREES, SUBJECTS)
def test_forgotten_facts_never_decide_against_what_is_asked_for(tree: object, subject: Subject) -> None:
    """Whatever the forgotten facts were, a sure answer is right."""
    text = text_of(tree)
    may_hold = compiled(text, Place.LINK, forgotten=SOURCE_FACTS, if_forgotten=True)(subject)
    surely_holds = compiled(text, Place.LINK, forgotten=SOURCE_FACTS)(subject)
    assert surely_holds <= value_of(tree, subject) <= may_hold
    if not SOURCE_FACTS & facts_in(text):
        assert surely_holds == may_hold


# Hostile expressions

SLOW = 2.0
"""Seconds of CPU time, far above what any of these takes on a busy machine."""


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


@pytest.mark.parametrize("open", ["(", "not ", "not ("])
def test_deep_nesting_is_refused(open: str) -> None:
    closing = ")" * (MAX_DEPTH // 4 * open.count("("))
    assert compiled(open * (MAX_DEPTH // 4) + "seed" + closing, Place.LINK)(PAGE) in (True, False)
    with pytest.raises(ExpressionError, match=f"more than {MAX_DEPTH} parentheses"):
        compiled((open * MAX_LENGTH)[: MAX_LENGTH - 4] + "seed", Place.LINK)


def test_long_expressions_are_refused_and_long_lists_are_quick() -> None:
    with pytest.raises(ExpressionError, match="10,001 characters, but at most 10,000"):
        compiled("seed".ljust(MAX_LENGTH + 1), Place.LINK)
    hosts = ", ".join(f'"h{i}"' for i in range(1_200))
    is_one = compiled(f"host in ({hosts})", Place.LINK)
    chain = compiled(" or ".join(["seed"] * 1_200), Place.LINK)
    subject = Subject("https://h1199/", depth=1)
    assert is_one(subject) and not chain(subject)
    assert cpu_seconds(lambda: [is_one(subject) for _ in range(1_000)]) < SLOW


CATASTROPHIC = [
    "(a+)+$",
    "(a|a)*b",
    "(a*)*(a*)*b",
    "(.*a){20}b",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*)(.*)(.*)[ab]{200}c",
]


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_patterns_cannot_run_away(pattern: str) -> None:
    test = compiled(f'path ~ "{pattern}"', Place.LINK)
    subject = Subject("https://a.test/" + "ab" * 100 + "a" * 1_700 + "!")
    assert cpu_seconds(lambda: [test(subject) for _ in range(5)]) < SLOW


@pytest.mark.parametrize("pattern", ["(x{1,1000}){1,1000}", "[\\pL]{1000}", "(?:.{0,500}){9}x", "[ab]{999}[cd]{999}"])
def test_huge_patterns_are_refused_quickly(pattern: str) -> None:
    def compile() -> None:
        with pytest.raises(ExpressionError, match="RE2"):
            compiled(f'path ~ "{pattern}"', Place.LINK)

    assert cpu_seconds(compile) < SLOW


@given(st.text(st.sampled_from('()<>=!~,"\\ andornotinseedhostpath7\n\x00ä'), max_size=60))
def test_any_text_is_an_expression_or_gives_an_error_with_a_column(text: str) -> None:
    try:
        test = compiled(text, Place.LINK)
    except ExpressionError as error:
        assert 1 <= error.column <= len(text) + 1
    else:
        assert test(PAGE) in (True, False)


@given(
    st.lists(st.sampled_from(["a", "b", ".", "/", "[ab]", "a*", "(a|b)", "b+", "a?"]), min_size=1, max_size=6),
    st.booleans(),
    st.text("ab/", max_size=30),
)
def test_patterns_match_as_those_of_python_do(parts: list[str], is_anchored: bool, text: str) -> None:
    pattern = ("^" if is_anchored else "") + "".join(parts)
    assert searcher(pattern)(text) is (re.search(pattern, text) is not None)
