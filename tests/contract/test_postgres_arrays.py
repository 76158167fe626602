"""Arrays that are sent to PostgreSQL as text arrive unchanged."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.frontier.postgres.arrays import array_text, with_arrays_as_text
from rove.frontier.queries import NumberedQuery
from rove.model.urls import UrlState

BIGINT = st.integers(-(2**63), 2**63 - 1)
ODD = st.sampled_from(["", "NULL", "null", '"', "\\", "{", "}", ",", " ", "\n", "\t", "\x01", "'", "\x7f", "é", "😀"])
TEXT = st.lists(ODD | st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]))).map("".join)


async def _there_and_back(url: str, batches: dict[str, list[Any]]) -> dict[str, list[Any]]:
    connection = await asyncpg.connect(url)
    try:
        return {
            kind: await connection.fetchval(f"SELECT $1::text::{kind}[]", array_text(values))
            for kind, values in batches.items()
        }
    finally:
        await connection.close()


@settings(max_examples=60, deadline=None)
@given(
    bigints=st.lists(BIGINT | st.none()),
    texts=st.lists(TEXT | st.none()),
    floats=st.lists(st.floats(allow_nan=False, allow_infinity=False)),
    booleans=st.lists(st.booleans() | st.none()),
)
def test_arrays_arrive_as_they_were_sent(
    postgres_url: str,
    bigints: list[int | None],
    texts: list[str | None],
    floats: list[float],
    booleans: list[bool | None],
) -> None:
    sent: dict[str, list[Any]] = {
        "bigint": bigints,
        "text": texts,
        "double precision": floats,
        "boolean": booleans,
        "smallint": [int(state) for state in UrlState],
    }
    assert asyncio.run(_there_and_back(postgres_url, sent)) == sent


def test_states_are_numbers() -> None:
    assert array_text([UrlState.DONE, UrlState.FAILED]) == "{1,3}"


@pytest.mark.parametrize("kind", ["bigint", "double precision", "boolean", "text"])
def test_arrays_that_are_unnested_go_as_text(kind: str) -> None:
    query = NumberedQuery(f"SELECT unnest($1::{kind}[]), $2::{kind}", ("many", "one"))
    batch = with_arrays_as_text(query)
    assert batch.text == f"SELECT unnest($1::text::{kind}[]), $2::{kind}"
    assert (batch.parameters, batch.as_text) == (("many", "one"), frozenset({"many"}))


def test_arrays_that_rows_are_compared_with_and_bytes_go_as_they_are() -> None:
    text = "SELECT a = ANY ($1::bigint[]), b <> ALL ($2::text[]), unnest($3::bytea[])"
    batch = with_arrays_as_text(NumberedQuery(text, ("a", "b", "c")))
    assert (batch.text, batch.as_text) == (text, frozenset())
