"""The command line: one small module for each group of commands."""

from __future__ import annotations

from importlib import import_module

import click

from rove import __version__

COMMANDS = {
    "Crawl": {
        "crawl": "crawl",
        "seeds": "seeds",
        "retry": "retry",
        "stop": "control",
        "pause": "control",
        "unpause": "control",
        "demo": "demo",
    },
    "Look at the results": {"status": "results", "pages": "pages", "show": "results", "export": "export"},
    "Answer webmasters": {
        "explain": "webmasters",
        "report": "webmasters",
        "audit": "webmasters",
        "exclude": "exclusions",
        "include": "exclusions",
        "purge": "exclusions",
    },
    "Use several machines": {"join": "machines", "move": "machines", "nodes": "nodes"},
}
"""The groups of commands, with the module of each command."""
_MODULES = {name: module for group in COMMANDS.values() for name, module in group.items()}


class _Commands(click.Group):
    """Commands in groups. Their modules are imported when they are used, because all together take half a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"rove.cli.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in COMMANDS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name, c.get_short_help_str(80)) for name, c in commands if c])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rove", help="Show the version and exit.")
def rove() -> None:
    """A polite, fast, crash-proof broad web crawler.

    Try it with 'rove demo'. See 'rove COMMAND --help' for the options of a command.
    """
