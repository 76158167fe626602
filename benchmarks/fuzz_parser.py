"""Look for pages that crash, hang or overload the HTML reader, which runs inside the crawling process.

A child process reads mutated pages: cut, spliced, with bytes changed, with tags repeated, and random bytes. Each input
is kept in memory that it shares with its parent, so that the parent can save the input that killed it.

    python -m benchmarks.fuzz_parser --seconds 3600 --out /tmp/findings
    python -m benchmarks.fuzz_parser --pages DIR    # start from *.html and *.html.gz, too
"""

from __future__ import annotations

import argparse
import gzip
import mmap
import os
import random
import resource
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.unit.parse.evil_pages import EVIL_PAGES

from rove.parse.html import PageSource, read_html
from rove.urls.canonical import NO_IDS

MAX_INPUT = 3 << 20
MAX_CPU_SECONDS = 20
"""CPU time of one input after which the child is killed."""
SLOW_SECONDS = 0.3
"""CPU time of one input that is a finding: twice what a page may take, because other work disturbs the clock."""
MAX_GROWTH = 1 << 30
"""Bytes of address space that the child may add."""
INPUTS_PER_CHILD = 20_000
_HEAD = struct.Struct("<QQd")  # inputs so far, length of the current one, CPU time of the slowest

TAGS = """
a b i p div table tr td select option svg math title mi desc foreignObject annotation-xml template frameset frame iframe
noframes noscript script style textarea form button li dd dt ul ruby rt pre br hr html head body x-y font nobr applet
object marquee caption col colgroup tbody h1 base meta link area plaintext xmp image input
""".split()  # noqa: SIM905
ATTRIBUTES = ("", " href=x", " href='//h/?q=é'", " hidden", " a=1 b=2", " rel=nofollow", " name=robots", ' x="')
BITS = b"<!-- --> <![CDATA[ ]]> &amp; &#x0; &#xD800; &notit; \0 \xff \r\n < >".split(b" ")
LABELS = (None, "text/html; charset=utf-8", "text/html; charset=gbk", "text/html; charset=iso-2022-jp")


def mutated(choice: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return one input."""
    if choice.random() < 0.1:
        return choice.randbytes(choice.randrange(4_000))
    page = choice.choice(seeds)
    for _ in range(choice.choice((1, 2, 4, 16))):
        page = choice.choice(MUTATIONS)(choice, page, seeds)
    return page[:MAX_INPUT]


def _cut(choice: random.Random, page: bytes, _: Sequence[bytes]) -> bytes:
    return page[choice.randrange(len(page) + 1) :] if choice.random() < 0.5 else page[: choice.randrange(len(page) + 1)]


def _splice(choice: random.Random, page: bytes, seeds: Sequence[bytes]) -> bytes:
    other = choice.choice(seeds)
    start = choice.randrange(len(other) + 1)
    at = choice.randrange(len(page) + 1)
    return page[:at] + other[start : start + choice.choice((10, 100, 1_000, 50_000))] + page[at:]


def _change(choice: random.Random, page: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(page)
    for _number in range(choice.choice((1, 8, 64))):
        if changed:
            changed[choice.randrange(len(changed))] = choice.choice((choice.randrange(256), *b"<>\"'/=& -!"))
    return bytes(changed)


def _insert(choice: random.Random, page: bytes, _: Sequence[bytes]) -> bytes:
    pieces = []
    for _number in range(choice.choice((1, 2, 5))):
        if choice.random() < 0.3:
            pieces.append(choice.choice(BITS))
        else:
            slash = "/" if choice.random() < 0.3 else ""
            pieces.append(f"<{slash}{choice.choice(TAGS)}{choice.choice(ATTRIBUTES)}>".encode())
    times = choice.choice((1, 1, 1, 3, 100, 3_000))
    at = choice.randrange(len(page) + 1)
    return page[:at] + b"".join(pieces) * times + page[at:]


def _repeat(choice: random.Random, page: bytes, _: Sequence[bytes]) -> bytes:
    start = choice.randrange(len(page) + 1)
    piece = page[start : start + choice.choice((5, 50, 500))]
    return page[:start] + piece * choice.choice((2, 20, 500)) + page[start:]


MUTATIONS: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    _cut,
    _splice,
    _change,
    _insert,
    _repeat,
)


def _child(seeds: Sequence[bytes], shared: mmap.mmap, seed: int) -> None:
    choice = random.Random(seed)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MAX_GROWTH,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    slowest = 0.0
    for label in (None, "text/html; charset=gbk"):  # the charset detector and the public suffixes load at first use
        read_html(PageSource(body="<a href=//a.example>Текст".encode("cp1251"), url="", content_type=label), NO_IDS)
    for number in range(1, INPUTS_PER_CHILD + 1):
        page = mutated(choice, seeds)
        _HEAD.pack_into(shared, 0, number, len(page), slowest)
        shared[_HEAD.size : _HEAD.size + len(page)] = page
        used = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + MAX_CPU_SECONDS, resource.RLIM_INFINITY))
        label = choice.choice(
            (None, "text/html; charset=utf-8", "text/html; charset=gbk", "text/html; charset=iso-2022-jp")
        )
        read_html(PageSource(body=page, url="https://site.example/dir/page", content_type=label), NO_IDS)
        seconds = time.process_time() - used
        slowest = max(slowest, seconds)
        if seconds > SLOW_SECONDS:
            os._exit(2)


def _seeds(directory: Path | None) -> list[bytes]:
    seeds = [page(size)[:size] for page in EVIL_PAGES.values() for size in (300, 5_000, 100_000)]
    for path in sorted(directory.glob("*.html*")) if directory else ():
        raw = path.read_bytes()
        seeds.append(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return seeds


def main() -> None:
    """Fuzz for a time, report counts, save what killed a child."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--seed", type=int, default=time.time_ns())
    options = parser.parse_args()
    seeds = _seeds(options.pages)
    shared = mmap.mmap(-1, _HEAD.size + MAX_INPUT)
    until = time.monotonic() + options.seconds
    inputs, found, seed, slowest = 0, 0, options.seed, 0.0
    while time.monotonic() < until:
        seed += 1
        pid = os.fork()
        if not pid:
            try:
                _child(seeds, shared, seed)
                os._exit(0)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", flush=True)
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        number, length, slow = _HEAD.unpack_from(shared, 0)
        inputs += number
        slowest = max(slowest, slow)
        if status:
            found += 1
            options.out.mkdir(parents=True, exist_ok=True)
            path = options.out / f"{seed}-{number}.html"
            path.write_bytes(shared[_HEAD.size : _HEAD.size + length])
            print(f"status {os.waitstatus_to_exitcode(status)}: {path}", flush=True)
        print(f"{inputs:,} inputs, {found} findings, slowest {slowest:.3f} s", flush=True)


if __name__ == "__main__":
    main()
