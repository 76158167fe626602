"""Decides how many slots domains that do not respond may hold. Pure functions.

A name or an address costs an attacker next to nothing, and a server that accepts connections and sends nothing holds a
slot until the timeout. So domains that responded to their last visit are protected from strangers, which did not, or
were never visited.

- Visits to strangers that have been silent for two seconds hold at most a quarter of the slots.
- Two seconds are enough to claim hundreds of strangers. So visits that have just begun count too, in proportion to the
  share of strangers that were silent lately. Where strangers respond, this share is small.
- While domains that respond are due or will be due soon, a quarter of the slots at most is reserved for them.

In a crawl that has just begun, no domain has responded yet, and strangers may use all slots.
"""

from __future__ import annotations

SILENT_AFTER = 2.0
"""Seconds without a response after which a visit to a stranger counts as silent."""
SOON = 20.0
"""Slots are reserved for domains that are due within this time: a silent visit may last as long."""
_QUARTER = 4
_SHORTEST_MEMORY, _LONGEST_MEMORY = 8, 64


def most_silent(slots: int) -> int:
    """Return how many of the slots silent visits may hold."""
    return max(1, slots // _QUARTER)


def updated_share(share: float, slots: int, *, is_silent: bool) -> float:
    """Return the share of strangers that are silent after one more of them was visited.

    It is a moving average over a fraction of the slots, so that one visit per slot is enough to learn it.
    """
    memory = min(max(slots // 8, _SHORTEST_MEMORY), _LONGEST_MEMORY)
    return share + (is_silent - share) / memory


def room_for_strangers(slots: int, *, silent: int, young: int, share: float, responding: int) -> int:
    """Return how many more strangers may be claimed.

    `silent` visits have been silent for long enough to count, `young` ones are queued or have begun since, and `share`
    of those will be silent too. `responding` other domains will soon need a slot.

    >>> room_for_strangers(400, silent=0, young=0, share=0.1, responding=0)
    1000
    >>> room_for_strangers(400, silent=0, young=290, share=0.1, responding=5_000)
    10
    >>> room_for_strangers(400, silent=90, young=10, share=1.0, responding=0)
    0
    """
    left = most_silent(slots) - silent
    if left <= 0:
        return 0
    # Where all strangers respond, the share is nearly 0, and the slots themselves are the limit.
    room = min(int(left / max(share, 0.001)), 10 * slots) - young
    if responding:
        room = min(room, slots - min(responding, slots // _QUARTER) - silent - young)
    return max(0, room)
