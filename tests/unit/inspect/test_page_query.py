"""Which pages a person gets to see: filters, times, empty answers, suggestions, and following a crawl."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rove.errors import UsageError
from rove.export.chosen import examples_first
from rove.inspect.follow import Follower
from rove.inspect.lookup import other_spellings, site_named, url_meant
from rove.inspect.moments import parse_moment
from rove.inspect.open_crawl import StoredText
from rove.inspect.page_query import PageQuery, did_you_mean
from rove.inspect.similar_domains import similar_domains
from rove.model.ledger import RequestKind, RequestRow
from rove.model.urls import UrlState
from tests.contract.harness import page_row, visited
from tests.unit.crawl.scripted import World, new_url
from tests.urls import FORM

ROW = RequestRow(
    visit=1,
    seq=0,
    domain=1,
    kind=RequestKind.PAGE,
    url="http://a.test/",
    fingerprint=1,
    started=1.0,
    began=0,
    ended=1,
    status=404,
    error="status-404",
    marks=("tls-expired",),
)
NOW = 1_800_000_000.0  # 2027-01-15 08:00:00Z


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", NOW - 43_200),
        ("12h ago", NOW - 43_200),
        ("90", NOW - 90),
        (" 2d ", NOW - 172_800),
        ("2027-01-15", NOW - 8 * 3600),
        ("2027-01-15T08:00", NOW),
        ("2027-01-15 08:00:00Z", NOW),
        ("2027-01-15T08:00:00.500Z", NOW + 0.5),
        ("2027-01-15T10:00:00+02:00", NOW),
    ],
)
def test_times_that_a_person_writes(text: str, expected: float) -> None:
    assert parse_moment(text, now=NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "12x", "2027-13-01", "-5h", "08:00", "2027-01-15T25:00"])
def test_a_text_that_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time; write how long ago"):
        parse_moment(text, now=NOW)


@pytest.mark.parametrize(
    ("query", "takes"),
    [
        ({}, True),
        ({"status": 404}, True),
        ({"status": 200}, False),
        ({"error": "status-404"}, True),
        ({"error": "any"}, True),
        ({"error": "dns"}, False),
        ({"mark": "tls-expired"}, True),
        ({"mark": "tls"}, False),
        ({"status": 404, "mark": "body-cut"}, False),
    ],
)
def test_filters(query: dict[str, Any], takes: bool) -> None:
    assert PageQuery(**query).takes(ROW) is takes


def test_a_page_without_an_error_is_not_any_error() -> None:
    assert not PageQuery(error="any").takes(ROW.replace(error="", status=200))


@pytest.mark.parametrize("query", [{"error": "any"}, {"error": "dns"}, {"error": "status-418"}, {"mark": "text-cut"}])
def test_errors_and_marks_that_exist(query: dict[str, Any]) -> None:
    PageQuery(**query).check(errors=[], marks=[])


def test_errors_and_marks_that_only_this_crawl_has() -> None:
    PageQuery(error="new-error", mark="new-mark").check(errors=["new-error"], marks=["new-mark"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"error": "dsn"}, "there is no error 'dsn'; choose one of .*connect, dns, .*status-NNN$"),
        ({"error": "status-4"}, "there is no error 'status-4'"),
        ({"mark": "cut"}, "there is no mark 'cut'; choose one of body-cut, .*tls-old"),
    ],
)
def test_an_unknown_error_or_mark_is_refused_with_those_that_exist(query: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PageQuery(**query).check(errors=["status-404", "dns"], marks=[])


async def test_an_empty_answer_says_what_was_looked_for(world: World) -> None:
    await world.open("http://example.test/", "http://sample.org/")
    reader = world.harness.reader()
    assert await PageQuery().nothing_found(reader, FORM) == "no page"
    query = PageQuery(site=site_named("example.test", FORM), error="dns", mark="body-cut", since=0.0, until=60.0)
    assert await query.nothing_found(reader, FORM) == (
        "no page of example.test with the error dns with the mark body-cut since 1970-01-01 00:00:00Z "
        "before 1970-01-01 00:01:00Z"
    )
    query = PageQuery(site=site_named("exmaple.test", FORM), status=200, error="any")
    expected = "no stored page of exmaple.test with status 200 with an error; did you mean example.test?"
    assert await query.nothing_found(reader, FORM, "stored page") == expected
    assert await did_you_mean(reader, site_named("other.test", FORM), FORM) == "; no URL of that domain is known"


@pytest.mark.parametrize(
    "typed", ["exmaple.org", "exampl.org", "examplee.org", "exanple.org", "example.com", "example.ogr", "xample.org"]
)
async def test_a_typing_error_is_recognised(world: World, typed: str) -> None:
    await world.open("http://example.org/", "http://other.test/")
    assert await similar_domains(world.harness.reader(), typed, FORM) == ["example.org"]


async def test_only_names_that_are_close_are_suggested(world: World) -> None:
    await world.open(*(f"http://{name}.test/" for name in ("ab", "ac", "ad", "ae", "xyz")))
    reader = world.harness.reader()
    assert len(await similar_domains(reader, "a.test", FORM)) == 3
    assert await similar_domains(reader, "different.test", FORM) == []
    assert await similar_domains(reader, "a" * 200 + ".test", FORM) == []


@pytest.mark.parametrize(
    ("known", "given", "shown", "note"),
    [
        ({"https://a.test/": UrlState.DONE}, "a.test", "https://a.test/", ""),
        ({"http://a.test/": UrlState.DONE}, "a.test", "http://a.test/", "https://a.test/ is not known to this crawl"),
        (
            {"https://a.test/": UrlState.FAILED, "http://a.test/": UrlState.DONE},
            "a.test",
            "http://a.test/",
            "https://a.test/ is failed",
        ),
        ({"https://a.test/": UrlState.FAILED, "http://a.test/": UrlState.FAILED}, "a.test", "https://a.test/", ""),
        (
            {"https://a.test/": UrlState.REDIRECTED, "https://www.a.test/": UrlState.DONE},
            "a.test",
            "https://www.a.test/",
            "https://a.test/ is redirected",
        ),
        ({"http://a.test/x": UrlState.DONE}, "www.a.test/x", "http://a.test/x", "https://www.a.test/x is not known"),
        ({"http://a.test/": UrlState.DONE}, "http://a.test/", "http://a.test/", ""),
    ],
)
async def test_the_url_that_a_person_means(
    world: World, known: dict[str, UrlState], given: str, shown: str, note: str
) -> None:
    await world.open()
    for url, state in known.items():
        await world.frontier.add([new_url(url)])
        lease = (await world.claim()).lease
        await world.frontier.settle([visited(lease, state, requests=[page_row(lease, url)])])
        world.harness.advance(1000)
    meant = await url_meant(world.harness.reader(), given, FORM.in_full)
    assert meant is not None
    assert meant.record.url == shown
    assert meant.instead_of.startswith(note) and bool(meant.instead_of) == bool(note)


async def test_a_url_with_a_scheme_is_not_replaced_by_another(world: World) -> None:
    await world.open("http://a.test/")
    reader = world.harness.reader()
    assert await url_meant(reader, "https://a.test/", FORM.in_full) is None
    assert await other_spellings(reader, "https://www.a.test/", FORM.in_full) == ["http://a.test/"]


async def test_pages_that_were_shown_are_not_new(world: World) -> None:
    await world.open("http://a.test/")
    follower = Follower(world.harness.reader())
    await follower.begin()
    lease = (await world.claim()).lease
    row = page_row(lease, "http://a.test/")
    await world.frontier.settle([visited(lease, UrlState.DONE, requests=[row])])
    follower.note([row])
    assert await follower.new_pages() == []


async def test_examples_of_every_column_come_first() -> None:
    plain = [StoredText(row=ROW.replace(error="", marks=(), visit=visit), content=None) for visit in range(6)]
    redirect = StoredText(row=plain[3].row.replace(target="http://b.test/"), content=None)
    failed = StoredText(row=plain[4].row.replace(error="dns"), content=None)
    too_late = StoredText(row=plain[5].row.replace(marks=("body-cut",)), content=None)

    async def pages() -> Any:
        for page in (*plain[:3], redirect, failed, too_late):
            yield page

    found = [page.row.visit async for page in examples_first(pages(), lookahead=100)]
    assert found == [0, 3, 4, 5, 1, 2]
    found = [page.row.visit async for page in examples_first(pages(), lookahead=2)]
    assert found == [0, 1, 2, 3, 4, 5]
    assert math.isinf(PageQuery().until)
