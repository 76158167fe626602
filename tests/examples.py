"""Make docs/examples from real runs of every command: `python -m tests.examples docs/examples`.

Each file shows commands as a user types them, and their output. The small web and a PostgreSQL server run on this
machine; their addresses, the name of this machine and the folder of the run are replaced by others. Times and numbers
differ from run to run, so a file whose text differs only in digits is left as it is.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from rove.urls.domain import domain_of
from tests.acceptance.command import wait_for
from tests.acceptance.results import exported, frontier_rows
from tests.acceptance.site import Reply, site
from tests.acceptance.small_web import served
from tests.postgres import own_server

HOSTS = 60
SHOWN_URL = "postgresql://crawler@db.example.org/crawl"
SHOWN_HOST = "crawler-1"
SHOWN_FOLDER = "/srv/crawl"
SHOWN_PORT = "8080"
SHOWN_TOKEN = "qV3mYxk0sT5nB8wzR1hLdA"
DASHBOARD_PORT = 8700
MAX_LINES = 14
MAX_WIDTH = 118
CRAWL_SECONDS = 30
WATCH_SECONDS = 10
_SEEDS = {
    "library.test/": Reply(
        "<title>Library</title><a href=/catalogue.pdf>all books</a><a href=http://museum.test:6000/>the museum</a>"
        + "".join(f"<a href=/{page}>a page</a>" for page in range(4))
    ),
    **{f"library.test/{page}": Reply(f"<title>Page {page}</title>") for page in range(4)},
    "museum.test/": Reply(status=301, headers={"Location": "http://www.museum.test/"}),
    "www.museum.test/": Reply("<title>Museum</title>"),
    "old-club.test/": Reply("Gone.", status=404),
    "town.test/": Reply("Overloaded.", status=503),
    "private.test/robots.txt": Reply("User-agent: *\nDisallow: /", type="text/plain"),
}
"""The replies to seeds with different outcomes."""
_LIBRARY = {
    "library.test/": Reply(
        "".join(f"<a href={to}>{to}</a>" for to in ("/tag/1", "/tag/2", "/a", "/b", "//museum.test"))
    ),
    "library.test/a": Reply("A page with a text that is long enough."),
    "library.test/b": Reply("A short page."),
}
"""A site whose pages a few rules choose."""
_NUMBERS = re.compile(r"[\d.,:TZ-]*\d[\d.,:TZ-]*")


class Session:
    """A terminal in an empty folder, whose commands and their outputs are collected by the name of an example."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.replaced: dict[str, str] = {str(folder): SHOWN_FOLDER, socket.gethostname(): SHOWN_HOST}
        """What is shown in place of what is real, in commands and outputs."""
        self._environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self._texts: dict[str, list[str]] = {}

    def run(self, example: str, *commands: str, max_lines: int = MAX_LINES) -> None:
        """Run commands, which must succeed, and add them to an example; '' adds them to none.

        Of ` | grep WORD` after a command, only the lines with that word are shown.
        """
        for command in commands:
            words, _, shown = command.partition(" | grep ")
            result = self._start(words)
            output, _ = result.communicate(timeout=120)
            if result.returncode:
                raise SystemExit(f"$ {command}\n{output}\nended with {result.returncode}")
            if example:
                lines = [line for line in output.splitlines() if shown in line]
                self._add(example, command, "\n".join(lines), max_lines)

    @contextmanager
    def running(self, command: str, example: str = "") -> Iterator[None]:
        """Run a command beside the block, and stop it with Ctrl-C at the end. Add it to an example, if one is given."""
        process = self._start(command)
        try:
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        if example:
            self._add(example, command, output, MAX_LINES)

    def write(self, directory: Path) -> None:
        """Write the examples whose text has changed."""
        directory.mkdir(parents=True, exist_ok=True)
        for example, lines in self._texts.items():
            path = directory / f"{example}.txt"
            text = "\n".join(lines) + "\n"
            if not path.exists() or _shape(path.read_text()) != _shape(text):
                path.write_text(text)

    def _start(self, command: str) -> subprocess.Popen[str]:
        words = shlex.split(command)
        for real, shown in self.replaced.items():
            words = [word.replace(shown, real) for word in words]
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _add(self, example: str, command: str, output: str, max_lines: int) -> None:
        for real, shown in self.replaced.items():
            output = output.replace(real, shown)
        output = output.replace(f" by {getpass.getuser()}@", " by me@")
        output = re.sub(r"#token=\S+", f"#token={SHOWN_TOKEN}", output)
        output = re.sub(rf"{tempfile.gettempdir()}/rove-demo-\w+", "/tmp/rove-demo-1", output)
        lines = [line if len(line) <= MAX_WIDTH else f"{line[: MAX_WIDTH - 4]} ..." for line in output.splitlines()]
        if len(lines) > max_lines:
            lines = [*lines[: max_lines - 1], "..."]
        before = self._texts.setdefault(example, [])
        before += ([""] if before else []) + [f"$ {command}", *lines]


def _shape(text: str) -> str:
    """Return a text without what differs from run to run."""
    return re.sub(" +", " ", _NUMBERS.sub("0", text))


