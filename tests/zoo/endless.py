"""Servers that never finish, never start, or break off."""

from __future__ import annotations

import asyncio

from tests.zoo.animal import (
    CHUNK,
    CUT,
    DONE,
    Animal,
    Answer,
    Fate,
    Greeting,
    SeenRequest,
    Wire,
    failed,
    head,
    says,
    single,
    waiting,
    whole,
)

TEXT = b"<p>On and on it goes.</p>\n" * 2_000
CHUNKED = head("200 OK", "Transfer-Encoding: chunked")
TIMEOUT = failed("timeout-*")
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n"
NO_END = failed("protocol")
"""The expected outcome of an answer that never reaches its body."""


def forever(beginning: bytes, again: bytes) -> Answer:
    """Send a beginning, then repeat the same bytes for ever."""

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        await wire.send(beginning)
        await wire.forever(again)

    return answer


def dripping(beginning: bytes, again: bytes) -> Answer:
    """Send a beginning, then one byte per second."""

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        await wire.send(beginning)
        await wire.drip(again)

    return answer


def breaking_off(beginning: bytes, *, half: bool = False) -> Answer:
    """Send a beginning, then reset the connection, or close only the sending half."""

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        await wire.send(beginning)
        if not half:
            await asyncio.sleep(0.05)  # let the client read first, because a reset discards what was sent
            wire.reset()
            return
        wire.writer.write_eof()
        await wire.hold()

    return answer


def staying(beginning: bytes) -> Answer:
    """Send a beginning, keep the connection open for another request, and close it when one comes."""

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        await wire.send(beginning)
        await wire.reader.read(CHUNK)

    return answer


async def _hold(_request: SeenRequest, wire: Wire) -> None:
    await wire.hold()


async def _say_nothing(wire: Wire) -> None:
    await wire.hold()


async def _close(wire: Wire) -> None:
    wire.writer.close()


def _endless(name: str, what: str, beginning: bytes, again: bytes, *fates: Fate) -> Animal:
    return single(name, what, forever(beginning, again), *fates)


def _own(name: str, what: str, greets: Greeting, fate: Fate, *, scheme: str = "http") -> Animal:
    return single(name, what, says(b""), fate, greets=greets, scheme=scheme)


def animals() -> list[Animal]:
    """Return all animals of this kind."""
    chunk = b"%x\r\n" % len(TEXT) + TEXT + b"\r\n"
    status = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    return [
        _endless("endless-body", "a body without an end", head(), TEXT, CUT),
        _endless("endless-chunks", "chunks without an end", CHUNKED, chunk, CUT),
        _endless("endless-head", "header lines without an end", status, b"X-More: yes\r\n", NO_END),
        _endless("endless-header-line", "one header line without an end", status + b"X: ", TEXT, NO_END),
        _endless(
            "endless-interim",
            "'100 Continue' again and again",
            b"",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            NO_END,
        ),
        _endless(
            "endless-chunk-extension",
            "a chunk extension without an end",
            CHUNKED + b"5;x=",
            b"y" * 8_192,
            NO_END,
            TIMEOUT,
        ),
        _endless(
            "endless-trailer",
            "a trailer without an end",
            CHUNKED + b"5\r\nhello\r\n0\r\n",
            b"X-More: yes\r\n",
            NO_END,
        ),
        single(
            "dripping-head",
            "a byte of the head a second",
            dripping(b"", b"HTTP/1.1 200 OK"),
            TIMEOUT,
        ),
        single(
            "dripping-body",
            "a byte of the body a second",
            dripping(head("200 OK", "Content-Length: 1000"), b"slow "),
            TIMEOUT,
            failed("too-slow"),
        ),
        single("mute", "reads the request and never answers", _hold, TIMEOUT),
        single(
            "reset-in-head",
            "resets the connection within the head",
            breaking_off(b"HTTP/1.1 200 OK\r\nContent-"),
            failed("reset"),
        ),
        single(
            "reset-in-body",
            "resets the connection within the body",
            breaking_off(head("200 OK", "Content-Length: 1000") + b"half a"),
            failed("reset"),
        ),
        single(
            "half-closed",
            "closes its half of the connection within the body",
            breaking_off(whole(TEXT)[:-10], half=True),
            failed("reset"),
        ),
        _own(
            "deaf",
            "accepts a connection, and neither reads nor writes",
            _say_nothing,
            waiting("timeout-*"),
        ),
        _own("slamming", "accepts a connection and closes it", _close, waiting("reset")),
        _own(
            "endless-handshake",
            "never answers the first message of TLS",
            _say_nothing,
            waiting("timeout-*"),
            scheme="https",
        ),
        single(
            "faithless",
            "keeps the connection of its robots.txt open, and closes it at the next request",
            says(whole(TEXT)),
            DONE,
            robots=staying(MISSING % 0),
        ),
        single(
            "talkative",
            "sends more bytes than the robots.txt has",
            says(whole(TEXT)),
            DONE,
            robots=staying(MISSING % 0 + head("410 Gone", "Content-Length: 0")),
        ),
        single(
            "unfinished-refusal",
            "answers 404 for robots.txt, and its body never ends",
            says(whole(TEXT)),
            DONE,
            robots=staying(MISSING % 1_000 + b"not"),
        ),
        single(
            "full",
            "never completes a connection: its queue is full",
            says(b""),
            waiting("timeout-*"),
            is_full=True,
        ),
    ]
