"""Options from a TOML file: `--config FILE`.

The keys are the names of the options without their dashes. The values go through the same types as on the command line.
An option on the command line wins over the file, and the file wins over what the crawl remembers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from rove.cli.options import F, option
from rove.errors import UsageError

NOT_IN_A_FILE = frozenset({"config", "help", "yes"})
"""Options that make no sense in a file. A confirmation must be given each time."""


def config_option(group: str) -> Callable[[F], F]:
    """Declare --config, which is read before all other options."""
    return option(
        "--config",
        group=group,
        type=click.Path(path_type=Path),
        metavar="FILE",
        is_eager=True,
        callback=_use,
        help="Take options from this TOML file. Those on the command line win.",
    )


def sources_of(context: click.Context) -> dict[str, str]:
    """Return the file for each parameter whose value came from one."""
    from_file = click.core.ParameterSource.DEFAULT_MAP
    file = str(context.params.get("config"))
    return {name: file for name in context.params if context.get_parameter_source(name) is from_file}


def _use(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        context.default_map = dict(_read(context, path))
    return path


def _read(context: click.Context, path: Path) -> Iterator[tuple[str, Any]]:
    """Iterate over the parameters in a file and their values, as click takes them."""
    known = {name: parameter for parameter in context.command.params for name in _keys(parameter)}
    for key, value in _table(path).items():
        parameter = known.get(key)
        if parameter is None:
            close = get_close_matches(key, known, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; the keys are the options of rove {context.info_name}"
            raise UsageError(f"{path}: there is no option {key}{hint}")
        assert parameter.name is not None, "every parameter has a name"
        yield parameter.name, _checked(context, parameter, value, f"{path}: {key}")


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UsageError(f"the configuration file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a TOML file: {error}") from error


def _keys(parameter: click.Parameter) -> list[str]:
    """Return the keys that set a parameter: the names of an option, or that of an argument."""
    if isinstance(parameter, click.Argument):
        return [parameter.name or ""]
    names = [name.removeprefix("--") for name in parameter.opts]
    return [name for name in names if name not in NOT_IN_A_FILE]


def _checked(context: click.Context, parameter: click.Parameter, value: Any, where: str) -> Any:
    """Return a value of the file in the form that the command line would have given it."""
    is_flag = isinstance(parameter, click.Option) and parameter.is_flag
    if is_flag != isinstance(value, bool):
        raise UsageError(f"{where} must be {'true or false' if is_flag else _wanted(parameter)}, not {_shown(value)}")
    if is_flag:
        return value
    values = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not parameter.multiple:
        raise UsageError(f"{where} must be {_wanted(parameter)}, not a list")
    for item in values:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise UsageError(f"{where} must be {_wanted(parameter)}, not {_shown(item)}")
    texts: list[str] = [str(item) for item in values]
    try:
        for text in texts:
            parameter.type.convert(text, parameter, context)
    except click.BadParameter as error:
        raise UsageError(f"{where}: {error.message.rstrip('.')}") from error
    if not parameter.multiple:
        return texts[0]
    return texts or ["none"]


def _wanted(parameter: click.Parameter) -> str:
    return "a text or a list of texts" if parameter.multiple else "a text or a number"


def _shown(value: Any) -> str:
    """Describe a value without repeating it: it may be a password."""
    names = {
        bool: str(value).lower(),
        dict: "a table",
        list: "a list",
        str: "a text",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "a date or time")
