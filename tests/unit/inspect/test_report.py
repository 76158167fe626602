"""The report for a webmaster is complete, and nothing in it can do harm."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from selectolax.lexbor import LexborHTMLParser, LexborNode

from rove.cli import crawl_given, webmasters
from rove.config import Settings
from rove.errors import UsageError
from rove.frontier.contract import FrontierReader
from rove.frontier.records import DomainRecord, Exclusion
from rove.inspect.lookup import domain_given, site_named
from rove.inspect.report import MOST_COPIES, MOST_GAPS, GapSample, SiteReport, Totals, read_report
from rove.inspect.report_chart import MOST_SPANS, Timeline, as_svg
from rove.inspect.report_html import html_parts, write_html
from rove.inspect.report_text import json_records, text_lines
from rove.model.ledger import DelaySource, Location, RequestKind, RequestRow, Settlement
from rove.model.text_hash import robots_name
from rove.model.visits import Pace
from rove.policy.identity import user_agent
from rove.urls.canonical import UrlForm
from tests.urls import FORM

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00Z
SITE = site_named("a.test", FORM)
SETTINGS = Settings(email="ops@crawler.test", info_url="https://example.org/about?a&b")
DOMAIN = DomainRecord(
    id=SITE.id,
    name=SITE.name,
    ready_in=10.0,
    free_in=10.0,
    crawl_delay=0.0,
    pace=Pace(),
    pending=12,
    is_leased=False,
    is_excluded=False,
    is_capped=False,
    has_urls=True,
)
EXCLUSION = Exclusion(pattern="a.test", at=5, wall=NOW - 60, who="alice", reason="asked by mail")
HOSTILE = "<script>alert(1)</script>"
ROBOTS = f"User-agent: *\nDisallow: /private # {HOSTILE} </pre>\n".encode()
STORED = Location(file="x.warc.gz", offset=1, length=2)


class Reader:
    """A reader of made-up requests, which may be generated while they are read."""

    def __init__(
        self,
        visits: Callable[[], Iterable[RequestRow]] | Sequence[RequestRow] = (),
        *,
        texts: Sequence[bytes] = (ROBOTS,),
        domain: DomainRecord | None = DOMAIN,
    ) -> None:
        self._visits = visits
        self._texts = {robots_name(text): text for text in texts}
        self._domain = domain

    async def domain(self, id: int) -> DomainRecord | None:
        return self._domain if id == SITE.id else None

    async def robots_text(self, hash: str) -> bytes | None:
        return self._texts.get(hash)

    async def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        assert domain == SITE.id
        for row in self._visits() if callable(self._visits) else self._visits:
            yield row


def row(visit: int, at: float, url: str = "https://a.test/", seq: int = 0, **more: Any) -> RequestRow:
    """Return a request that began `at` seconds after NOW and took half a second."""
    values: dict[str, Any] = {
        "visit": visit,
        "seq": seq,
        "domain": SITE.id,
        "kind": RequestKind.PAGE,
        "url": url,
        "fingerprint": hash(url),
        "started": NOW + at,
        "began": round((NOW + at) * 1000),
        "ended": round((NOW + at) * 1000) + 500,
        "address": "192.0.2.7",
        "delay": 70.0,
        "process": 1,
        "status": 200,
        "size": 1000,
    }
    return RequestRow(**{**values, **more})


def robots_row(visit: int, at: float, body: bytes | None = ROBOTS, **more: Any) -> RequestRow:
    hash = "" if body is None else robots_name(body)
    values = {"url": "https://a.test/robots.txt", "kind": RequestKind.ROBOTS, **more}
    return row(visit, at, robots=hash, **values)


VISITS = [
    robots_row(1, 0),
    row(1, 1, seq=1, text=STORED, title=HOSTILE),
    row(2, 72, "https://www.a.test/gone", status=404, error="status-404", size=0),
    row(3, 300, "https://a.test/moved", status=301, target=f"/{HOSTILE}", size=0),
    row(3, 301, "https://a.test/slow", 1, status=0, error="timeout-total", size=0, address=""),
]


async def report_of(
    reader: Reader, *, settings: Settings = SETTINGS, exclusions: Sequence[Exclusion] = (), max_gaps: int = MOST_GAPS
) -> SiteReport:
    return await read_report(
        cast(FrontierReader, reader), SITE, settings=settings, exclusions=exclusions, now=NOW + 1_000, max_gaps=max_gaps
    )


async def text_of(reader: Reader, **given: Any) -> str:
    report = await report_of(reader, **given)
    return "\n".join([line async for line in text_lines(report, cast(FrontierReader, reader))])


async def records_of(reader: Reader, **given: Any) -> list[dict[str, Any]]:
    report = await report_of(reader, **given)
    records = [record async for record in json_records(report, cast(FrontierReader, reader))]
    return cast(list[dict[str, Any]], json.loads(json.dumps(records)))


async def html_of(reader: Reader, *, max_rows: int = 10_000, **given: Any) -> str:
    report = await report_of(reader, **given)
    parts = html_parts(report, cast(FrontierReader, reader), max_rows=max_rows)
    return "".join([part async for part in parts])


def first(page: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    node = page.css_first(selector)
    assert node is not None, selector
    return node


async def totals_of(*rows: RequestRow) -> Totals:
    return (await report_of(Reader(rows))).totals


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a.test", "a.test"),
        ("www.a.test", "a.test"),
        ("https://www.a.test/x", "a.test"),
        ("www.example.co.uk", "example.co.uk"),
        ("http://192.0.2.7:8080/", "192.0.2.7"),
    ],
)
def test_the_site_that_a_person_names(text: str, name: str) -> None:
    site = site_named(domain_given(text), FORM)
    assert (site.name, site.id) == (name, FORM.domain_id(name))


def test_an_invalid_site_is_an_error() -> None:
    with pytest.raises(UsageError, match="'two words' is not a domain"):
        domain_given("two words")


async def test_the_totals() -> None:
    totals = await totals_of(*VISITS)
    assert (totals.requests, totals.visits, totals.pages) == (5, 3, 1)
    assert totals.bytes == 2000
    assert (totals.first, totals.last) == (NOW, NOW + 301)
    assert totals.outcomes == {"200": 2, "404": 1, "301": 1, "timeout-total": 1}
    assert totals.gaps.shortest == pytest.approx(70.5), "from the end of the previous visit"
    assert totals.gaps.median == pytest.approx((70.5 + 227.5) / 2)
    assert (totals.kept, totals.broken) == (2, 0)


@pytest.mark.parametrize(
    ("gap", "delay", "kept"),
    [(70.0, 70.0, True), (69.96, 70.0, True), (69.0, 70.0, False), (-5.0, 70.0, False), (2.5, 0.0, True)],
)
async def test_whether_a_delay_was_kept(gap: float, delay: float, kept: bool) -> None:
    """Within the accuracy of the clocks."""
    reader = Reader([row(1, 0, delay=delay), row(2, 0.5 + gap)])
    (visit,) = (r for r in await records_of(reader) if r["record"] == "visit" and r["visit"] == 2)
    assert (visit["kept"], visit["gap_s"]) == (kept, pytest.approx(gap))
    assert ("NOT KEPT" in await text_of(reader)) is not kept
    marked = LexborHTMLParser(await html_of(reader)).css("strong.bad")
    assert len(marked) == (0 if kept else 2), "in the summary, and at the visit"


async def test_the_delay_in_force_is_that_which_the_visit_before_led_to() -> None:
    reader = Reader(
        [
            row(1, 0, delay=600.0, delay_from=DelaySource.RETRY_AFTER),
            row(2, 700, delay=70.0),
            row(3, 800, delay=300.0, delay_from=DelaySource.CRAWL_DELAY),
        ]
    )
    visits = [r for r in await records_of(reader) if r["record"] == "visit"]
    assert [(v["delay_s"], v["delay_from"], v["kept"]) for v in visits] == [
        (None, None, None),
        (600.0, "retry-after", True),
        (70.0, "delay", True),
    ]
    text = await text_of(reader)
    assert "visit 1, 2027-01-15 08:00:00Z, the first" in text
    assert (
        "visit 2, 2027-01-15 08:11:40Z, 11 min 40 s after the previous visit "
        "(delay 10 min 00 s, the Retry-After of its response: kept)" in text
    )
    assert "99.5 s after the previous visit (delay 70 s, set by the operator: kept)" in text


async def test_a_delay_that_is_not_on_record_is_not_judged() -> None:
    reader = Reader([row(1, 0, delay=0.0, settlement=Settlement.LOST), row(2, 3)])
    totals = (await report_of(reader)).totals
    assert (totals.kept, totals.broken, totals.gaps.shortest) == (0, 0, 2.5)
    assert "2.5 s after the previous visit (the delay is not on record)" in await text_of(reader)


async def test_of_visits_that_overlap_the_one_counts_that_ended_last() -> None:
    late = row(1, 0, ended=round((NOW + 500) * 1000), settlement=Settlement.LATE)
    totals = await totals_of(late, row(2, 200), row(3, 571))
    assert totals.gaps.shortest == pytest.approx(-300.0)
    assert (totals.kept, totals.broken) == (1, 1)
    assert totals.gaps.median == pytest.approx((-300 + 71) / 2)
    text = await text_of(Reader([late, row(2, 200), row(3, 571)]))
    assert "300 s before the end of the previous visit" in text
    assert "visits overlapped; " in text
    assert "too late to count" in text


async def test_the_text() -> None:
    text = await text_of(Reader(VISITS))
    lines = text.splitlines()
    assert lines[0] == "Requests by rove to a.test, as of 2027-01-15 08:16:40Z"
    for line in (
        "  contact       ops@crawler.test",
        f"  User-Agent    {user_agent(SETTINGS.email, SETTINGS.info_url)}",
        "  about         https://example.org/about?a&b",
        "  requests      5 requests in 3 visits",
        "  first         2027-01-15 08:00:00Z",
        "  last          2027-01-15 08:05:01Z",
        "  received      2.0 KiB",
        "  pages stored  1",
        "  answers       200 (2), 404 (1), 301 (1), timeout-total (1)",
        ("  delays        at least 70.5 s between two visits, median 149 s; the delay was kept every time"),
        "  pending       12 URLs, at most one page per visit",
        "  excluded      no",
        "      User-agent: rove",
        "      Disallow: /",
        "      Crawl-delay: 600",
        "  https://a.test/robots.txt, read 2027-01-15 08:00:00Z",
        f"      Disallow: /private # {HOSTILE} </pre>",
        (
            "      2027-01-15 08:01:12Z  page     404                         0 B  192.0.2.7        "
            "https://www.a.test/gone"
        ),
        ("      2027-01-15 08:05:01Z  page     timeout-total               0 B  -                https://a.test/slow"),
    ):
        assert line in lines
    assert f"https://a.test/moved  to /{HOSTILE}" in text
    assert "(rove exclude a.test)" in " ".join(text.split())
    assert sum("2027-01-15 08:" in line and " B  " in line for line in lines) == 5


async def test_a_site_without_requests() -> None:
    reader = Reader(domain=None)
    text = await text_of(reader)
    assert "  requests      no request was ever made" in text.splitlines()
    assert "  pending       nothing" in text.splitlines()
    assert max(map(len, text.splitlines())) <= 100
    assert "How to opt out" in text and "by visit" not in text and "as it was read" not in text
    (record,) = await records_of(reader)
    assert (record["requests"], record["first"], record["gaps"]["median_s"]) == (0, None, None)
    page = LexborHTMLParser(await html_of(reader))
    assert "no request was ever made" in first(page, "main").text()
    assert page.css_first("svg") is None and page.css_first("table.requests") is None


async def test_one_visit_has_no_gap() -> None:
    assert "  delays        there was one visit" in (await text_of(Reader([row(1, 0)]))).splitlines()


@pytest.mark.parametrize(
    ("exclusions", "is_excluded", "listed", "said"),
    [
        ([], False, 0, "no"),
        ([replace(EXCLUSION, pattern="b.test")], False, 0, "no"),
        ([EXCLUSION], True, 1, "yes: rove no longer visits this site"),
        ([replace(EXCLUSION, pattern="test")], True, 1, "yes: rove no longer visits this site"),
        ([replace(EXCLUSION, pattern="www.a.test")], False, 1, "in part: rove no longer visits the hosts below"),
        ([replace(EXCLUSION, pattern="=a.test")], False, 1, "in part: rove no longer visits the hosts below"),
        ([replace(EXCLUSION, lifted_at=9, lifted_wall=NOW)], False, 1, "no"),
    ],
)
async def test_whether_the_site_is_excluded(
    exclusions: list[Exclusion], is_excluded: bool, listed: int, said: str
) -> None:
    reader = Reader(VISITS)
    assert f"  excluded      {said}" in (await text_of(reader, exclusions=exclusions)).splitlines()
    record = (await records_of(reader, exclusions=exclusions))[0]
    assert (record["excluded"], len(record["exclusions"])) == (is_excluded, listed)
    text = await text_of(reader, exclusions=exclusions)
    assert text.count("by alice: asked by mail") == listed


async def test_nothing_is_pending_for_an_excluded_site() -> None:
    text = await text_of(Reader(VISITS), exclusions=[EXCLUSION])
    assert "  pending       nothing" in text.splitlines()


async def test_a_text_that_is_not_the_one_that_was_read_is_not_shown() -> None:
    reader = Reader([robots_row(1, 0)])
    reader._texts = dict.fromkeys(reader._texts, b"User-agent: *\nDisallow: /forged\n")
    for text in (await text_of(reader), await html_of(reader)):
        assert "the stored text is not the one that was read" in text
        assert "/forged" not in text
    (robots,) = [record for record in await records_of(reader) if record["record"] == "robots"]
    assert robots["text"] is None and robots["content_hash"] == robots_name(ROBOTS)


async def test_copies_of_robots_txt() -> None:
    other = b"User-agent: rove\nAllow: /\n"
    long = b"# x\n" * 20_000
    reader = Reader(
        [
            robots_row(1, 0),
            robots_row(2, 100),
            robots_row(3, 200, other),
            robots_row(4, 300),
            robots_row(5, 400, url="https://www.a.test/robots.txt"),
            robots_row(6, 500, long),
            robots_row(7, 600, b""),
            robots_row(8, 700, b"lost"),
            robots_row(9, 800, None, status=404, error="status-404"),
        ],
        texts=[ROBOTS, other, long, b""],
    )
    copies = (await report_of(reader)).totals.copies
    assert [(copy.url, copy.times, copy.first, copy.last) for copy in copies[:3]] == [
        ("https://a.test/robots.txt", 3, NOW, NOW + 300),
        ("https://a.test/robots.txt", 1, NOW + 200, NOW + 200),
        ("https://www.a.test/robots.txt", 1, NOW + 400, NOW + 400),
    ]
    for text in (await text_of(reader), LexborHTMLParser(await html_of(reader)).text()):
        assert "the same text as https://a.test/robots.txt" in text
        assert "(the first 20,000 of 80,000 characters)" in text
        assert "(it is empty)" in text
        assert "(its text is not stored)" in text
        assert text.count("Disallow: /private") == 1, "the same text is shown once"
    robots = [record for record in await records_of(reader) if record["record"] == "robots"]
    assert [record["text"] for record in robots] == [
        *(ROBOTS.decode(), other.decode(), ROBOTS.decode(), long.decode(), "", None)
    ]


async def test_of_many_copies_the_last_are_listed() -> None:
    rows = [robots_row(i, 100 * i, b"%d" % i) for i in range(MOST_COPIES + 5)]
    totals = await totals_of(*rows)
    assert len(totals.copies) == MOST_COPIES
    assert totals.copies[-1].first == rows[-1].started
    assert totals.copies_left_out == 5
    assert "5 older copies left out" in await text_of(Reader(rows))
    assert "5 older copies left out" in await html_of(Reader(rows))


async def test_the_objects_for_programs() -> None:
    records = await records_of(Reader(VISITS))
    assert [record["record"] for record in records] == [
        *("report", "robots", "visit", "request", "request", "visit", "request"),
        *("visit", "request", "request"),
    ]
    assert records[0]["contact"] == "ops@crawler.test"
    assert records[0]["answers"] == {"200": 2, "404": 1, "301": 1, "timeout-total": 1}
    assert records[6] == {
        "record": "request",
        "visit": 2,
        "seq": 0,
        "kind": "page",
        "url": "https://www.a.test/gone",
        "started": "2027-01-15T08:01:12.000Z",
        "seconds": 0.5,
        "address": "192.0.2.7",
        "status": 404,
        "error": "status-404",
        "type": None,
        "bytes": 0,
        "redirect_to": None,
        "stored": False,
        "content_hash": None,
        "fate": "settled",
        "delay_after_s": 70.0,
        "delay_from": "delay",
    }


async def test_the_html() -> None:
    text = await html_of(Reader(VISITS), exclusions=[EXCLUSION])
    page = LexborHTMLParser(text)
    assert text.startswith("<!doctype html>")
    assert first(page, "title").text() == "Requests by rove to a.test"
    assert [heading.text() for heading in page.css("h2")] == [
        *("Who runs the crawl", "Summary", "Visits over time", "How to opt out"),
        *("robots.txt, as it was read", "Requests, by visit"),
    ]
    facts = {first(r, "th").text(): first(r, "td").text() for r in page.css(".facts tr")}
    assert facts["contact"] == "ops@crawler.test"
    assert facts["requests"].startswith("5 requests in 3 visits")
    assert facts["excluded"] == "yes: rove no longer visits this site"
    assert facts["exclusion"].endswith("by alice: asked by mail")
    (by_visit,) = page.css("table.requests")
    assert [th.text() for th in by_visit.css("thead th")] == [*("Time", "Kind", "Answer", "Bytes", "Address", "URL")]
    assert len(by_visit.css("tbody")) == 3
    rows = [[cell.text() for cell in tr.css("td")] for tr in by_visit.css("tbody tr") if tr.css("td")]
    assert rows[0] == ["2027-01-15 08:00:00Z", "robots", "200", "1,000", "192.0.2.7", "https://a.test/robots.txt"]
    assert len(rows) == 5
    assert page.css_first("pre:last-of-type") is not None
    assert len(page.css("svg rect")) == 3, "visits so far apart have a bar each"


async def test_the_html_needs_nothing_and_runs_nothing() -> None:
    page = LexborHTMLParser(await html_of(Reader(VISITS)))
    for name in ("script", "link", "img", "iframe", "object", "embed", "base", "form", "image"):
        assert page.css_first(name) is None, name
    for node in page.css("*"):
        for name, value in node.attributes.items():
            assert name not in ("src", "srcset", "action", "style", "background", "xlink:href")
            assert not name.startswith("on")
            if name == "href":
                assert node.tag == "a"
                assert value in ("mailto:ops@crawler.test", SETTINGS.info_url)
    style = first(page, "style").text()
    assert "url(" not in style and "@import" not in style
    assert "@media print" in style and "prefers-color-scheme: dark" in style
    policy = first(page, "meta[http-equiv]").attributes
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert str(policy["content"]).startswith("default-src 'none'")


async def test_what_is_hostile_stays_text() -> None:
    """Checks every place where text from the web or from a person gets into the file."""
    nasty = f"\"'>{HOSTILE}<!--\x1b\u202e\ud800"
    rows = [
        robots_row(1, 0, url=f"https://a.test/{nasty}", address=nasty),
        row(2, 100, f"https://a.test/{nasty}", error=nasty, target=nasty, title=nasty),
    ]
    exclusion = replace(EXCLUSION, who=nasty, reason=nasty, lifted_by=nasty)
    reader = Reader(rows)
    text = await html_of(reader, exclusions=[exclusion])
    assert "<script" not in text.lower()
    assert "<!--" not in text
    assert not re.search("[\x1b\u202e\ud800]", text)
    page = LexborHTMLParser(text)
    assert page.css_first("script") is None
    assert first(page, "main").text().count(HOSTILE) >= 9, "it is there to be read"
    assert page.css("pre")[-1].text().strip() == ROBOTS.decode().strip()
    shown = await text_of(reader, exclusions=[exclusion])
    assert not re.search("[\x1b\u202e\ud800]", shown)


def many(count: int, per_visit: int = 1) -> Callable[[], Iterable[RequestRow]]:
    return lambda: (
        row(i // per_visit, 80.0 * (i // per_visit), f"https://a.test/{i}", i % per_visit) for i in range(count)
    )


async def test_of_many_requests_the_html_has_the_newest() -> None:
    page = LexborHTMLParser(await html_of(Reader(many(1003, per_visit=2)), max_rows=100))
    (by_visit,) = page.css("table.requests")
    urls = [cell.text() for cell in by_visit.css("td.url")]
    assert urls == [f"https://a.test/{i}" for i in range(904, 1003)], "whole visits, in order"
    text = first(page, "main").text()
    assert "These are the last 100 of 1,003 requests; rove report --json has all of them." in text


async def test_requests_made_while_the_report_is_written_are_left_out() -> None:
    rows = list(VISITS)
    reader = Reader(rows)
    report = await report_of(reader)
    rows.append(row(4, 900, "https://a.test/new"))
    for texts in (
        [line async for line in text_lines(report, cast(FrontierReader, reader))],
        [part async for part in html_parts(report, cast(FrontierReader, reader))],
    ):
        assert "https://a.test/new" not in "".join(texts)
        assert "https://a.test/slow" in "".join(texts)


async def test_memory_does_not_grow_with_the_requests() -> None:
    async def peak(count: int) -> int:
        reader = Reader(many(count))
        tracemalloc.start()
        report = await report_of(reader, max_gaps=100)
        for parts in (html_parts, text_lines, json_records):
            async for _ in parts(report, cast(FrontierReader, reader)):
                pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    await peak(50)  # caches and imports
    assert await peak(2_000) < 2 * await peak(500)


def test_the_median_of_very_many_gaps() -> None:
    gaps = GapSample(10)
    for number in range(1001):
        gaps.add(float(number))
    assert gaps.shortest == 0.0
    assert gaps.median == pytest.approx(500, abs=60)
    assert len(gaps) <= 10
    assert MOST_GAPS > 10_000, "exact for any site that was not visited for weeks on end"


def test_a_timeline_has_a_bounded_number_of_marks() -> None:
    timeline = Timeline()
    for number in range(100_000):
        timeline.note(NOW + 70 * number)
    timeline.note(NOW - 5_000)  # a clock that was set back
    assert sum(timeline.counts) == 100_001
    assert MOST_SPANS / 2 < len(timeline.counts) <= MOST_SPANS
    assert timeline.seconds * len(timeline.counts) >= 70 * 99_999
    svg = first(LexborHTMLParser(as_svg(timeline)), "svg")
    assert 0 < len(svg.css("rect")) <= MOST_SPANS
    assert "100,001 visits from 2027-01-15 08:00:00Z" in str(svg.attributes["aria-label"])


def test_every_mark_stands_where_its_visits_were() -> None:
    timeline = Timeline()
    times = [0.0, 59.0, 61.0, 3_600.0, 100_000.0, 100_000.0]
    for at in times:
        timeline.note(NOW + at)
    expected = [0] * len(timeline.counts)
    for at in times:
        expected[int(at // timeline.seconds)] += 1
    assert timeline.counts == expected


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_the_file_is_written_whole(tmp_path: Path) -> None:
    reader = Reader(VISITS)
    report = await report_of(reader)
    path = tmp_path / "report.html"
    path.write_text("old")
    await write_html(report, cast(FrontierReader, reader), path)
    text = path.read_text()
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    assert names_in(tmp_path) == [path.name]


async def test_a_report_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    def failing() -> Iterable[RequestRow]:
        yield VISITS[0]
        raise RuntimeError("the database is gone")

    report = await report_of(Reader(VISITS))
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="gone"):
        await write_html(report, cast(FrontierReader, Reader(failing)), path)
    assert path.read_text() == "old"
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize("name", ["missing/report.html", "file/report.html", ""])
async def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    report = await report_of(Reader(VISITS))
    path = tmp_path / name
    with pytest.raises(UsageError, match=f"cannot write {re.escape(str(path))}: "):
        await write_html(report, cast(FrontierReader, Reader(VISITS)), path)
    assert names_in(tmp_path) == ["file"]
    assert not [name for name in names_in(tmp_path.parent) if name.endswith(".new")]


class Catalog:
    """A catalog with one exclusion."""

    async def exclusion_history(self) -> list[Exclusion]:
        return [EXCLUSION]


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    """`rove report` on a crawl that has made VISITS."""

    async def settings() -> Settings:
        return SETTINGS

    async def form() -> UrlForm:
        return FORM

    @asynccontextmanager
    async def opened(data_dir: Path, **others: object) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(reader=Reader(VISITS), catalog=Catalog(), settings=settings, form=form)

    monkeypatch.setattr(crawl_given, "opened", opened)
    return CliRunner().invoke(webmasters.report, words)


def test_the_command_prints_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "https://www.a.test/x")
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("Requests by rove to a.test, as of ")
    assert result.stdout.count("https://a.test/slow") == 1


def test_the_command_prints_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "a.test", "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert (records[0]["record"], records[0]["excluded"]) == ("report", True)
    assert len(records) == 10


def test_the_command_writes_html(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    result = run(monkeypatch, "a.test", "--html", str(path))
    assert (result.exit_code, result.stdout) == (0, f"{path}: 5 requests to a.test\n")
    assert "https://a.test/slow" in path.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["two words"], "'two words' is not a domain"),
        (["a.test", "--json", "--html", "x.html"], "give --html or --json, not both"),
    ],
)
def test_bad_usage_is_an_error(monkeypatch: pytest.MonkeyPatch, words: list[str], said: str) -> None:
    result = run(monkeypatch, *words)
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == said


async def test_a_symbolic_link_stays_and_a_pipe_is_refused(tmp_path: Path) -> None:
    report = await report_of(Reader(VISITS))
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    await write_html(report, cast(FrontierReader, Reader(VISITS)), link)
    assert link.is_symlink() and "old" not in target.read_text()
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="it is not an ordinary file"):
        await write_html(report, cast(FrontierReader, Reader(VISITS)), pipe)
    assert pipe.is_fifo()
