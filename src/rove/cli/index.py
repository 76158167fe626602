"""`rove index`: an index of the WARC files."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

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
from rove.cli.options import Command, domain_option, option, since_option, until_option
from rove.cli.output import print_line, print_note, progress, reading, standard_output
from rove.errors import RoveError, UsageError
from rove.export.captures import CaptureChoice, WarcFiles
from rove.export.cdxj import Block, cdxj_line, write_blocks, write_lines, zipnum_line
from rove.export.columnar_index import ColumnarIndex
from rove.export.output import whole_directory
from rove.export.parquet import check_pyarrow
from rove.export.sorting import ExternalSort
from rove.inspect.lookup import domain_given
from rove.inspect.whole_file import whole_file
from rove.notation.humanize import counted
from rove.policy.exclusions import Exclusions


class _Index(NamedTuple):
    """What to write, and where."""

    files: WarcFiles
    choice: CaptureChoice
    output: Path | None
    force: bool


@click.command(cls=Command, short_help="Write an index of the WARC files.")
@format_option(Format.CDXJ, Format.PARQUET)
@crawl_to_read
@domain_option
@status_option
@since_option
@until_option
@option("--text", "texts", is_flag=True, help="Also the texts that rove extracted, not only the original responses.")
@option("--zipnum", is_flag=True, help="CDXJ in compressed blocks, with an .idx and a .loc file beside it.")
@from_option
@name_option
@output_option
@force_option
@reading
async def index(
    form: str,
    crawl: CrawlGiven,
    domain: str | None,
    status: int | None,
    since: float | None,
    until: float | None,
    texts: bool,
    zipnum: bool,
    sources: tuple[Path, ...],
    name: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write an index of the WARC files: CDXJ for replay tools, or Common Crawl's columnar index as Parquet.

    A crawl that stored only texts has nothing but texts to index, so they are in its index without --text.
    """
    kind = Format(form)
    if zipnum and kind is not Format.CDXJ:
        raise UsageError("--zipnum is a form of --format cdxj")
    if output is None and (zipnum or kind is Format.PARQUET):
        raise (
            UsageError("--zipnum writes three files; name the first with --output")
            if zipnum
            else (refuse_standard_output(kind))
        )
    if kind is Format.PARQUET:
        check_pyarrow()
    async with crawls_to_read(crawl, sources) as archives:
        patterns = {pattern for archive in archives for pattern in await archive.catalog.exclusions()}
        only_texts = all([(await archive.settings()).store == "text" for archive in archives])
        choice = CaptureChoice(
            domain=None if domain is None else domain_given(domain),
            status=status,
            since=-math.inf if since is None else since,
            until=math.inf if until is None else until,
            texts=texts or only_texts,
            exclusions=Exclusions(patterns),
        )
        directories = [archive.pages.directory for archive in archives]
        files = WarcFiles(directories, on_damage=lambda sentence: print_note(f"rove: {sentence}"))
        wanted = _Index(files, choice, output, force)
        if kind is Format.PARQUET:
            count = _write_parquet(wanted, name_of(crawl, sources, name))
        else:
            count = _write_cdxj(wanted, zipnum=zipnum)
    if output is not None:
        print_line(f"{output}: {counted(count, 'record')}")
    print_unfinished(files.unfinished)
    if files.damaged:
        raise RoveError(f"{counted(files.damaged, 'WARC file')} could not be read to the end; see above")


def _write_cdxj(index: _Index, *, zipnum: bool) -> int:
    lines = ExternalSort(None if index.output is None else index.output.resolve().parent)
    with ExitStack() as stack:
        if index.output is None:
            file = stack.enter_context(nullcontext(standard_output()))
            _read(index, lambda capture: lines.add(cdxj_line(capture)))
            return write_lines(lines.merged(), file)
        on_block = _beside(index.output, index.force, stack) if zipnum else None
        file = stack.enter_context(whole_file(index.output, overwrite=index.force))
        _read(index, lambda capture: lines.add(cdxj_line(capture)))
        return write_lines(lines.merged(), file) if on_block is None else write_blocks(lines.merged(), file, on_block)


def _beside(output: Path, force: bool, stack: ExitStack) -> Callable[[Block], None]:
    """Open the two files beside a ZipNum file; return what writes the line of each block."""
    stem = output.name.removesuffix(".gz").removesuffix(".cdxj").removesuffix(".cdx")
    locations = stack.enter_context(whole_file(output.with_name(f"{stem}.loc"), overwrite=force))
    locations.write(f"{output.name}\t{output.name}\n".encode())
    blocks = stack.enter_context(whole_file(output.with_name(f"{stem}.idx"), overwrite=force))
    number = 0

    def write(block: Block) -> None:
        nonlocal number
        number += 1
        blocks.write(zipnum_line(block, number, output.name))

    return write


def _write_parquet(index: _Index, name: str) -> int:
    assert index.output is not None
    with whole_directory(index.output, overwrite=index.force) as directory:
        table = ColumnarIndex(directory, name)
        _read(index, table.add)
        return table.write()


def _read(index: _Index, add: Callable[..., None]) -> None:
    """Pass every record that was chosen to `add`."""
    with progress("reading WARC files", index.files.size, is_shown=index.output is not None) as advance:
        for capture in index.files.captures(advance):
            if index.choice.takes(capture):
                add(capture)
