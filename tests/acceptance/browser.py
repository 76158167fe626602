"""Drive a real Chromium that is installed on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

VARIABLE = "ROVE_TEST_CHROMIUM"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--disable-background-networking",  # it would look for hosts of its vendor
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--host-resolver-rules=MAP *.example 127.0.0.1",  # strangers whose names lead to this machine
    "--no-first-run",
    "--no-sandbox",  # it refuses to run as root otherwise; it shows only pages of these tests
)
PATIENCE_MS = 120_000
"""Only a hang may take this long."""


def program() -> str | None:
    """Return the path of the browser; None if there is none."""
    return os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser; skip the test where there is none."""
    path = program()
    if path is None:
        pytest.skip(f"there is no Chromium: install Debian's package chromium, or set {VARIABLE}")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page that is open, with everything that went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)


@contextmanager
def tab(
    browser: Browser, address: str, *, width: int = 1280, height: int = 900, scheme: str = "light"
) -> Iterator[Tab]:
    """Open an address in a tab that shares nothing with others; check at the end that no script has failed."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        timezone_id="America/New_York",
    )
    opened = Tab(context.new_page())
    try:
        opened.page.goto(address)
        yield opened
    finally:
        context.close()
    assert not opened.errors, opened.errors
