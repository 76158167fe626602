"""`rove domains`, `queue`, `skipped` and `explain-query` about a real crawl, while it runs and after a purge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.command import crawl_options, rove, started, wait_for, write_lines
from tests.acceptance.readers import Answer, in_one_process
from tests.acceptance.results import frontier_rows
from tests.acceptance.site import Reply, site

OWN = [f"http://big.test/{number}" for number in range(30)]
FILES = [f"http://files.test/{number}.pdf" for number in range(7)]
DEEP = "http://big.test/deep"


def links(urls: Sequence[str]) -> str:
    return "".join(f'<a href="{url}"></a>' for url in urls)


ANSWERS = {
    "big.test/": Reply(f"<title>Big</title>{links([*OWN, *FILES])}"),
    **{url.removeprefix("http://"): Reply(links([DEEP])) for url in OWN},
    "small.test/": Reply(f"<title>Small</title>{links([FILES[0], 'http://small.test:1/'])}"),
    "slow.test/robots.txt": Reply("User-agent: *\nCrawl-delay: 600", type="text/plain"),
    "slow.test/": Reply(links(["http://slow.test/more"])),
    "failing.test/": Reply(reset=True),
}


def rows(answer: Answer) -> list[dict[str, Any]]:
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def test_the_lists_of_a_crawl(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = write_lines(
        tmp_path / "seeds.txt", *(f"http://{name}.test/" for name in ("big", "small", "slow", "failing"))
    )
    with site(ANSWERS) as web:
        options = [*crawl_options(data, delay=100), "--max-depth", 1, *web.reach]
        with started("crawl", seeds, *options) as crawl:
            wait_for(lambda: len(frontier_rows(data, "SELECT 1 FROM domain WHERE leases > 0 AND owner IS NULL")) == 4)
            check_lists(data)
            check_queue(data)
            check_skipped(data)
            crawl.terminate()
            assert crawl.wait(timeout=60) == 143
        check_purge(data)


def check_lists(data: Path) -> None:
    where = ["--data-dir", data]
    by_pending, by_delay, by_pages, failing, shown, nothing = in_one_process(
        [
            ["domains", "--json", *where],
            ["domains", "--by", "delay", "--json", *where],
            ["domains", "--by", "pages", "--limit", 2, "--json", *where],
            ["domains", "--by", "next", "--search", "FAILING", "--json", *where],
            ["domains", *where],
            ["domains", "--state", "excluded", *where],
        ]
    )
    pending = rows(by_pending)
    assert pending[0]["domain"] == "big.test" and pending[0]["pending"] == 30
    assert {row["domain"]: row["pages"] for row in pending} == {
        "big.test": 1,
        "small.test": 1,
        "slow.test": 1,
        "failing.test": 0,
    }
    slow = rows(by_delay)[0]
    assert (slow["domain"], slow["delay_from"], slow["delay_s"]) == ("slow.test", "crawl-delay", 600.0)
    assert len(rows(by_pages)) == 2
    (lost,) = rows(failing)
    assert (lost["failures"], lost["last_error"], lost["state"]) == (0, "reset", "waiting"), "robots.txt answered"
    lines = shown.out.splitlines()
    assert lines[0].split() == [
        "domain",
        "state",
        "pages",
        "pending",
        "next",
        "visit",
        "failures",
        "last",
        "error",
        "delay",
    ]
    assert lines[1].startswith("big.test ") and "10 min 00 s: the Crawl-delay of robots.txt" in shown.out
    assert shown.err == "rove: 4 of 4 domains\n"
    assert (nothing.out, nothing.err) == ("", "rove: 0 of 0 domains that match, of 4\n")


def check_queue(data: Path) -> None:
    where = ["--data-dir", data]
    whole, of_big, unknown = in_one_process(
        [
            ["queue", "--json", "--limit", 100, *where],
            ["queue", "--domain", "www.big.test", "--limit", 3, *where],
            ["queue", "--domain", "bog.test", *where],
        ]
    )
    urls = rows(whole)
    assert {row["url"] for row in urls} == {*OWN, "http://failing.test/", "http://slow.test/more"}
    assert [row["url"] for row in urls if row["domain"] == "big.test"] == OWN
    assert [row["due_in_s"] for row in urls] == sorted(row["due_in_s"] for row in urls)
    assert next(row for row in urls if row["domain"] == "failing.test")["reason"] == "reset"
    assert [line.split()[-1] for line in of_big.out.splitlines()[1:]] == OWN[:3]
    assert of_big.err == "rove: 3 of 30 pending URLs of big.test\n"
    assert "no URL of bog.test; did you mean big.test?" in unknown.err


def check_skipped(data: Path) -> None:
    where = ["--data-dir", data]
    text, examples, of_small, none = in_one_process(
        [
            ["skipped", "--limit", 2, *where],
            ["skipped", "--reason", "file-type", "--limit", 100, "--json", *where],
            ["skipped", "--domain", "small.test", "--json", *where],
            ["skipped", "--reason", "trap", *where],
        ]
    )
    assert "file-type: 8 links, 7 examples, 2 shown\n" in text.out and "port: 1 link, 1 example, 1 shown\n" in text.out
    found = rows(examples)
    assert {row["url"] for row in found} == set(FILES) and {row["reason_total"] for row in found} == {8}
    assert {row["page"] for row in found} <= {"http://big.test/", "http://small.test/"}
    assert none.err == "rove: no link has the reason trap\n"
    assert "http://small.test:1/" in {row["url"] for row in rows(of_small)}


def check_purge(data: Path) -> None:
    assert rove("purge", "big.test", "--yes", "--data-dir", data).returncode == 0
    left = rows(in_one_process([["skipped", "--limit", 100, "--json", "--data-dir", data]])[0])
    assert left and not [row for row in left if "big.test" in (row["page"] or "") + row["url"]]
    names, plan = in_one_process([["explain-query", "--data-dir", data], ["explain-query", "due", "--data-dir", data]])
    assert "settle_urls" in names.out.splitlines() and "USING INDEX domain_due" in plan.out
