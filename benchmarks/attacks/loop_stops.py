"""Measure for how long one site's input can stop the event loop, apart from pages: the worst known input of each kind.

    .venv/bin/python -m benchmarks.attacks.loop_stops

Each row is the longest step in CPU time, best of three. A step is what runs without giving other visits a turn.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
import time
from asyncio import events
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any

from tests.unit.fetch.test_dns_hostile import many_addresses, requester

from rove.crawl.inflight_log import Note, _encode
from rove.crawl.long_robots import LongRobots
from rove.crawl.robots_answer import valid_for
from rove.crawl.seen import SeenSet
from rove.crawl.visit import CHILDREN_PER_TURN
from rove.crawl.writer import new_links
from rove.fetch.dns import AresLookup
from rove.fetch.head import MAX_HEAD_BYTES, MAX_HEAD_LINES, MAX_LOCATION, judge, parse_head
from rove.frontier.rows.origins import origin_records, origin_values
from rove.model.ledger import RequestKind, RequestRow
from rove.model.outcomes import Response
from rove.model.visits import OriginRecord, RobotsStatus
from rove.parse.directives import read_headers
from rove.parse.sitemap import MAX_SITEMAP_BYTES, MAX_SITEMAP_URLS, read_sitemap
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.pacing import retry_after
from rove.policy.robots import Rules
from rove.policy.robots_lines import LONG_ROBOTS, MAX_ROBOTS_BYTES, Reduced, reducing
from rove.urls.canonical import NO_IDS, CrawlUrl, parse_base

LIMIT_MS = 20.0
ROUNDS = 3
SOURCE = "http://a.test/sitemap.xml"


def main() -> None:
    """Measure every kind of input and print the table; exit with 1 if one is over the limit."""
    is_over = False
    print(f"{'input':<64}{'ms':>8}")
    for name, milliseconds in measured():
        is_over |= milliseconds > LIMIT_MS
        print(f"{name:<64}{milliseconds:>8.1f}{'  over' if milliseconds > LIMIT_MS else ''}")
    sys.exit(is_over)


def measured() -> Iterator[tuple[str, float]]:
    """Yield each kind of input and its longest step in milliseconds."""
    yield from _of_robots()
    yield from _of_heads()
    yield from _of_sitemaps()
    yield "DNS: an answer of 1,000 addresses", longest_step(_look_up)


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.thread_time()
        work()
        best = min(best, time.thread_time() - started)
    return best * 1000


def longest_step(work: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU time of the longest step that a coroutine takes in an event loop."""
    run, steps = events.Handle._run, [0.0]

    def timed(handle: Any) -> None:
        started = time.thread_time()
        run(handle)
        steps.append(time.thread_time() - started)

    async def whole() -> None:
        await work()

    best = float("inf")
    for _ in range(ROUNDS):
        steps[:] = [0.0]
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(asyncio.sleep(0))
            events.Handle._run = timed  # type: ignore[assignment, method-assign]
            try:
                runner.run(whole())
            finally:
                events.Handle._run = run  # type: ignore[method-assign]
        best = min(best, max(steps))
    return best * 1000


def _filled(line: Callable[[int], bytes], size: int = MAX_ROBOTS_BYTES, head: bytes = b"User-agent: *\n") -> bytes:
    """Return lines that fill a body."""
    lines, total, number = [head], len(head), 0
    while total + len(line(number)) <= size:
        lines.append(line(number))
        total += len(lines[-1])
        number += 1
    return b"".join(lines)


ROBOTS: dict[str, Callable[[int], bytes]] = {
    "prefixes": lambda n: b"Disallow: /%d\n" % n,
    "the shortest rules": lambda _: b"Allow:/\n",
    "wildcards": lambda n: b"Disallow: /*%x\n" % n,
    "escapes": lambda n: b"Disallow: /*%%%02x?%%3A%x$\n" % (n % 256, n),
    "pieces": lambda _: b"Disallow: /" + b"*a" * 1_900 + b"b\n",
    "agents": lambda _: b"User-agent:a\n",
    "delays": lambda _: b"Crawl-delay: 1\n",
    "sitemaps": lambda n: b"Sitemap: http://a.test/%d\n" % n,
    "empty lines": lambda _: b"\n",
    "bytes": lambda n: b"Disallow: /\xff\xfe%d\n" % n,
}


def _of_robots() -> Iterator[tuple[str, float]]:
    urls = ["http://a.test/" + "a" * 1_900, "http://a.test/" + "a" * 900 + "?%3A" + "a" * 900]
    longest = b""
    for name, line in ROBOTS.items():
        body = _filled(line)
        yield f"robots.txt of 500 KiB, {name}: reduced", longest_step(partial(_reduce, body))
        reduced = _reduced(body)
        longest = max(longest, reduced.body, key=len)
        yield f"robots.txt, {name}: parsed, reduced", cpu_ms(partial(Rules, reduced.body))
        short = _filled(line, LONG_ROBOTS)
        yield f"robots.txt, {name}: parsed, 32 KiB", cpu_ms(partial(Rules, short))
        rules = Rules(reduced.body)
        yield f"robots.txt, {name}: a URL checked", max(cpu_ms(partial(rules.allows, url)) for url in urls)
        yield f"robots.txt, {name}: its sitemaps", cpu_ms(partial(getattr, rules, "sitemaps"))
    record = OriginRecord(domain=1, origin="http://a.test", status=RobotsStatus.RULES, body=longest, valid_for=1.0)
    row = RequestRow(
        visit=1, seq=0, domain=1, kind=RequestKind.ROBOTS, url="", fingerprint=1, started=0.0, began=0, ended=0
    )
    yield "robots.txt: noted in the in-flight log", cpu_ms(lambda: _encode(Note(row=row, robots=longest)))
    yield "robots.txt: made a row", cpu_ms(lambda: origin_values(record))
    values = origin_values(record)
    stored = [*values[:6], 0, 0, *values[7:]]
    yield "robots.txt: read from a row", cpu_ms(lambda: origin_records([stored]))


