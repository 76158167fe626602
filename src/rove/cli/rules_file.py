"""Rules from a file: `--rules FILE`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rove.cli.types import Lift
from rove.errors import UsageError
from rove.policy.rules import RuleKind, parse_rules

READABLE_FILE = click.Path(path_type=Path)


def with_rules_of_file(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for rules, with those of the file if one is given; they replace all that are remembered."""
    file = given.get("rules")
    if file is None:
        return {}
    rules = dict.fromkeys(RuleKind, ()) if file is Lift.LIFT else _read(file)
    return {kind.setting: (*rules[kind], *given[kind.setting]) or (Lift.LIFT,) for kind in RuleKind}


def _read(file: Path) -> Mapping[RuleKind, tuple[str, ...]]:
    try:
        with file.open(encoding="utf-8-sig") as lines:
            return parse_rules(lines, str(file))
    except OSError as error:
        raise UsageError(f"the rules file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the rules file {file} is not UTF-8 text") from error
