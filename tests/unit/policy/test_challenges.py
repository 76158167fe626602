"""Bot walls are recognized by the head of a response or by the page."""

from __future__ import annotations

import pytest

from rove.model.outcomes import Fetched, Outcome, Refused, Response
from rove.model.visits import Pace
from rove.policy.challenges import is_challenge, is_challenge_page
from rove.policy.pacing import Answers, decide_pacing


def response(status: int, *headers: tuple[str, str]) -> Response:
    return Response(url="http://a.test/", status=status, status_line="", headers=headers, address="192.0.2.1")


@pytest.mark.parametrize(
    ("header", "value", "is_wall"),
    [
        ("cf-mitigated", "challenge", True),
        ("CF-Mitigated", " Challenge ", True),
        ("x-amzn-waf-action", "captcha", True),
        ("SG-Captcha", "challenge", True),
        ("cf-mitigated", "", False),
        ("cf-mitigated", "none", False),
        ("server", "cloudflare", False),
        ("x-challenge", "challenge", False),
    ],
)
def test_heads(header: str, value: str, is_wall: bool) -> None:
    assert is_challenge(response(403, (header, value))) == is_wall


@pytest.mark.parametrize(
    ("html", "is_wall"),
    [
        ("<script>(function(){window._cf_chl_opt={}})()</script>", True),
        ('<script id="anubis_challenge" type="application/json">', True),
        ('<div id="sec-if-cpt-container">', True),
        ('<iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31">', True),
        ('<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js">', False),
        ('<script src="/_Incapsula_Resource?SWJIYLWA=719d34"></script>', False),
        ("<p>What is _cf_chl_opt?", False),
        ('<a href="https://x.test/?sec-if-cpt-container">anubis_challenge</a>', False),
        ("<!-- _Incapsula_Resource --><title>Just a moment in time</title>", False),
    ],
)
def test_pages(html: str, is_wall: bool) -> None:
    """What visitors of a site may write makes no page a wall."""
    assert is_challenge_page(html) == is_wall


@pytest.mark.parametrize("status", [200, 403])
def test_a_wall_slows_a_domain_down_as_a_429_does(status: int) -> None:
    wall = response(status, ("cf-mitigated", "challenge"))
    fetched = Fetched(response=wall, body=b"", wire_body=b"", truncated=False)
    walled: Outcome = fetched if status == 200 else Refused(response=wall)
    paces = []
    for outcome in (walled, Refused(response=response(429))):
        answers = Answers()
        answers.note(outcome, 0.1)
        paces.append(decide_pacing(answers, Pace(), 70.0))
    assert paces[0] == paces[1] and paces[0].pause == 140.0
