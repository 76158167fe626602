"""Every command and every option is documented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rove.cli import rove as program
from tests.acceptance.command import rove_each

ROOT = Path(__file__).parents[2]
SELF_EXPLAINING = {"--help", "--version"}


def commands(group: click.Group, before: str = "rove") -> Iterator[tuple[str, click.Command]]:
    """Yield every command and the words that start it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{before} {name}"
        yield words, command
        if isinstance(command, click.Group):
            yield from commands(command, words)


COMMANDS = dict(commands(program))


def options_of(command: click.Command) -> set[str]:
    named = (option for option in command.params if isinstance(option, click.Option) and not option.hidden)
    return {word for option in named for word in option.opts} - SELF_EXPLAINING


def manual() -> str:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return "\n".join(page.read_text() for page in pages)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_and_its_options_are_in_the_manual(words: str) -> None:
    text = manual()
    assert re.search(rf"{words}\b", text), f"{words} is not documented"
    missing = {option for option in options_of(COMMANDS[words]) if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)}
    assert not missing, f"{words}: {sorted(missing)} are not documented"


def test_the_manual_names_no_option_that_does_not_exist() -> None:
    known = set().union(*(options_of(command) for command in COMMANDS.values())) | SELF_EXPLAINING
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (ROOT / "README.md").read_text()))
    assert named <= known, f"README.md: {sorted(named - known)} do not exist"


def test_every_command_explains_itself() -> None:
    helps = rove_each([[*words.split()[1:], "--help"] for words in COMMANDS])
    for (words, command), result in zip(COMMANDS.items(), helps, strict=True):
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith(f"Usage: {words}")
        for word in options_of(command):
            assert word in result.stdout
    for words, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{words} {option.opts[0]} has no help"


def test_the_words_of_the_interface_stay() -> None:
    """Scripts depend on these commands and options."""
    assert options_of(COMMANDS["rove crawl"]) >= {
        *("--email", "--data-dir", "--exclude", "--delay", "--allow-short-delay", "--concurrency"),
        *("--max-pages", "--max-duration", "--max-depth", "--max-pages-per-domain"),
        *("--scope", "--info-url", "--connect-to", "--allow-private-addresses", "--store"),
        "--resume",
    }
    assert options_of(COMMANDS["rove status"]) >= {"--data-dir", "--json"}
    assert options_of(COMMANDS["rove pages"]) >= {"--domain", "--status", "--limit", "--json"}
    assert options_of(COMMANDS["rove show"]) >= {"--data-dir"}
    assert options_of(COMMANDS["rove export"]) >= {"--domain", "--data-dir"}
    assert "rove demo" in COMMANDS
