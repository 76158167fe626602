"""Short names for the machines of a plot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping


def machine_labels(nodes: Collection[str]) -> Mapping[str, str]:
    """Return a label for each machine: its host, and as much of its data directory as tells it from the others.

    >>> machine_labels(["a:/srv/data", "b:/srv/data"])
    {'a:/srv/data': 'a', 'b:/srv/data': 'b'}
    >>> machine_labels(["a:/srv/one", "a:/srv/two"])
    {'a:/srv/one': 'a:one', 'a:/srv/two': 'a:two'}
    """
    for shorten in _WAYS:
        labels = {node: shorten(node) for node in nodes}
        if len(set(labels.values())) == len(labels):
            return labels
    return {node: node for node in nodes}


def _host(node: str) -> str:
    return node.partition(":")[0] or node


def _host_and_directory(node: str) -> str:
    host, _, directory = node.partition(":")
    return f"{host}:{directory.rstrip('/').rpartition('/')[2]}"


_WAYS: tuple[Callable[[str], str], ...] = (_host, _host_and_directory)
