"""Take docs/pictures/dashboard.png from a real crawl of the demo's web: `python -m tests.pictures docs/pictures`."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect

from tests.acceptance.browser import chromium, tab
from tests.acceptance.command import crawl_options, logged, wait_for
from tests.acceptance.results import status_of
from tests.acceptance.shown import Dashboard, address_in
from tests.acceptance.small_web import served

HOSTS = 300
DELAY = 3.0
PAGES = 4_000
"""The picture is taken when the crawl has this many pages."""
WIDTH, HEIGHT = 1_000, 700


def main(directory: Path) -> None:
    """Crawl, and take the picture."""
    with (
        tempfile.TemporaryDirectory(prefix="rove-pictures-") as name,
        served(Path(name), hosts=HOSTS, profile="full") as web,
    ):
        data = Path(name) / "rove-data"
        words = ["crawl", web.write_seeds(Path(name) / "seeds.txt"), *crawl_options(data, delay=DELAY, concurrency=200)]
        with logged(*words, *web.reach, "--dashboard=0", cwd=name) as (process, output):
            wait_for(lambda: "#token=" in output())
            shown = Dashboard(*address_in(output()))
            wait_for(lambda: data.exists() and status_of(data)["pages"] >= PAGES, seconds=600)
            with chromium() as browser, tab(browser, shown.page, width=WIDTH, height=HEIGHT) as opened:
                page = opened.page
                expect(page.locator(".tile.good")).to_be_visible()
                page.evaluate("name => document.querySelector('h1 span').textContent = name", "rove-data")
                page.screenshot(path=directory / "dashboard.png")
            process.send_signal(signal.SIGINT)
            process.wait(60)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
