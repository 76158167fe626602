"""Serve a web of traps on loopback, for traps.py: traps for a broad crawl, beside pages that are worth having.

- `good-N.test`: two hundred pages each, all worth having;
- `hot.test`: ten million pages, sixty links on each, all different;
- `calendar-N.test`: two hundred pages, each with a link into an endless calendar;
- `session-N.test`: two hundred pages, every link with a session id of its own;
- `deep-N.test`: two hundred pages, and a relative link that leads ever deeper.

`python -m benchmarks.trap_web --log FILE` prints `listening on 127.0.0.1:PORT` and serves until its standard input
ends. It logs one letter per request: G for the first request for a good page, A for a repeated one, H for a page of the
hot domain, T for a trap, R for robots.txt.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import uvloop

HOT_PAGES = 10_000_000
PAGES = 200
"""Good pages on each site."""
LINKS = 10
HOT_LINKS = 60
_PROSE = (
    "harbour lantern meadow river stone window garden winter letter market bridge engine kettle "
    "orchard painter quarry ribbon saddle timber valley walnut yellow zephyr anchor basket candle"
)
_WORDS = _PROSE.split()


class TrapWeb:
    """Answers requests, and remembers which good pages were requested."""

    def __init__(self) -> None:
        self._asked: set[tuple[str, str]] = set()

    def answer(self, host: str, target: str) -> tuple[str, str]:
        """Return the letter for the log and the page."""
        path, _, _ = target.partition("?")
        kind = host.partition("-")[0].partition(".")[0]
        if kind == "hot":
            place = int(path[3:]) if path[3:].isdigit() else 0
            draw = random.Random(place)
            links = (f"/p/{draw.randrange(HOT_PAGES)}" for _ in range(HOT_LINKS))
            return "H", _page(f"hot {place}", links, draw)
        if path == "/" or (path.startswith("/page/") and path.count("/") == 2):
            letter = "A" if (host, path) in self._asked else "G"
            self._asked.add((host, path))
            return letter, _good(kind, host, path)
        draw = random.Random(f"{host}{path}")
        return "T", _page(f"{host} {path}", _onward(kind, path), draw)


def _good(kind: str, host: str, path: str) -> str:
    """Return a good page with its links into the trap."""
    place = 0 if path == "/" else int(path.rpartition("/")[2])
    draw = random.Random(f"{host}{place}")
    links = [f"/page/{(place * 3 + number) % PAGES}" for number in range(1, LINKS + 1)]
    if kind == "calendar":
        links = ["/calendar/2026/11", *links]
    elif kind == "session":
        links = [f"{link}?PHPSESSID={secrets.token_hex(16)}" for link in links]
    elif kind == "deep":
        links = ["/more/and/more/", *links]
    return _page(f"{host} {place}", links, draw)


def _onward(kind: str, path: str) -> list[str]:
    """Return the links of a trap page."""
    if kind == "calendar":
        year, month = (int(part) for part in path.split("/")[2:4])
        days = [f"/calendar/{year}/{month:02}/{day:02}" for day in range(1, 29)]
        earlier = (year, month - 1) if month > 1 else (year - 1, 12)
        later = (year, month + 1) if month < 12 else (year + 1, 1)
        months = [f"/calendar/{y}/{m:02}" for y, m in (later, earlier, (year + 1, month))]
        return [*months, *(days if path.count("/") == 3 else ())]
    return ["more/", "and/", "and/more/"]


def _page(title: str, links: Iterable[str], draw: random.Random) -> str:
    words = " ".join(draw.choices(_WORDS, k=120))
    anchors = "".join(f'<li><a href="{link}">{link}</a>' for link in links)
    return f"<!DOCTYPE html><title>{title}</title><h1>{title}</h1><p>{words}</p><ul>{anchors}</ul>"


class _Connection(asyncio.Protocol):
    """Answers one request."""

    def __init__(self, web: TrapWeb, log: Path) -> None:
        self._web = web
        self._log = log
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\r\n\r\n" not in self._head:
            return
        line, *fields = self._head.decode("latin-1").split("\r\n")
        host = next((f[5:].strip() for f in fields if f.lower().startswith("host:")), "")
        target = line.split(" ")[1]
        if target == "/robots.txt":
            letter, status, body = "R", "404 Not Found", ""
        else:
            status = "200 OK"
            letter, body = self._web.answer(host.partition(":")[0], target)
        with self._log.open("a") as log:
            log.write(letter)
        raw = body.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(raw)}\r\n\r\n"
        self._transport.write(head.encode() + raw)
        self._transport.close()


def hosts(sites: int) -> list[str]:
    """Return the hosts of a web with this many sites of each kind."""
    kinds = ("good", "calendar", "session", "deep")
    return ["hot.test", *(f"{kind}-{number}.test" for kind in kinds for number in range(sites))]


async def _serve(log: Path) -> None:
    web = TrapWeb()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(web, log), "127.0.0.1", 0, backlog=4_096)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    over = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), over.set)
    await over.wait()


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    uvloop.run(_serve(parser.parse_args().log))


if __name__ == "__main__":
    main()
