"""What became of each seed, through redirects."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rove.frontier.retries import KnownUrl
from rove.inspect.seed_outcomes import SeedOutcome, as_json, as_line, outcomes_of, urls_to_retry
from rove.model.urls import UrlState
from tests.urls import FORM, canonical


def known(text: str, state: UrlState = UrlState.DONE, reason: str = "", **more: object) -> KnownUrl:
    url = canonical(text)
    assert url is not None
    values: dict[str, object] = {
        "domain": url.domain,
        "fingerprint": url.fingerprint,
        "url": url.text,
        "state": state,
        "reason": reason,
        "attempts": 0,
        "assume_https": False,
        "seed": 1,
        "is_waiting": False,
        "pages": 0,
    }
    return KnownUrl(**values | more)  # type: ignore[arg-type]


def redirected(text: str, target: str, **more: object) -> KnownUrl:
    return known(text, UrlState.REDIRECTED, target, **more)


async def outcome_of(seed: KnownUrl, *others: KnownUrl) -> SeedOutcome:
    frontier = {url.key: url for url in (seed, *others)}

    async def look_up(keys: Sequence[tuple[int, int]]) -> list[KnownUrl]:
        return [frontier[key] for key in keys if key in frontier]

    (outcome,) = await outcomes_of([seed], look_up, FORM)
    return outcome


async def test_redirects_are_followed_to_their_end() -> None:
    seed = redirected("http://a.test/", "http://b.test/")
    end = known("http://c.test/", UrlState.FAILED, "status 404", pages=3)
    outcome = await outcome_of(seed, redirected("http://b.test/", "http://c.test/"), end)
    assert (outcome.final, outcome.redirected_to, outcome.has_failed) == (end, "http://c.test/", True)
    assert outcome.to_retry() == [end]
    assert as_line(outcome) == "failed      http://a.test/  -> http://c.test/  (status 404, 3 pages of its domain)"
    assert as_json(outcome) == {
        "seed": "http://a.test/",
        "state": "failed",
        "reason": "status 404",
        "redirected_to": "http://c.test/",
        "attempts": 0,
        "domain_pages": 3,
        "failed": True,
    }


async def test_a_redirect_that_leads_out_of_the_frontier_ends_there() -> None:
    outcome = await outcome_of(redirected("http://a.test/", "http://excluded.test/"))
    assert (outcome.redirected_to, outcome.has_failed) == ("http://excluded.test/", False)
    assert as_line(outcome) == "redirected  http://a.test/  -> http://excluded.test/"


async def test_redirects_in_a_circle_end() -> None:
    seed = redirected("http://a.test/", "http://b.test/")
    outcome = await outcome_of(seed, redirected("http://b.test/", "http://a.test/"))
    assert outcome.final.url == "http://b.test/"


@pytest.mark.parametrize(
    ("seed", "line"),
    [
        (known("http://a.test/", pages=12), "stored      http://a.test/  (12 pages of its domain)"),
        (known("http://a.test/", UrlState.PENDING), "pending     http://a.test/"),
        (known("http://a.test/", UrlState.BLOCKED, "robots.txt"), "blocked     http://a.test/  (robots.txt)"),
        (
            known("http://a.test/", UrlState.PENDING, "timeout-connect", is_waiting=True, attempts=2),
            "failing     http://a.test/  (timeout-connect, 2 failed attempts)",
        ),
        (
            known("http://a.test/", UrlState.FAILED, "type \x1b[2J"),
            "failed      http://a.test/  (type \\x1b[2J)",
        ),
    ],
)
async def test_what_is_printed(seed: KnownUrl, line: str) -> None:
    outcome = await outcome_of(seed)
    assert as_line(outcome) == line
    assert outcome.has_failed == line.startswith("fail")


async def test_a_guess_of_https_is_retried_with_the_http_url_that_replaced_it() -> None:
    seed = redirected("https://a.test/", "http://a.test/", assume_https=True)
    http = known("http://a.test/", UrlState.FAILED, "status 404")
    outcome = await outcome_of(seed, http)
    assert outcome.to_retry() == [seed, http]
    assert urls_to_retry([outcome, outcome]) == [seed, http]
    explicit = redirected("https://a.test/", "http://a.test/")
    assert (await outcome_of(explicit, http)).to_retry() == [http]
