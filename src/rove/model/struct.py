"""The base of the records that are copied with changes."""

from __future__ import annotations

from typing import Any, Self

import msgspec


class Record(msgspec.Struct, frozen=True):
    """An immutable record."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values."""
        return msgspec.structs.replace(self, **changes)
