"""Writes the pages of `rove export`, with a function for each format."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rove.cli.data_out import Format, print_unfinished
from rove.cli.output import print_note, progress, standard_output, write_json
from rove.errors import RoveError
from rove.export.captures import CaptureChoice, WarcFiles
from rove.export.chosen import Export, Span, examples_first
from rove.export.dataset_card import DATA_FOLDER, Tally, dataset_card
from rove.export.documents import COLUMNS, Document, DocumentReader, document_json, document_row
from rove.export.output import sync_file, whole_directory
from rove.export.parquet import ShardWriter
from rove.export.wacz import WaczWriter
from rove.inspect.lookup import site_named
from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import PageQuery, Where
from rove.inspect.whole_file import whole_file
from rove.model.usage import Purpose
from rove.notation.humanize import counted
from rove.policy.exclusions import Exclusions


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the options ask for."""

    kind: Format
    domain: str | None
    status: int | None
    where: Where | None
    purpose: Purpose | None
    since: float
    until: float
    limit: int | None
    everything: bool
    name: str
    output: Path | None
    force: bool

    @property
    def choice(self) -> str:
        """The options that decide which pages are written, and how, for the state of an incremental export."""
        parts = [f"--format {self.kind}"]
        parts += [f"--domain {self.domain}"] if self.domain is not None else []
        parts += [f"--status {self.status}"] if self.status is not None else []
        parts += [f"--where {self.where.text}"] if self.where is not None else []
        parts += [f"--for {self.purpose}"] if self.purpose is not None else []
        parts += ["--all"] if self.everything else []
        return " ".join(parts)

    @property
    def is_whole(self) -> bool:
        """Whether all pages are asked for."""
        times = (self.since, self.until) == (-math.inf, math.inf)
        choices = (self.domain, self.status, self.where, self.purpose, self.limit)
        return times and all(choice is None for choice in choices) and not self.everything

    @property
    def path(self) -> Path:
        """The output, where it is a file or directory."""
        assert self.output is not None, "checked with the options"
        return self.output

    async def export(self, archive: Archive, span: Span | None) -> Export:
        """Return the pages of one crawl."""
        site = None if self.domain is None else site_named(self.domain, await archive.form())
        query = PageQuery(site=site, status=self.status, where=self.where, since=self.since, until=self.until)
        return Export(archive, query, everything=self.everything, limit=self.limit, purpose=self.purpose, span=span)


@dataclass(slots=True)
class Chosen:
    """The pages to write, of one or more crawls, and what was left out."""

    wanted: Wanted
    exports: list[Export]
    readers: list[DocumentReader] = field(default_factory=list)
    unfinished: int = 0
    damaged: int = 0

    async def documents(self, *, need_text: bool = False) -> AsyncIterator[Document]:
        """Iterate over the documents of all crawls, with a progress bar."""
        total = await self._total()
        with progress("writing pages", total, is_shown=self.wanted.output is not None) as advance:
            for export in self.exports:
                pages = export.pages()
                if self.wanted.kind is Format.JSONL:
                    pages = examples_first(pages)
                reader = DocumentReader(export.archive, lambda sentence: print_note(f"rove: {sentence}"))
                self.readers.append(reader)
                async for document in reader.documents(pages):
                    advance(1)
                    if document.text is not None or not need_text:
                        yield document

    async def _total(self) -> int | None:
        """Return how many pages there are, if that is known beforehand."""
        if not self.wanted.is_whole or any(export.span is not None for export in self.exports):
            return None
        return sum([(await export.archive.reader.counts()).pages for export in self.exports])

    @property
    def left_out(self) -> bool:
        """Whether pages were found that are not in the output."""
        return (
            any(export.elsewhere or export.excluded or export.unwanted for export in self.exports)
            or self.unreadable > 0
        )

    @property
    def unreadable(self) -> int:
        """Pages whose text could not be read."""
        return sum(reader.unreadable for reader in self.readers)

    def print_notes(self, directories: list[Path]) -> None:
        """Say what was left out, unless it is in another of the data directories that were read."""
        if excluded := sum(export.excluded for export in self.exports):
            print_note(f"rove: {counted(excluded, 'page')} left out, because of 'rove exclude'")
        if unwanted := sum(export.unwanted for export in self.exports):
            print_note(f"rove: {counted(unwanted, 'page')} left out, because of the site's usage preference")
        read = tuple(f":{directory.resolve()}" for directory in directories)
        for export in self.exports:
            for node, count in export.elsewhere.items():
                if len(read) == 1 or not node.endswith(read):
                    verb = "is" if count == 1 else "are"
                    print_note(f"rove: {counted(count, 'page')} {verb} not here but at {node}")
        print_unfinished(self.unfinished)
        if self.damaged:
            raise RoveError(f"{counted(self.damaged, 'WARC file')} could not be read to the end; see above")
        if self.unreadable:
            raise RoveError(f"{counted(self.unreadable, 'page')} could not be read; they are listed above")


