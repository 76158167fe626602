"""Dates in HTTP headers, in every form that servers send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.policy.http_date import parse_http_date

SECONDS = 784111777.0


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 -0000",
        "Sun, 06 Nov 1994 10:49:37 +0200",
    ],
)
def test_all_forms_mean_the_same_second(text: str) -> None:
    assert parse_http_date(text) == SECONDS


@pytest.mark.parametrize("text", ["", "0", "-1", "soon", "Sun, 32 Nov 1994 08:49:37 GMT"])
def test_an_unreadable_date_is_none(text: str) -> None:
    assert parse_http_date(text) is None


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    parse_http_date(text)
