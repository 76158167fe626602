"""Every way a server can answer for robots.txt, and the robots rules of pages, checked in the server's log."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.acceptance.command import crawl_options, rove, started, wait_for, write_lines
from tests.acceptance.results import check_books, exported_urls, frontier_rows, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, Site, site, unreachable

DELAY = 0.1
RULES = "User-agent: *\nDisallow: /private\n"
PAGE = Reply("<title>a page</title>")
PATHS = ("/", "/private")

scenario = Scenarios()


def plain(body: str | bytes, *, status: int = 200, **headers: str) -> Reply:
    """Return a robots.txt answer. Underscores in header names stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(body, status=status, type="text/plain", headers=named)


def to(location: str) -> Reply:
    return Reply("over there", status=302, headers={"Location": location})


def pages_of(web: Site, host: str) -> set[str]:
    """Return the requested pages of a host."""
    return {asked.path for asked in web.requests_to(host)} & {*PATHS, "/more"}


def rules_asked(web: Site, host: str) -> list[str]:
    """Return the requested paths of a host that are not pages, in order."""
    return [asked.path for asked in web.requests_to(host) if asked.path not in (*PATHS, "/more")]


def pauses(web: Site, host: str, path: str) -> list[float]:
    """Return the seconds from the end of each request for a path to the start of the next."""
    asked = web.requests_to(host, path)
    return [later.at - earlier.ended for earlier, later in pairwise(asked)]


def crawl(folder: Path, web: Site, urls: list[str], *options: object) -> Path:
    """Crawl these URLs to the end, and return the data directory."""
    data = folder / "data"
    seeds = write_lines(folder / "seeds.txt", *urls)
    options = (*crawl_options(data, delay=DELAY), *options)
    result = rove("crawl", seeds, *options, *web.reach)
    assert result.returncode == 0, result.stderr
    return data


def both_pages(answers: Mapping[str, Reply]) -> list[str]:
    """Return the URLs of the open and the private page of every host."""
    hosts = [name.removesuffix("/") for name in answers if name.endswith("/")]
    return [f"http://{host}{path}" for host in hosts for path in PATHS]


def with_pages(robots: Mapping[str, Reply]) -> dict[str, Reply]:
    """Return the answers with two pages added for every host whose robots.txt is given."""
    answers = dict(robots)
    for name in robots:
        host, _, path = name.partition("/")
        if path == "robots.txt":
            answers |= {f"{host}{path}": PAGE for path in PATHS}
    return answers


@scenario
def a_robots_txt_that_never_comes(tmp_path: Path) -> None:
    """A server that reads the request and never answers is given up after twenty seconds, and nothing is allowed."""
    robots = {"dumb.test/robots.txt": Reply(held=True), "www.dumb.test/robots.txt": plain(RULES)}
    answers = with_pages(robots)
    data = tmp_path / "data"
    with site(answers) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *both_pages(answers))
        with started("crawl", seeds, *crawl_options(data, delay=DELAY), *web.reach) as crawling:
            wait_for(lambda: "http://dumb.test/robots.txt" in web.abandoned, seconds=40)
            wait_for(lambda: "http://www.dumb.test/" in web.urls)
            crawling.send_signal(signal.SIGINT)
            output, _ = crawling.communicate(timeout=20)
            assert crawling.returncode == 130, output
        assert pages_of(web, "dumb.test") == set()
        assert pages_of(web, "www.dumb.test") == {"/"}
    errors = frontier_rows(data, "SELECT error FROM request WHERE url LIKE 'http://dumb.test/%'")
    assert errors[0] == ("timeout-first-byte",)
    check_books(data, web.urls)


