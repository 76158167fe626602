"""Keep `make unit` pure: a test that opens a network socket or starts a process must carry the `system` mark.

`make unit` runs only the tests without the mark. A test that breaks the rule fails with a message that says how to mark
it, so the split needs no list that somebody maintains by hand.
"""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Iterator

import pytest

MARK = "system"
DIRECTORIES = ("tests/acceptance", "tests/zoo")
"""Every test in these directories runs real commands, so the mark is set here instead of in each file."""
FIXTURE = "postgres_url"
"""A test that uses this fixture needs a database server."""

PROCESS_EVENTS = ("subprocess.Popen", "os.fork", "os.posix_spawn")

_sockets = 0
_processes = 0
_children = 0


def _count(event: str, arguments: tuple[object, ...]) -> None:
    global _sockets, _processes
    if event == "socket.__new__" and arguments[1] in (socket.AF_INET, socket.AF_INET6):
        _sockets += 1
    elif event in PROCESS_EVENTS:
        _processes += 1


sys.addaudithook(_count)


def _reaped_children() -> int:
    """Return a number that grows with every child process that ended and was waited for.

    It also sees processes that uvloop starts, which raise no audit event. It is used only where no system test runs,
    because a child of an earlier test or of a session's fixture may end during a later test.
    """
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need the system by their directory or by the fixture they use."""
    folders = tuple(config.rootpath / name for name in DIRECTORIES)
    for item in items:
        in_folder = any(item.path.is_relative_to(folder) for folder in folders)
        if in_folder or FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(MARK)


def pytest_collection_finish() -> None:
    """Start counting: importing the test modules may start processes of its own."""
    global _sockets, _processes, _children
    _sockets, _processes, _children = 0, 0, _reaped_children()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail an unmarked test that opened a network socket or started a process, in itself or in its fixtures."""
    global _sockets, _processes, _children
    yield
    opened, _sockets = _sockets, 0
    started, _processes = _processes, 0
    before, _children = _children, _reaped_children()
    if item.get_closest_marker(MARK) is not None:
        return
    if opened:
        pytest.fail(f"opens a network socket: mark it with @pytest.mark.{MARK}", pytrace=False)
    is_pure_run = f"not {MARK}" in item.config.option.markexpr
    if started or (is_pure_run and _children != before):
        pytest.fail(f"starts a process: mark it with @pytest.mark.{MARK}", pytrace=False)
