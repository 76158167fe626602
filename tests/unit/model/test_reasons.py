"""The constants that the SQL files spell out are those of the model."""

from __future__ import annotations

import enum
import re
from importlib import resources
from pathlib import Path

import pytest

import rove.frontier
from rove.frontier.priority import RETRIED
from rove.model.ledger import DelaySource, RequestKind, Settlement
from rove.model.reasons import (
    BlockReason,
    domain_given_up,
    is_status_error,
    refused_status,
    status_error,
    unread_type,
)
from rove.model.urls import UrlState
from rove.model.visits import RobotsStatus

COLUMNS: dict[str, type[enum.StrEnum]] = {
    "reason": BlockReason,
    "kind": RequestKind,
    "delay_from": DelaySource,
    "fate": Settlement,
    "status": RobotsStatus,
}
COUNTERS = {"visits", "adds", *(f"urls.{state.name.lower()}" for state in UrlState)}
FREE = {"key", "data_type", "type", "wait_event"}
"""Columns of free texts, and of the catalogs of the databases."""

SQL_FILES = sorted(Path(str(resources.files(rove.frontier))).rglob("*.sql"))
_COMPARED = re.compile(r"(\w+)\s*(?:=|<>|!=|\bIS\b|(?:\bNOT\s+)?\bIN\s*\()\s*'([^']+)'", re.IGNORECASE)
_DEFAULT = re.compile(r"(\w+)\s+text\b[^,;]*?\bDEFAULT\s+'([^']+)'", re.IGNORECASE)
_STATE = re.compile(
    r"\bstate(?:\s*\+\s*0)?\s*=\s*(\d+)"
    r"(?:\s+(?:AND\s+(?:\w\.)?reason\s*=\s*[':]|THEN\s+(?:\w\.)?(?=reason))(\w+)|\) AS \"(\w+) URLs\")?"
)
"""A state, and the reason, its parameter or column, or the label beside it."""
_TROUBLED = re.compile(r"state = (\d+) OR state = (\d+) AND priority >= (\d+)")
"""The condition for URLs that failed or wait for a retry."""


def _sql(path: Path) -> str:
    return re.sub(r"--.*", "", path.read_text("utf-8"))


def test_there_are_queries_and_a_schema_for_both_backends() -> None:
    for backend in ("sqlite", "postgres"):
        names = [path.name for path in SQL_FILES if backend in path.parts]
        assert "queries.sql" in names and len(names) > 1


@pytest.mark.parametrize("path", SQL_FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_texts_in_sql_are_members_of_their_enum(path: Path) -> None:
    sql = _sql(path)
    for column, text in [*_COMPARED.findall(sql), *_DEFAULT.findall(sql)]:
        if column in FREE:
            continue
        if column == "name":
            assert text in COUNTERS
        else:
            assert text in list(COLUMNS[column]), f"{column} = {text!r}"


@pytest.mark.parametrize("path", SQL_FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_state_numbers_in_sql_are_those_of_the_enum(path: Path) -> None:
    sql = _sql(path)
    for failed, pending, priority in _TROUBLED.findall(sql):
        assert (int(failed), int(pending), int(priority)) == (UrlState.FAILED, UrlState.PENDING, RETRIED)
    for number, reason, label in _STATE.findall(_TROUBLED.sub("", sql)):
        expected = UrlState.BLOCKED if reason else UrlState[label.upper() or "PENDING"]
        assert UrlState(int(number)) is expected


def test_the_queries_compare_kinds_and_reasons() -> None:
    """Guards the expressions above: they must keep finding what is there."""
    for backend in ("sqlite", "postgres"):
        sql = _sql(next(p for p in SQL_FILES if p.match(f"{backend}/queries.sql")))
        assert ("kind", "page") in _COMPARED.findall(sql)
        assert _STATE.findall(sql).count(("2", "reason", "")) == 2


def test_reasons_with_a_parameter() -> None:
    assert refused_status(404) == "status 404"
    assert unread_type("image/png") == "type image/png"
    assert len(unread_type("x" * 255)) == 100
    assert domain_given_up("connect") == "domain given up: connect"


def test_an_error_that_is_a_status_is_told_from_others() -> None:
    assert status_error(404) == "status-404"
    assert is_status_error(status_error(503))
    assert not is_status_error("wrong-type")
