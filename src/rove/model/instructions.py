"""What the owner tells a running crawl from outside: stop, or start no new visits."""

from __future__ import annotations

import enum
import secrets
from dataclasses import dataclass

import msgspec


class InstructionKind(enum.StrEnum):
    """What an instruction asks for."""

    STOP = "stop"
    """End. It is meant for the starts of the crawl that are running when it is given, not for later ones."""
    PAUSE = "pause"
    """Start no new visit. It holds until it is withdrawn, over restarts too."""


class Instruction(msgspec.Struct, frozen=True, kw_only=True):
    """One instruction: who gave it, and when."""

    who: str
    at: float
    """Wall-clock seconds since the epoch."""
    id: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))
    """Tells this instruction from earlier ones of the same kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """The last instruction of each kind; None if there is none or it was withdrawn."""

    stop: Instruction | None = None
    pause: Instruction | None = None


def instruction_text(instruction: Instruction) -> str:
    """Return an instruction as it is stored."""
    return msgspec.json.encode(instruction).decode()


def parse_instruction(text: str) -> Instruction:
    """Return a stored instruction. A text that somebody wrote by hand counts too.

    >>> parse_instruction("please")
    Instruction(who='somebody', at=0.0, id='please')
    """
    try:
        return msgspec.json.decode(text, type=Instruction)
    except ValueError:
        return Instruction(who="somebody", at=0.0, id=text)
