"""The server's log of requests, one JSON object per line.

Times are of the monotonic clock. A request starts when its first byte arrives and ends when the kernel has taken the
last byte of its response.
"""

from __future__ import annotations

import asyncio
import enum
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rove.demo.robots import ROBOTS_PATHS
from rove.urls.canonical import parse_base, plain_url

FLUSH_SECONDS = 0.02


class LogKind(enum.StrEnum):
    """What a client sent."""

    REQUEST = "request"
    NOT_HTTP = "not-http"
    """Bytes that are not HTTP. They have no host, path or status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One line of the log."""

    kind: LogKind = LogKind.REQUEST
    start: float
    end: float
    host: str = ""
    path: str = ""
    """With its query, as the client wrote it."""
    status: int = 0
    """0 if the client left before the response."""
    agent: str = ""
    location: str = ""
    """The target of a redirect, as sent."""
    size: int = 0
    """Bytes of the response with its head; 0 if the client left before."""
    complete: bool = True
    """The whole response was sent."""
    connected: bool = True
    """It was the first request of its connection."""

    @property
    def url(self) -> str:
        """The canonical URL of the request."""
        text = f"http://{self.host}{self.path}"
        url = plain_url(text)
        return text if url is None else url.text

    @property
    def target(self) -> str:
        """The canonical URL that the response redirects to, or ''."""
        url = plain_url(self.location, parse_base(self.url)) if self.location else None
        return "" if url is None else url.text

    @property
    def for_robots(self) -> bool:
        """Whether the request is for robots.txt."""
        return self.path in ROBOTS_PATHS


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(LoggedRequest)


def encode(entries: list[LoggedRequest]) -> bytes:
    """Encode entries as lines of the log."""
    return _encoder.encode_lines(entries)


def decode(lines: bytes) -> list[LoggedRequest]:
    """Decode whole lines; ignore a last line that is still being written."""
    return _decoder.decode_lines(lines[: lines.rfind(b"\n") + 1])


def read_log(path: Path) -> list[LoggedRequest]:
    """Read all entries of a log file."""
    return decode(path.read_bytes())


class RequestLog:
    """Appends entries to a log file that several processes may share.

    Each batch is one write to a file opened for appending, so lines of different processes do not mix.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._waiting: list[LoggedRequest] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, entry: LoggedRequest) -> None:
        """Add an entry, which is written within FLUSH_SECONDS."""
        self._waiting.append(entry)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write the waiting entries."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines = encode(self._waiting)
        self._waiting.clear()
        while lines:
            lines = lines[os.write(self._file, lines) :]

    def close(self) -> None:
        """Write the waiting entries and close the file."""
        self.flush()
        os.close(self._file)
