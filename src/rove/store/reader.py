"""Reading single records back by the location that the frontier keeps, in a running crawl too."""

from __future__ import annotations

import os
from pathlib import Path

from rove.errors import StoreError
from rove.model.ledger import Content, Location
from rove.store.files import open_name
from rove.store.record import NotARecord, Record, decompress, text_block


class WarcReader:
    """Reads what a WarcStore wrote into a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read_text(self, location: Location, expect_url: str | None = None) -> str:
        """The text of a page; StoreError if it is not there, or is another page's."""
        return self._read(location, "conversion", expect_url).block.decode("utf-8", "replace")

    def read_content(self, content: Content) -> str:
        """A text that several pages have; StoreError if it is not there, or is another."""
        block = self._read(content.where, "conversion", None).block
        if text_block(block).checked != content.checked:
            raise StoreError(f"the record in {self._place(content.where)} has another text")
        return block.decode("utf-8", "replace")

    def read_raw(self, location: Location, expect_url: str | None = None) -> bytes:
        """The HTTP message of a page, content coding as sent; StoreError as for `read_text`."""
        return self._read(location, "response", expect_url).block

    def _read(self, location: Location, kind: str, expect_url: str | None) -> Record:
        place = self._place(location)
        try:
            record = decompress(self._member(location))
        except NotARecord as error:
            raise StoreError(f"the record in {place} is damaged: {error}") from error
        found = record.headers.get("warc-type", "")
        if found != kind:
            raise StoreError(f"the record in {place} is a {found!r} record, not a {kind!r} one")
        url = record.headers.get("warc-target-uri", "")
        if expect_url is not None and url != expect_url:
            raise StoreError(f"the record in {place} is of {url}, not of {expect_url}")
        return record

    def _place(self, location: Location) -> str:
        return f"{self._directory / location.file} at byte {location.offset}"

    def _member(self, location: Location) -> bytes:
        final = self._directory / location.file
        # The last look is for a file that was finished between the first two.
        for path in (final, open_name(final), final):
            try:
                fd = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unreadable(path, error) from error
            try:
                return os.pread(fd, location.length, location.offset)
            except OSError as error:
                raise _unreadable(path, error) from error
            finally:
                os.close(fd)
        raise StoreError(f"the page's file {final} is missing")


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be read: {error.strerror or error}")
