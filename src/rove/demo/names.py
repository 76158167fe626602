"""Domain names of the small web.

A domain's number and its name are computed from each other, so a web of a million hosts needs no table.
"""

from __future__ import annotations

import re

from rove.demo import words
from rove.demo.draw import number

_FIRST = words.FIRST_OF_NAME.split()
_SECOND = words.SECOND_OF_NAME.split()
_NUMBERS = 250
_PERIOD = len(_FIRST) * len(_SECOND) * _NUMBERS
_STRIDE = 603_509
"""Coprime to the period and near its golden section, so that consecutive numbers have unrelated names."""
_STRIDE_BACK = pow(_STRIDE, -1, _PERIOD)
_FIRST_INDEX = {word: index for index, word in enumerate(_FIRST)}
_SECOND_INDEX = {word: index for index, word in enumerate(_SECOND)}
_NAME = re.compile(r"([a-z]+)-([a-z]+)-([1-9][0-9]{0,9})\.test")


def domain_name(seed: int, index: int) -> str:
    """Return the domain with this number, such as `harbor-fern-17.test`."""
    round_number, position = divmod(index, _PERIOD)
    mixed = (position * _STRIDE + number(seed, "names")) % _PERIOD
    rest, low = divmod(mixed, _NUMBERS)
    second, first = divmod(rest, len(_FIRST))
    return f"{_FIRST[first]}-{_SECOND[second]}-{round_number * _NUMBERS + low + 1}.test"


def domain_index(seed: int, name: str) -> int | None:
    """Return the number of a domain, or None if there is no such domain."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    first, second = _FIRST_INDEX.get(match[1]), _SECOND_INDEX.get(match[2])
    if first is None or second is None:
        return None
    round_number, low = divmod(int(match[3]) - 1, _NUMBERS)
    mixed = (second * len(_FIRST) + first) * _NUMBERS + low
    position = (mixed - number(seed, "names")) * _STRIDE_BACK % _PERIOD
    return round_number * _PERIOD + position
