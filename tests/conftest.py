"""Tests may be coroutines: each runs in an event loop of its own."""

import inspect

import pytest
import uvloop


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    uvloop.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
