"""A shortage of files or ports on this machine is not blamed on the site."""

from __future__ import annotations

import errno
import subprocess
import sys

import pycurl
import pytest

from rove.fetch.failure import is_local_shortage

pytestmark = pytest.mark.system

# Runs in its own process, which runs out of files.
SCRIPT = """
import os, resource
import uvloop
from rove.fetch.dns import AresLookup, CachingResolver
from rove.model.outcomes import Failed, Fetched
from tests.unit.fetch.server import request_to, fetching, page, serve

async def main():
    async with serve([page(b"hello")]) as server, fetching() as fetcher:
        assert isinstance(await fetcher.fetch(request_to(server)), Fetched)
        resolver = CachingResolver(AresLookup(servers=["127.0.0.1:9"], timeout=0.1, tries=1))
        print((await resolver.resolve("a.test", 5)).kind)
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        held = []
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        for scheme in ("http", "https"):
            outcome = await fetcher.fetch(request_to(server, scheme=scheme))
            assert isinstance(outcome, Failed), outcome
            print(outcome.kind, repr(outcome.address), outcome.detail)
        print((await resolver.resolve("b.test", 5)).kind)
        for descriptor in held:
            os.close(descriptor)
        assert isinstance(await fetcher.fetch(request_to(server)), Fetched)
        print((await resolver.resolve("b.test", 5)).kind)
        await resolver.close()

uvloop.run(main())
"""


def test_a_fetch_without_free_files_is_busy_and_works_again_later() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    dead_name, first, second, name, later = ended.stdout.splitlines()
    assert first.startswith("busy ''") and second.startswith("busy ''")
    assert (dead_name, name, later) == ("dns", "busy", "dns"), "a dead name server is not a shortage"


@pytest.mark.parametrize(
    ("code", "number", "ours"),
    [
        (pycurl.E_COULDNT_CONNECT, errno.EADDRNOTAVAIL, True),
        (pycurl.E_COULDNT_CONNECT, errno.ENOBUFS, True),
        (pycurl.E_COULDNT_CONNECT, errno.EMFILE, True),
        (pycurl.E_COULDNT_CONNECT, errno.ENFILE, True),
        (pycurl.E_COULDNT_CONNECT, errno.ENOMEM, True),
        (pycurl.E_INTERFACE_FAILED, errno.EADDRNOTAVAIL, True),
        (pycurl.E_COULDNT_CONNECT, errno.ECONNREFUSED, False),
        (pycurl.E_COULDNT_CONNECT, errno.ENETUNREACH, False),
        (pycurl.E_COULDNT_CONNECT, errno.EHOSTUNREACH, False),
        (pycurl.E_COULDNT_CONNECT, errno.ETIMEDOUT, False),
        (pycurl.E_RECV_ERROR, errno.ENOBUFS, False),
    ],
)
def test_which_errors_are_a_shortage_of_this_machine(code: int, number: int, ours: bool) -> None:
    assert is_local_shortage((code, "text"), os_errno=number, address="192.0.2.1") is ours


def test_missing_ipv6_is_no_shortage() -> None:
    error = (pycurl.E_COULDNT_CONNECT, "text")
    assert not is_local_shortage(error, os_errno=errno.EADDRNOTAVAIL, address="2001:db8::1")
    assert is_local_shortage(error, os_errno=errno.EMFILE, address="2001:db8::1")
