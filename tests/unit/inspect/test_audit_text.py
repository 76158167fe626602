"""The output and the exit code of `rove audit`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from click.testing import CliRunner

from rove.cli import crawl_given
from rove.cli.webmasters import audit
from rove.frontier.records import Exclusion
from rove.inspect.audit_findings import MAX_FINDINGS, Check, Unverifiable
from rove.inspect.audit_text import MAX_SHOWN, as_json, as_lines
from rove.model.ledger import Settlement
from rove.urls.canonical import UrlForm
from tests.unit.inspect.test_audit_ledger import A, Ledger, ask, exclusion, hop, polite
from tests.urls import FORM


def lines(ledger: Ledger) -> list[str]:
    return list(as_lines(ledger.audit()))


def test_a_polite_crawl_for_people() -> None:
    ledger = polite()
    ledger.visit(71.2, ask(f"{A}/b"))
    text = """\
no violations in 3 requests of 2 visits to 1 domain
delay               1 gap between visits: no violations
robots              2 pages judged again: no violations
page-before-robots  2 pages: no violations
excluded            3 requests: no violations
twice               2 pages: no violations
order               3 requests: no violations
smallest margin     1.000 s: a.test was left alone for 71.000 s; the delay was 70.000 s, set by the operator
                    visit 1 ended 2023-11-14 22:13:20.200Z
                    visit 2 began 2023-11-14 22:14:31.200Z
"""
    assert lines(ledger) == text.splitlines()


def test_violations_for_people() -> None:
    ledger = polite()
    ledger.visit(60, ask(f"{A}/private/x", status=404))
    shown = lines(ledger)
    text = """
delay: 1 violation
  a.test: visit 2 began 59.800 s after the end of visit 1; the delay was 70.000 s, set by the operator
    visit 1, request 1  page  2023-11-14 22:13:20.100Z for 0.100 s  200  https://a.test/
    visit 2, request 0  page  2023-11-14 22:14:20.000Z for 0.100 s  status-404  https://a.test/private/x

robots: 1 violation
  a.test: forbidden by line 2 of https://a.test/robots.txt: Disallow: /private
    visit 1, request 0  robots  at 1,700,000,000,000 ms of the crawl's clock  https://a.test/robots.txt
    visit 2, request 0  page  2023-11-14 22:14:20.000Z for 0.100 s  status-404  https://a.test/private/x
"""
    assert shown[0] == "2 violations in 3 requests of 2 visits to 1 domain"
    assert shown[-len(text.splitlines()) :] == text.splitlines()


def test_what_a_server_wrote_does_not_steer_the_terminal() -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A, "User-agent: *\nDisallow: /\x1b[2J\x07\nDisallow: /*\x1b*\n"))
    ledger.visit(100, ask(f"{A}/%1B[2J%07x"))
    text = "\n".join(lines(ledger))
    assert "1 violation" in text and "\\x1b[2J" in text and "\x1b" not in text


def test_requests_that_cannot_be_verified_are_counted() -> None:
    ledger = polite()
    to = f"{A}/rules"
    ledger.visit(90, hop(f"{A}/robots.txt", status=301, target=to), hop(to), ask(f"{A}/c"), delay=10.0)
    ledger.visit(170, ask(f"{A}/d"), delay=0.0, settlement=Settlement.LOST)
    ledger.visit(171, ledger.robots(A), ask(f"{A}/e"))
    text = lines(ledger)
    assert [line.removeprefix("not verifiable").strip() for line in text if "verifiable" in line] == [
        "2 pages whose robots.txt was read but not stored",
        "1 gap after a visit that was lost before its delay was recorded",
    ]


def many(count: int) -> Ledger:
    """Return a ledger with `count` visits that came too early."""
    ledger = polite()
    for number in range(count):
        ledger.visit(1 + number, ask(f"{A}/{number}"))
    return ledger


def test_of_many_violations_the_first_are_shown() -> None:
    text = lines(many(MAX_SHOWN))
    assert sum("  a.test: visit" in line for line in text) == MAX_SHOWN
    assert not text[-1].startswith("  and")
    text = lines(many(MAX_SHOWN + 1_234))
    assert sum("  a.test: visit" in line for line in text) == MAX_SHOWN
    assert text[-1] == "  and 1,234 more"


def test_of_very_many_violations_some_are_reported_and_all_are_counted() -> None:
    record = as_json(many(MAX_FINDINGS + 5).audit())
    assert len(record["violations"]) == MAX_FINDINGS
    assert record["violations_total"] == record["checks"]["delay"]["violations"] == MAX_FINDINGS + 5


def test_the_object_for_programs() -> None:
    ledger = polite()
    ledger.visit(60, ask(f"{A}/b", error="tls"))
    record = msgspec.json.decode(msgspec.json.encode(as_json(ledger.audit())))
    assert record["polite"] is False
    assert (record["requests"], record["visits"], record["domains"]) == (3, 2, 1)
    assert record["violations_total"] == 1
    assert set(record["checks"]) == set(Check)
    assert record["checks"]["delay"] == {"checked": 1, "violations": 1}
    assert record["unverifiable"] == dict.fromkeys(map(str, Unverifiable), 0)
    request = {
        "visit": 2,
        "seq": 0,
        "kind": "page",
        "url": f"{A}/b",
        "began_ms": 1_700_000_060_000,
        "ended_ms": 1_700_000_060_100,
        "time": "2023-11-14T22:14:20.000Z",
        "status": 0,
        "error": "tls",
    }
    margin = record["smallest_margin"]
    assert (margin["domain"], margin["margin_s"], margin["gap_s"]) == ("a.test", -10.2, 59.8)
    assert margin["requests"][1] == request
    violation = record["violations"][0]
    assert (violation["check"], violation["domain"]) == ("delay", "a.test")
    assert violation["margin_s"] == -10.2 and violation["requests"][1] == request


def test_an_empty_crawl_for_programs() -> None:
    record = as_json(Ledger().audit())
    assert record["polite"] is True and record["smallest_margin"] is None


@pytest.fixture
def crawl(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Return the crawl that the command opens; c.test is excluded from the start."""
    ledger = polite()

    async def exclusion_history() -> list[Exclusion]:
        return [exclusion("c.test", 0)]

    async def retries() -> list[object]:
        return []

    async def form() -> UrlForm:
        return FORM

    @asynccontextmanager
    async def opened(data_dir: Path, **others: object) -> AsyncIterator[SimpleNamespace]:
        assert data_dir == Path("here")
        catalog = SimpleNamespace(exclusion_history=exclusion_history, retries=retries)
        yield SimpleNamespace(reader=ledger, catalog=catalog, form=form)

    monkeypatch.setattr(crawl_given, "opened", opened)
    return ledger


def test_the_command_ends_well_if_nothing_is_found(crawl: Ledger) -> None:
    result = CliRunner().invoke(audit, ["--data-dir", "here"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("no violations in 2 requests of 1 visit to 1 domain\n")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_command_ends_with_1_if_something_is_found(crawl: Ledger, options: list[str]) -> None:
    c = "https://c.test"
    crawl.visit(100, crawl.robots(c), domain="c.test")
    result = CliRunner().invoke(audit, ["--data-dir", "here", *options], standalone_mode=False)
    assert result.return_value == 1
    if options:
        assert msgspec.json.decode(result.output)["checks"]["excluded"]["violations"] == 1
    else:
        assert result.output.startswith("1 violation in 3 requests of 2 visits to 2 domains\n")
