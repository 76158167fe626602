"""The command line: from words to an order, and from exceptions to one sentence and an exit code."""

from __future__ import annotations

from importlib import import_module

import click

from rove import __version__

COMMANDS = {
    "crawl": "crawl",
    "status": "inspect",
    "pages": "inspect",
    "show": "inspect",
    "export": "inspect",
    "explain": "complaints",
    "audit": "audit",
    "report": "complaints",
    "exclude": "exclusion",
    "include": "exclusion",
    "purge": "exclusion",
    "join": "machines",
    "nodes": "nodes",
    "move": "machines",
    "demo": "demo",
}
"""The commands, and the module of each: it is imported when its command is used, as all take half a second."""


class _Commands(click.Group):
    """Commands that are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"rove.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="rove")
def rove() -> None:
    """A polite, fast, crash-proof broad web crawler."""