@scenario
def redirects_of_a_robots_txt(tmp_path: Path) -> None:
    """Five redirects are followed inside the domain; another domain is requested only for its robots.txt."""
    robots: dict[str, Reply] = {}
    for hops in range(1, 7):
        host = f"hops{hops}.test"
        robots[f"{host}/robots.txt"] = to("/r1")
        for hop in range(1, hops):
            robots[f"{host}/r{hop}"] = to(f"http://{host}/r{hop + 1}")
        robots[f"{host}/r{hops}"] = plain(RULES)
    robots |= {
        "across.test/robots.txt": to("http://one.elsewhere.test/robots.txt"),
        "one.elsewhere.test/robots.txt": to("http://two.other.test/robots.txt"),
        "two.other.test/robots.txt": plain(RULES),
        "missing.test/robots.txt": to("http://without.test/robots.txt"),
        "broken.test/robots.txt": to("http://five-hundred.test/robots.txt"),
        "five-hundred.test/robots.txt": Reply("no", status=500),
        "parked.test/robots.txt": to("http://two.other.test/?from=parked"),
        "text.test/robots.txt": to("http://two.other.test/rules.txt"),
        "ring1.test/robots.txt": to("http://ring2.test/robots.txt"),
        "ring2.test/robots.txt": to("http://ring1.test/robots.txt"),
        "loop.test/robots.txt": to("/again"),
        "loop.test/again": to("/robots.txt"),
        "itself.test/robots.txt": to("/robots.txt"),
        "hidden.test/robots.txt": to("http://www.never.test/robots.txt"),
        "www.never.test/robots.txt": plain("User-agent: *\nAllow: /\n"),
        "mail.test/robots.txt": to("mailto:someone@crawler.test"),
        "nonsense.test/robots.txt": to("http://[/robots.txt"),
    }
    answers = with_pages(robots)
    named = ["hops", "across", "missing", "broken", "loop", "itself", "hidden", "mail", "nonsense"]
    named += ["parked", "text", "ring1"]
    urls = [url for url in both_pages(answers) if url.startswith(tuple(f"http://{n}" for n in named))]
    with site(answers) as web:
        excluded = write_lines(tmp_path / "exclude.txt", "never.test")
        data = crawl(tmp_path, web, urls, "--exclude", excluded)
    for hops in range(1, 6):
        host = f"hops{hops}.test"
        assert rules_asked(web, host) == ["/robots.txt", *(f"/r{i + 1}" for i in range(hops))]
        assert pages_of(web, host) == {"/"}, "rules behind redirects are obeyed"
    assert rules_asked(web, "hops6.test") == ["/robots.txt", *(f"/r{i}" for i in range(1, 6))]
    assert pages_of(web, "hops6.test") == {"/", "/private"}
    assert pages_of(web, "across.test") == {"/"}
    assert pages_of(web, "missing.test") == {"/", "/private"}
    assert pages_of(web, "broken.test") == set(), "an unreachable robots.txt forbids everything"
    assert pages_of(web, "text.test") == set(), "a text file at another path may hold rules that are not read"
    for host in ("loop.test", "itself.test", "parked.test", "ring1.test"):
        assert pages_of(web, host) == {"/", "/private"}
    assert (rules_asked(web, "loop.test"), rules_asked(web, "itself.test")) == (
        ["/robots.txt", "/again"],
        ["/robots.txt"],
    )
    for host in ("two.other.test", "without.test"):
        assert [asked.path for asked in web.requests_to(host)] == ["/robots.txt"], "once, and nothing else"
    assert {asked.path for asked in web.requests_to("one.elsewhere.test")} == {"/robots.txt"}
    for host in ("mail.test", "nonsense.test"):
        assert rules_asked(web, host) == ["/robots.txt"]
        assert pages_of(web, host) == {"/", "/private"}
    assert not web.requests_to("www.never.test"), "a redirect led to an excluded host"
    assert pages_of(web, "hidden.test") == set()
    assert len(web.requests_to("hidden.test", "/robots.txt")) >= 2, "it is asked for again"
    check_books(data, web.urls)


