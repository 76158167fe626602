"""The command that continues a crawl, as messages suggest it. It can be pasted."""

from __future__ import annotations

import shlex
from pathlib import Path

from rove.admin.maintenance import CrawlNamed
from rove.cli.options import DEFAULT_DATA_DIR

RESUME_EVERYWHERE = "rove crawl --resume --data-dir DIR, on each machine"
"""For a crawl that was named by its database: what its machines call their data directories is not known."""


def resume_command(data_dir: Path) -> str:
    """Return the command that continues the crawl in this directory."""
    where = "" if data_dir == DEFAULT_DATA_DIR else f" --data-dir {shlex.quote(str(data_dir))}"
    return f"rove crawl --resume{where}"


def not_running(crawl: CrawlNamed) -> str:
    """Say that a crawl is not running, and how to continue it."""
    command = RESUME_EVERYWHERE if crawl.frontier is not None else resume_command(crawl.data_dir)
    return f"the crawl is not running; continue it with: {command}"
