"""Reads single records by their location, also while the crawl is running."""

from __future__ import annotations

import os
from pathlib import Path

from rove.errors import StoreError
from rove.model.ledger import Content, Location
from rove.store.files import open_name
from rove.store.record import NotARecord, Record, decompress, sha1_64, sha1_of


class WarcReader:
    """Reads records from the WARC files of a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read_text(self, location: Location, expect_url: str | None = None) -> str:
        """Return the text of a page; raise StoreError if it is missing or belongs to another page."""
        return self._read(location, "conversion", expect_url).block.decode("utf-8", "replace")

    def read_content(self, content: Content) -> str:
        """Return a text that several pages share; raise StoreError if it is missing or another text."""
        block = self._read(content.where, "conversion", None).block
        if sha1_64(sha1_of(block)) != content.sha1_64:
            raise StoreError(f"the record in {self._position(content.where)} is another text")
        return block.decode("utf-8", "replace")

    def read_raw(self, location: Location, expect_url: str | None = None) -> bytes:
        """Return the HTTP response of a page, with its content coding; raise StoreError like `read_text`."""
        return self._read(location, "response", expect_url).block

    def response_id(self, location: Location, expect_url: str) -> str | None:
        """Return the record id of the HTTP response of a page; raise StoreError like `read_text`."""
        return self._read(location, "response", expect_url).headers.get("warc-record-id")

    def _read(self, location: Location, kind: str, expect_url: str | None) -> Record:
        position = self._position(location)
        try:
            record = decompress(self._member(location))
        except NotARecord as error:
            raise StoreError(f"the record in {position} is damaged: {error}") from error
        actual = record.headers.get("warc-type", "")
        if actual != kind:
            raise StoreError(f"the record in {position} is a {actual!r} record, not a {kind!r} one")
        url = record.headers.get("warc-target-uri", "")
        if expect_url is not None and url != expect_url:
            raise StoreError(f"the record in {position} is of {url}, not of {expect_url}")
        return record

    def _position(self, location: Location) -> str:
        return f"{self.directory / location.file} at byte {location.offset}"

    def _member(self, location: Location) -> bytes:
        final = self.directory / location.file
        # The file may get its final name between the first two attempts.
        for path in (final, open_name(final), final):
            try:
                fd = os.open(path, os.O_RDONLY)
                try:
                    return os.pread(fd, location.length, location.offset)
                finally:
                    os.close(fd)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
        raise StoreError(f"the WARC file {final} is missing")
