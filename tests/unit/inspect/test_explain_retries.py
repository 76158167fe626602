"""`rove explain` tells of the retries that made a URL pending again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from rove.frontier.retries import Retry
from rove.inspect.explain_text import as_json, as_lines
from rove.inspect.url_facts import read_url_facts
from rove.model.urls import UrlState
from rove.notation.humanize import utc_text
from rove.policy.retry_filter import RetryFilter
from tests.unit.inspect.test_explain import NOW, ROW, SETTINGS, URL, Reader, explained, settled
from tests.urls import FORM

RETRY = Retry(
    id=1,
    at=2_000,
    ended=2_000,
    wall=NOW - 500,
    who="alice@host",
    urls=9,
    delay=70.0,
    filter=RetryFilter(error="status-404", only_seeds=True),
)


@pytest.mark.parametrize(
    ("wanted", "is_covered"),
    [
        ({}, True),
        ({"domain": URL.domain}, True),
        ({"domain": 1}, False),
        ({"error": "status-404"}, True),
        ({"error": "dns"}, False),
        ({"status": 404}, True),
        ({"status": 500}, False),
        ({"only_seeds": True}, False),
    ],
)
async def test_only_retries_that_cover_the_url_are_told(wanted: dict[str, Any], is_covered: bool) -> None:
    failed = ROW.replace(status=404, error="status-404")
    retries = [replace(RETRY, filter=RetryFilter(**wanted)), replace(RETRY, at=1, ended=1)]
    reader = Reader([failed])
    facts = await read_url_facts(
        cast(Any, reader), URL, FORM, settings=SETTINGS, exclusions=(), retries=retries, is_running=True
    )
    assert list(facts.retries) == retries[:1] * is_covered


def test_a_retry_is_part_of_the_history() -> None:
    explanation = explained(**settled(UrlState.FAILED, "status 404", retries=[RETRY]))
    assert as_lines(explanation)[-1].strip() == (
        f"tried again on {utc_text(NOW - 500)} by alice@host: --error status-404 --seeds"
    )
    assert as_json(explanation)["retries"][0]["urls"] == 9