def make_examples(directory: Path) -> None:
    """Run every command once or more, and write what it printed."""
    with (
        tempfile.TemporaryDirectory(prefix="rove-examples-") as name,
        served(Path(name), hosts=HOSTS, profile="full") as web,
        own_server() as server,
    ):
        folder = Path(name) / "crawl"
        folder.mkdir()
        session = Session(folder)
        session.replaced |= {server.url: SHOWN_URL, f"127.0.0.1:{web.port}": f"127.0.0.1:{SHOWN_PORT}"}
        web.write_seeds(folder / "seeds.txt")
        reach = f"--connect-to '*.test=127.0.0.1:{SHOWN_PORT}' --allow-private-addresses"
        politely = "--email me@crawler.test --delay 1 --allow-short-delay"
        session.run("crawl", f"rove crawl seeds.txt {politely} {reach} --max-duration {CRAWL_SECONDS}s")
        _look(session)
        _control(session)
        _answer_webmasters(session)
        session.run("demo", "rove demo --hosts 100 --seconds 15", max_lines=40)
        _use_machines(session)
        session.write(directory)
        seeds = Session(folder / "seeds")
        seeds.folder.mkdir()
        _look_at_seeds(seeds)
        seeds.write(directory)
        rules = Session(folder / "rules")
        rules.folder.mkdir()
        _try_rules(rules)
        rules.write(directory)


def _look(session: Session) -> None:
    with session.running("rove dashboard", example="dashboard"):
        wait_for(lambda: _listens(DASHBOARD_PORT))
    url = _a_page(session)
    session.run("status", "rove status")
    session.run("pages", "rove pages --status 200 --limit 5")
    session.run("history", "rove history --step 10s", "rove history --columns pages/s,errors.page,phase.*:p95 --csv")
    session.run("show", f"rove show {url}", max_lines=24)
    session.run("export", f"rove export --domain {_domain(url)}", "rove export --format parquet --output pages")
    session.run("index", f"rove index --domain {_domain(url)}", "rove index --format parquet --output table")
    session.run("hosts", "rove hosts --output hosts")
    session.run("domains", "rove domains --limit 5", "rove domains --by delay --limit 3")
    session.run("queue", "rove queue --limit 5", f"rove queue --domain {_domain(url)} --limit 3")
    session.run("plot", "rove plot --panels pages,errors,in-flight", "rove plot --output crawl.html", max_lines=24)


def _look_at_seeds(session: Session) -> None:
    """Crawl a few seeds, of which some fail."""
    with site(_SEEDS) as web:
        names = dict.fromkeys(place.partition("/")[0] for place in _SEEDS if not place.startswith("www."))
        (session.folder / "seeds.txt").write_text("".join(f"http://{name}/\n" for name in names))
        (session.folder / "more.csv").write_text("1,new.test\n2,http://old-club.test/\n3,bad domain\n")
        politely = "--email me@crawler.test --delay 0.1 --allow-short-delay"
        session.run("", f"rove crawl seeds.txt {politely} {shlex.join(web.reach)}")
    session.run("seeds", "rove seeds", "rove seeds --failed --json", "rove seeds add more.csv")
    session.run("skipped", "rove skipped")
    session.run("retry", "rove retry --status 503", "rove status | grep retried")


def _try_rules(session: Session) -> None:
    """Try a rule on URLs, and crawl a site with rules."""
    with site(_LIBRARY) as web:
        (session.folder / "seeds.txt").write_text("http://library.test/\n")
        politely = "--email me@crawler.test --delay 0.1 --allow-short-delay"
        given = [
            "--accept",
            'domain == "library.test"',
            "--reject",
            'path ~ "^/tag/"',
            "--store-if",
            "text_length > 20",
        ]
        session.run("", f"rove crawl seeds.txt {politely} {shlex.join([*web.reach, *given])}")
    rule, urls = shlex.quote('tld in ("de", "at") and not path ~ "^/tag/"'), "example.de/tag/1 www.example.at"
    session.run("rules", "rove rules list", f"rove rules test {rule} {urls}")


def _control(session: Session) -> None:
    with session.running("rove crawl --resume --max-duration 10m"):
        wait_for(lambda: _heartbeats(session) > 0)
        with session.running("rove watch --progress-interval 4s", example="watch"):
            time.sleep(WATCH_SECONDS)
        session.run("diagnose", "rove diagnose")
        session.run("pause", "rove pause", "rove status")
        session.run("unpause", "rove unpause")
        session.run("stop", "rove stop", "rove stop")


def _answer_webmasters(session: Session) -> None:
    url = _a_page(session)
    domain = _domain(url)
    session.run("explain", f"rove explain {url}")
    session.run("report", f"rove report {domain}")
    session.run("audit", "rove audit")
    session.run("exclude", f"rove exclude {url} --reason 'asked by e-mail'", "rove exclude --list")
    pattern = urlsplit(url).hostname
    session.run("include", f"rove include {pattern}")
    session.run("purge", f"rove purge {domain} --yes")


def _use_machines(session: Session) -> None:
    session.run("move", f"rove move --to {SHOWN_URL}")
    with (
        session.running("rove crawl --resume --max-duration 10m"),
        session.running(f"rove join {SHOWN_URL} --data-dir second", example="join"),
    ):
        wait_for(lambda: any((session.folder / "second" / "warc").glob("*")))
        time.sleep(5)  # let it crawl a little, so that there is something to show
        session.run("nodes", f"rove nodes --frontier {SHOWN_URL}")
        session.run("explain-query", "rove explain-query settle_urls")


def _a_page(session: Session) -> str:
    """Return the URL of a stored page with a plain title and some text."""
    return min(
        str(page["url"])
        for page in exported(session.folder / "rove-data")
        if page["title"] and page["title"].isascii() and len(page["text"] or "") > 200
    )


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _heartbeats(session: Session) -> int:
    rows = frontier_rows(session.folder / "rove-data", "SELECT count(*) FROM process WHERE pages > 0 AND has_left = 0")
    return int(rows[0][0]) if rows else 0


def _domain(url: str) -> str:
    return domain_of(urlsplit(url).hostname or "")


if __name__ == "__main__":
    make_examples(Path(sys.argv[1]))
