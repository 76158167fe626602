"""Which redirects of a robots.txt are followed, shared, or mean that there are no rules."""

from __future__ import annotations

import pytest

from rove.policy.robots_redirect import RobotsRedirect, judge_redirect
from rove.urls.canonical import CrawlUrl
from tests.urls import FORM, canonical

FOLLOW, SHARE = RobotsRedirect.FOLLOW, RobotsRedirect.SHARE
NO_RULES, UNREACHABLE = RobotsRedirect.NO_RULES, RobotsRedirect.UNREACHABLE


def url(text: str) -> CrawlUrl:
    parsed = canonical(text)
    assert parsed is not None
    return parsed


PAGE = url("http://www.a.test/page")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("http://a.test/robots.txt", FOLLOW),
        ("https://www.a.test/any?thing", FOLLOW),
        ("https://b.test/robots.txt", SHARE),
        ("http://b.test:8080/robots.txt", SHARE),
        ("http://192.0.2.1/robots.txt", SHARE),
        ("https://b.test/robots.txt#top", SHARE),
        ("https://b.test/robots.txt?", SHARE),
        ("https://b.test/robots%2Etxt", SHARE),
        ("https://b.test/robots.txt?q=1", UNREACHABLE),
        ("https://b.test/rules.txt", UNREACHABLE),
        ("https://b.test/a/robots.txt", UNREACHABLE),
        ("https://b.test//robots.txt", UNREACHABLE),
        ("https://b.test/ROBOTS.TXT", UNREACHABLE),
        ("https://b.test/search?q=robots.txt", NO_RULES),
        ("https://b.test/", NO_RULES),
        ("https://b.test/robots.txt/", NO_RULES),
        ("https://b.test/404.html", NO_RULES),
    ],
)
def test_targets(target: str, expected: RobotsRedirect) -> None:
    assert judge_redirect(PAGE, url(target), hops=1, may_lead=True) is expected


@pytest.mark.parametrize("target", ["http://a.test/x", "https://b.test/robots.txt", "https://b.test/x.txt"])
def test_after_five_redirects_there_are_no_rules(target: str) -> None:
    assert judge_redirect(PAGE, url(target), hops=5, may_lead=True) is not NO_RULES
    assert judge_redirect(PAGE, url(target), hops=6, may_lead=True) is NO_RULES


@pytest.mark.parametrize("target", ["http://a.test/x", "https://b.test/robots.txt", "https://b.test/"])
def test_a_target_that_must_not_be_requested(target: str) -> None:
    assert judge_redirect(PAGE, url(target), hops=1, may_lead=False) is UNREACHABLE


def test_a_wanted_robots_txt_is_not_the_page_of_the_same_url() -> None:
    page = url("https://b.test/robots.txt")
    assert FORM.robots_fingerprint(page.origin) != page.fingerprint
    assert FORM.robots_fingerprint("http://b.test") != FORM.robots_fingerprint("https://b.test")
