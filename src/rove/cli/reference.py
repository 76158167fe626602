"""Generates docs/cli.md from the commands: `python -m rove.cli.reference docs/examples >docs/cli.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from rove.cli import COMMANDS, rove
from rove.cli.options import Command, Option

HEAD = """\
# The command line

This page is generated from the program by `make docs`; do not edit it.
`rove COMMAND --help` shows the same."""


def reference(examples: Path) -> str:
    """Return the text of docs/cli.md; `examples` is a folder with real output of some commands, in COMMAND.txt."""
    root = click.Context(rove, info_name="rove")
    return "\n".join([HEAD, *_overview(root), *_sections(root, examples)]) + "\n"


def _overview(root: click.Context) -> Iterator[str]:
    for title, names in COMMANDS.items():
        yield from ("", f"**{title}**", "", "| command | |", "|---|---|")
        for name in names:
            yield f"| [`rove {name}`](#rove-{name}) | {_command(root, name).short_help} |"


def _sections(root: click.Context, examples: Path) -> Iterator[str]:
    for names in COMMANDS.values():
        for name in names:
            yield from _section(_command(root, name), root, name)
            yield from _example(examples / f"{name}.txt")


def _example(path: Path) -> Iterator[str]:
    if path.exists():
        yield from ("", "Example:", "")
        yield from (f"    {line}".rstrip() for line in path.read_text().splitlines())


def _section(command: Command, root: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=root)
    yield from ("", f"## rove {name}", "")
    yield f"    {command.get_usage(context).removeprefix('Usage: ')}"
    for paragraph in (command.help or "").split("\n\n"):
        yield from ("", " ".join(paragraph.split()))
    groups = command.grouped_options(context)
    for title, options in groups.items():
        shown = [option for option in options if isinstance(option, Option)]
        if shown:
            yield ""
            if len(groups) > 1:
                yield from (f"**{title}**", "")
            yield from ("| option | default | |", "|---|---|---|")
            yield from map(_row, shown)


def _row(option: Option) -> str:
    cells = (f"`{option.signature}`", option.default_text or ("off" if option.is_flag else ""), option.help)
    return "| " + " | ".join((cell or "").replace("|", "\\|") for cell in cells) + " |"


def _command(root: click.Context, name: str) -> Command:
    command = rove.get_command(root, name)
    assert isinstance(command, Command), f"rove {name} must be a rove.cli.options.Command"
    return command


if __name__ == "__main__":
    print(reference(Path(sys.argv[1])), end="")
