"""Seeds are added to a running crawl and failed URLs are tried again, from outside, on both databases."""

from __future__ import annotations

import gzip
import json
import os
import pty
import subprocess
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT

import pytest

from tests.acceptance.command import crawl_options, rove, rove_alone, rove_each, start, started, wait_for, write_lines
from tests.acceptance.results import check_audit, exported_urls, status_of
from tests.acceptance.site import Reply, site, unreachable

PAGE = Reply("<title>A page</title>Some text.")
NOT_FOUND = Reply("Not here.", status=404)


@dataclass
class Web:
    """A web of which one site is broken for a while, and one has no end, so that the crawl does not end."""

    is_repaired: bool = False

    def __call__(self, host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return NOT_FOUND
        match host:
            case "broken.test":
                return PAGE if self.is_repaired else NOT_FOUND
            case "endless.test":
                number = int(path[2:] or 0)
                return Reply(f'<title>{number}</title>Page {number}. <a href="/p{number + 1}">Next</a>')
            case "moved.test":
                return Reply(status=301, headers={"Location": "http://target.test/"})
            case _:
                return PAGE


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_running_crawl_takes_seeds_and_retries(tmp_path: Path, backend: str, request: pytest.FixtureRequest) -> None:
    data, web = tmp_path / "data", Web()
    from_outside: list[object] = ["--data-dir", data]
    on_postgres: list[object] = []
    if backend == "postgres":
        url = request.getfixturevalue("postgres_url")
        on_postgres = ["--frontier", url, "--crawl-name", f"acceptance_retry_{os.getpid()}"]
        from_outside = [*on_postgres, "--data-dir", tmp_path / "never-joined"]
    seeds = write_lines(tmp_path / "seeds.txt", "http://broken.test/", "http://endless.test/", "http://moved.test/")
    tranco = tmp_path / "tranco.csv.gz"
    tranco.write_bytes(gzip.compress(b"1,http://new.test\n2,http://broken.test\n"))
    options = [*crawl_options(data), *on_postgres]
    with site(web) as served, started("crawl", seeds, *options, *served.reach) as process:

        def outcomes(*more: object) -> dict[str, str]:
            result = rove("seeds", "--json", *more, *from_outside)
            assert result.returncode == 0, result.stderr
            lines = map(json.loads, result.stdout.splitlines())
            return {line["seed"]: f"{line['state']} {line['reason'] or line['redirected_to'] or ''}" for line in lines}

        wait_for(lambda: "http://broken.test/" in served.pages)
        wait_for(lambda: outcomes().get("http://broken.test/") == "failed status 404")
        none, done = rove_each(
            [["retry", "--status", 500, *from_outside], ["retry", "--error", "status-404", "--seeds", *from_outside]]
        )
        assert none.stdout == "no failed URL to try again\n" and done.stdout == "1 URL to be tried again\n"
        wait_for(lambda: served.pages.count("http://broken.test/") == 2)
        wait_for(lambda: outcomes("--failed") == {"http://broken.test/": "failed status 404"})
        web.is_repaired = True
        added = rove("seeds", "add", tranco, *from_outside)
        assert added.returncode == 0 and added.stderr == f"{tranco}: 2 seeds: 1 new, 1 tried again\n", added.stderr
        wait_for(lambda: served.pages.count("http://new.test/") == 1)
        expected = {
            "http://broken.test/": "stored ",
            "http://endless.test/": "stored ",
            "http://moved.test/": "stored http://target.test/",
            "http://new.test/": "stored ",
        }
        wait_for(lambda: outcomes() == expected, pause=0.2)
        process.send_signal(SIGINT)
        process.wait()
    assert exported_urls(data) >= {f"http://{name}.test/" for name in ("broken", "new", "target")}
    assert served.pages.count("http://broken.test/") == 3
    assert check_audit(data)["checks"]["twice"]["checked"] >= 6
    first, second = status_of(data)["retries"]
    assert (first["urls"], first["error"], first["seeds"]) == (1, "status-404", True)
    assert (second["urls"], second["seed_file"]) == (1, str(tranco))
    told = rove("explain", "http://broken.test/", "--data-dir", data).stdout
    assert told.count("tried again on 20") == 2 and f"seeds given again in {tranco}" in told


def test_dead_seeds_that_are_given_again_are_tried_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", *(f"dead-{i}.test" for i in range(3)))
    with unreachable() as reach:
        first = rove("crawl", seeds, *crawl_options(data), *reach)
        assert "3 seeds\n" in first.stderr, first.stderr
        listed = rove("seeds", "--failed", "--data-dir", data)
        assert listed.stdout.count("(robots.txt: connect)") == 3, listed.stdout
        again = rove("crawl", seeds, "--resume", "--data-dir", data)
        with Path("/dev/full").open("w") as full:
            unseen = rove_alone("retry", "--data-dir", data, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert f"{seeds}: 3 seeds: 0 new, 3 tried again\n" in again.stderr, again.stderr
    assert unseen.returncode == 1
    assert unseen.stderr == "rove: the output cannot be written: No space left on device; everything else is done\n"
    check_audit(data)


def bad_seeds(folder: Path) -> Path:
    return write_lines(folder / "bad.txt", "good.test", "not good", "ftp://files.test/", "someone@mail.test")


def test_a_person_at_a_terminal_has_to_confirm_that_most_lines_are_bad(tmp_path: Path) -> None:
    seeds, data = bad_seeds(tmp_path), tmp_path / "data"
    terminal, end = pty.openpty()
    try:
        process = start("crawl", seeds, *crawl_options(data), stdout=subprocess.DEVNULL, stderr=end)
        assert process.wait(timeout=100) == 2
        shown = os.read(terminal, 10_000).decode().replace("\r\n", "\n")
    finally:
        os.close(terminal)
        os.close(end)
    shown = "".join(shown.split())  # a terminal wraps lines, also within a long path
    for sentence in (
        "bad.txt, line 2: 'not good' is not a domain or URL: it has a space in it",
        "'someone@mail.test' is not a domain or URL: it looks like an e-mail address",
        "bad.txt are bad; add --yes to go on with the others",
    ):
        assert sentence.replace(" ", "") in shown
    assert not data.exists()


def test_without_a_terminal_the_good_lines_are_taken(tmp_path: Path) -> None:
    seeds, data = bad_seeds(tmp_path), tmp_path / "data"
    with unreachable() as reach:
        result = rove("crawl", seeds, *crawl_options(data, delay=60), *reach, "--max-duration", "1s")
    assert f"3 of 4 lines of {seeds} are bad; going on with the others\n" in result.stderr
    assert f"{seeds}: 1 seed, 3 bad lines skipped\n" in result.stderr


def test_a_file_without_seeds_is_refused_with_its_first_lines(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(b"# nothing\nlocal\n\xff\xfa\n")
    result = rove("crawl", seeds, *crawl_options(tmp_path / "data"))
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        f"{seeds}, line 2: 'local' is not a domain or URL: it has no dot",
        f"{seeds}, line 3: not UTF-8 text",
        f"rove: {seeds} holds no domain or URL to start from",
    ]