@scenario
def every_spelling_of_a_robots_txt(tmp_path: Path) -> None:
    filler = "# " + "x" * 97 + "\n"
    html = "<!doctype html><title>Not found</title>\nUser-agent: *\nDisallow: /\n"
    robots = {
        "bom.test/robots.txt": plain(b"\xef\xbb\xbf" + RULES.encode()),
        "utf16.test/robots.txt": plain(RULES.encode("utf-16")),
        "cr.test/robots.txt": plain(RULES.replace("\n", "\r")),
        "lf.test/robots.txt": plain(RULES),
        "crlf.test/robots.txt": plain(RULES.replace("\n", "\r\n")),
        "nul.test/robots.txt": plain(RULES.replace("Disallow", "Dis\0allow").encode() + b"\0\0"),
        "unended.test/robots.txt": plain(RULES.rstrip("\n")),
        "large.test/robots.txt": plain(RULES + filler * 5_400 + "Disallow: /\n" + filler * 700, Server="slow"),
        "late.test/robots.txt": plain("User-agent: *\n" + filler * 6_000 + "Disallow: /\n"),
        "html.test/robots.txt": Reply(html),
        "empty.test/robots.txt": plain(""),
        "typed.test/robots.txt": Reply(RULES, type="application/octet-stream"),
    }
    with site(with_pages(robots)) as web:
        data = crawl(tmp_path, web, both_pages(with_pages(robots)))
    for name in robots:
        host = name.removesuffix("/robots.txt")
        has_rules = host not in ("late.test", "html.test", "empty.test")
        assert pages_of(web, host) == ({"/"} if has_rules else {"/", "/private"}), host
        assert rules_asked(web, host) == ["/robots.txt"], host
    assert status_of(data)["blocked"] == {"robots.txt": len(robots) - 3}
    check_books(data, web.urls)


@scenario
def a_robots_txt_that_is_not_there(tmp_path: Path) -> None:
    """A 4xx means that there are no rules, except 429, which asks for a pause."""
    robots = {
        f"s{status}.test/robots.txt": Reply("User-agent: *\nDisallow: /\n", status=status)
        for status in (400, 401, 403, 404, 405, 410, 418, 451)
    }
    with site(with_pages(robots)) as web:
        data = crawl(tmp_path, web, both_pages(with_pages(robots)))
    for name in robots:
        host = name.removesuffix("/robots.txt")
        assert pages_of(web, host) == {"/", "/private"}, host
        assert rules_asked(web, host) == ["/robots.txt"], host
    check_books(data, web.urls)


@scenario
def a_robots_txt_that_cannot_be_had(tmp_path: Path) -> None:
    """The origin is closed and tried less and less often. Another origin of the domain is not affected."""
    troubles = {
        "s429.test": Reply("wait", status=429),
        "s500.test": Reply(RULES, status=500),
        "s503.test": Reply("wait", status=503),
        "s599.test": Reply("wait", status=599),
        "reset.test": Reply(reset=True),
    }
    robots = {f"{host}/robots.txt": reply for host, reply in troubles.items()}
    robots |= {f"www.{host}/robots.txt": plain(RULES) for host in [*troubles, "deaf.test"]}
    answers = {
        **with_pages(robots),
        **{f"www.{host}/more": PAGE for host in [*troubles, "deaf.test"]},
    }
    urls = both_pages(answers) + [f"http://www.{host}/more" for host in [*troubles, "deaf.test"]]
    with site(answers) as web, unreachable() as nowhere:
        deaf = ["--connect-to", nowhere[1].replace("*", "deaf.test")]
        data = crawl(tmp_path, web, [*urls, "http://deaf.test/", "http://deaf.test/private"], *deaf)
    for host in [*troubles, "deaf.test"]:
        assert pages_of(web, host) == set(), host
        assert pages_of(web, f"www.{host}") == {"/", "/more"}, host
    for host in troubles:
        first, second, *_ = pauses(web, host, "/robots.txt")
        assert first >= 2 * DELAY and second >= 8 * DELAY, host
    deaf_asked = frontier_rows(
        data,
        "SELECT began, ended FROM request WHERE url = 'http://deaf.test/robots.txt' ORDER BY began",
    )
    gaps = [later[0] - earlier[1] for earlier, later in pairwise(deaf_asked)]
    assert len(gaps) >= 2 and gaps[0] >= 2_000 * DELAY and gaps[1] >= 8_000 * DELAY
    assert status_of(data)["urls"]["pending"] == 2 * (len(troubles) + 1), "they wait for later"
    check_books(data, web.urls)


