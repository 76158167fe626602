"""Compare the generated pages of the benchmark with real ones: `python -m benchmarks.compare_pages --pages FOLDER`.

It prints quantiles side by side, and the CPU time that rove takes to read a page. Without a folder, it shows the
generated pages alone.
"""

from __future__ import annotations

import argparse
import re
import time
import zlib
from collections.abc import Callable, Sequence

from benchmarks import plot, real_folder
from benchmarks.real_web import RealWeb
from benchmarks.web import WebPlan
from benchmarks.webs import REAL
from rove.demo.draw import Draw
from rove.parse.html import Document, PageSource, read_html
from rove.urls.canonical import NO_IDS

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
TIMES = 3
"""The best of these times counts."""
URL = "http://harbor-fern-17.test/a/page"


def pattern_bytes(pattern: bytes) -> Callable[[bytes], float]:
    """Return a function that counts the bytes of all that matches."""
    compiled = re.compile(pattern, re.S | re.I)
    return lambda page: sum(len(found[0]) for found in compiled.finditer(page))


def pattern_count(pattern: bytes) -> Callable[[bytes], float]:
    """Return a function that counts what matches."""
    compiled = re.compile(pattern, re.S | re.I)
    return lambda page: sum(1 for _ in compiled.finditer(page))


MEASURES: dict[str, Callable[[bytes], float]] = {
    "bytes": len,
    "bytes gzipped": lambda page: len(zlib.compress(page, 6)),
    "script bytes": pattern_bytes(rb"<script.*?</script>"),
    "style bytes": pattern_bytes(rb"<style.*?</style>"),
    "comment bytes": pattern_bytes(rb"<!--.*?-->"),
    "svg bytes": pattern_bytes(rb"<svg.*?</svg>"),
    "start tags": pattern_count(rb"<[a-z]"),
    "attributes": pattern_count(rb"\s[a-z-]+="),
    "entities": pattern_count(rb"&#?\w+;"),
    "anchors": pattern_count(rb"<a\s[^>]*href"),
    "different links": lambda page: len(_document(page).links),
    "text bytes": lambda page: len(_document(page).utf8),
}


def generated(count: int) -> list[bytes]:
    """Return whole pages of the benchmark's web."""
    plan = WebPlan(hosts=1_000, knobs=(*REAL, f"templates={count}"))
    assert isinstance(plan.web, RealWeb)
    pages = []
    for number, template in enumerate(plan.web.templates):
        source = template.source
        elsewhere = [plan.web.elsewhere(Draw(number, str(other))) for other in range(source.other_hosts)]
        part = source.navigation_of(f"harbor-fern-17.test {number}", "harbor-fern-17.test", elsewhere)
        pages.append(source.head + part + source.rest)
    return pages


def quantiles(values: Sequence[float]) -> list[float]:
    """Return the quantiles of some values, and their mean."""
    ordered = sorted(values)
    return [*(ordered[int(share * (len(ordered) - 1))] for share in SHARES), sum(ordered) / len(ordered)]


def cpu_ms(pages: Sequence[bytes]) -> float:
    """Return the CPU milliseconds that rove's HTML reader takes per page."""
    best = float("inf")
    for _ in range(TIMES):
        start = time.process_time()
        for page in pages:
            _document(page)
        best = min(best, time.process_time() - start)
    return 1000 * best / len(pages)


def rows(sets: dict[str, list[bytes]]) -> list[dict[str, str]]:
    """Return the table: a row for each measure and set of pages."""
    return [
        {"": measure, "pages": name}
        | {
            head: f"{value:,.0f}"
            for head, value in zip(
                (*(f"{share:.0%}" for share in SHARES), "mean"), quantiles(list(map(of, pages))), strict=True
            )
        }
        for measure, of in MEASURES.items()
        for name, pages in sets.items()
    ]


def _document(page: bytes) -> Document:
    return read_html(PageSource(body=page, url=URL, content_type=None), NO_IDS)


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", metavar="FOLDER", help="real pages, as *.html or *.html.gz")
    parser.add_argument("--count", type=int, default=200, help="number of generated pages (default: 200)")
    options = parser.parse_args()
    sets = {"generated": generated(options.count)}
    if options.pages:
        sets["real"] = real_folder.pages(options.pages)
    print(plot.markdown(rows(sets)))
    for name, pages in sets.items():
        print(f"- {name}: {len(pages)} pages, {cpu_ms(pages):.2f} ms of CPU time per page to read")


if __name__ == "__main__":
    main()
