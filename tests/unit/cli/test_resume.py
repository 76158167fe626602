"""The command that continues a crawl, as messages suggest it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.admin.maintenance import CrawlNamed
from rove.cli.resume import not_running, resume_command


@pytest.mark.parametrize(
    ("data_dir", "command"),
    [
        ("rove-data", "rove crawl --resume"),
        ("/srv/crawl", "rove crawl --resume --data-dir /srv/crawl"),
        ("my crawl", "rove crawl --resume --data-dir 'my crawl'"),
    ],
)
def test_the_command_names_the_directory_and_can_be_pasted(data_dir: str, command: str) -> None:
    assert resume_command(Path(data_dir)) == command
    named = CrawlNamed(data_dir=Path(data_dir))
    assert not_running(named) == f"the crawl is not running; continue it with: {command}"


def test_a_crawl_that_is_known_by_its_database_is_resumed_on_its_machines() -> None:
    named = CrawlNamed(data_dir=Path("rove-data"), frontier="postgresql://u:secret@db/crawl")
    assert not_running(named).endswith("continue it with: rove crawl --resume --data-dir DIR, on each machine")
