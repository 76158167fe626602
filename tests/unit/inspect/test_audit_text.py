"""What `rove audit` says, to people and to programs, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from click.testing import CliRunner

from rove.cli.audit import audit
from rove.frontier.contract import Exclusion
from rove.inspect.audit_findings import MAX_KEPT, Check, Unverifiable
from rove.inspect.audit_text import MAX_SHOWN, as_json, as_lines
from tests.unit.inspect.test_audit_ledger import A, Ledger, as_past, ask, exclusion, hop, polite


def lines(ledger: Ledger) -> list[str]:
    return list(as_lines(ledger.audit()))


def test_a_polite_crawl_for_people() -> None:
    ledger = polite()
    ledger.visit(71.2, ask(f"{A}/b"))
    text = """\
no violation in 3 requests of 2 visits to 1 domain
delay               1 gap between visits: no violation
robots              2 pages judged anew: no violation
page-before-robots  2 pages: no violation
excluded            3 requests: no violation
twice               2 pages: no violation
order               3 requests: no violation
smallest margin     1.000 s: a.test was left alone for 71.000 s; the delay in force (delay) was 70.000 s
                    visit 1 ended 2023-11-14 22:13:20.200 UTC
                    visit 2 began 2023-11-14 22:14:31.200 UTC
"""
    assert lines(ledger) == text.splitlines()


def test_violations_for_people() -> None:
    ledger = polite()
    ledger.visit(60, ask(f"{A}/private/x", status=404))
    found = lines(ledger)
    text = """
delay: 1 violation
  a.test: visit 2 began 59.800 s after the end of visit 1; the delay in force (delay) was 70.000 s
    visit 1, request 1  page  2023-11-14 22:13:20.100 UTC for 0.100 s  200  https://a.test/
    visit 2, request 0  page  2023-11-14 22:14:20.000 UTC for 0.100 s  status-404  https://a.test/private/x

robots: 1 violation
  a.test: forbidden by line 2 of https://a.test/robots.txt: Disallow: /private
    visit 1, request 0  robots  at 1,700,000,000,000 ms of the crawl's clock  https://a.test/robots.txt
    visit 2, request 0  page  2023-11-14 22:14:20.000 UTC for 0.100 s  status-404  https://a.test/private/x
"""
    assert found[0] == "2 violations in 3 requests of 2 visits to 1 domain"
    assert found[-len(text.splitlines()) :] == text.splitlines()


def test_what_a_server_wrote_does_not_steer_the_terminal() -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A, "User-agent: *\nDisallow: /\x1b[2J\x07\nDisallow: /*\x1b*\n"))
    ledger.visit(100, ask(f"{A}/%1B[2J%07x"))
    text = "\n".join(lines(ledger))
    assert "1 violation" in text and "\\x1b[2J" in text and "\x1b" not in text


def test_what_could_not_be_verified_is_said() -> None:
    ledger = polite()
    ledger.rows = [as_past(row) for row in ledger.rows]
    ledger.visit(1, ask(f"{A}/b"))
    to = "https://b.test/robots.txt"
    ledger.visit(
        90, hop(f"{A}/robots.txt", status=301, target=to), hop(to), ask(f"{A}/c"), delay=10.0
    )
    text = lines(ledger)
    assert [
        line.removeprefix("not verifiable").strip() for line in text if "verifiable" in line
    ] == [
        "2 requests from before the ledger: held against 'twice' only",
        "1 gap between visits, one of which was before the ledger",
        "1 page whose robots.txt was asked for before the ledger, if at all",
        "1 page whose robots.txt was read, but no copy of it is kept",
    ]
    assert "out of turn         1 request to another domain, where a robots.txt led" in text


def many(count: int) -> Ledger:
    """So many visits too early."""
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


def test_of_very_many_violations_some_are_kept_and_all_are_counted() -> None:
    found = as_json(many(MAX_KEPT + 5).audit())
    assert len(found["violations"]) == MAX_KEPT
    assert found["violations_total"] == found["checks"]["delay"]["violations"] == MAX_KEPT + 5


def test_the_object_for_programs() -> None:
    ledger = polite()
    ledger.visit(60, ask(f"{A}/b", error="tls"))
    found = msgspec.json.decode(msgspec.json.encode(as_json(ledger.audit())))
    assert found["polite"] is False
    assert (found["requests"], found["visits"], found["domains"]) == (3, 2, 1)
    assert found["requests_elsewhere"] == 0 and found["violations_total"] == 1
    assert set(found["checks"]) == set(Check)
    assert found["checks"]["delay"] == {"checked": 1, "violations": 1}
    assert found["unverifiable"] == dict.fromkeys(map(str, Unverifiable), 0)
    request = {
        "visit": 2,
        "seq": 0,
        "kind": "page",
        "url": f"{A}/b",
        "began_ms": 1_700_000_060_000,
        "ended_ms": 1_700_000_060_100,
        "time": "2023-11-14T22:14:20.000+00:00",
        "status": 0,
        "error": "tls",
    }
    margin = found["smallest_margin"]
    assert (margin["domain"], margin["margin_s"], margin["gap_s"]) == ("a.test", -10.2, 59.8)
    assert margin["requests"][1] == request
    violation = found["violations"][0]
    assert (violation["check"], violation["domain"]) == ("delay", "a.test")
    assert violation["margin_s"] == -10.2 and violation["requests"][1] == request


def test_an_empty_crawl_for_programs() -> None:
    found = as_json(Ledger().audit())
    assert found["polite"] is True and found["smallest_margin"] is None


@pytest.fixture
def crawl(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """The crawl that the command opens; c.test is excluded from the beginning on."""
    ledger = polite()

    async def exclusion_history() -> list[Exclusion]:
        return [exclusion("c.test", 0)]

    @asynccontextmanager
    async def opened(data_dir: Path) -> AsyncIterator[SimpleNamespace]:
        assert data_dir == Path("here")
        catalog = SimpleNamespace(exclusion_history=exclusion_history)
        yield SimpleNamespace(reader=ledger, catalog=catalog)

    # By its name in sys.modules: in the package, the command may stand where its module did.
    monkeypatch.setattr(sys.modules[audit.callback.__module__], "opened", opened)
    return ledger


def test_the_command_ends_well_if_nothing_is_found(crawl: Ledger) -> None:
    result = CliRunner().invoke(audit, ["--data-dir", "here"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("no violation in 2 requests of 1 visit to 1 domain\n")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_command_ends_with_1_if_something_is_found(crawl: Ledger, options: list[str]) -> None:
    c = "https://c.test"
    crawl.visit(100, crawl.robots(c), domain="c.test")
    result = CliRunner().invoke(audit, ["--data-dir", "here", *options])
    assert result.exit_code == 1
    if options:
        assert msgspec.json.decode(result.output)["checks"]["excluded"]["violations"] == 1
    else:
        assert result.output.startswith("1 violation in 3 requests of 2 visits to 2 domains\n")
