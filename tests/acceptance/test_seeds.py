"""Seed files: every way to write a line, kills while they load, and very long files."""

from __future__ import annotations

import resource
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT

import psutil

from tests.acceptance.command import (
    Process,
    crawl_options,
    kill_hard,
    rove,
    start,
    started,
    wait_for,
)
from tests.acceptance.results import frontier_rows, status_of
from tests.acceptance.site import Reply, site, unreachable

LINES = (
    b"\xef\xbb\xbffirst.test\r\n",
    b"# a comment\r\n",
    b"\r\n",
    b"   \t \n",
    b"  UPPER.Test  \n",
    b"http://plain.test\n",
    b"https://secure.test/\n",
    b"HTTP://Shout.Test:80/Path?Q=1#part\n",
    b"deep.test/a/b?c=d   # a comment behind it\n",
    b"not a domain\n",
    "bücher.test\n".encode(),
    "http://例え.test/ü\n".encode(),
    b"port.test:8080\n",
    b"upper.test\n",
    b"dot.test.\n",
    b"mailto:someone@mail.test\n",
    b"ftp://files.test/\n",
    b"\xff\xfe\xfa\n",
    b"[/bold] [red]\n",
    b"nodots\n",
    b"//nohost\n",
    b"last.test",
)
SEEDS = {
    "https://first.test/",
    "https://upper.test/",
    "http://plain.test/",
    "https://secure.test/",
    "http://shout.test/Path?Q=1",
    "https://deep.test/a/b?c=d",
    "https://xn--bcher-kva.test/",
    "http://xn--r8jz45g.test/%C3%BC",
    "https://port.test:8080/",
    "https://dot.test/",
    "https://last.test/",
}
BAD_LINES = [10, 16, 17, 18, 19, 20, 21]
BAD_LINES_SHOWN = 5


def urls_of(data: Path) -> set[str]:
    return {row[0] for row in frontier_rows(data, "SELECT url FROM url")}


def seeds_loaded(data: Path) -> int:
    """Count the seed lines that have been loaded."""
    return sum(row[0] for row in frontier_rows(data, "SELECT lines FROM seed_source"))


def all_loaded(data: Path) -> bool:
    rows = frontier_rows(data, "SELECT finished FROM seed_source")
    return bool(rows) and all(row[0] for row in rows)