@scenario
def a_server_that_says_when_to_ask_again_for_its_rules(tmp_path: Path) -> None:
    """A Retry-After holds for its whole domain."""
    tries: dict[str, int] = {}

    def answer(host: str, path: str) -> Reply:
        if path != "/robots.txt":
            return PAGE
        tries[host] = tries.get(host, 0) + 1
        if host == "patient.test" and tries[host] == 1:
            return plain("later", status=503, Retry_After="3")
        return plain(RULES)

    urls = [f"http://{host}{path}" for host in ("patient.test", "www.patient.test") for path in PATHS]
    with site(answer) as web:
        data = crawl(tmp_path, web, urls)
    assert rules_asked(web, "patient.test") == ["/robots.txt"] * 2
    assert pages_of(web, "patient.test") == {"/"}
    told = web.requests_to("patient.test", "/robots.txt")[0].ended
    assert not [asked.url for asked in web.requests if 0 < asked.at - told < 3]
    rows = frontier_rows(data, "SELECT delay, delay_from FROM request WHERE status = 503")
    assert rows == [(3_000, "retry-after")]
    check_books(data, web.urls)


@scenario
def a_copy_is_kept_and_renewed(tmp_path: Path) -> None:
    """An expired robots.txt is revalidated; one that is still fresh is not requested."""
    date = "Wed, 01 Jul 2026 10:00:00 GMT"
    has_changed = False

    def answer(host: str, path: str) -> Reply:
        if path in (*PATHS, "/more", "/last"):
            return PAGE
        if host == "moved.test" and path == "/robots.txt":
            return to("/rules.txt")
        if host == "changed.test" and has_changed:
            return plain("User-agent: *\nDisallow: /more\n", ETag='"2"')
        if host == "dated.test":
            return plain(RULES, Last_Modified=date)
        if host == "silent.test":
            return plain(RULES)
        return plain(RULES, ETag='"1"')

    def conditional(host: str, path: str) -> Reply:
        """Answer conditional requests."""
        headers = web.requests_to(host)[-1].headers
        if '"1"' in headers.get("if-none-match", "") and host != "changed.test":
            return Reply(status=304)
        if headers.get("if-modified-since") == date:
            return Reply(status=304)
        return answer(host, path)

    hosts = ["etag.test", "dated.test", "moved.test", "changed.test", "silent.test", "valid.test"]
    with site(conditional) as web:
        data = crawl(tmp_path, web, [f"http://{host}{path}" for host in hosts for path in PATHS])
        first = len(web.requests)
        assert all(pages_of(web, host) == {"/"} for host in hosts)
        expire(data, "http://valid.test")
        has_changed = True
        more = [f"http://{host}{path}" for host in hosts for path in ("/more", "/private/more")]
        result = rove("crawl", write_lines(tmp_path / "more.txt", *more), "--resume", "--data-dir", data)
        assert result.returncode == 0, result.stderr
        second = {asked.url: asked.headers for asked in web.requests[first:]}
        asked_again = len(web.requests)
        last = [f"http://{host}/last" for host in hosts]
        result = rove("crawl", write_lines(tmp_path / "last.txt", *last), "--resume", "--data-dir", data)
        assert result.returncode == 0, result.stderr
        third = set(web.urls[asked_again:])
    assert "http://valid.test/robots.txt" not in second, "a valid copy was asked for again"
    assert second["http://etag.test/robots.txt"]["if-none-match"] == '"1"'
    assert second["http://dated.test/robots.txt"]["if-modified-since"] == date
    assert "if-none-match" not in second["http://moved.test/robots.txt"]
    assert second["http://moved.test/rules.txt"]["if-none-match"] == '"1"'
    assert not {"if-none-match", "if-modified-since"} & set(second["http://silent.test/robots.txt"])
    fetched = {url for url in second if url.endswith("more")}
    assert fetched == {f"http://{host}/more" for host in hosts if host != "changed.test"} | {
        "http://changed.test/private/more"
    }
    assert third == set(last), "what was renewed holds again"
    check_books(data, web.urls)


