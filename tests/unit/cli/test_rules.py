"""`rove rules test`, and wrong words after `rove rules`."""

from __future__ import annotations

import pytest

from rove.__main__ import run


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["seed", "a.test", "--depth", "0"], ["yes  https://a.test/"]),
        (["seed", "a.test"], ["no   https://a.test/"]),
        (["same_domain and not same_host", "a.test/x", "--from", "www.a.test"], ["yes  https://a.test/x"]),
        (["same_host", "a.test/x", "b.test", "--from", "a.test", "--json"], None),
        (['path == "/%C3%BC"', "http://a.test/\u00fc?utm_source=x"], ["yes  http://a.test/%C3%BC"]),
    ],
)
def test_an_expression_is_tried_on_urls(
    words: list[str], lines: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "test", *words]) == 0
    expected = lines or ['{"url":"https://a.test/x","holds":true}', '{"url":"https://b.test/","holds":false}']
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["test"], "give an expression and URLs: rove rules test EXPR URL..."),
        (["test", "seed"], "give an expression and URLs"),
        (["list", "seed"], "'rove rules list' lists all rules; to try one: rove rules test EXPR URL..."),
        (["test", "same_host", "a.test"], "same_host depends on the page that links to a URL; add --from URL"),
        (["test", "seed and", "a.test"], "column 9 of 'seed and': expected a fact such as host"),
        (["test", "status == 200", "a.test"], "status is not known in --accept and --reject, only in"),
        (["test", "seed", "mailto:x"], "'mailto:x' is not a URL"),
    ],
)
def test_wrong_words(words: list[str], answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", *words]) == 2
    assert answer in capsys.readouterr().err
