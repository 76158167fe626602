"""Host names of the small web: any number of them, none stored.

The number of a domain and its name are turned into each other by arithmetic, so a web of a million
hosts knows its own hosts without a table.
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
"""Prime to the period and near its golden section: neighbours in number are strangers in name."""
_STRIDE_BACK = pow(_STRIDE, -1, _PERIOD)
_FIRST_PLACE = {word: place for place, word in enumerate(_FIRST)}
_SECOND_PLACE = {word: place for place, word in enumerate(_SECOND)}
_NAME = re.compile(r"([a-z]+)-([a-z]+)-([1-9][0-9]{0,9})\.test")


def domain_name(seed: int, index: int) -> str:
    """The registrable domain with this number, such as `harbor-fern-17.test`."""
    round_number, place = divmod(index, _PERIOD)
    mixed = (place * _STRIDE + number(seed, "names")) % _PERIOD
    rest, low = divmod(mixed, _NUMBERS)
    second, first = divmod(rest, len(_FIRST))
    return f"{_FIRST[first]}-{_SECOND[second]}-{round_number * _NUMBERS + low + 1}.test"


def domain_index(seed: int, name: str) -> int | None:
    """The number of a domain, or None if no domain is called so."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    first, second = _FIRST_PLACE.get(match[1]), _SECOND_PLACE.get(match[2])
    if first is None or second is None:
        return None
    round_number, low = divmod(int(match[3]) - 1, _NUMBERS)
    mixed = (second * len(_FIRST) + first) * _NUMBERS + low
    place = (mixed - number(seed, "names")) * _STRIDE_BACK % _PERIOD
    return round_number * _PERIOD + place
