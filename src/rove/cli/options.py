"""Options in groups, each with the default that applies when it is left out; those that several commands share."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from rove.app.panel import PLAIN_SECONDS
from rove.cli.output import printing
from rove.cli.types import POSITIVE_DURATION, SIZE, Checked, Lift, Parsed, WholeNumber, or_default
from rove.config import DEFAULT_MAX_MEMORY, DEFAULT_MIN_FREE_DISK
from rove.errors import UsageError
from rove.frontier.backends import DEFAULT_CRAWL_NAME
from rove.inspect.moments import parse_moment
from rove.notation.humanize import size_text
from rove.observe.listening import parse_listen

WHAT_TO_CRAWL = "What to crawl"
HOW_POLITELY = "How politely"
WHEN_TO_STOP = "When to stop"
WHAT_TO_KEEP = "What to keep"
MACHINE = "This machine"
POSTGRESQL = "PostgreSQL"
NETWORK = "Network"
OTHER = "Options"

DEFAULT_DATA_DIR = Path("rove-data")
DEFAULT_LISTEN = "127.0.0.1:8700"
"""Where a browser finds the dashboard."""
MAX_PROCESSES = 256

F = TypeVar("F", bound=Callable[..., Any])


class Option(click.Option):
    """An option that belongs to a group and shows its default.

    `default_text` is for options without a default of their own: those that a resumed crawl remembers.
    """

    def __init__(self, *args: Any, group: str = OTHER, default_text: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group
        if not default_text and attributes.get("default") and not self.is_flag:
            default_text = str(attributes["default"])
        self.default_text = default_text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        default = f"  [default: {self.default_text}]" if self.default_text else ""
        return self.signature, (self.help or "") + default

    @property
    def signature(self) -> str:
        """The option and its value as the help shows them."""
        value = self.metavar or ""
        if not value and isinstance(self.type, click.Choice):
            value = "|".join(self.type.choices)
        return f"{'/'.join((*self.opts, *self.secondary_opts))} {value}".rstrip()


class Command(click.Command):
    """A command that shows its options in groups."""

    def grouped_options(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by group, in the order in which they are declared."""
        groups: dict[str, list[click.Option]] = {}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option):
                group = option.group if isinstance(option, Option) else OTHER
                groups.setdefault(group, []).append(option)
        return groups

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True  # they are refused here, with advice
        try:
            with printing():  # --help
                rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        if rest and not ctx.resilient_parsing:
            self._refuse(rest[0], ctx)
        return rest

    def _refuse(self, argument: str, ctx: click.Context) -> NoReturn:
        has_data_dir = any("--data-dir" in option.opts for option in self.get_params(ctx))
        is_directory = has_data_dir and Path(argument).is_dir()
        hint = f"; to name the data directory, use --data-dir {shlex.quote(argument)}" if is_directory else ""
        raise click.UsageError(f"'{ctx.command_path}' does not take the argument {argument!r}{hint}", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, options in self.grouped_options(ctx).items():
            with formatter.section(title):
                formatter.write_dl([r for o in options if (r := o.get_help_record(ctx))])


def option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """Declare an Option; see there for `group` and `default_text`."""
    return click.option(*names, cls=Option, **attributes)


def whole_number(min: int, max: int | None = None) -> dict[str, Any]:
    """Return the attributes of an option that takes a whole number in this range."""
    return {"type": WholeNumber(min, max), "metavar": "N"}


def size(default: int) -> dict[str, Any]:
    """Return the attributes of an option that takes a size in bytes, which a resumed crawl remembers."""
    return {**or_default(SIZE, "SIZE"), "default_text": size_text(default)}


def moment(text: str) -> float:
    """Parse a time; a duration means that long before now."""
    return parse_moment(text, now=time.time())


def data_dir_option(help: str, *, file_okay: bool = True, group: str = OTHER) -> Callable[[F], F]:
    """Declare --data-dir with the help text of this command."""
    return option(
        "--data-dir",
        group=group,
        type=click.Path(path_type=Path, file_okay=file_okay),
        default=DEFAULT_DATA_DIR,
        metavar="DIR",
        help=help,
    )


json_option = option("--json", "json", is_flag=True, help="Print JSON.")
domain_option = option("--domain", metavar="DOMAIN", help="Only pages of this domain.")
since_option = option(
    "--since",
    type=moment,
    metavar="TIME",
    help="Only pages requested since then, such as 12h (ago), 2026-11-18 or 2026-11-18T01:39Z.",
)
until_option = option("--until", type=moment, metavar="TIME", help="Only pages requested before then.")
crawl_name_option = option(
    "--crawl-name",
    group=POSTGRESQL,
    metavar="NAME",
    default_text=DEFAULT_CRAWL_NAME,
    help="Name of the crawl in the database, and of its schema.",
)
_MACHINE_OPTIONS = (
    option(
        "--processes",
        group=MACHINE,
        **whole_number(1, MAX_PROCESSES),
        default_text="one per core; on SQLite at most 3",
        help="Crawling processes on this machine.",
    ),
    option(
        "--max-memory",
        group=MACHINE,
        **size(DEFAULT_MAX_MEMORY),
        help="Memory of each crawling process, such as 512MiB. Fetches wait when it is used up.",
    ),
    option(
        "--min-free-disk",
        group=MACHINE,
        **size(DEFAULT_MIN_FREE_DISK),
        help="Pause while the disk of the data directory has less free space. 0: never pause.",
    ),
    option(
        "--log-level",
        group=MACHINE,
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        metavar="LEVEL",
        help="What goes into the log files of --data-dir: debug, info, warning or error.",
    ),
    option(
        "--progress-interval",
        group=MACHINE,
        type=POSITIVE_DURATION,
        metavar="TIME",
        default_text=f"{PLAIN_SECONDS:g}s",
        help="Time between two progress lines where there is no terminal.",
    ),
    option(
        "--metrics",
        group=MACHINE,
        type=Parsed("address", parse_listen),
        metavar="[ADDRESS:]PORT",
        help="Serve metrics for Prometheus at this port; without ADDRESS, to this machine alone.",
    ),
    option(
        "--dashboard",
        group=MACHINE,
        type=Checked("address", parse_listen),
        is_flag=False,
        flag_value=DEFAULT_LISTEN,
        metavar="[[ADDRESS:]PORT]",
        default_text=f"none; without a value {DEFAULT_LISTEN}",
        help="Show the crawl as a page in the browser while it runs.",
    ),
    option("--quiet", group=MACHINE, is_flag=True, help="Print nothing but errors. The log is written as always."),
)


def machine_options(command: F) -> F:
    """Declare the options that apply to one machine."""
    for declare in reversed(_MACHINE_OPTIONS):
        command = declare(command)
    return command


def fields_given(kind: type[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are fields of this dataclass and were given; a lifted one has its default again."""
    given = {}
    for field in fields(kind):
        value = options.get(field.name)
        if isinstance(value, tuple) and Lift.LIFT in value:
            if len(value) > 1:
                raise UsageError(f"--{field.name.replace('_', '-')}: 'none' cannot be combined with other values")
            value = Lift.LIFT
        if value not in (None, ()):
            given[field.name] = field.default if value is Lift.LIFT else value
    return given
