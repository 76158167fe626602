"""Open the zoo: serve all animals on loopback from one thread, and log every request.

`python -m tests.zoo.keeper` opens the zoo and prints a command that crawls it. With --wild it opens it for a program:
without the healthy sites and until its input ends. It then prints seeds and connect options as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import json
import shlex
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from tests.zoo import bombs, endless, healthy, malformed, names, redirects, tls, traps
from tests.zoo.animal import CHUNK, Animal, SeenRequest, Wire

PAGES_PER_DOMAIN = 15
"""The page limit per domain for a crawl of the zoo, because the traps are endless."""
HEALTHY_HOSTS = 20
HEALTHY_PAGES = 10
FORBIDDEN_PORTS = (8080, 8888, 8000, 8008, 8081, 8088, 8880, 0)
"""Usual web ports, so that only the address forbids a connection; 0 (any port) if all of these are taken."""
MAX_REQUEST = 64 * 1024
TLS_HANDSHAKE = 0x16
"""The first byte of a TLS connection."""
NO_TLS = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
OVER = (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError)
"""A connection ends when the client disconnects, its time is over, or the zoo closes."""
SERVED_SECONDS = 30.0
"""The longest time that the zoo serves one connection."""

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Choose = Callable[[int], Sequence[Animal]]
"""Returns animals, given the port that must not be reached."""


def wild(forbidden: int) -> list[Animal]:
    """Return all animals that misbehave."""
    return [
        *endless.animals(),
        *malformed.animals(),
        *bombs.animals(),
        *redirects.animals(forbidden),
        names.animal(forbidden),
        *tls.animals(),
        *traps.animals(PAGES_PER_DOMAIN),
    ]


def everyone(forbidden: int) -> list[Animal]:
    """Return all animals that misbehave, and healthy sites."""
    return [*wild(forbidden), *healthy.animals(HEALTHY_HOSTS, HEALTHY_PAGES)]


@dataclass(kw_only=True)
class Zoo:
    """An open zoo."""

    animals: Sequence[Animal]
    requests: list[SeenRequest] = field(default_factory=list)
    trespasses: list[str] = field(default_factory=list)
    """Connections to the port that must not be reached."""
    lost: list[str] = field(default_factory=list)
    """Requests to hosts that no animal has."""
    port: int = 0
    dns_port: int = 0
    own_ports: dict[str, int] = field(default_factory=dict)

    @property
    def reach(self) -> list[str]:
        """The options that make rove connect to it. They leave the address guard on."""
        rules = [f"{name}.test=127.0.0.1:{port}" for name, port in self.own_ports.items()]
        rules.append(f"*.test=127.0.0.1:{self.port}")
        options = [word for rule in rules for word in ("--connect-to", rule)]
        return [*options, "--dns-server", f"127.0.0.1:{self.dns_port}"]

    @property
    def seeds(self) -> list[str]:
        """The seeds of all animals."""
        return [seed for animal in self.animals for seed in animal.seeds]

    def write_seeds(self, path: Path) -> Path:
        """Write a seed file."""
        path.write_text("".join(f"{seed}\n" for seed in self.seeds))
        return path

    def requests_to(self, animal: Animal) -> list[SeenRequest]:
        """Return the requests to an animal, in order."""
        return [asked for asked in list(self.requests) if _is_of(animal, asked.host)]

    def animal_at(self, host: str) -> Animal | None:
        """Return the animal that a host belongs to."""
        name = host.partition(":")[0].removesuffix(".test")
        for animal in self.animals:
            if animal.name == name:
                return animal
        return next((animal for animal in self.animals if _is_of(animal, host)), None)


def _is_of(animal: Animal, host: str) -> bool:
    name = host.partition(":")[0]
    return name == f"{animal.name}.test" or any(fnmatch.fnmatchcase(name, pattern) for pattern in animal.hosts)


@contextmanager
def opened(choose: Choose = everyone) -> Iterator[Zoo]:
    """Open a zoo, and close it afterwards."""
    with ExitStack() as stack:
        fences = _fences(stack)
        zoo = Zoo(animals=choose(fences[0].getsockname()[1]))
        ready = threading.Event()
        keeper = _Keeper(zoo, fences, stack, ready)
        thread = threading.Thread(target=uvloop.run, args=(keeper.run(),), name="zoo")
        thread.start()
        try:
            assert ready.wait(30), "the zoo did not open"
            yield zoo
        finally:
            keeper.close()
            thread.join()


def _fences(stack: ExitStack) -> list[socket.socket]:
    """Listen on the port that must not be reached, over IPv4 and, if possible, IPv6."""
    for port in FORBIDDEN_PORTS:
        try:
            fence = stack.enter_context(socket.create_server(("127.0.0.1", port)))
            break
        except OSError:
            continue
    port = fence.getsockname()[1]
    fences = [fence]
    with suppress(OSError):
        family = socket.AF_INET6
        fences.append(stack.enter_context(socket.create_server(("::1", port), family=family)))
    return fences


class _Keeper:
    """Serves a zoo from an event loop of its own."""

    def __init__(self, zoo: Zoo, fences: list[socket.socket], stack: ExitStack, ready: threading.Event) -> None:
        self._zoo = zoo
        self._fences = fences
        self._stack = stack
        self._ready = ready
        self._by_host = {f"{animal.name}.test": animal for animal in zoo.animals}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None

    def close(self) -> None:
        """Stop serving; called from another thread."""
        if self._loop is not None and self._over is not None:
            self._loop.call_soon_threadsafe(self._over.set)

    async def run(self) -> None:
        """Serve until it is closed."""
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        zoo = self._zoo
        servers = [await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4_096)]
        zoo.port = _port(servers[0])
        for animal in zoo.animals:
            if animal.is_full:
                zoo.own_ports[animal.name] = self._full()
            elif animal.has_own_port:
                handle = self._serve if animal.greets is None else _greeting(animal)
                server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=animal.tls)
                servers.append(server)
                zoo.own_ports[animal.name] = _port(server)
        for fence in self._fences:
            servers.append(await asyncio.start_server(self._trespassed, sock=fence.dup()))
        transport, _ = await self._loop.create_datagram_endpoint(names.NameServer, local_addr=("127.0.0.1", 0))
        zoo.dns_port = transport.get_extra_info("sockname")[1]
        self._ready.set()
        await self._over.wait()
        transport.close()
        for server in servers:
            server.close()

    def _full(self) -> int:
        """Return a port whose queue of connections stays full."""
        listening = self._stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            waiting = self._stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        port: int = listening.getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request and let its animal answer."""
        with suppress(*OVER):
            async with asyncio.timeout(SERVED_SECONDS):
                request = await _read_request(reader)
                if request is None:
                    writer.write(NO_TLS)
                else:
                    self._zoo.requests.append(request)
                    await self._answer(request, Wire(reader, writer))
        writer.close()

    async def _answer(self, request: SeenRequest, wire: Wire) -> None:
        animal = self._by_host.get(request.host.partition(":")[0]) or self._zoo.animal_at(request.host)
        if animal is None:
            self._zoo.lost.append(request.url)
        elif request.path.partition("?")[0] == "/robots.txt":
            await animal.robots(request, wire)
        else:
            await animal.answer(request, wire)

    async def _trespassed(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._zoo.trespasses.append(str(writer.get_extra_info("peername")))
        writer.close()


def _greeting(animal: Animal) -> Handle:
    greets = animal.greets
    assert greets is not None

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*OVER):
            async with asyncio.timeout(SERVED_SECONDS):
                await greets(Wire(reader, writer))
        writer.close()

    return handle