def _reduced(body: bytes) -> Reduced:
    work = reducing(body)
    while True:
        try:
            next(work)
        except StopIteration as end:
            reduced: Reduced = end.value
            return reduced


def _of_heads() -> Iterator[tuple[str, float]]:
    size = MAX_HEAD_BYTES // MAX_HEAD_LINES - 40

    def head(field: str, value: Callable[[int], str]) -> Response:
        lines = [b"HTTP/1.1 200 OK\r\n", *(f"{field}: {value(n)}\r\n".encode() for n in range(MAX_HEAD_LINES - 1))]
        return parse_head(lines, url="http://a.test/", address="192.0.2.1", status=200)

    def longest(text: str) -> Callable[[int], str]:
        return lambda n: f"{n}{text * (size // len(text))}"

    plain = longest("a;, ")
    for field in ("Set-Cookie", "Link", "Content-Encoding", "Content-Type"):
        yield (
            f"head of 256 KiB, {field}: parsed and judged",
            cpu_ms(partial(lambda f: judge(head(f, plain), None), field)),
        )
    for text in ("max-age=1,", 'a="b",', "no-cache ", ",", "a=\t"):
        response = head("Cache-Control", longest(text))
        yield f"head of 256 KiB, Cache-Control {text!r}: validity", cpu_ms(partial(valid_for, response))
    for field in ("Retry-After", "Date", "Expires"):
        response = head(field, longest("Wed, 21 Oct 2015 "))
        yield (
            f"head of 256 KiB, {field}: read",
            cpu_ms(partial(retry_after, response)) + cpu_ms(partial(valid_for, response)),
        )
    for text in ("noindex,", "a: b, ", "unavailable_after: 1 Jan 2020, ", ": ", "rove: x "):
        values = [longest(text)(n) for n in range(MAX_HEAD_LINES)]
        yield f"head of 256 KiB, X-Robots-Tag {text!r}: read", cpu_ms(partial(read_headers, values, now=1.0))
    base = parse_base("http://a.test/" + "a/" * 900)
    for text in ("a/../", "%41", "é", "?a&"):
        location = text * (MAX_LOCATION // len(text))
        yield f"Location of 8,000 characters {text!r}: resolved", cpu_ms(partial(NO_IDS.canonical, location, base))


def _of_sitemaps() -> Iterator[tuple[str, float]]:
    def xml(root: str, item: Callable[[int], str]) -> bytes:
        return _filled(lambda n: item(n).encode(), MAX_SITEMAP_BYTES, f"<{root}>".encode())

    kinds = {
        "urlset": xml("urlset", lambda n: f"<url><loc>http://a.test/{n}</loc></url>"),
        "urlset of duplicates": xml("urlset", lambda n: "<loc>http://a.test/</loc>"),
        "sitemapindex": xml("sitemapindex", lambda n: f"<sitemap><loc>http://a.test/{n}</loc></sitemap>"),
        "rss": xml("rss", lambda n: f"<item><link>{n}</link></item>"),
        "feed": xml("feed", lambda n: f'<entry><link href="{n}"/></entry>'),
        "text": _filled(lambda n: b"http://a.test/%d\n" % n, MAX_SITEMAP_BYTES, b""),
        "angle brackets": xml("urlset", lambda n: "<" * 1_000),
        "a comment of dashes": xml("urlset><!--", lambda n: "- " * 1_000),
        "open elements": xml("urlset", lambda n: "<loc>" * 1_000),
        "blanks": xml("urlset><loc", lambda n: " " * 1_000),
        "Chinese": b"<urlset>" + "<loc>http://a.test/\u4e2d\u6587</loc>".encode("gbk") * 400_000,
    }
    for name, body in kinds.items():
        yield f"sitemap of 10 MiB, {name}: longest slice", longest_step(partial(_read_slices, body))
        packed = gzip.compress(body, 1)
        yield f"the same as gzip ({len(packed) >> 10} KiB)", longest_step(partial(_read_slices, packed))
    gate = Gate(Exclusions())
    (page,) = _urls([SOURCE])
    some = _urls(f"http://a.test/{'seg/' * 20}{n}?a={n}&b=c" for n in range(CHILDREN_PER_TURN))
    yield "sitemap index: 100 children admitted", cpu_ms(lambda: [gate.admits(u, depth=1, source=page) for u in some])
    listed = _urls(f"http://a.test/{n}/page?id={n}" for n in range(MAX_SITEMAP_URLS))
    links = gate.admitted(listed, depth=1, source=page, own_domains=(page.domain,), refused=[])
    assert len(links) == MAX_SITEMAP_URLS
    yield "50,000 URLs of a sitemap: those that may be new", longest_step(lambda: new_links(links, SeenSet(), {}))


def _urls(texts: Iterable[str]) -> list[CrawlUrl]:
    return [url for text in texts if (url := NO_IDS.canonical(text)) is not None]


async def _read_slices(body: bytes) -> None:
    for _ in read_sitemap(body, url=SOURCE, host="a.test", form=NO_IDS):
        await asyncio.sleep(0)


async def _reduce(body: bytes) -> None:
    await LongRobots().reduced(body)


async def _look_up() -> None:
    async with requester(many_addresses, timeout=5) as (_, lookup):
        assert isinstance(lookup, AresLookup)
        await lookup.look_up("many.test")


if __name__ == "__main__":
    main()
