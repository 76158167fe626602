"""An endless site: a crawl takes only as many of its URLs as it has time to visit."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rove.policy.budget import MULTIPLE
from rove.policy.constants import LEAST_DELAY
from tests.acceptance.command import crawl_options, rove
from tests.acceptance.results import frontier_rows
from tests.acceptance.site import Reply, site

SECONDS = 2.0
LINKS = 300


def test_what_cannot_be_visited_in_time_is_counted_and_not_kept(tmp_path: Path) -> None:
    number = count()

    def answer(host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return Reply(status=404)
        links = "".join(f'<a href="/page/{next(number)}">x</a>' for _ in range(LINKS))
        return Reply(f"<title>{path}</title>{path} {links}")

    data, seeds = tmp_path / "data", tmp_path / "seeds.txt"
    seeds.write_text("http://endless.test/\n")
    options = crawl_options(data, delay=0.05)
    room = MULTIPLE * round(SECONDS / LEAST_DELAY)
    with site(answer) as web:
        first = rove("crawl", seeds, *options, *web.reach, "--max-duration", f"{SECONDS:g}s")
        assert first.returncode == 0, first.stderr
        pending, refused = numbers(data)
        assert 0 < pending <= room
        assert refused >= LINKS - room
        said = rove("status", "--data-dir", data).stdout
        assert f" {pending:,} pending" in said and f"not taken  budget {refused:,}" in said

        longer = ("--resume", "--max-duration", "1h", "--max-pages", "3", "--data-dir", data)
        second = rove("crawl", *longer)
        assert second.returncode == 0, second.stderr
    pending_now, refused_now = numbers(data)
    assert pending_now >= pending + LINKS > room
    assert refused_now == refused, "there is room for all of it"


def numbers(data: Path) -> tuple[int, int]:
    """Return the number of pending URLs and the number of URLs dropped for lack of room."""
    ((pending,),) = frontier_rows(data, "SELECT count(*) FROM url WHERE state = 0")
    refused = frontier_rows(data, "SELECT value FROM counter WHERE name = 'not_accepted.budget'")
    return pending, refused[0][0]
