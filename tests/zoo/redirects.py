"""Redirects in circles, to nowhere, or to where a crawl must not go; and links and seeds to the same places.

The inward addresses name the port of a server that must not be reached, so that it would notice.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.zoo.animal import (
    ABSENT,
    DONE,
    Animal,
    Fate,
    Fates,
    SeenRequest,
    Wire,
    at,
    failed,
    head,
    linking,
    redirect,
    redirected,
    says,
    single,
    waiting,
    whole,
)

CHAIN = 100
HOPS_FOLLOWED = 20
"""The longest chain that a crawl follows."""
INWARD = {
    "loopback": "127.0.0.1",
    "loopback-in-ipv6": "[::1]",
    "hexadecimal": "0x7f.1",
    "decimal": "2130706433",
    "octal": "0177.0.0.1",
    "short": "127.1",
    "with-a-dot": "127.0.0.1.",
    "mapped": "[::ffff:127.0.0.1]",
    "compatible": "[::127.0.0.1]",
    "nat64": "[64:ff9b::7f00:1]",
    "any": "0.0.0.0",
    "any-in-ipv6": "[::]",
    "by-name": "localhost",
    "metadata": "169.254.169.254",
}
"""Ways to write an address that is not on the public Internet."""
REFUSED: Fates = (failed("address-refused"), waiting("address-refused"))
SCHEMES = {
    "file": "file:///etc/passwd",
    "javascript": "javascript:alert(1)",
    "ftp": "ftp://redirect-schemes.test/",
    "data": "data:text/html,hello",
    "gopher": "gopher://127.0.0.1:6379/_FLUSHALL",
    "nothing": "http://",
    "no-host": "http:///",
}
PORTS = (22, 25, 3306, 6379)
"""Ports of other services: a request to one is a message to it."""
BAD_PORTS = (22, 25)
"""Ports that not even a seed may name."""


def inward(forbidden: int, way: str) -> dict[str, Fates]:
    """Return the addresses, each with a path of its own, and their expected outcomes."""
    urls = [f"http://{host}:{forbidden}/{way}/{name}" for name, host in INWARD.items()]
    urls.append(f"http://169.254.169.254/latest/meta-data/{way}")
    return dict.fromkeys(urls, REFUSED)


def ports(numbers: Iterable[int], way: str, fate: Fate) -> dict[str, Fates]:
    """Return URLs at ports of other services, and their expected outcomes."""
    return {f"http://at-a-port.test:{port}/{way}": (fate,) for port in numbers}


def _fan(name: str, what: str, leads: dict[str, str], expects: dict[str, Fates]) -> Animal:
    """Return an animal whose front page links to pages that each redirect elsewhere."""

    async def answer(request: SeenRequest, wire: Wire) -> None:
        if request.path == "/":
            await wire.send(whole(linking(name, leads)))
        else:
            await wire.send(redirect(leads[request.path]))

    return Animal(
        name=name,
        what=what,
        answer=answer,
        expects={at(name): (DONE,), **expects},
        seeds=(at(name),),
    )


def _to_each(name: str, what: str, targets: dict[str, Fates]) -> Animal:
    """Answer with a redirect to each of the targets."""
    leads = {f"/{number}": target for number, target in enumerate(targets)}
    led: dict[str, Fates] = {at(name, path): (redirected(),) for path in leads}
    return _fan(name, what, leads, {**led, **targets})


def _linking(name: str, what: str, targets: dict[str, Fates]) -> Animal:
    return Animal(
        name=name,
        what=what,
        answer=says(whole(linking(name, targets))),
        expects={at(name): (DONE,), **targets},
        seeds=(at(name),),
    )


def _seeded(name: str, what: str, targets: dict[str, Fates]) -> Animal:
    return Animal(
        name=name,
        what=what,
        answer=says(whole(linking(name, ()))),
        expects={at(name): (DONE,), **targets},
        seeds=(at(name), *targets),
    )


def _schemes() -> Animal:
    name = "redirect-schemes"
    leads = {f"/{scheme}": target for scheme, target in SCHEMES.items()}
    expects: dict[str, Fates] = {at(name, path): (failed("redirect*"),) for path in leads}
    return _fan(name, "redirects to file:, javascript:, ftp:, data:", leads, expects)


def _controls() -> Animal:
    name = "redirect-controls"
    leads = {"/nul": "/a\0b", "/line-end": "/a\r\nX-Injected: b", "/tab": "/a\tb"}
    leads |= {"/escaped": "/a%0d%0aX-Injected:%20b", "/high": "/\xff\xfe", "/space": "/a b"}
    expects: dict[str, Fates] = {at(name, path): (redirected(at(name, "*")),) for path in leads}
    expects[at(name, "/nul")] = (failed("protocol"),)

    async def answer(request: SeenRequest, wire: Wire) -> None:
        if request.path == "/":
            await wire.send(whole(linking(name, leads)))
        elif request.path in leads:
            await wire.send(redirect(leads[request.path]))
        else:
            await wire.send(whole(linking("an end", ())))

    what = "redirects with control characters in the Location"
    return Animal(
        name=name,
        what=what,
        answer=answer,
        expects={at(name): (DONE,), **expects},
        seeds=(at(name),),
    )


def _chain() -> Animal:
    name = "redirect-chain"

    async def answer(request: SeenRequest, wire: Wire) -> None:
        step = int(request.path[1:] or 0)
        await wire.send(redirect(f"/{step + 1}") if step < CHAIN else whole(linking("the end", ())))

    reached = {at(name, f"/{n}"): (redirected(),) for n in range(1, HOPS_FOLLOWED)}
    beyond = {at(name, f"/{n}"): (ABSENT,) for n in range(HOPS_FOLLOWED + 5, CHAIN + 1)}
    return Animal(
        name=name,
        what="a chain of 100 redirects",
        answer=answer,
        expects={at(name): (redirected(),), **reached, **beyond},
        seeds=(at(name),),
        most=HOPS_FOLLOWED + 10,
    )


def _abroad() -> Animal:
    """Return a redirect chain over hosts that are domains of their own, each with its own robots.txt."""
    name = "redirect-abroad"
    hosts = [f"http://redirect-abroad-{n}.test/" for n in range(4)]

    async def answer(request: SeenRequest, wire: Wire) -> None:
        here = request.url
        after = hosts.index(here) + 1 if here in hosts else 0
        await wire.send(redirect(hosts[after]) if after < len(hosts) else whole(linking("there", ())))

    return Animal(
        name=name,
        what="a chain of redirects over five hosts",
        answer=answer,
        expects={
            at(name): (redirected(),),
            **dict.fromkeys(hosts[:-1], (redirected(),)),
            hosts[-1]: (DONE,),
        },
        seeds=(at(name),),
        hosts=("redirect-abroad-*.test",),
    )


async def _two_cycle(request: SeenRequest, wire: Wire) -> None:
    await wire.send(redirect("/" if request.path == "/other" else "/other"))


def _fly(location: str) -> bytes:
    return head("302 Found", f"Location: {location}")


def animals(forbidden: int) -> list[Animal]:
    """Return all animals of this kind; `forbidden` is the port that must not be reached."""
    turning = "redirect-two-cycle"
    return [
        single(
            "redirect-to-itself",
            "redirects to itself",
            says(redirect("/")),
            failed("redirect loop"),
        ),
        Animal(
            name=turning,
            what="two pages that redirect to each other",
            answer=_two_cycle,
            expects={
                at(turning): (redirected(), failed("redirect loop")),
                at(turning, "/other"): (redirected(), failed("redirect loop")),
            },
            seeds=(at(turning),),
            most=10,
        ),
        _chain(),
        _abroad(),
        single(
            "redirect-huge",
            "a Location of a megabyte",
            says(_fly("/" + "x" * 1_000_000)),
            failed("protocol"),
        ),
        _schemes(),
        _controls(),
        _to_each(
            "redirect-inward",
            "redirects to loopback, metadata and private addresses, in many spellings",
            inward(forbidden, "redirect"),
        ),
        _linking("links-inward", "links to the same addresses", inward(forbidden, "link")),
        _seeded("seeds-inward", "the same addresses as seeds", inward(forbidden, "seed")),
        _to_each(
            "redirect-to-ports",
            "redirects to ports such as 22 and 6379",
            ports(PORTS, "redirect", ABSENT),
        ),
        _linking("links-to-ports", "links to such ports", ports(PORTS, "link", ABSENT)),
        _seeded("at-a-port", "seeds at such ports", ports(BAD_PORTS, "seed", failed("port-refused"))),
    ]
