"""Options that start a crawl, and options that are refused without changing anything."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator
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
from rove.frontier.contract import Policy
from rove.frontier.sqlite.backend import SqliteBackend
from rove.model.urls import UrlState
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
async def prepared(options: CrawlOptions, data: DataDir) -> AsyncIterator[tuple[Settings, SqliteBackend]]:
    """Prepare a crawl as the application does."""
    backend = SqliteBackend(data.frontier)
    await check(options, backend)
    with data.held():
        try:
            yield await prepare(options, data, backend), backend
        finally:
            await backend.close()


def options_for(data: DataDir, seeds: Path | str | None, **more: Any) -> CrawlOptions:
    more = {"settings": EMAIL, **more}
    return CrawlOptions(data_dir=data.root, seeds=None if seeds is None else str(seeds), **more)


async def test_a_new_crawl_is_saved_with_its_seeds(data: DataDir, seeds: Path) -> None:
    async with prepared(options_for(data, seeds), data) as (settings, backend):
        saved = await backend.catalog.settings()
        assert saved is not None
        assert settings_from_json(saved) == settings == Settings(**EMAIL)
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


async def test_an_existing_crawl_is_not_overwritten(data: DataDir, seeds: Path) -> None:
    async with prepared(options_for(data, seeds), data) as (_, backend):
        frontier = await backend.begin(Policy(delay=0, budget=180), await backend.begin_run())
        await frontier.add([url("http://a.test/")])
        (lease,) = await frontier.claim(1)
        row = page_row(lease, "http://a.test/")
        await frontier.settle([visited(lease, UrlState.DONE, requests=[row])])
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
    async with prepared(options_for(data, seeds, settings=first, max_pages=7), data):
        pass
    again = options_for(data, None, resume=True, settings={"max_depth": 5})
    async with prepared(again, data) as (settings, _):
        assert settings.email == "me@crawler.test"
        assert (settings.delay, settings.max_depth) == (100.0, 5)
        assert settings.connect_to == ("*.test=127.0.0.1:80",)
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
    async with prepared(options_for(data, seeds, **limits), data) as (settings, backend):
        assert settings.limits.epoch == 1
        frontier = await backend.begin(Policy(delay=0, budget=180), await backend.begin_run())
        await frontier.add([url("http://a.test/"), url("http://b.test/")])
        leases = await frontier.claim(2)
        rows = [page_row(lease, lease.urls[0].url) for lease in leases]
        await frontier.settle(
            [visited(lease, UrlState.DONE, requests=[row]) for lease, row in zip(leases, rows, strict=True)]
        )
    again = options_for(data, None, resume=True, settings={}, max_pages=9)
    async with prepared(again, data) as (settings, _):
        assert (settings.limits.max_pages, settings.limits.pages_before) == (9, 2)
        assert (settings.limits.max_pages_per_domain, settings.limits.epoch) == (2, 1)


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


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"seeds": None}, "no seeds given"),
    ({"settings": {}}, "--email is missing"),
    ({"settings": {"email": "nobody"}}, "not an e-mail"),
    ({"settings": {**EMAIL, "delay": 1.0}}, "--allow-short-delay"),
    ({"seeds": "nowhere.txt"}, "there is no seed file nowhere.txt"),
    ({"seeds": "."}, "the seed file . is not a regular file; to read seeds from a pipe, use 'rove crawl -'"),
    ({"exclude": Path("nowhere.txt")}, "there is no exclusion file nowhere.txt"),
    ({"resume": True}, "holds no crawl to resume"),
    ({"resume": True, "seeds": None}, "holds no crawl to resume"),
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
