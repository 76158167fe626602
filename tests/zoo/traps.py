"""Endless sites, and hosts that are slow or overloaded, for a while or for ever."""

from __future__ import annotations

import asyncio
import itertools

from tests.zoo.animal import (
    DONE,
    Animal,
    Answer,
    Fates,
    SeenRequest,
    Wire,
    at,
    failed,
    head,
    linking,
    says,
    single,
    whole,
)

SLOW_SECONDS = 0.6
"""Seconds that the slow host takes for a page, well within the zoo's timeout."""


def _trap(name: str, what: str, answer: Answer, *, most: int, hosts: tuple[str, ...] = ()) -> Animal:
    return Animal(
        name=name,
        what=what,
        answer=answer,
        expects={at(name): (DONE,)},
        seeds=(at(name),),
        most=most,
        hosts=hosts,
    )


async def _calendar(request: SeenRequest, wire: Wire) -> None:
    month = int(request.path.rpartition("=")[2]) if "=" in request.path else 0
    links = [f"/calendar?month={month + step}" for step in (-1, 1, 12)]
    await wire.send(whole(linking(f"month {month}", links)))


def _sessions() -> Answer:
    numbers = itertools.count()

    async def answer(request: SeenRequest, wire: Wire) -> None:
        links = [f"/shop?page={page}&sid={next(numbers):08x}" for page in range(5)]
        await wire.send(whole(linking("a shop", links)))

    return answer


async def _deeper(request: SeenRequest, wire: Wire) -> None:
    path = request.path.rstrip("/")
    await wire.send(whole(linking(f"depth {path.count('/')}", [f"{path}/down/", f"{path}/on/"])))


def _names() -> Answer:
    numbers = itertools.count()

    async def answer(request: SeenRequest, wire: Wire) -> None:
        links = [f"http://n{next(numbers)}.many-names.test/" for _ in range(50)]
        await wire.send(whole(linking(request.host, links)))

    return answer


def _always_the_same() -> Answer:
    numbers = itertools.count()

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        links = "".join(f'<a href="/{next(numbers)}">on</a>' for _ in range(5))
        await wire.send(whole(f"<title>The same</title><p>As before.</p>{links}".encode()))

    return answer


async def _slow(request: SeenRequest, wire: Wire) -> None:
    await asyncio.sleep(SLOW_SECONDS)
    await wire.send(whole(linking("a slow page", ["/second"])))


def _busy_at_first() -> Answer:
    asked_before = itertools.count()

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        if next(asked_before) < 2:
            await wire.send(head("429 Too Many Requests", "Retry-After: 1", "Content-Length: 0"))
        else:
            await wire.send(whole(linking("calm again", ())))

    return answer


def animals(pages: int) -> list[Animal]:
    """Return all animals of this kind; `pages` is the most pages that a crawl takes of a domain."""
    slow: dict[str, Fates] = {at("slow", path): (DONE,) for path in ("/", "/second")}
    few = pages + 8
    return [
        _trap("calendar", "an endless calendar", _calendar, most=few),
        _trap("sessions", "a new session id in every link", _sessions(), most=few),
        _trap("deeper", "paths that go ever deeper", _deeper, most=few),
        _trap(
            "many-names",
            "every page links to fifty new names of the host",
            _names(),
            most=2 * pages + 8,
            hosts=("*.many-names.test",),
        ),
        _trap("same-text", "endless new URLs with the same text", _always_the_same(), most=few),
        Animal(
            name="slow",
            what="takes its time for each page",
            answer=_slow,
            expects=slow,
            seeds=(at("slow"),),
        ),
        single(
            "always-busy",
            "429 for ever, with a Retry-After of 1",
            says(head("429 Too Many Requests", "Retry-After: 1", "Content-Length: 0")),
            failed("status 429"),
        ),
        single(
            "bot-wall",
            "a bot wall that its headers announce",
            says(head("403 Forbidden", "cf-mitigated: challenge", "Content-Length: 0")),
            failed("challenged"),
        ),
        single(
            "bot-wall-page",
            "a bot wall in place of the page",
            says(whole(b"<title>Just a moment...</title><script>_cf_chl_opt={}</script><a href=/x>x</a>")),
            failed("challenged"),
        ),
        single(
            "app-shell",
            "a page whose content is made by scripts",
            says(whole(b"<div id=root></div><script src=app.js></script>")),
            DONE,
        ),
        single("busy-at-first", "429 twice, then pages", _busy_at_first(), DONE),
        single(
            "down",
            "503 for ever",
            says(head("503 Service Unavailable", "Content-Length: 0")),
            failed("status 503"),
        ),
    ]