async def _read_request(reader: asyncio.StreamReader) -> SeenRequest | None:
    """Read a request; return None if the client speaks TLS to a plain port."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < MAX_REQUEST:
        data += await reader.read(CHUNK)
        if data[:1] == bytes([TLS_HANDSHAKE]):
            return None
        if reader.at_eof():
            raise ConnectionResetError
    lines = data.decode("latin-1").split("\r\n")
    host = next((line[5:].strip() for line in lines if line.lower().startswith("host:")), "")
    return SeenRequest(at=time.monotonic(), host=host.lower(), path=lines[0].split(" ")[1])


def _port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def main() -> None:
    """Open the zoo for a person, or for a program until its input ends."""
    parser = argparse.ArgumentParser(description="Opens the zoo.")
    parser.add_argument("--wild", action="store_true", help="serve a program, without the healthy sites")
    parser.add_argument("--without", action="append", default=[], help="leave an animal out")
    given = parser.parse_args()
    if not given.wild:
        show()
        return

    def choose(forbidden: int) -> list[Animal]:
        return [animal for animal in wild(forbidden) if animal.name not in given.without]

    with opened(choose) as zoo:
        print(json.dumps({"reach": zoo.reach, "seeds": zoo.seeds}), flush=True)
        sys.stdin.read()


def show() -> None:
    """Open the zoo for a person and print the command that crawls it."""
    with opened() as zoo, tempfile.TemporaryDirectory() as folder:
        seeds = zoo.write_seeds(Path(folder) / "seeds.txt")
        words = [
            "rove",
            "crawl",
            str(seeds),
            "--email",
            "you@crawler.test",
            "--data-dir",
            "zoo-data",
        ]
        words += ["--delay", "0.2", "--allow-short-delay", "--timeout", "2", "--sitemaps"]
        words += ["--max-pages-per-domain", str(PAGES_PER_DOMAIN), *zoo.reach]
        print(shlex.join(words), "\n\nCtrl-C closes the zoo.", flush=True)
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(60)
    if zoo.trespasses:
        sys.exit(f"reached what must not be reached: {zoo.trespasses}")


if __name__ == "__main__":
    main()
