"""The views that docs/sql.md explains, and every query in it, on both databases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rove.frontier.domain_list import DomainState
from rove.frontier.priority import FOREIGN, HELD, RETRIED, SUSPECT
from rove.frontier.queries import load_migrations
from rove.frontier.records import LostVisit, Suspect
from rove.frontier.url_queue import QueueClass
from rove.model.languages import Language
from rove.model.ledger import DelaySource, Location, RequestKind, Settlement
from rove.model.reasons import BlockReason
from rove.model.samples import Sample
from rove.model.urls import UrlState
from rove.model.visits import Deferred, Settled
from tests.contract.harness import DELAY, Harness, page_row, url, visited

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"
VIEWS = ("v_domains", "v_pages", "v_queue", "v_requests", "v_samples", "v_urls")
DONE = UrlState.DONE


def documented() -> dict[str, str]:
    """Return the queries of the document by the questions that they answer."""
    sections = re.split(r"^## (.+)$", DOCUMENT.read_text(), flags=re.MULTILINE)
    found = {}
    for title, text in zip(sections[1::2], sections[2::2], strict=True):
        lines = [line for line in text.splitlines() if line.startswith("    ")]
        if lines:
            found[title] = "\n".join(line.removeprefix("    ") for line in lines)
    return found


async def crawled(harness: Harness) -> None:
    """Crawl three domains, so that no answer in the document is empty."""
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/{number}") for number in range(13)], as_seeds=True)
    await frontier.add([url("http://b.test/"), url("http://c.test/"), url("http://c.test/secret", depth=1)])
    await frontier.add([url("http://b.test/foreign", depth=1, is_foreign=True)])
    figures = {"pages.stored": 7, "pages.copy": 2, "requests.page": 12, "errors.page.dns": 3, "urls.pending": 90}
    await frontier.add_samples([Sample(node="", ended=1_700_000_010_500, seconds=10.0, figures=figures)])
    stored = Location(file="x.warc.gz", offset=0, length=10)
    for number in range(11):
        (lease,) = await frontier.claim_among([url("http://a.test/").domain], 1)
        row = page_row(lease, lease.urls[0].url).replace(
            status=200, size=1_000, media_type="text/html", title="A", text=stored, is_copy=number > 8, delay=DELAY
        )
        row = row.replace(languages=(Language("deu", 92), Language("eng", 5)), usage=("train-ai=n",))
        await frontier.settle([visited(lease, DONE, requests=[row.replace(marks=("body-cut",)) if number else row])])
        harness.advance(DELAY)
    leases = {lease.name: lease for lease in await frontier.claim(3)}
    robots = page_row(leases["b.test"], "http://b.test/robots.txt").replace(
        kind=RequestKind.ROBOTS, error="connect", delay=140.0, delay_from=DelaySource.FAILURES, began=1, ended=2_501
    )
    deferred = [Deferred(fingerprint=leases["b.test"].urls[0].fingerprint, seconds=140, attempts=1, failing=False)]
    settled = Settled(
        fingerprint=leases["c.test"].urls[0].fingerprint, state=UrlState.BLOCKED, reason=BlockReason.ROBOTS
    )
    blocked = visited(leases["c.test"], requested=False).replace(settled=[settled])
    silent = leases["b.test"].pace.replace(failures=1)
    await frontier.settle(
        [blocked, visited(leases["b.test"], deferred=deferred, requests=[robots], pace=silent, pause=140.0)]
    )
    lost = leases["a.test"]
    await frontier.recover([frontier.process])
    suspect = Suspect(fingerprint=lost.urls[0].fingerprint)
    row = page_row(lost, lost.urls[0].url).replace(settlement=Settlement.LOST, error="lost")
    await frontier.record_lost([LostVisit(domain=lost.domain, visit=lost.token, rows=(row,), suspect=suspect)])


async def test_every_query_of_the_document_runs_and_answers(harness: Harness) -> None:
    await crawled(harness)
    queries = documented()
    assert len(queries) >= 12
    for question, query in queries.items():
        assert query.startswith("SELECT") and query.endswith(";"), question
        assert await harness.statement(query), f"no answer to: {question}"


async def test_what_the_views_show(harness: Harness) -> None:
    await crawled(harness)
    states = dict(await harness.statement("SELECT domain, state FROM v_domains"))
    assert set(states) == {"a.test", "b.test", "c.test"} and set(states.values()) <= set(DomainState)
    assert await harness.statement("SELECT pages, visits FROM v_domains WHERE domain = 'a.test'") == [(11, 12)]
    assert await harness.statement("SELECT count(*), count(DISTINCT url) FROM v_pages WHERE bytes = 1000") == [(11, 11)]
    facts = await harness.statement("SELECT DISTINCT language, languages, usage, usage_from, purpose FROM v_pages")
    assert facts == [("deu", "deu:92 eng:5", "train-ai=n", None, None)]
    ((seconds, error, fate),) = await harness.statement(
        "SELECT seconds, error, fate FROM v_requests WHERE kind = 'robots'"
    )
    assert (seconds, error, fate) == (2.5, "connect", "settled")
    ((requested,),) = await harness.statement("SELECT DISTINCT CAST(requested AS text) FROM v_requests")
    assert requested.startswith("1970-01-01 00:00:01"), "the tests' requests began a second after the epoch"
    assert await harness.statement("SELECT error FROM v_requests WHERE fate = 'lost'") == [("lost",)]
    assert dict(await harness.statement("SELECT state, count(*) FROM v_urls GROUP BY state")) == {
        "done": 11,
        "pending": 5,
        "blocked": 1,
    }
    assert await harness.statement("SELECT count(*) FROM v_urls WHERE seed") == [(13,)]
    ((ended, *of_sample),) = await harness.statement(
        "SELECT CAST(ended AS text), step, seconds, pages, requests, errors, in_flight, pending FROM v_samples"
    )
    assert ended.startswith("2023-11-14 22:13:30.5")
    assert of_sample == [10, 10.0, 9, 12, 3, None, 90]


async def test_the_queue_of_the_view_is_that_of_the_command(harness: Harness) -> None:
    await crawled(harness)
    of_view = dict(await harness.statement("SELECT url, class FROM v_queue"))
    urls = await harness.reader().queue(delay=DELAY, limit=100)
    assert of_view == {queued.url: queued.kind.value for queued in urls}
    assert set(of_view.values()) == {"own", "foreign", "retry", "suspect"}
    due = await harness.statement("SELECT url FROM v_queue WHERE due IS NOT NULL ORDER BY due, priority, position")
    assert due[0] == ("http://c.test/secret",)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_the_numbers_in_the_views_are_those_of_the_enums(backend: str) -> None:
    ((_, script),) = load_migrations(backend)
    states = dict(re.findall(r"WHEN (\d) THEN '(\w+)'", script))
    assert states == {str(state.value): state.name.lower() for state in UrlState}
    classes = {name: int(number) for number, name in re.findall(r"priority >?= (\d+) THEN '(\w+)'", script)}
    assert classes == {"suspect": SUSPECT, "held": HELD, "retry": RETRIED, "foreign": FOREIGN}
    assert {*classes, "own"} == set(QueueClass)
    named = set(re.findall(r"THEN '(excluded|ready|leased|idle)'|ELSE '(waiting)'", script))
    assert {first or second for first, second in named} == set(DomainState)


def test_the_views_have_the_same_columns() -> None:
    def columns(backend: str) -> dict[str, list[str]]:
        ((_, script),) = load_migrations(backend)
        views = re.findall(r"CREATE VIEW (\w+) AS\nSELECT (.*?)\nFROM", script, flags=re.DOTALL)
        return {name: _columns(text) for name, text in views}

    assert columns("sqlite") == columns("postgres")
    assert set(columns("sqlite")) == set(VIEWS)


def _columns(text: str) -> list[str]:
    """Return the names of the columns of a SELECT."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [re.split(r"\bAS\s+(?=\w+$)|\.", part.strip())[-1] for part in parts]
