"""`rove export`: the stored pages in the formats that other programs read."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.data_out import (
    Format,
    crawls_to_read,
    force_option,
    format_option,
    from_option,
    name_of,
    name_option,
    output_option,
    print_unfinished,
    refuse_standard_output,
    status_option,
)
from rove.cli.options import Command, domain_option, option, since_option, until_option, whole_number
from rove.cli.output import print_line, print_note, progress, reading, standard_output, write_json
from rove.errors import RoveError, UsageError
from rove.export.captures import CaptureChoice, WarcFiles
from rove.export.chosen import Export, Span, examples_first
from rove.export.dataset_card import DATA_FOLDER, Tally, dataset_card
from rove.export.documents import COLUMNS, Document, DocumentReader, document_json, document_row
from rove.export.incremental import State, crawl_mark
from rove.export.output import sync_file, whole_directory
from rove.export.parquet import ShardWriter, check_pyarrow
from rove.export.wacz import WaczWriter
from rove.inspect.lookup import domain_given, site_named
from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import PageQuery
from rove.inspect.whole_file import whole_file
from rove.notation.humanize import counted
from rove.policy.exclusions import Exclusions

_NEEDS_TEXT = (Format.PARQUET, Format.HF)


@click.command(cls=Command, short_help="Write the stored pages: JSON Lines, Parquet, a data set or WACZ.")
@format_option(Format.JSONL, Format.PARQUET, Format.HF, Format.WACZ)
@crawl_to_read
@domain_option
@status_option
@since_option
@until_option
@option("--limit", **whole_number(1), default_text="no limit", help="Maximum number of pages, the newest ones.")
@option("--all", "everything", is_flag=True, help="Also redirects, failures and pages that were not stored.")
@option(
    "--incremental",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="STATE",
    help="Only pages that are new since the last call with this file, which remembers how far it was.",
)
@from_option
@name_option
@output_option
@force_option
@reading
async def export(
    form: str,
    crawl: CrawlGiven,
    domain: str | None,
    status: int | None,
    since: float | None,
    until: float | None,
    limit: int | None,
    everything: bool,
    incremental: Path | None,
    sources: tuple[Path, ...],
    name: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write the stored pages, newest first, each with url, date, title, text and more.

    jsonl: JSON Lines in UTF-8; every line has all keys, null where empty. parquet: a directory of Parquet files with
    FineWeb's columns. hf: the same as a data set for Hugging Face, with a card. wacz: the original pages in one file
    that replayweb.page shows.

    Pages of domains that are excluded now are left out.
    """
    kind = Format(form)
    _check_options(kind, everything=everything, incremental=incremental, output=output, limit=limit)
    if incremental is not None and (since is not None or until is not None or len(sources) > 1):
        raise UsageError(
            "--incremental goes on where the last call ended; it takes no --since or --until, and one --from"
        )
    wanted = _Wanted(
        kind=kind,
        domain=None if domain is None else domain_given(domain),
        status=status,
        since=-math.inf if since is None else since,
        until=math.inf if until is None else until,
        limit=limit,
        everything=everything,
        name=name_of(crawl, sources, name),
        output=output,
        force=force,
    )
    async with crawls_to_read(crawl, sources) as archives:
        await _check_store(kind, archives)
        state = None if incremental is None else State(incremental, await crawl_mark(archives[0]), wanted.choice)
        span = None if state is None else await state.span(archives[0])
        chosen = _Chosen(wanted, [await wanted.export(archive, span) for archive in archives])
        if span is not None and span.last == span.after:
            print_note("rove: no page is new")
            return

        def on_complete(part: Path) -> None:
            if state is not None and span is not None:
                state.complete(span, part)

        written = await _WRITERS[kind](chosen, on_complete)
        if state is not None and span is not None:
            state.advance(span)
        if output is not None:
            print_line(f"{output}: {counted(written, 'page')}")
        if not (written or chosen.left_out):
            what = "page" if everything else "stored page"
            query, archive = chosen.exports[0].query, archives[0]
            print_note(f"rove: {await query.nothing_found(archive.reader, await archive.form(), what)}")
    chosen.print_notes([archive.pages.directory.parent for archive in archives])


