"""The command line: one small module for each group of commands."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import click

from rove import __version__
from rove.resources import activity

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
    "Results": {"status": "results", "pages": "pages", "show": "results"},
    "Data out": {"export": "export", "index": "index", "hosts": "hosts"},
    "Inside": {
        "dashboard": "dashboard",
        "watch": "watch",
        "domains": "looking",
        "queue": "looking",
        "skipped": "looking",
        "rules": "rules",
        "history": "history",
        "plot": "plot",
        "explain-query": "queries",
        "diagnose": "diagnose",
    },
    "Webmasters": {
        "explain": "webmasters",
        "report": "webmasters",
        "audit": "webmasters",
        "exclude": "exclusions",
        "include": "exclusions",
        "purge": "exclusions",
    },
    "Machines": {"join": "machines", "move": "machines", "nodes": "nodes"},
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
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _MODULES and not args[0].startswith("-"):
            raise click.UsageError(f"there is no command {args[0]!r}{_hint(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from rove.cli.output import printing  # slow to import, like the commands

        with printing():  # --help and --version
            return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, with the groups in a column of their own, so that it fits on one screen."""
        formatter.write(f"Usage: rove COMMAND [OPTIONS]    {self.help}\n\n")
        title_width, name_width = (max(map(len, words)) for words in (COMMANDS, _MODULES))
        for group, names in COMMANDS.items():
            title = group
            for name in names:
                command = self.get_command(ctx, name)
                assert command is not None, f"there is no rove {name}"
                formatter.write(f"{title:{title_width}}  {name:{name_width}}  {command.get_short_help_str(80)}\n")
                title = ""
        formatter.write("Start with 'rove demo'. 'rove COMMAND --help' shows the options of a command.\n")


def _hint(word: str) -> str:
    """Return advice for somebody who wrote something else in place of a command; '' if there is none."""
    if word == "help":
        return "; add --help to a command instead"
    if "." in word or "/" in word:
        return "; a crawl starts with 'rove crawl SEEDS --email ADDRESS'"
    close = get_close_matches(word, _MODULES, n=1)
    return f"; did you mean 'rove {close[0]}'?" if close else ""


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rove", help="Show the version and exit.")
@click.pass_context
def rove(context: click.Context) -> None:
    """A polite, fast, crash-proof broad web crawler."""
    activity.begin(context.invoked_subcommand or "")
