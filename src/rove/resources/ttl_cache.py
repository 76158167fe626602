"""A cache with a size limit whose entries expire."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """Holds at most `size` values, each until it expires. When full, it drops the least recently used one."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of entries; some may have expired."""
        return len(self._entries)

    def get(self, key: K, now: float) -> V | None:
        """Return the value of a key, or None if there is none or it has expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, expires = entry
        if now >= expires:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def drop(self, key: K) -> None:
        """Forget a key."""
        self._entries.pop(key, None)

    def put(self, key: K, value: V, *, expires: float) -> None:
        """Store a value until the given time."""
        self._entries[key] = (value, expires)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
