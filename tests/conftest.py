"""Tests may be coroutines: each runs in an event loop of its own."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop
from hypothesis import settings

from tests.postgres import server_url

# A machine that does other things as well must not fail an example for its time.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL; without one, tests that need it fail and say why."""
    with server_url() as url:
        yield url


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    uvloop.run(_and_close(pyfuncitem.obj, arguments))
    return True


async def _and_close(test: Callable[..., Awaitable[None]], arguments: dict[str, Any]) -> None:
    """Run a test, and close what it was given in the same event loop."""
    try:
        await test(**arguments)
    finally:
        for given in arguments.values():
            close = getattr(given, "close", None)
            if inspect.iscoroutinefunction(close):
                await close()