def stop(process: Process) -> str:
    """Stop a crawl with Ctrl-C and return its output."""
    process.send_signal(SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    return output


def write_hosts(path: Path, first: int, count: int) -> Path:
    with path.open("w") as file:
        file.writelines(f"http://host-{i:07d}.test/\n" for i in range(first, first + count))
    return path


def test_every_way_to_write_a_seed(tmp_path: Path) -> None:
    seeds, data = tmp_path / "s", tmp_path / "data"
    seeds.write_bytes(b"".join(LINES))
    with unreachable() as reach:
        options = crawl_options(data, delay=60)
        result = rove("crawl", "s", *options, *reach, "--max-duration", "1s", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert urls_of(data) == SEEDS
    assume_https = {row[0] for row in frontier_rows(data, "SELECT url FROM url WHERE assume_https")}
    assert assume_https == {url for url in SEEDS if url.startswith("https") and url.count("/") == 3} - {
        "https://secure.test/",
        "https://port.test:8080/",
    }
    shown = [line for line in result.stderr.splitlines() if line.startswith("s, line ")]
    assert [int(line.split()[2].rstrip(":")) for line in shown] == BAD_LINES[:BAD_LINES_SHOWN]
    assert "not a domain" in shown[0] and "[/bold] [red]" in shown[4]
    assert f"{len(BAD_LINES)} bad lines" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_is_said_is_not_folded(tmp_path: Path) -> None:
    """Output to a pipe is not wrapped, so a path or a command in it stays in one piece."""
    folder = tmp_path / ("long-name-" * 12)
    folder.mkdir()
    seeds, data = folder / "seeds.txt", folder / "my [data]"
    seeds.write_text("http://host.test/\nno domain here\n")
    with unreachable() as reach:
        result = rove("crawl", seeds, *crawl_options(data, delay=60), *reach, "--max-duration", "1s")
    assert result.returncode == 0, result.stderr
    lines = result.stderr.splitlines()
    assert any(line.startswith(f"{seeds}, line 2: 'no domain here'") for line in lines), lines
    (hint,) = (line.partition("continue with: ")[2] for line in lines if "continue with: " in line)
    assert shlex.split(hint) == ["rove", "crawl", "--resume", "--data-dir", str(data)]


def test_standard_input_is_kept_and_loaded(tmp_path: Path) -> None:
    data = tmp_path / "data"
    text = "# from a pipe\nhttp://one.test/\nhttp://two.test/\n"
    with unreachable() as reach:
        options = [*crawl_options(data, delay=60), *reach, "--max-duration", "1s"]
        result = rove("crawl", "-", *options, input=text)
    assert result.returncode == 0, result.stderr
    assert [path.read_text() for path in (data / "seeds").iterdir()] == [text]
    assert urls_of(data) == {"http://one.test/", "http://two.test/"}


def test_seeds_given_on_resume_are_added(tmp_path: Path) -> None:
    data, more = tmp_path / "data", tmp_path / "more.txt"
    first = write_hosts(tmp_path / "first.txt", 0, 3)
    write_hosts(more, 2, 3)
    pages = {f"host-{i:07d}.test/": Reply("<title>x</title>") for i in range(5)}
    with site(pages) as web:
        result = rove("crawl", first, *crawl_options(data), *web.reach)
        assert result.returncode == 0, result.stderr
        again = rove("crawl", more, "--resume", "--data-dir", data)
        assert again.returncode == 0, again.stderr
    hosts = [f"http://host-{i:07d}.test/" for i in range(5)]
    assert urls_of(data) == set(hosts)
    assert sorted(web.pages) == hosts, "a seed was not asked for, or one that was done already was"
    assert len(list((data / "seeds").iterdir())) == 2


def test_a_kill_while_seeds_are_loaded_loses_none_of_them(tmp_path: Path) -> None:
    data, lines = tmp_path / "data", 100_000
    seeds = write_hosts(tmp_path / "seeds.txt", 0, lines)
    with unreachable() as reach, seeds.open() as pipe:
        words = ["crawl", "-", *crawl_options(data, delay=60, concurrency=1), *reach]
        process = start(*words, stdin=pipe)
        for reached in (lines // 10, lines // 3):
            while seeds_loaded(data) <= reached:
                assert process.poll() is None
            kill_hard(process)
            assert seeds_loaded(data) < lines, "it was killed too late to show anything"
            process = start("crawl", "--resume", "--data-dir", data)
        seeds.unlink()
        wait_for(lambda: all_loaded(data), seconds=60)
        stop(process)
    assert frontier_rows(data, "SELECT count(*), count(DISTINCT url) FROM url") == [(lines, lines)]
    status = status_of(data)
    assert sum(status["urls"].values()) == sum(status["domains"].values()) == lines
    assert frontier_rows(data, "SELECT lines, good, bad FROM seed_source") == [(lines, lines, 0)]


@dataclass(frozen=True)
class Loading:
    """Measurements of one crawl that loads a seed file."""

    peak: float
    """Memory in MB."""
    lines_at_first_fetch: int
    status_cpu_seconds: float
    """CPU time of `rove status` while the crawl runs."""


def load(folder: Path, lines: int) -> Loading:
    """Load a seed file while its crawl is running."""
    data = folder / f"data-{lines}"
    seeds = write_hosts(folder / f"seeds-{lines}.txt", 0, lines)
    options = crawl_options(data, delay=70, concurrency=2)
    with site({}) as web, started("crawl", seeds, *options, *web.reach) as process:
        watched = psutil.Process(process.pid)
        peak, at_first_fetch = 0, -1
        while not all_loaded(data):
            assert process.poll() is None
            peak = max(peak, watched.memory_info().rss)
            if at_first_fetch < 0 and web.requests:
                at_first_fetch = seeds_loaded(data)
            time.sleep(0.05)
        cpu_before = children_cpu_seconds()
        assert sum(status_of(data)["domains"].values()) == lines
        status_cpu_seconds = children_cpu_seconds() - cpu_before
        output = stop(process)
    assert f"{lines:,} seeds" in output
    assert frontier_rows(data, "SELECT count(*) FROM url") == [(lines,)]
    return Loading(peak / 1e6, at_first_fetch, status_cpu_seconds)


def children_cpu_seconds() -> float:
    """CPU time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_a_long_seed_file_costs_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    few = load(tmp_path, 10_000)
    many = load(tmp_path, 300_000)
    figures = f"{many}, with 10,000 lines {few}"
    assert many.peak < few.peak + 50, figures
    assert 0 <= many.lines_at_first_fetch < 100_000, figures
    assert many.status_cpu_seconds < few.status_cpu_seconds + 1.0, figures
