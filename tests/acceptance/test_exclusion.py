"""Exclusions that are added and lifted while a crawl runs, on one machine and on two, checked in the web's log."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from rove.demo.log import LoggedRequest, LogKind
from rove.urls.domain import domain_of
from tests.acceptance.command import (
    Completed,
    crawl_options,
    rove,
    rove_alone,
    rove_each,
    started,
    wait_for,
    write_lines,
)
from tests.acceptance.results import check_books, exported_urls, frontier_rows, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.acceptance.small_web import ServedWeb, served
from tests.judge import judge
from tests.oracle import all_hosts

IN_FLIGHT = 2.0
"""Seconds after a process has noticed an exclusion in which the web may still see a request that was on its way."""
DELAY = 0.7
"""Long enough to leave the machine mostly idle, because the tests measure how soon a crawl notices an exclusion."""
KNOBS = ["crawl_delay=1.0", "pages_per_host=60,80"]
HOSTS = 100
MANY_PAGES = 20

scenario = Scenarios()
_busy = threading.Lock()
"""The scenario that holds it runs alone, because starting a command takes seconds while others start many."""
_shared: dict[str, str] = {}
"""The URL of the database server. Scenarios run in threads and cannot use fixtures."""


@pytest.fixture(scope="module", autouse=True)
def database_server(postgres_url: str) -> None:
    _shared["url"] = postgres_url


def requests_of(web: ServedWeb, *, to: Sequence[str]) -> list[LoggedRequest]:
    """Return the requests to these hosts."""
    return [request for request in web.requests() if request.kind is LogKind.REQUEST and request.host in to]


def pages_of(web: ServedWeb, hosts: Sequence[str]) -> list[LoggedRequest]:
    return [request for request in requests_of(web, to=hosts) if not request.for_robots]


class Domains:
    """The domains of a small web, by how busy they are."""

    def __init__(self, web: ServedWeb) -> None:
        self._web = web
        self._large: set[str] = set()
        self.hosts: dict[str, list[str]] = {}
        for host in all_hosts(web.web):
            self.hosts.setdefault(domain_of(host), []).append(host)
            if len(web.expected([host])) > MANY_PAGES:
                self._large.add(host)

    def busy(self) -> list[str]:
        """Return the domains that are being crawled and whose hosts all have many pages, the busiest first."""
        asked = Counter(domain_of(request.host) for request in self._web.requests() if request.kind is LogKind.REQUEST)
        return [
            name
            for name, count in asked.most_common()
            if count >= 3 and self._large.issuperset(self.hosts.get(name, [""]))
        ]

    def of_one_host(self) -> list[str]:
        """Return the busy domains that consist of one host."""
        return [name for name in self.busy() if len(self.hosts[name]) == 1]

    def of_several(self) -> list[str]:
        """Return the busy domains that have several hosts."""
        return [name for name in self.busy() if len(self.hosts[name]) > 1]


def excluding(data: Path, *words: str) -> Completed:
    """Run `rove exclude` and return its result."""
    result = rove("exclude", *words, "--data-dir", data)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def noticed(patterns: int, *logs: Path) -> float:
    """Wait until the processes with these logs know this many exclusions, and return the time."""
    line = f"exclusions patterns={patterns}\n"
    wait_for(lambda: all(log.exists() and line in log.read_text() for log in logs))
    return time.monotonic()


def check_silence(web: ServedWeb, hosts: Sequence[str], since: float, until: float) -> None:
    """Check that no request was sent to these hosts after all processes had noticed the exclusion."""
    late = [
        f"{request.start - since:.1f} s: {request.url}"
        for request in requests_of(web, to=hosts)
        if since + IN_FLIGHT < request.start < until
    ]
    assert not late, late


@scenario
def a_busy_domain_is_excluded_and_included_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with _busy, served(tmp_path, hosts=HOSTS, profile="calm", knobs=KNOBS) as web:
        domains = Domains(web)
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(data, delay=DELAY, concurrency=24, processes=3)
        with started("crawl", seeds, *options, *web.reach) as crawl:
            wait_for(lambda: web.log.exists() and len(domains.of_one_host()) > 1)
            wait_for(domains.of_several)
            # A whole domain, one host of a domain with several, and a pattern.
            whole, other, *_ = domains.of_one_host()
            host, sibling, *_ = domains.hosts[domains.of_several()[0]]
            pattern = f"{other[:-6]}*{other[-5:]}"
            said = excluding(data, whole, f"={host}", pattern, "--reason", "they asked")
            assert "3 exclusions added" in said.stdout
            assert "the running crawl obeys" in said.stdout
            gone = [whole, host, other]
            since = noticed(3, *(data / f"rove-{number}.log" for number in (1, 2, 3)))

            def going_on() -> set[str]:
                return {r.host for r in web.requests() if r.start > since + IN_FLIGHT}

            # Other domains continue, and so does another host of the same domain.
            wait_for(lambda: len(going_on()) > HOSTS / 3 and sibling in going_on())
            check_silence(web, gone, since, time.monotonic())
            _check_withdrawn(data, gone)
            before = len(pages_of(web, [whole]))
            lifted = rove("include", whole, f"={host}", "--data-dir", data)
            assert lifted.returncode == 0, lifted.stderr
            assert re.search(r"\n2 exclusions lifted; [\d,]+ URLs pending again\n", lifted.stdout)
            wait_for(lambda: len(pages_of(web, [whole])) > before + 3)
            os.killpg(crawl.pid, signal.SIGINT)
            output, _ = crawl.communicate(timeout=30)
            assert crawl.returncode == 130, output
    check_silence(web, [other], since, float("inf"))
    _check_open(data, [whole, host])
    _check_list(data, whole, pattern)
    verdict = judge(web.web, web.requests(), DELAY, allowed_refetches=24)
    assert verdict.polite, verdict
    check_books(data, (r.url for r in web.requests() if r.kind is LogKind.REQUEST))


def _check_withdrawn(data: Path, hosts: Sequence[str]) -> None:
    """Check that the excluded URLs have left the queue and the export."""
    left = frontier_rows(data, "SELECT url FROM url WHERE state = 0")
    assert not [url for (url,) in left if url.split("/")[2] in hosts]
    assert status_of(data)["blocked"]["excluded"] > 0
    pages = exported_urls(data)
    assert pages and not [url for url in pages if url.split("/")[2] in hosts]


def _check_open(data: Path, hosts: Sequence[str]) -> None:
    """Check that no URL of these hosts is still blocked."""
    for host in hosts:
        blocked = "SELECT url FROM url WHERE state = 2 AND reason = 'excluded'"
        left = frontier_rows(data, f"{blocked} AND url LIKE 'http://{host}/%'")
        assert not left, f"{len(left)} URLs of {host} stay blocked although its exclusion is lifted"


def _check_list(data: Path, lifted: str, in_force: str) -> None:
    listed = rove("exclude", "--list", "--data-dir", data)
    assert listed.returncode == 0, listed.stderr
    lines = {line.split()[0]: line for line in listed.stdout.splitlines()}
    assert len(lines) == 3
    made = r"\S+  since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ by \S+@\S+: they asked"
    assert re.fullmatch(made, lines[in_force]), lines[in_force]
    assert re.fullmatch(made + r"; lifted \d{4}-.* by \S+@\S+", lines[lifted]), lines[lifted]


@scenario
def a_fetch_in_flight_is_cut(tmp_path: Path) -> None:
    """A page and a robots.txt of an excluded host are aborted. Others are not."""
    data = tmp_path / "data"
    held = Reply(held=True)
    answers = {
        "page.test/": held,
        "www.part.test/": held,
        "rules.test/robots.txt": held,
        "other.test/": held,
    }
    hosts = ("page.test", "www.part.test", "rules.test", "other.test")
    with site(answers) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *(f"http://{host}/" for host in hosts))
        with started("crawl", seeds, *crawl_options(data, delay=DELAY), *web.reach) as crawl:
            waiting = {f"http://{name}" for name, reply in answers.items() if reply.held}
            wait_for(lambda: waiting <= set(web.urls))
            excluding(data, "page.test", "=www.part.test", "rules.*")
            wait_for(lambda: len(web.abandoned) == 3)
            asked = len(web.requests)
            web.release.set()
            output, _ = crawl.communicate(timeout=30)
            assert crawl.returncode == 0, output
    assert set(web.abandoned) == waiting - {"http://other.test/"}
    later = web.requests[asked:]
    assert {one.host for one in later} <= {"other.test"}, "an excluded host was asked"
    errors = dict(frontier_rows(data, "SELECT url, error FROM request WHERE error NOT IN ('', 'status-404')"))
    assert set(errors.values()) == {"aborted"} and set(errors) == set(web.abandoned)
    check_books(data, web.urls)


@scenario
def what_was_cut_is_asked_for_again_once_it_is_included(tmp_path: Path) -> None:
    """The URL is requested again after its delay, not after the full time budget of the aborted visit."""
    data, delay = tmp_path / "data", 0.2
    answers = {f"keeper.test/{number}": Reply("<title>x</title>") for number in range(300)}
    answers["page.test/"] = Reply(held=True)
    with site(answers) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *(f"http://{name}" for name in answers))
        with started("crawl", seeds, *crawl_options(data, delay=delay), *web.reach) as crawl:
            wait_for(lambda: "http://page.test/" in web.urls)
            excluding(data, "page.test")
            wait_for(lambda: "http://page.test/" in web.abandoned)
            lifted = rove("include", "page.test", "--data-dir", data)
            assert lifted.returncode == 0, lifted.stderr
            wait_for(lambda: web.urls.count("http://page.test/") == 2, seconds=15)
            web.release.set()
            wait_for(lambda: frontier_rows(data, "SELECT 1 FROM url WHERE url = 'http://page.test/' AND state = 1"))
            crawl.terminate()
            output, _ = crawl.communicate(timeout=20)
            assert crawl.returncode == 143, output
    first, second = web.requests_to("page.test", "/")
    assert second.at - first.ended >= delay
    check_books(data, web.urls)


@scenario
def an_exclusion_that_is_lifted_has_lost_nothing(tmp_path: Path) -> None:
    """Even if it is lifted at once, a process that has not noticed it yet must not block URLs again."""
    data, delay, names = tmp_path / "data", 0.2, ("a", "b", "c", "d", "e")
    pages = {f"{name}.test/{number}" for name in names for number in range(20)}
    pages |= {f"www.part.test/{number}" for number in range(20)}
    keeper = {f"part.test/{number}" for number in range(100)}
    answers = {name: Reply(f"<title>{name}</title>") for name in pages | keeper}
    excluded = [*(f"{name}.test" for name in names), "=www.part.test"]
    with site(answers) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *(f"http://{name}" for name in sorted(answers)))
        with started("crawl", seeds, *crawl_options(data, delay=delay), *web.reach) as crawl:
            wait_for(lambda: len(web.pages) > 10)
            excluding(data, *excluded)
            asked = len(web.requests)
            lifted = rove("include", *excluded, "--data-dir", data)
            assert lifted.returncode == 0, lifted.stderr
            # By then every process has visited the domains, whether it had noticed the change or not.
            wait_for(lambda: sum(one.host == "part.test" for one in web.requests[asked:]) > 10)
            crawl.terminate()
            output, _ = crawl.communicate(timeout=20)
            assert crawl.returncode == 143, output
    _check_open(data, [*(f"{name}.test" for name in names), "www.part.test"])
    check_books(data, web.urls)


@scenario
def two_machines_keep_to_it(tmp_path: Path) -> None:
    """The exclusion is made without a data directory, and both machines obey it."""
    here, there = tmp_path / "here", tmp_path / "there"
    name = f"acceptance_exclusion_{os.getpid()}"
    with _busy, served(tmp_path, hosts=HOSTS // 3, profile="calm", knobs=KNOBS) as web:
        domains = Domains(web)
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(here, delay=DELAY, concurrency=8, processes=1)
        options += ["--frontier", _shared["url"], "--crawl-name", name]
        with started("crawl", seeds, *options, *web.reach) as first:
            wait_for(lambda: len(web.requests()) > 20)
            join = ["join", _shared["url"], "--crawl-name", name, "--data-dir", there]
            with started(*join, "--processes", 2, "--concurrency", 8) as second:
                wait_for(lambda: any((there / "warc").glob("*")))
                wait_for(domains.busy)
                whole = domains.busy()[0]
                hosts = domains.hosts[whole]
                named = ["--frontier", _shared["url"], "--crawl-name", name]
                excluding(tmp_path / "nothing", whole, *named)
                listed = rove("exclude", "--list", *named)
                assert listed.stdout.startswith(f"{whole}  since 20"), listed
                since = noticed(1, here / "rove.log", there / "rove-1.log", there / "rove-2.log")
                asked = len(web.requests())
                wait_for(lambda: len(web.requests()) > asked + 2 * HOSTS)
                check_silence(web, hosts, since, float("inf"))
                for crawl in (first, second):
                    os.killpg(crawl.pid, signal.SIGINT)
                for crawl in (first, second):
                    output, _ = crawl.communicate(timeout=30)
                    assert crawl.returncode == 130, output
    check_silence(web, hosts, since, float("inf"))
    for data in (here, there):
        pages = exported_urls(data)
        assert pages and not [url for url in pages if url.split("/")[2] in hosts]
    verdict = judge(web.web, web.requests(), DELAY, allowed_refetches=24)
    assert verdict.polite, verdict
    audit = rove("audit", "--json", "--data-dir", here)
    assert audit.returncode == 0, audit.stdout
    seen = [request for request in web.requests() if request.kind is LogKind.REQUEST]
    assert json.loads(audit.stdout)["requests"] >= len(seen)


@scenario
def wrong_words_are_answered_in_a_sentence(tmp_path: Path) -> None:
    data, empty = tmp_path / "data", tmp_path / "empty"
    with site({"a.test/": Reply("<title>a</title>")}) as web:
        seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/")
        result = rove("crawl", seeds, *crawl_options(data, delay=0.01), *web.reach)
        assert result.returncode == 0, result.stderr
    empty.mkdir()
    said = rove("exclude", "https://b.test/private/?x", "--data-dir", data)
    assert said.returncode == 0, said.stderr
    assert "excluded: b.test and all its subdomains (all pages, not only /private/?x)\n" in said.stdout
    bad_file = write_lines(tmp_path / "bad.txt", "good.test", "not a domain")
    cases: list[tuple[list[object], Path, str]] = [
        (["exclude"], data, "nothing to exclude"),
        (["exclude", "*"], data, "'*' would exclude everything"),
        (["exclude", "*.*"], data, "would exclude everything"),
        (["exclude", "not a domain"], data, "'not a domain' is not a domain"),
        (["exclude", "co.uk"], data, "co.uk is a public suffix"),
        (["exclude", "*.com"], data, "com is a public suffix: this would exclude every domain below it; add --yes"),
        (["include", "github.io"], data, "github.io is a public suffix"),
        (["exclude", "=shop*.a.test"], data, "is not a domain"),
        (["exclude", "good.test", ""], data, "'' is not a domain"),
        (["exclude", "--file", bad_file], data, "line 2: 'not a domain' is not a domain"),
        (["exclude", "--file", tmp_path / "none.txt"], data, "none.txt cannot be read: No such file or directory\n"),
        (["include", "a.test"], data, "a.test is not excluded"),
        (["include", "www.b.test"], data, "excluded by the pattern b.test"),
        (["include"], data, "Missing argument"),
        (["exclude", "c.test"], empty, "holds no crawl"),
        (["include", "b.test"], empty, "holds no crawl"),
        (["exclude", "--list"], empty, "holds no crawl"),
        (["exclude", "c.test"], tmp_path / "nowhere", "holds no crawl"),
    ]
    with _busy:
        answers = rove_each([[*words, "--data-dir", place] for words, place, _ in cases])
    for (words, _, sentence), said in zip(cases, answers, strict=True):
        assert said.returncode == 2, (words, said)
        assert sentence in said.stderr and "Traceback" not in said.stderr, (words, said.stderr)
        assert not said.stdout, (words, said.stdout)
    assert not list(empty.iterdir()) and not (tmp_path / "nowhere").exists(), "nothing was made"
    listed = rove("exclude", "--list", "--data-dir", data).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["b.test"], "nothing was changed"
    again = rove("exclude", "b.test", "--reason", "asked", "--data-dir", data)
    assert again.returncode == 0 and "excluded already: b.test and all its subdomains\n" in again.stdout
    assert "an exclusion that is already in force keeps its reason\n" in again.stdout
    excluding(data, "a.test")
    said = rove("export", "--data-dir", data)
    assert (said.returncode, said.stdout) == (0, "")
    assert said.stderr == "rove: 1 page left out, because of 'rove exclude'\n"
    _check_saved_without_output(data)


def _check_saved_without_output(data: Path) -> None:
    """Check that a change is made, and the exit code tells the truth, if the output is a full disk or a closed pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("w") as full, os.fdopen(writer, "w") as closed:
        for output, code, *words in (
            (full, 1, "exclude", "full.test"),
            (closed, 0, "exclude", "pipe.test"),
            (full, 1, "pause"),
            (closed, 0, "stop"),
        ):
            said = rove_alone(*words, "--data-dir", data, capture_output=False, stdout=output, stderr=subprocess.PIPE)
            assert said.returncode == code, said
            assert said.stderr.count("\n") == code, said.stderr
            assert ("everything else is done" in said.stderr) == bool(code), said.stderr
    assert "paused by " in rove("status", "--data-dir", data).stdout
    listed = rove("exclude", "--list", "--data-dir", data).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["b.test", "a.test", "full.test", "pipe.test"]


@pytest.mark.parametrize("scenario", scenario.names)
def test_exclusion(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
