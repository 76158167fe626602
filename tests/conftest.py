"""What all tests share: coroutine tests, the PostgreSQL server, signals, and the `system` mark (see isolation.py)."""

import inspect
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop
from hypothesis import settings

from tests.postgres import server_url

pytest_plugins = ["tests.isolation"]

# No deadline per example: on a busy machine any example may be slow.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


def pytest_sessionstart() -> None:
    """Let the commands under test be stopped even if the tests run under nohup or in the background.

    A signal that is ignored when a command starts stays ignored, and the tests' own children inherit that.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server. Without one, the tests that need it fail and say why."""
    with server_url() as url:
        yield url


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a uvloop event loop of its own, and close its arguments in the same loop.

    This hook replaces pytest-asyncio on purpose. With version 1.5 on uvloop, closing an event loop blocked for ever in
    two of two full runs, while `uvloop.run` has never done so. A hook of ten lines is also all that is needed, because
    no fixture is a coroutine: a fixture gives an object, and its `close` coroutine is called here.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    uvloop.run(_run_and_close(pyfuncitem.obj, arguments))
    return True


async def _run_and_close(test: Callable[..., Awaitable[None]], arguments: dict[str, Any]) -> None:
    try:
        await test(**arguments)
    finally:
        for argument in arguments.values():
            close = getattr(argument, "close", None)
            if inspect.iscoroutinefunction(close):
                await close()
