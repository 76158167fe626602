"""Every command has an example in docs/examples that it would still accept."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import click
import pytest

from rove.cli import COMMANDS, rove

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
NAMES = [name for names in COMMANDS.values() for name in names]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_an_example(name: str) -> None:
    path = EXAMPLES / f"{name}.txt"
    assert path.exists(), f"add rove {name} to tests/examples.py and run 'make examples docs'"
    lines = [line.partition(" | ")[0] for line in path.read_text().splitlines()]
    commands = [shlex.split(line)[2:] for line in lines if line.startswith("$ rove ")]
    assert commands and commands[0][0] == name
    for name, *words in commands:
        command = rove.get_command(click.Context(rove), name)
        assert command is not None
        command.make_context(name, words)


def test_examples_show_nothing_of_this_machine() -> None:
    for path in EXAMPLES.glob("*.txt"):
        assert path.stem in NAMES, f"there is no rove {path.stem}"
        text = path.read_text()
        assert "/home/" not in text and "pytest" not in text and f"{tempfile.gettempdir()}/tmp" not in text
