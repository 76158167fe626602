"""Options that start a crawl, and options that are refused without changing anything."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rove.app.preparation import CrawlOptions, check, prepare
from rove.config import Limits, Settings, settings_from_json
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.frontier.backends import form_of, policy_of
from rove.frontier.records import Policy
from rove.frontier.sqlite.backend import SqliteBackend
from rove.model.urls import UrlState
from rove.policy.scope import SeedScope
from tests.contract.harness import page_row, url, visited

EMAIL: dict[str, Any] = {"email": "me@crawler.test"}


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.txt"
    path.write_text("a.test\nb.test\n")
    return path


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path / "data")


def write(path: Path, text: str) -> None:
    path.write_text(text)


@asynccontextmanager
async def prepared(
    options: CrawlOptions, data: DataDir, *, say: Callable[[str], None] = lambda sentence: None
) -> AsyncIterator[tuple[Settings, SqliteBackend]]:
    """Prepare a crawl as the application does."""
    backend = SqliteBackend(data.frontier)
    await check(options, backend)
    with data.held():
        try:
            yield await prepare(options, data, backend, say=say), backend
        finally:
            await backend.close()


def options_for(data: DataDir, seeds: Path | str | None, **more: Any) -> CrawlOptions:
    more = {"settings": EMAIL, **more}
    return CrawlOptions(data_dir=data.root, seeds=None if seeds is None else str(seeds), **more)


async def test_a_new_crawl_is_saved_with_its_seeds(data: DataDir, seeds: Path) -> None:
    async with prepared(options_for(data, seeds), data) as (settings, backend):
        saved = await backend.catalog.settings()
        assert saved is not None
        assert settings_from_json(saved) == settings == Settings(**EMAIL).with_plan()
        (source,) = await backend.catalog.seed_sources()
        assert source.name == str(seeds)
        assert (source.offset, source.lines, source.finished) == (0, 0, False)
        assert (data.root / source.path).read_text() == "a.test\nb.test\n"


async def test_standard_input_is_copied_to_the_data_directory(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(b"a.test\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    async with prepared(options_for(data, "-"), data) as (_, backend):
        (source,) = await backend.catalog.seed_sources()
        assert source.name == "standard input"
        assert (data.root / source.path).read_bytes() == b"a.test\n"


async def store_pages(backend: SqliteBackend, count: int) -> None:
    """Run the crawl until it has stored this many more pages."""
    frontier = await backend.begin(Policy(delay=0, budget=180), await backend.begin_run())
    await frontier.add([url(f"http://h{number}.test/") for number in range(count)])
    leases = await frontier.claim(count)
    await frontier.settle(
        [visited(lease, UrlState.DONE, requests=[page_row(lease, lease.urls[0].url)]) for lease in leases]
    )


async def test_an_existing_crawl_is_not_overwritten(data: DataDir, seeds: Path) -> None:
    async with prepared(options_for(data, seeds), data) as (_, backend):
        await store_pages(backend, 1)
    before = {p: p.read_bytes() for p in data.root.rglob("*.txt")}
    with pytest.raises(UsageError, match=r"already holds a crawl with 1 page;.*--resume"):
        async with prepared(options_for(data, seeds), data):
            pytest.fail("overwritten")
    assert {p: p.read_bytes() for p in data.root.rglob("*.txt")} == before
    async with prepared(options_for(data, None, resume=True, settings={}), data) as (_, backend):
        assert len(await backend.catalog.seed_sources()) == 1


async def test_a_start_that_was_killed_before_saving_can_be_repeated(data: DataDir, seeds: Path) -> None:
    data.root.mkdir()
    backend = SqliteBackend(data.frontier)
    await backend.open(create=True)
    await backend.close()
    async with prepared(options_for(data, seeds), data) as (_, backend):
        assert len(await backend.catalog.seed_sources()) == 1


async def test_settings_are_remembered_on_resume(data: DataDir, seeds: Path) -> None:
    first = {**EMAIL, "delay": 100.0, "max_depth": 3, "connect_to": ("*.test=127.0.0.1:80",)}
    first |= {"file_types": "visit", "skip_extensions": ("dat",)}
    async with prepared(options_for(data, seeds, settings=first, limits={"max_pages": 7}), data):
        pass
    again = options_for(data, None, resume=True, settings={"max_depth": 5})
    async with prepared(again, data) as (settings, _):
        assert settings.email == "me@crawler.test"
        assert (settings.delay, settings.max_depth) == (100.0, 5)
        assert settings.connect_to == ("*.test=127.0.0.1:80",)
        assert (settings.file_types, settings.skip_extensions) == ("visit", ("dat",))
        assert settings.limits == Limits(max_pages=7)
    async with prepared(options_for(data, None, resume=True, settings={}), data) as (settings, _):
        assert settings.max_depth == 5, "settings given on resume are remembered too"


async def test_seeds_given_on_resume_are_added(data: DataDir, seeds: Path, tmp_path: Path) -> None:
    async with prepared(options_for(data, seeds), data):
        pass
    more = tmp_path / "more.txt"
    more.write_text("c.test\n")
    async with prepared(options_for(data, more, resume=True, settings={}), data) as (_, backend):
        names = [source.name for source in await backend.catalog.seed_sources()]
        assert names == [str(seeds), str(more)]


async def test_limits_given_on_resume_count_from_there(data: DataDir, seeds: Path) -> None:
    limits = {"max_pages": 5, "max_pages_per_domain": 2}
    async with prepared(options_for(data, seeds, limits=limits), data) as (settings, backend):
        assert settings.limits.epoch == 1
        await store_pages(backend, 2)
    again = options_for(data, None, resume=True, settings={}, limits={"max_pages": 9})
    async with prepared(again, data) as (settings, _):
        assert (settings.limits.max_pages, settings.limits.pages_before) == (9, 2)
        assert (settings.limits.max_pages_per_domain, settings.limits.epoch) == (2, 1)


async def test_a_limit_of_pages_ends_with_the_run_that_reaches_it(data: DataDir, seeds: Path) -> None:
    said: list[str] = []
    async with prepared(options_for(data, seeds, limits={"max_pages": 5}), data) as (_, backend):
        await store_pages(backend, 2)
    plain = options_for(data, None, resume=True, settings={})
    async with prepared(plain, data, say=said.append) as (settings, backend):
        assert settings.limits == Limits(max_pages=5), "it was not reached, so the rest still counts"
        assert said == []
        await store_pages(backend, 5)
    async with prepared(plain, data, say=said.append) as (settings, _):
        assert settings.limits == Limits()
        assert said == ["an earlier run reached --max-pages; this one continues without it"]
    async with prepared(plain, data, say=said.append) as (settings, _):
        assert settings.limits == Limits() and len(said) == 1


async def test_a_limit_that_is_lifted_or_replaced_is_not_said_to_be_reached(data: DataDir, seeds: Path) -> None:
    said: list[str] = []
    async with prepared(options_for(data, seeds, limits={"max_pages": 2}), data) as (_, backend):
        await store_pages(backend, 2)
    again = options_for(data, None, resume=True, settings={}, limits={"max_pages": 3})
    async with prepared(again, data, say=said.append) as (settings, _):
        assert (settings.limits.max_pages, settings.limits.pages_before) == (3, 2)
    lifted = options_for(data, None, resume=True, settings={}, limits={"max_pages": None})
    async with prepared(lifted, data, say=said.append) as (settings, _):
        assert settings.limits == Limits()
    assert said == []


async def test_what_is_remembered_can_be_lifted(data: DataDir, seeds: Path) -> None:
    first = {**EMAIL, "max_depth": 3, "per_ip": 2, "scope": SeedScope.DOMAIN, "sitemaps": True, "strict_tls": True}
    first |= {"info_url": "https://a.test/", "connect_to": ("*.test=127.0.0.1:80",), "dns_servers": ("9.9.9.9",)}
    first |= {"file_types": "visit", "skip_extensions": ("dat",)}
    async with prepared(options_for(data, seeds, settings=first, limits={"max_pages_per_domain": 3}), data):
        pass
    lifted = {name: Settings.__dataclass_fields__[name].default for name in first if name != "email"}
    again = options_for(data, None, resume=True, settings=lifted, limits={"max_pages_per_domain": None})
    async with prepared(again, data) as (settings, _):
        assert settings == replace(Settings(**EMAIL), limits=Limits(epoch=2)).with_plan()


async def test_the_same_command_starts_a_crawl_and_resumes_it(data: DataDir, seeds: Path) -> None:
    said: list[str] = []
    options = options_for(data, seeds, resume=True, limits={"max_pages_per_domain": 3})
    for _ in range(3):
        async with prepared(options, data, say=said.append) as (settings, backend):
            assert len(await backend.catalog.seed_sources()) == 1
            assert settings.limits.epoch == 1, "the limit per domain counts on"
    assert said == []
    assert [path.name for path in data.seeds.iterdir()] == ["0001.txt"]
    write(seeds, "a.test\nb.test\nc.test\n")
    async with prepared(options, data, say=said.append) as (_, backend):
        assert len(await backend.catalog.seed_sources()) == 2, "a file that has changed is loaded"
    write(seeds, "a.test\nb.test\n")
    async with prepared(options, data, say=said.append) as (_, backend):
        assert len(await backend.catalog.seed_sources()) == 2


async def test_a_resume_after_a_start_that_was_killed_before_saving_begins_the_crawl(
    data: DataDir, seeds: Path
) -> None:
    data.root.mkdir()
    backend = SqliteBackend(data.frontier)
    await backend.open(create=True)
    await backend.close()
    with pytest.raises(UsageError, match="holds no crawl to resume"):
        async with prepared(options_for(data, None, resume=True, settings={}), data):
            pytest.fail("prepared")
    async with prepared(options_for(data, seeds, resume=True), data) as (_, backend):
        assert len(await backend.catalog.seed_sources()) == 1


HOUR = 3_600.0


@asynccontextmanager
async def crowded(data: DataDir, seeds: Path) -> AsyncIterator[SqliteBackend]:
    """A crawl with a horizon of one hour and a delay of 70 s, and 200 pending URLs of one domain: its room is 204."""
    options = options_for(data, seeds, limits={"max_duration": HOUR})
    async with prepared(options, data) as (settings, backend):
        frontier = await backend.begin(policy_of(settings), None)
        await frontier.add([url(f"http://a.test/{number}", depth=1) for number in range(200)])
        yield backend


async def pending(backend: SqliteBackend) -> int:
    return (await backend.reader.counts()).urls_pending


CHANGES: list[dict[str, Any]] = [
    {"limits": {"max_duration": 10.0}},
    {"limits": {"max_pages_per_domain": 1}},
    {"limits": {"max_pages": 1}},
    {"settings": {"delay": 3_600.0}},
    {"settings": {"max_depth": 0}},
    {"settings": {"scope": SeedScope.DOMAIN}},
    {"settings": {"max_links": 0}},
    {"settings": {"horizon": None}},
    {"settings": {"horizon": 2 * HOUR}},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
async def test_no_option_but_the_horizon_drops_pending_urls(
    data: DataDir, seeds: Path, changes: dict[str, Any]
) -> None:
    async with crowded(data, seeds):
        pass
    options = options_for(data, None, **{"resume": True, "settings": {}, **changes})
    async with prepared(options, data) as (settings, backend):
        assert settings.planned_seconds >= HOUR
        frontier = await backend.begin(policy_of(settings), None)
        await frontier.add([url(f"http://a.test/new/{number}", depth=9) for number in range(50)])
        assert await pending(backend) >= 200
        assert (await backend.reader.counts()).evicted == 0


async def test_a_shorter_horizon_asks_before_it_drops_urls(data: DataDir, seeds: Path) -> None:
    async with crowded(data, seeds):
        pass
    said: list[str] = []
    shorter = options_for(data, None, resume=True, settings={"horizon": 600.0, "max_depth": 5})
    with pytest.raises(UsageError, match=r"--horizon 10m is shorter than the 1h .* drop 136 of 200 pending .* --yes"):
        async with prepared(shorter, data, say=said.append):
            pytest.fail("prepared")
    async with prepared(options_for(data, None, resume=True, settings={}), data) as (settings, backend):
        assert await pending(backend) == 200
        assert settings.max_depth is None and settings.horizon is None, "a refused command changes nothing"
    async with prepared(replace(shorter, yes=True), data, say=said.append) as (settings, backend):
        assert said == ["--horizon 10m instead of 1h: 136 pending URLs dropped"]
        assert await pending(backend) == 64
        assert (await backend.reader.counts()).evicted == 136
        assert (settings.planned_seconds, settings.max_depth) == (600.0, 5)
    async with prepared(shorter, data, say=said.append) as (settings, backend):
        assert await pending(backend) == 64 and len(said) == 1, "the same command can be repeated"
    async with prepared(options_for(data, None, resume=True, settings={"horizon": None}), data) as (settings, _):
        assert settings.planned_seconds == HOUR, "the time limit that is left grows the horizon again"


async def test_a_shorter_horizon_that_drops_nothing_does_not_ask(data: DataDir, seeds: Path) -> None:
    async with crowded(data, seeds):
        pass
    options = options_for(data, None, resume=True, settings={"horizon": 3_590.0})
    async with prepared(options, data) as (settings, backend):
        assert settings.planned_seconds == 3_590.0
        assert await pending(backend) == 200


async def test_exclusions_are_remembered_and_can_be_added(data: DataDir, seeds: Path, tmp_path: Path) -> None:
    exclude = tmp_path / "exclude.txt"
    exclude.write_bytes(b"\xef\xbb\xbfx.test\r\n# comment\nY.test\n")
    async with prepared(options_for(data, seeds, exclude=exclude), data) as (_, backend):
        assert await backend.catalog.exclusions() == ["x.test", "y.test"]
    exclude.write_text("z.test\nx.test\n")
    again = options_for(data, None, resume=True, settings={}, exclude=exclude)
    async with prepared(again, data) as (_, backend):
        assert await backend.catalog.exclusions() == ["x.test", "y.test", "z.test"]


async def test_on_resume_a_changed_setting_is_checked(data: DataDir, seeds: Path) -> None:
    async with prepared(options_for(data, seeds), data):
        pass
    with pytest.raises(UsageError, match="--allow-short-delay"):
        async with prepared(options_for(data, None, resume=True, settings={"delay": 2.0}), data):
            pytest.fail("a short delay")


@pytest.mark.parametrize(
    ("first", "then", "complaint"),
    [
        (("a", "b"), ("a",), "started with --drop-param a --drop-param b and cannot change that"),
        ((), ("a",), "started without --drop-param and cannot change that"),
    ],
)
async def test_drop_param_cannot_be_changed(
    data: DataDir, seeds: Path, first: tuple[str, ...], then: tuple[str, ...], complaint: str
) -> None:
    async with prepared(options_for(data, seeds, settings={**EMAIL, "drop_params": first}), data):
        pass
    for given in ({}, {"drop_params": first}):
        options = options_for(data, None, resume=True, settings=given)
        async with prepared(options, data) as (saved, _):
            assert saved.drop_params == first
    with pytest.raises(UsageError, match=complaint):
        options = options_for(data, None, resume=True, settings={"drop_params": then})
        async with prepared(options, data):
            pytest.fail("changed")


async def test_two_crawls_of_the_same_seeds_have_different_ids(data: DataDir, seeds: Path, tmp_path: Path) -> None:
    ids, again = [], DataDir(tmp_path / "again")
    for each, resume in ((data, False), (again, False), (data, True)):
        async with prepared(options_for(each, None if resume else seeds, resume=resume), each) as (settings, backend):
            ids.append((await form_of(backend.catalog, settings)).domain_id("a.test"))
    assert ids[0] != ids[1] and ids[0] == ids[2]


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"seeds": None}, "no seeds given"),
    ({"settings": {}}, "--email is missing"),
    ({"settings": {"email": "nobody"}}, "not an e-mail"),
    ({"settings": {**EMAIL, "delay": 1.0}}, "--allow-short-delay"),
    ({"seeds": "nowhere.txt"}, "there is no seed file nowhere.txt"),
    ({"seeds": "example.org"}, "there is no seed file example.org; to give a domain or URL without a file, use: "),
    ({"seeds": "https://example.org/"}, r"use: echo https://example.org/ \| rove crawl -$"),
    ({"seeds": "."}, "the seed file . is a directory; give a file with a domain or URL per line"),
    ({"seeds": "/dev/null"}, "/dev/null is not a regular file; to read seeds from a pipe, use 'rove crawl -'"),
    ({"exclude": Path("nowhere.txt")}, "there is no exclusion file nowhere.txt"),
    ({"resume": True, "settings": {}}, "--email is missing"),
    ({"resume": True, "settings": {**EMAIL, "delay": 1.0}}, "--allow-short-delay"),
    ({"resume": True, "seeds": None}, "holds no crawl to resume; to start one, add a seed file and --email"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_OPTIONS)
async def test_bad_options_change_nothing(data: DataDir, seeds: Path, changes: dict[str, Any], message: str) -> None:
    before = sorted(seeds.parent.iterdir())
    options = replace(options_for(data, seeds), **changes)
    with pytest.raises(UsageError, match=message) as caught:
        async with prepared(options, data):
            pytest.fail("prepared")
    assert caught.value.exit_code == 2
    assert sorted(seeds.parent.iterdir()) == before


@pytest.mark.parametrize("text", ["", "\n\n", "# only comments\n", "nothing good\n/here\n", "\ufeff"])
async def test_seeds_without_a_good_line_are_refused(data: DataDir, seeds: Path, text: str) -> None:
    write(seeds, text)
    with pytest.raises(UsageError, match="holds no domain or URL to start from"):
        async with prepared(options_for(data, seeds), data):
            pytest.fail("prepared")
    assert not data.root.exists()


async def test_bad_seeds_on_resume_do_not_change_the_crawl(data: DataDir, seeds: Path, tmp_path: Path) -> None:
    async with prepared(options_for(data, seeds), data):
        pass
    bad = tmp_path / "bad.txt"
    bad.write_text("nothing good\n")
    with pytest.raises(UsageError, match="holds no domain"):
        async with prepared(options_for(data, bad, resume=True, settings={"max_depth": 9}), data):
            pytest.fail("prepared")
    async with prepared(options_for(data, None, resume=True, settings={}), data) as (saved, backend):
        assert saved.max_depth is None
        assert len(await backend.catalog.seed_sources()) == 1
    assert [p.name for p in data.seeds.iterdir()] == ["0001.txt"]


@pytest.mark.parametrize("text", [b"two words\n", b"\xff\xfe"])
async def test_a_bad_exclusion_file_is_refused_before_anything_is_created(
    data: DataDir, seeds: Path, tmp_path: Path, text: bytes
) -> None:
    exclude = tmp_path / "exclude.txt"
    exclude.write_bytes(text)
    with pytest.raises(UsageError, match=r"exclude\.txt"):
        async with prepared(options_for(data, seeds, exclude=exclude), data):
            pytest.fail("prepared")
    assert not data.root.exists()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"connect_to": ("nonsense",)}, "connect-to"),
        ({"dns_servers": ("9.9.9.9", "dns.test")}, "dns.test"),
        ({"strict_tls": True}, "ca-certificates"),
    ],
)
async def test_settings_that_cannot_work_are_refused_before_anything_is_created(
    data: DataDir, seeds: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], complaint: str
) -> None:
    monkeypatch.setattr("rove.fetch.tls.find_authorities", lambda bundles: None)
    options = options_for(data, seeds, settings=EMAIL | settings)
    with pytest.raises(UsageError, match=complaint):
        async with prepared(options, data):
            pass
    assert not data.root.exists()
