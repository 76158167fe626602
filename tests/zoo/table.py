"""Print the zoo as the table of docs/hostile.md: `python -m tests.zoo.table`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.zoo.animal import Animal, Fate
from tests.zoo.keeper import wild

COLUMNS = ("host", "what it does", "what becomes of its URLs")
ANY_PORT = 8080


def lines() -> Iterator[str]:
    """Return the lines of the table."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for animal in wild(ANY_PORT):
        yield f"| `{animal.name}` | {animal.what} | {_fates(animal)} |"


def _fates(animal: Animal) -> str:
    """Return all accepted outcomes of its URLs, the usual one first."""
    words = dict.fromkeys(_words(fate) for fates in animal.expects.values() for fate in fates)
    bound = "" if animal.most is None else f"; at most {animal.most} requests"
    return ", ".join(words) + bound


def _words(fate: Fate) -> str:
    if fate.state == "absent":
        return "not accepted"
    because = fate.because.replace("*", "…") if fate.because not in ("", "*") else ""
    if fate.state == "pending":
        return f"waits: `{because}`"
    shown = f"{fate.state} `{because}`" if because else fate.state
    return f"{shown}, `{fate.mark.replace('*', '…')}`" if fate.mark else shown


if __name__ == "__main__":
    print("\n".join(lines()))
