"""Collect the metrics of a running crawl, as Prometheus does and as nobody should."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse

from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
_ADDRESS = re.compile(r"^metrics: http://127\.0\.0\.1:([0-9]+)/metrics$", re.MULTILINE)


def port_in(output: str) -> int | None:
    """Return the port of the metrics that a crawl has printed; None if it has not yet."""
    found = _ADDRESS.search(output)
    return int(found[1]) if found else None


def get(port: int, path: str = "/metrics", *, accept: str = "", method: str = "GET") -> tuple[HTTPResponse, str]:
    """Send one request; return the response and its body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers={"Accept": accept} if accept else {})
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def scraped(port: int) -> list[Metric]:
    """Return the metrics as Prometheus gets them."""
    return list(text_string_to_metric_families(get(port, accept=OPENMETRICS)[1]))  # type: ignore[no-untyped-call]


def value(families: list[Metric], name: str, **labels: str) -> float | None:
    """Return the sum of the series with this name that have these labels; None if there are none."""
    found = [
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found) if found else None


@contextmanager
def hostile_clients(port: int) -> Iterator[None]:
    """Keep the endpoint busy during the block: connections that send nothing, half a request, garbage, or too much."""
    with ExitStack() as stack:

        def connect() -> socket.socket | None:
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            with suppress(BlockingIOError):
                connection.connect(("127.0.0.1", port))
            return connection

        for _ in range(500):
            connect()
        for words in (
            b"GET /metr",
            b"\0" * 100_000,
            b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 1_700_000,
            b"DELETE / X\n\n",
        ):
            _send(port, words)
        yield


def _send(port: int, words: bytes) -> None:
    """Send bytes until they are sent, or the server has had enough."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(words)