def expire(data: Path, but: str) -> None:
    """Let every stored robots.txt but one expire."""
    with closing(sqlite3.connect(data / "frontier.sqlite")) as frontier, frontier:
        changed = frontier.execute("UPDATE origin SET expires_at = 0 WHERE origin <> ?", (but,))
        assert changed.rowcount > 0


@scenario
def a_crawl_delay_is_kept(tmp_path: Path) -> None:
    asks = {
        "decimal.test": "1.25",
        "nonsense.test": "soon",
        "negative.test": "-5",
        "none.test": "",
        "short.test": "0.001",
        "endless.test": "86401",
    }
    robots = {
        f"{host}/robots.txt": plain(f"User-agent: *\nCrawl-delay: {value}\nDisallow: /private\n")
        for host, value in asks.items()
    }
    paths = ("/", "/a", "/b")
    answers = {**robots, **{f"{host}{path}": PAGE for host in asks for path in paths}}
    with site(answers) as web:
        data = crawl(tmp_path, web, [f"http://{host}{path}" for host in asks for path in paths])
        said = rove("explain", "http://endless.test/a", "--json", "--data-dir", data)
    assert web.urls.count("http://endless.test/robots.txt") == 1
    assert len(web.requests_to("endless.test")) == 1, "a domain that asks to be left alone"
    assert status_of(data)["blocked"] == {"Crawl-delay over a day": 3}
    assert json.loads(said.stdout)["verdict"] == "left-alone"
    for host in asks.keys() - {"endless.test"}:
        asked = web.requests_to(host)
        assert {one.path for one in asked} == {"/robots.txt", *paths}, host
        least = 1.25 if host == "decimal.test" else DELAY
        visits = asked[1:]  # robots.txt and the first page are one visit
        gaps = [b.at - a.ended for a, b in pairwise(visits)]
        assert len(gaps) == 2 and min(gaps) >= least, host
        delays = frontier_rows(data, f"SELECT delay, delay_from FROM request WHERE url LIKE '%/{host}/%'")
        source = "crawl-delay" if host == "decimal.test" else "delay"
        assert {name for _, name in delays} <= {source, "slow"}, host  # a busy machine is slow
        assert {delay for delay, name in delays if name == source} <= {round(least * 1000)}, host
    check_books(data, web.urls)


@scenario
def a_domain_that_asks_to_be_left_alone_does_not_keep_a_crawl_up(tmp_path: Path) -> None:
    """Neither its other hosts nor URLs found later are requested, because the whole domain is left alone."""
    answers = {
        "endless.test/robots.txt": plain("User-agent: *\nCrawl-delay: 100000\n"),
        "endless.test/": PAGE,
        "www.endless.test/": PAGE,
        "slow.test/": Reply('<a href="http://endless.test/later">x</a>', after=1.0),
    }
    data = tmp_path / "data"
    with site(answers) as web:
        hosts = ("endless.test", "www.endless.test", "slow.test")
        seeds = write_lines(tmp_path / "seeds.txt", *(f"http://{host}/" for host in hosts))
        options = crawl_options(data, delay=DELAY)
        result = rove("crawl", seeds, *options, *web.reach, "--max-duration", "8s")
        assert result.returncode == 0, result.stderr
    assert web.urls.count("http://endless.test/robots.txt") == 1
    assert {asked.host for asked in web.requests} == {"endless.test", "slow.test"}
    assert "exhausted" in result.stderr, result.stderr
    check_books(data, web.urls)