OnComplete = Callable[[Path], None]


async def _write_jsonl(chosen: Chosen, on_complete: OnComplete) -> int:
    wanted = chosen.wanted
    written = 0
    whole = (
        nullcontext(standard_output())
        if wanted.output is None
        else whole_file(wanted.output, overwrite=wanted.force, on_complete=on_complete)
    )
    with whole as file:
        async for document in chosen.documents():
            write_json(document_json(document), file)
            written += 1
    return written


async def _write_parquet(chosen: Chosen, on_complete: OnComplete) -> int:
    wanted = chosen.wanted
    with whole_directory(wanted.path, overwrite=wanted.force, on_complete=on_complete) as directory:
        tally = await _write_shards(chosen, lambda number: directory / f"{number:05}.parquet")
    return tally.pages


async def _write_hf(chosen: Chosen, on_complete: OnComplete) -> int:
    wanted = chosen.wanted
    with whole_directory(wanted.path, overwrite=wanted.force, on_complete=on_complete) as directory:
        tally = await _write_shards(chosen, lambda number: directory / DATA_FOLDER / f"train-{number:05}.parquet")
        archives = [export.archive for export in chosen.exports]
        settings = [await archive.settings() for archive in archives]
        patterns = {pattern for archive in archives for pattern in await archive.catalog.exclusions()}
        card = directory / "README.md"
        card.write_text(dataset_card(wanted.name, tally, settings, exclusions=len(patterns)), "utf-8")
        sync_file(card)
    return tally.pages


async def _write_shards(chosen: Chosen, path_of: Callable[[int], Path]) -> Tally:
    tally = Tally()
    writer = ShardWriter(COLUMNS, path_of)
    try:
        async for document in chosen.documents(need_text=True):
            writer.add(document_row(document, chosen.wanted.name))
            tally.add(document)
        writer.close()
    finally:
        writer.abandon()
    return tally


async def _write_wacz(chosen: Chosen, on_complete: OnComplete) -> int:
    wanted = chosen.wanted
    archives = [export.archive for export in chosen.exports]
    patterns = {pattern for archive in archives for pattern in await archive.catalog.exclusions()}
    choice = CaptureChoice(
        domain=wanted.domain,
        status=wanted.status,
        since=wanted.since,
        until=wanted.until,
        exclusions=Exclusions(patterns),
    )
    directories = [archive.pages.directory for archive in archives]
    files = WarcFiles(directories, on_damage=lambda sentence: print_note(f"rove: {sentence}"))
    with whole_file(wanted.path, overwrite=wanted.force, on_complete=on_complete) as file:
        writer = WaczWriter(file, wanted.path.resolve().parent)
        with progress("copying responses", files.size) as advance:
            writer.add_records(files, choice, advance)
        written = await writer.add_pages(chosen.documents())
        writer.finish(wanted.name)
    chosen.unfinished, chosen.damaged = files.unfinished, files.damaged
    return written


WRITERS = {
    Format.JSONL: _write_jsonl,
    Format.PARQUET: _write_parquet,
    Format.HF: _write_hf,
    Format.WACZ: _write_wacz,
}
