"""Finds the records of pages in WARC files, as an index of them needs to know them."""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from rove.errors import StoreError, UsageError
from rove.policy.exclusions import Exclusions
from rove.store.files import OPEN_SUFFIX
from rove.store.record import HEAD_END, NotARecord
from rove.store.scan import ScannedRecord, scan
from rove.urls.domain import domain_of
from rove.urls.origin import host_and_port, is_plausible, origin_of

HTTP_HEAD_BYTES = 64 * 1024
"""How much of a response is searched for the end of its head."""
TEXT_STATUS = 200
"""The status of every page whose text is stored."""
ROBOTS_PATH = "/robots.txt"


class Kind(enum.Enum):
    """The type of a WARC record that an index may have."""

    RESPONSE = "response"
    RESOURCE = "resource"
    REVISIT = "revisit"
    """It says that a response is known already."""
    TEXT = "conversion"
    TEXT_REVISIT = "revisit of a text"
    """It says that the text of a page is that of another page."""

    @property
    def is_text(self) -> bool:
        """Whether it is about the text of a page instead of the response."""
        return self in (Kind.TEXT, Kind.TEXT_REVISIT)


class Capture(NamedTuple):
    """A record of a page: what it is, and where."""

    kind: Kind
    url: str
    date: str
    """WARC-Date."""
    status: str | None
    """The HTTP status as the record has it."""
    headers: dict[str, str]
    """The headers of the response, by lower-case name; the first of each name."""
    record: ScannedRecord
    file: str

    @property
    def moment(self) -> datetime:
        """When the page was requested."""
        return datetime.fromisoformat(self.date)

    @property
    def stamp(self) -> str:
        """When it was requested, in 14 digits."""
        return "".join(filter(str.isdigit, self.date))[:14]

    @property
    def digest(self) -> str | None:
        """The digest of what a browser would show; with the name of the hash."""
        headers = self.record.headers
        return headers.get("warc-payload-digest") or headers.get("warc-block-digest")

    @property
    def media_type(self) -> str | None:
        """The type of the page without parameters, or of the text."""
        if self.kind in (Kind.REVISIT, Kind.TEXT_REVISIT):
            return "warc/revisit"
        text = self.headers.get("content-type") if self.kind is Kind.RESPONSE else self.record.headers["content-type"]
        return None if text is None else text.replace(";", " ").split(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureChoice:
    """Which records go into an index."""

    domain: str | None = None
    status: int | None = None
    since: float = -math.inf
    """Wall-clock seconds."""
    until: float = math.inf
    texts: bool = False
    """Also the texts, and the revisits of texts."""
    exclusions: Exclusions = field(default_factory=Exclusions)

    def takes(self, capture: Capture) -> bool:
        """Whether a record was chosen."""
        if capture.kind.is_text and not self.texts:
            return False
        if self.status is not None and status_of(capture) != self.status:
            return False
        if (self.since, self.until) != (-math.inf, math.inf) and not (
            self.since <= capture.moment.timestamp() < self.until
        ):
            return False
        host, _ = host_and_port(origin_of(capture.url))
        return (self.domain is None or domain_of(host) == self.domain) and not self.exclusions.covers(host)


class WarcFiles:
    """The WARC files of one or more directories, in the order of their names."""

    def __init__(self, directories: Sequence[Path], *, on_damage: Callable[[str], None]) -> None:
        """`on_damage` is called with a sentence when the rest of a file cannot be read."""
        found: dict[str, Path] = {}
        for path in (path for directory in directories for path in directory.glob("*.warc.gz")):
            if found.setdefault(path.name, path) != path:
                raise UsageError(f"{found[path.name]} and {path} have the same name; rename one of them in a copy")
        self.paths = [found[name] for name in sorted(found)]
        self.unfinished = sum(1 for directory in directories for _ in directory.glob(f"*.warc.gz{OPEN_SUFFIX}"))
        """Files that a crawl is writing, or that the next start will recover. They are not among `paths`."""
        self.damaged = 0
        self._on_damage = on_damage

    @property
    def size(self) -> int:
        """Their size in bytes."""
        return sum(path.stat().st_size for path in self.paths)

    def captures(self, advance: Callable[[int], None]) -> Iterator[Capture]:
        """Iterate over the records of pages. `advance` is called with the number of bytes that were read."""
        for path in self.paths:
            for record in self.records(path, advance):
                if (capture := capture_of(record, path.name)) is not None:
                    yield capture

    def records(self, path: Path, advance: Callable[[int], None]) -> Iterator[ScannedRecord]:
        """Iterate over all records of a file, up to the first one that is damaged."""
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
        end = 0
        try:
            for record in scan(fd, block_bytes=HTTP_HEAD_BYTES):
                end = record.end
                yield record
                advance(record.length)
        except NotARecord as error:
            self.damaged += 1
            self._on_damage(f"{path} is damaged at byte {end}: {error}; what follows is left out")
        finally:
            os.close(fd)


def capture_of(record: ScannedRecord, file: str) -> Capture | None:
    """Return a record as an index sees it; None if it is not about a page."""
    headers = record.headers
    kind = _kind_of(record)
    url = headers.get("warc-target-uri", "")
    if kind is None or not is_plausible(url):
        return None
    status, fields = _http_head(record.block) if kind in (Kind.RESPONSE, Kind.REVISIT) else (None, {})
    return Capture(kind, url, headers.get("warc-date", ""), status, fields, record, file)


def status_of(capture: Capture) -> int:
    """Return the HTTP status; -1 if the record has none that is a number."""
    if capture.kind.is_text:
        return TEXT_STATUS
    text = capture.status or ""
    return int(text) if len(text) == 3 and text.isdecimal() else -1


def _kind_of(record: ScannedRecord) -> Kind | None:
    """Return the kind of a record. Only a revisit of a response has an HTTP head in its block."""
    try:
        kind = Kind(record.headers.get("warc-type", ""))
    except ValueError:
        return None
    if kind is Kind.REVISIT and not record.headers.get("content-type", "").startswith("application/http"):
        return Kind.TEXT_REVISIT
    return kind


def _http_head(block: bytes) -> tuple[str | None, dict[str, str]]:
    """Return the status and the headers at the start of a response."""
    status_line, *lines = block.partition(HEAD_END)[0].decode("latin-1").split("\r\n")
    words = status_line.split(None, 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return words[1] if len(words) > 1 else None, headers