@scenario
def a_page_over_the_connection_of_its_robots_txt(tmp_path: Path) -> None:
    """Every request is in the ledger once, even if the server closes the connection at the second one."""
    kept = {
        "kept.test/robots.txt": replace(plain(RULES), keep=True),
        "missing.test/robots.txt": replace(plain("Nothing here.", status=404), keep=True),
        "faithless.test/robots.txt": replace(plain(RULES), keep=True),
        "closed.test/robots.txt": replace(plain("User-agent: *\nDisallow: /\n"), keep=True),
    }
    failures = ["once"]

    def answer(host: str, path: str) -> Reply:
        if f"{host}{path}" == "faithless.test/" and failures:
            failures.clear()
            return Reply(reset=True)
        return kept.get(f"{host}{path}", PAGE)

    with site(answer) as web:
        urls = [f"http://{name.removesuffix('robots.txt')}" for name in kept]
        data = crawl(tmp_path, web, urls)
    assert len(web.requests_to("faithless.test", "/")) == 2
    assert len(web.urls) == 8
    # faithless.test is requested again in a visit of its own, after one connection in vain
    assert web.connections == 4 + 2
    rows = frontier_rows(data, "SELECT url, error, status FROM request ORDER BY began, seq")
    assert Counter(url for url, _, _ in rows) == Counter(web.urls)
    faithless = [row[1:] for row in rows if row[0].startswith("http://faithless.test")]
    assert faithless == [("", 200), ("reset", 0), ("", 200)]
    assert exported_urls(data) == {f"http://{host}.test/" for host in ("kept", "missing", "faithless")}
    check_books(data, web.urls)


@scenario
def what_pages_ask_of_robots(tmp_path: Path) -> None:
    def linked(name: str) -> str:
        return f'<title>{name}</title><a href="/from-{name}">on</a>'

    def meta(name: str, value: str) -> Reply:
        return Reply(f'<meta name="{name}" content="{value}">{linked(value.split()[0])}')

    def tagged(name: str, value: str) -> Reply:
        return Reply(linked(name), headers={"X-Robots-Tag": value})

    rels = ("nofollow", "ugc", "sponsored", "noopener NOFOLLOW", "noopener")
    links = "".join(f'<a rel="{rel}" href="/rel-{rel[-8:].lower()}">x</a>' for rel in rels)
    answers = {
        "a.test/noindex": meta("robots", "noindex"),
        "a.test/nofollow": meta("ROBOTS", "NoFollow".lower()),
        "a.test/none": meta("rove", "none"),
        "a.test/other": Reply(f'<meta name="otherbot" content="none">{linked("other")}'),
        "a.test/tag-noindex": tagged("tag-noindex", "noindex"),
        "a.test/tag-nofollow": tagged("tag-nofollow", "rove: nofollow"),
        "a.test/tag-other": tagged("tag-other", "otherbot: noindex, nofollow"),
        "a.test/links": Reply(links),
    }
    targets = [f"a.test/from-{name.removeprefix('a.test/')}" for name in answers]
    for name in [*targets, "a.test/rel-nofollow", "a.test/rel-noopener"]:
        answers[name] = PAGE
    entries = [f"http://{name}" for name in answers if "/from-" not in name and "/rel-" not in name]
    with site(answers) as web:
        data = crawl(tmp_path, web, entries)
    asked = {url.removeprefix("http://a.test/") for url in web.pages}
    assert {name for name in asked if name.startswith("from-")} == {
        "from-noindex",
        "from-other",
        "from-tag-noindex",
        "from-tag-other",
    }
    assert {name for name in asked if name.startswith("rel-")} == {"rel-noopener"}
    kept = {url.removeprefix("http://a.test/") for url in exported_urls(data)}
    assert kept == asked - {"noindex", "none", "tag-noindex"}
    assert status_of(data)["blocked"] == {"noindex": 3}
    check_books(data, web.urls)


@pytest.mark.parametrize("scenario", scenario.names)
def test_robots_http(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
