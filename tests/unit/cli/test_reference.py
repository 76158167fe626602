"""docs/cli.md and the help texts."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from rove.cli import COMMANDS, rove
from rove.cli.options import OTHER, Command, Option
from rove.cli.reference import reference

ROOT = Path(__file__).parents[3]
NAMES = [name for names in COMMANDS.values() for name in names]


def command_of(name: str) -> Command:
    command = rove.get_command(click.Context(rove), name)
    assert isinstance(command, Command)
    return command


def test_the_committed_reference_is_current() -> None:
    path = ROOT / "docs" / "cli.md"
    assert path.read_text() == reference(ROOT / "docs" / "examples"), "docs/cli.md is stale; run 'make docs'"


@pytest.mark.parametrize("name", NAMES)
def test_every_help_text_is_one_short_sentence_or_two(name: str) -> None:
    for option in command_of(name).params:
        if isinstance(option, Option):
            assert option.help and option.help.endswith("."), option.name
            assert len(option.help) <= 90, option.help


def test_every_option_of_crawl_is_in_a_group() -> None:
    context = click.Context(command_of("crawl"))
    groups = command_of("crawl").grouped_options(context)
    assert list(groups) == [
        "What to crawl",
        "How politely",
        "When to stop",
        "What to keep",
        "This machine",
        "PostgreSQL",
        "Network",
        OTHER,
    ]
    assert [option.opts for option in groups[OTHER]] == [["--help"]]


def test_the_list_of_commands_fits_on_one_screen() -> None:
    lines = rove.get_help(click.Context(rove)).splitlines()
    assert len(lines) <= 36 and max(map(len, lines)) <= 80
    assert all(any(f" {name} " in line for line in lines) for name in NAMES)
