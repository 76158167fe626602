"""What the commands that write data share: options, the crawls to read, and the notes at the end."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import click

from rove.cli.crawl_given import CrawlGiven
from rove.cli.options import option, whole_number
from rove.cli.output import print_note
from rove.cli.types import Checked
from rove.errors import UsageError
from rove.inspect.open_crawl import Archive
from rove.notation.humanize import counted


class Format(enum.StrEnum):
    """The format of an output."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    HF = "hf"
    WACZ = "wacz"
    CDXJ = "cdxj"

    @property
    def is_directory(self) -> bool:
        """Whether it is written into a directory of its own."""
        return self in (Format.PARQUET, Format.HF)


def format_option(*formats: Format) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Declare --format with these formats, the first of which is the default."""
    return option(
        "--format",
        "form",
        type=click.Choice([str(form) for form in formats]),
        default=str(formats[0]),
        help="What to write." if len(formats) > 1 else "What to write; there is one format.",
    )


def _partition_name(text: str) -> str:
    if not text or any(c in "/\\=\0" or not c.isprintable() for c in text) or text.startswith((".", "_")):
        raise UsageError(f"{text!r} cannot be the name of a crawl: it must do as a part of a file name")
    return text


status_option = option("--status", **whole_number(0, 999), help="Only responses with this HTTP status.")
output_option = option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    default_text="standard output, where the format allows it",
    help="Write this file, or this directory for Parquet; it appears when it is complete.",
)
force_option = option("--force", is_flag=True, help="Replace what --output names if it exists.")
from_option = option(
    "--from",
    "sources",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    default_text="the crawl of --data-dir",
    help="Read this data directory; give it several times to merge them. Every page comes once.",
)
name_option = option(
    "--name",
    type=Checked("name", _partition_name),
    metavar="NAME",
    default_text="the name of the data directory",
    help="What the crawl is called in the output.",
)


@asynccontextmanager
async def crawls_to_read(crawl: CrawlGiven, sources: Sequence[Path]) -> AsyncIterator[list[Archive]]:
    """Open the crawl of the options, or those of --from."""
    if sources and crawl.frontier is not None:
        raise UsageError("give either --frontier or --from, not both")
    given = {path.resolve(): path for path in sources}
    crawls = [CrawlGiven(data_dir=path, frontier=None, crawl_name=None) for path in given.values()] or [crawl]
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(each.opened()) for each in crawls]


def name_of(crawl: CrawlGiven, sources: Sequence[Path], name: str | None) -> str:
    """Return what the crawl is called in the output."""
    return name or next(iter(sources), crawl.data_dir).resolve().name


def refuse_standard_output(form: Format) -> UsageError:
    """Return the error for a format that needs --output."""
    kind = "a directory" if form.is_directory else "a file"
    return UsageError(f"--format {form} is written into {kind}; name it with --output")


def print_unfinished(unfinished: int) -> None:
    """Say that files are left out because they are still being written."""
    if unfinished:
        verb = "is" if unfinished == 1 else "are"
        print_note(f"rove: {counted(unfinished, 'WARC file')} {verb} still being written, and left out")
