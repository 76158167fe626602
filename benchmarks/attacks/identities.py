"""Measure what keyed ids cost: the time per link and per seed with each hash, in turns.

    .venv/bin/python -m benchmarks.attacks.identities                    # pages of the benchmark's web
    .venv/bin/python -m benchmarks.attacks.identities --pages FOLDER     # real pages (*.html.gz)

XXH3-64 has no key: a name with the id of another took 25 s to find. Of SipHash, which needs an extra package, only the
versions that are installed are measured.
"""

from __future__ import annotations

import argparse
import gzip
import html
import re
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import xxhash

from benchmarks.plain_web import BENCH, PlainWeb
from rove.parse.links import resolve
from rove.urls.canonical import FormKey, UrlForm
from rove.urls.keyed_hash import KeyedHash, keyed_hash
from rove.urls.seed import parse_seed

SECRET = bytes(range(16))
ROUNDS = 40
HOSTS = 200
SEEDS = 5_000
PAGES_AT_ONCE = 5
SEEDS_AT_ONCE = 250
"""The best round of each small piece of work counts, so that other load on the machine hardly shows."""
_HREF = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"'>]+)""", re.IGNORECASE)

Page = tuple[str, list[str]]
"""The URL of a page and its hrefs."""


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", type=Path, metavar="FOLDER")
    folder: Path | None = options.parse_args().pages
    pages = plain_pages() if folder is None else real_pages(folder)
    seeds = [f"www.site-{number}.example" for number in range(SEEDS)]
    forms = {name: UrlForm(FormKey(secret=SECRET), hash=hash) for name, hash in hashes().items()}
    links = len(read_links(forms["XXH3-64"], pages))
    print(f"{len(pages):,} pages with {links:,} links, {len(seeds):,} seeds, best of {ROUNDS} rounds in turns")
    of_links = in_turns(forms, read_links, pages, PAGES_AT_ONCE)
    of_seeds = in_turns(forms, read_seeds, seeds, SEEDS_AT_ONCE)
    print(f"{'hash':<16}{'µs per link':>12}{'µs per page':>12}{'µs per seed':>12}")
    for name in forms:
        per_link, per_seed = 1e6 * of_links[name] / links, 1e6 * of_seeds[name] / len(seeds)
        print(f"{name:<16}{per_link:>12.2f}{1e6 * of_links[name] / len(pages):>12.1f}{per_seed:>12.2f}")


def hashes() -> dict[str, KeyedHash]:
    """Return the hashes to compare."""
    found: dict[str, KeyedHash] = {"XXH3-64": _xxh3, "BLAKE2b": keyed_hash(SECRET)}
    try:
        functions = import_module("siphash24")
    except ImportError:
        return found
    return found | {"SipHash-1-3": _siphash(functions.siphash13), "SipHash-2-4": _siphash(functions.siphash24)}


def _xxh3(data: bytes) -> int:
    number: int = xxhash.xxh3_64_intdigest(data)
    return number - (1 << 64) if number >= 1 << 63 else number


def _siphash(function: Callable[..., Any]) -> KeyedHash:
    def number(data: bytes) -> int:
        unsigned: int = function(data, key=SECRET).intdigest()
        return unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned

    return number


def plain_pages() -> list[Page]:
    """Return one page of each host of the benchmark's web."""
    web = PlainWeb(1, HOSTS, BENCH)
    return [(f"http://{host}/", hrefs(web.respond(host, "/").body)) for host in web.seeds()]


def real_pages(folder: Path) -> list[Page]:
    """Return the pages in a folder, as if each were the front page of a site of its own."""
    files = sorted(folder.glob("*.html.gz"))
    return [
        (f"https://www.site{number}.example/", hrefs(gzip.decompress(file.read_bytes())))
        for number, file in enumerate(files)
    ]


def hrefs(body: bytes) -> list[str]:
    """Return the links of a page as they are written."""
    return [html.unescape(href) for href in _HREF.findall(body.decode(errors="replace"))]


def read_links(form: UrlForm, pages: Sequence[Page]) -> list[int]:
    """Bring the links of all pages into canonical form; return their fingerprints."""
    return [link.fingerprint for url, found in pages for link in resolve(found, url=url, form=form)[0]]


def read_seeds(form: UrlForm, lines: Sequence[str]) -> None:
    """Read a seed file."""
    for line in lines:
        parse_seed(line, form)


def in_turns(
    forms: dict[str, UrlForm], work: Callable[[UrlForm, Sequence[Any]], object], items: Sequence[Any], at_once: int
) -> dict[str, float]:
    """Return the CPU time that some work takes with each form, in seconds: the sum of the best rounds of its pieces."""
    total = dict.fromkeys(forms, 0.0)
    for start in range(0, len(items), at_once):
        best = dict.fromkeys(forms, float("inf"))
        for number in range(ROUNDS):
            for name in list(forms)[:: 1 if number % 2 else -1]:
                began = time.process_time()
                work(forms[name], items[start : start + at_once])
                best[name] = min(best[name], time.process_time() - began)
        for name, seconds in best.items():
            total[name] += seconds
    return total


if __name__ == "__main__":
    main()
