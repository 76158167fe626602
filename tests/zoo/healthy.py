"""Ordinary small sites, whose pace shows whether the misbehaving ones slow them down."""

from __future__ import annotations

from tests.zoo.animal import DONE, Animal, SeenRequest, Wire, at, linking, says, whole

LINKS = 10
ROBOTS = b"User-agent: *\nDisallow: /private/\n"


def healthy(number: int, pages: int) -> Animal:
    """Return a site whose pages each link to the front page and to the next few."""
    name = f"healthy-{number:03d}"
    paths = ["/", *(f"/page-{n}" for n in range(1, pages))]
    prose = "".join(f"<p>Paragraph {n} of a page like many others.</p>" for n in range(40))

    async def answer(request: SeenRequest, wire: Wire) -> None:
        here = paths.index(request.path)
        links = ["/", *paths[here + 1 : here + 1 + LINKS]]
        await wire.send(whole(linking(f"{name}{request.path}", links) + prose.encode()))

    return Animal(
        name=name,
        what="a site as most are",
        answer=answer,
        expects={at(name, path): (DONE,) for path in paths},
        seeds=(at(name),),
        robots=says(whole(ROBOTS, type="text/plain")),
    )


def animals(count: int, pages: int) -> list[Animal]:
    """Return this many sites."""
    return [healthy(number, pages) for number in range(count)]