def _check_options(
    kind: Format, *, everything: bool, incremental: Path | None, output: Path | None, limit: int | None
) -> None:
    if kind is not Format.JSONL and output is None:
        raise refuse_standard_output(kind)
    if kind is not Format.JSONL and everything:
        raise UsageError(f"--all is for --format jsonl; --format {kind} has only pages that were stored")
    if kind is Format.WACZ and limit is not None:
        raise UsageError("--limit is not for --format wacz; choose by --domain, --since and --until")
    if incremental is not None and (output is None or kind is Format.WACZ or limit is not None):
        raise UsageError("--incremental needs --output, and goes with neither --limit nor --format wacz")
    if kind in _NEEDS_TEXT:
        check_pyarrow()


async def _check_store(kind: Format, archives: list[Archive]) -> None:
    """Refuse a format that needs what no crawl has stored."""
    stores = {(await archive.settings()).store for archive in archives}
    if kind is Format.WACZ and stores == {"text"}:
        raise UsageError(
            "this crawl stored only the texts of pages (--store text), and a WACZ file shows the original pages; "
            "crawl with --store raw or both to get one"
        )
    if kind in _NEEDS_TEXT and stores == {"raw"}:
        raise UsageError(
            f"this crawl stored no texts (--store raw), and --format {kind} is made of texts; "
            "use --format wacz or 'rove index', or crawl with --store text or both"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the options ask for."""

    kind: Format
    domain: str | None
    status: int | None
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
        parts += ["--all"] if self.everything else []
        return " ".join(parts)

    @property
    def is_whole(self) -> bool:
        """Whether all pages are asked for."""
        times = (self.since, self.until) == (-math.inf, math.inf)
        return times and self.domain is None and self.status is None and self.limit is None and not self.everything

    @property
    def path(self) -> Path:
        """The output, where it is a file or directory."""
        assert self.output is not None, "checked with the options"
        return self.output

    async def export(self, archive: Archive, span: Span | None) -> Export:
        """Return the pages of one crawl."""
        site = None if self.domain is None else site_named(self.domain, await archive.form())
        query = PageQuery(site=site, status=self.status, since=self.since, until=self.until)
        return Export(archive, query, everything=self.everything, limit=self.limit, span=span)


@dataclass(slots=True)
class _Chosen:
    """The pages to write, of one or more crawls, and what was left out."""

    wanted: _Wanted
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
        return any(export.elsewhere or export.excluded for export in self.exports) or self.unreadable > 0

    @property
    def unreadable(self) -> int:
        """Pages whose text could not be read."""
        return sum(reader.unreadable for reader in self.readers)

    def print_notes(self, directories: list[Path]) -> None:
        """Say what was left out, unless it is in another of the data directories that were read."""
        if excluded := sum(export.excluded for export in self.exports):
            print_note(f"rove: {counted(excluded, 'page')} left out, because of 'rove exclude'")
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


_OnComplete = Callable[[Path], None]


async def _write_jsonl(chosen: _Chosen, on_complete: _OnComplete) -> int:
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


async def _write_parquet(chosen: _Chosen, on_complete: _OnComplete) -> int:
    wanted = chosen.wanted
    with whole_directory(wanted.path, overwrite=wanted.force, on_complete=on_complete) as directory:
        tally = await _write_shards(chosen, lambda number: directory / f"{number:05}.parquet")
    return tally.pages


async def _write_hf(chosen: _Chosen, on_complete: _OnComplete) -> int:
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


async def _write_shards(chosen: _Chosen, path_of: Callable[[int], Path]) -> Tally:
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


async def _write_wacz(chosen: _Chosen, on_complete: _OnComplete) -> int:
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
    async with AsyncExitStack() as stack:
        file = stack.enter_context(whole_file(wanted.path, overwrite=wanted.force, on_complete=on_complete))
        writer = WaczWriter(file, wanted.path.resolve().parent)
        with progress("copying responses", files.size) as advance:
            writer.add_records(files, choice, advance)
        written = await writer.add_pages(chosen.documents())
        writer.finish(wanted.name)
    chosen.unfinished, chosen.damaged = files.unfinished, files.damaged
    return written


_WRITERS = {
    Format.JSONL: _write_jsonl,
    Format.PARQUET: _write_parquet,
    Format.HF: _write_hf,
    Format.WACZ: _write_wacz,
}
