"""Answers, robots.txt files and sitemaps that are small to send and expensive to read."""

from __future__ import annotations

import gzip
import zlib
from functools import cache

import brotli

from tests.zoo.animal import (
    CUT,
    DONE,
    READ,
    Animal,
    Answer,
    Fate,
    SeenRequest,
    Wire,
    at,
    head,
    linking,
    redirect,
    says,
    single,
    waiting,
    whole,
)
from tests.zoo.endless import dripping, forever

MIB = 1024 * 1024
GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
ZEROS_AT_ONCE = 10 * MIB
BLOCKS = 1_000
"""This many blocks of zeros are ten gigabytes."""
PLAIN = linking("a plain page", ())
LINKS = 100_000


@cache
def zeros_block() -> bytes:
    """Return ten megabytes of zeros as a part of a deflate stream that can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(bytes(ZEROS_AT_ONCE)) + packer.flush(zlib.Z_FULL_FLUSH)


def _pages(front: bytes, *lines: str, type: str = "text/html; charset=utf-8") -> Answer:
    """Answer with the front page, and with a plain page for every other path."""

    async def answer(request: SeenRequest, wire: Wire) -> None:
        if request.path == "/":
            await wire.send(whole(front, *lines, type=type))
        else:
            await wire.send(whole(PLAIN))

    return answer


def _page(name: str, what: str, body: bytes, *fates: Fate, type: str = "text/html") -> Animal:
    return single(name, what, _pages(body, type=type), *(fates or (DONE,)))


def _packed(name: str, what: str, body: bytes, coding: str) -> Animal:
    return single(name, what, _pages(body, f"Content-Encoding: {coding}"), CUT)


async def _ten_gigabytes(_request: SeenRequest, wire: Wire) -> None:
    """Send ten gigabytes of zeros as ten megabytes of gzip."""
    await wire.send(head("200 OK", "Content-Encoding: gzip") + GZIP_HEAD)
    for _ in range(BLOCKS):
        await wire.send(zeros_block())


def _robots(name: str, what: str, robots: Answer, *fates: Fate) -> Animal:
    return single(name, what, says(whole(PLAIN)), *fates, robots=robots)


def _of_robots() -> list[Animal]:
    rules = b"User-agent: *\nDisallow: /secret\n"
    plain = "text/plain"

    async def loop(request: SeenRequest, wire: Wire) -> None:
        await wire.send(redirect("/robots.txt" if "?" in request.path else "/robots.txt?again"))

    return [
        _robots(
            "huge-robots",
            "a robots.txt of 5 MB, full of rules",
            says(whole(rules + b"Disallow: /*a*b*c*d*e$\n" * 200_000, type=plain)),
            DONE,
        ),
        _robots(
            "endless-robots",
            "a robots.txt without an end",
            forever(head(type=plain) + rules, b"Disallow: /more\n" * 4_000),
            DONE,
        ),
        _robots("looping-robots", "a robots.txt that redirects to itself", loop, DONE),
        _robots("html-robots", "an HTML page as robots.txt", says(whole(PLAIN)), DONE),
        _robots(
            "dripping-robots",
            "a robots.txt that arrives one byte per second",
            dripping(head("200 OK", "Content-Length: 1000", type=plain), b"User-agent: *\n"),
            waiting("timeout-*"),
            waiting("too-slow"),
        ),
        _robots(
            "failing-robots",
            "status 500 for robots.txt",
            says(head("500 Oops")),
            waiting("status-500"),
        ),
    ]


def _of_sitemaps() -> Animal:
    """Return an animal whose sitemaps are an XML entity bomb and a gzip bomb."""
    name = "bomb-in-sitemap"
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "http://x.test/"}">' for n in range(10))
    xml = (
        f'<?xml version="1.0"?><!DOCTYPE u [{entities}]><urlset>'
        f"<url><loc>&e9;</loc></url><url><loc>{at(name, '/listed')}</loc></url></urlset>"
    )
    maps = ("/sitemap.xml", "/packed.xml.gz")

    async def answer(request: SeenRequest, wire: Wire) -> None:
        if request.path == maps[0]:
            await wire.send(whole(xml.encode(), type="application/xml"))
        elif request.path == maps[1]:
            body = GZIP_HEAD + zeros_block() * 100
            await wire.send(whole(body, type="application/gzip"))
        else:
            await wire.send(whole(PLAIN))

    lines = "".join(f"Sitemap: {at(name, path)}\n" for path in maps)
    return Animal(
        name=name,
        what="an XML bomb and a compressed bomb as sitemaps",
        answer=answer,
        expects={
            at(name): (DONE,),
            at(name, maps[0]): (READ,),
            at(name, maps[1]): (READ,),
        },
        seeds=(at(name),),
        robots=says(whole(lines.encode(), type="text/plain")),
    )


def animals() -> list[Animal]:
    """Return all animals of this kind."""
    nested = GZIP_HEAD + zeros_block() * 100
    many_links = "".join(f'<a href="/{n}">{n}</a>' for n in range(LINKS)).encode()
    long_links = [f"/{n}?{'x' * 100_000}" for n in range(40)]
    attributes = " ".join(f"a{n}='{n}'" for n in range(50_000)).encode()
    words = "<title>wörter</title><p>Ein Satz mit Ümläuten, der länger ist.</p>"
    return [
        single("gzip-bomb", "10 GB of zeros in 10 MB of gzip", _ten_gigabytes, CUT),
        _packed("nested-bomb", "gzip in gzip, a gigabyte of zeros", gzip.compress(nested), "gzip, gzip"),
        _packed("brotli-bomb", "200 MB of zeros in 40 KB of brotli", _brotli_bomb(), "br"),
        _page("large-body", "a body of 12 MB", b"<p>word after word</p>\n" * 550_000, CUT),
        _page("huge-title", "a title of 4 MB", b"<title>" + b"long " * 800_000 + b"</title><p>x"),
        _page("many-links", "100,000 links", many_links),
        _page("long-links", "links of 100 KB each", linking("long links", long_links)),
        _page("nested-divs", "100,000 nested divs", b"<div>" * 100_000 + b"deep"),
        _page("nested-tables", "nested tables", b"<table><tr><td>" * 20_000 + b"deep"),
        _page(
            "many-attributes",
            "50,000 attributes of one tag",
            b"<p " + attributes + b">text",
        ),
        _page("angle-brackets", "a megabyte of '<'", b"<" * MIB),
        _page("open-comment", "a comment that is opened 100,000 times", b"<!--" * 100_000),
        _page("odd-formatting", "formatting tags that are never closed", b"<b><i><p>" * 10_000),
        _page(
            "says-utf-16",
            "declares UTF-16, sends UTF-8",
            words.encode(),
            type="text/html; charset=utf-16",
        ),
        _page(
            "says-utf-8",
            "declares UTF-8, sends UTF-16",
            words.encode("utf-16"),
            type="text/html; charset=utf-8",
        ),
        _page("says-utf-7", "declares UTF-7", b"<p>+ADw-script+AD4-", type="text/html; charset=utf-7"),
        _page(
            "says-nonsense",
            "declares a charset that does not exist",
            words.encode(),
            type="text/html; charset=\xffx",
        ),
        _of_sitemaps(),
        *_of_robots(),
    ]


@cache
def _brotli_bomb() -> bytes:
    packed: bytes = brotli.compress(bytes(200 * MIB), quality=1)
    return packed
