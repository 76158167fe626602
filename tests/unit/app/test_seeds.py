"""Seed files: reading lines, and resuming at the bookmark."""

from __future__ import annotations

import fcntl
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.app.seed_files import plain_lines
from rove.app.seeds import BadLine, BatchSizes, SeedLoader, read_lines, survey
from rove.config import Settings
from rove.errors import FrontierError
from rove.frontier.contract import Catalog
from rove.frontier.records import Added
from rove.frontier.seed_source import SeedSource
from rove.model.urls import UrlState
from rove.model.visits import Settled, VisitResult
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.rules import NO_RULES, Rules
from rove.urls.canonical import UrlForm
from rove.urls.seed import LONGEST_LINE
from tests.unit.crawl.scripted import World
from tests.urls import FORM, canonical, form_dropping


def texts(data: bytes) -> list[str | BadLine]:
    return [text for _, text in read_lines(io.BytesIO(data))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a.test", ["a.test"]),
        (b"a.test\nb.test\n", ["a.test", "b.test"]),
        (b"a.test\r\nb.test\r\n", ["a.test", "b.test"]),
        (b"a.test\n\n\nb.test", ["a.test", "", "", "b.test"]),
        (b"  a.test \t\n", ["a.test"]),
        (b"# comment\na.test\n", ["", "a.test"]),
        (b"   # comment\n", [""]),
        (b"a.test # comment\n", ["a.test"]),
        (b"a.test\t#comment # more\n", ["a.test"]),
        (b"http://a.test/#fragment\n", ["http://a.test/#fragment"]),
        (b"a.test#x\n", ["a.test#x"]),
        (b"m\xc3\xbcnchen.test\n", ["münchen.test"]),
        (b"m\xfcnchen.test\nb.test\n", [BadLine.NOT_TEXT, "b.test"]),
        (b"A.TEST\n", ["A.TEST"]),
    ],
)
def test_lines(data: bytes, expected: list[str | BadLine]) -> None:
    assert texts(data) == expected


@pytest.mark.parametrize("extra", [-1, 0, 1, 2, LONGEST_LINE, 3 * LONGEST_LINE + 7])
def test_an_overlong_line_is_one_bad_line(extra: int) -> None:
    line = b"x" * (LONGEST_LINE - 1 + extra)
    data = b"a.test\n" + line + b"\nb.test\n"
    lines = texts(data)
    assert [lines[0], *lines[2:]] == ["a.test", "b.test"]
    assert (lines[1] is BadLine.TOO_LONG) is (len(line) + 1 > LONGEST_LINE)
    assert [size for size, _ in read_lines(io.BytesIO(data))] == [7, len(line) + 1, 7]


def test_an_overlong_line_is_read_in_pieces() -> None:
    sizes: list[int] = []

    class Endless(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            assert size is not None
            sizes.append(size)
            return super().readline(size)

    lines = read_lines(Endless(b"x" * (1 << 20) + b"\na.test\n"))
    assert [text for _, text in lines] == [BadLine.TOO_LONG, "a.test"]
    assert len(sizes) > 200 and set(sizes) == {LONGEST_LINE}


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_the_sizes_add_up_to_the_file(data: bytes) -> None:
    assert sum(size for size, _ in read_lines(io.BytesIO(data))) == len(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", False),
        (b"# a.test\n\n", False),
        (b"not good\n\xff\n" + b"x" * 9000, False),
        (b"not good\n" * 3000 + b"a.test", True),
        (b"http://a.test/", True),
    ],
)
def test_a_good_line_is_found(tmp_path: Path, data: bytes, expected: bool) -> None:
    path = tmp_path / "seeds.txt"
    path.write_bytes(data)
    assert bool(survey(path).good) is expected


class Loading:
    """A seed file being loaded into a real frontier."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.folder = folder
        self.path = folder / "seeds.txt"
        self.said: list[str] = []
        self.batches = 0
        self.catalog: Catalog

    async def open(self, data: bytes) -> None:
        self.path.write_bytes(b"".join(plain_lines(io.BytesIO(data), "mine")))
        await self.world.open()
        self.catalog = self.world.harness.catalog()
        await self.catalog.save("{}", SeedSource(id=0, path="seeds.txt", name="mine"))

    async def load(self, **options: Any) -> SeedSource:
        await self.load_all(**options)
        (source,) = await self.catalog.seed_sources()
        return source

    async def load_all(
        self,
        *,
        frontier: Any = None,
        form: UrlForm = FORM,
        sizes: BatchSizes | None = None,
        progress_seconds: float = 60.0,
        rules: Rules = NO_RULES,
    ) -> None:
        loader = SeedLoader(
            frontier=frontier or self.world.frontier,
            catalog=self.catalog,
            gate=Gate(Exclusions(await self.catalog.exclusions()), rules=rules),
            directory=self.folder,
            delay=70.0,
            form=form,
            say=self.said.append,
            sizes=sizes,
            progress_seconds=progress_seconds,
        )
        await loader.load_all(self.added)

    def added(self) -> None:
        self.batches += 1


@pytest.fixture
def loading(tmp_path: Path) -> Iterator[Loading]:
    made = Loading(tmp_path)
    yield made
    made.world.close()


TENS = BatchSizes(first=10, largest=10)
BAD = "'bad line' is not a domain or URL: it has a space in it"


class FailsAfter:
    """A frontier that fails after a number of adds."""

    def __init__(self, frontier: Any, adds: int, *, committed: bool) -> None:
        self._frontier = frontier
        self._adds = adds
        self._committed = committed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frontier, name)

    async def add(self, urls: Any, *, as_seeds: bool = False) -> Added:
        self._adds -= 1
        added = Added()
        if self._adds >= 0 or self._committed:
            added = await self._frontier.add(urls, as_seeds=as_seeds)
        if self._adds < 0:
            raise FrontierError("lost")
        return added


async def test_good_lines_become_seeds(loading: Loading) -> None:
    await loading.open(b"\xef\xbb\xbfA.test\r\n# no\n\nhttp://b.test/x\nbad line\nc.test/y # why\n")
    source = await loading.load()
    assert (source.lines, source.good, source.bad, source.finished) == (6, 3, 1, True)
    assert source.offset == loading.path.stat().st_size
    rows = await loading.world.rows("SELECT url, depth, hops, assume_https FROM url ORDER BY url")
    assert rows == [("http://b.test/x", 0, 0, 0), ("https://a.test/", 0, 0, 1), ("https://c.test/y", 0, 0, 0)]
    assert loading.said == [
        "mine, line 5: 'bad line' is not a domain or URL: it has a space in it",
        "mine: 3 seeds, 1 bad line skipped",
    ]


async def test_lines_that_are_not_text_are_shown_too(loading: Loading) -> None:
    await loading.open(b"a.test\n\xff\n" + b"x" * 5000 + b"\nb.test\n")
    source = await loading.load()
    assert (source.good, source.bad) == (2, 2)
    assert loading.said[:2] == ["mine, line 2: not UTF-8 text", "mine, line 3: longer than 4,096 bytes"]


async def test_only_the_first_bad_lines_are_shown(loading: Loading) -> None:
    await loading.open(b"bad line\n" * 50)
    source = await loading.load()
    assert (source.good, source.bad) == (0, 50)
    assert len(loading.said) == 6
    assert loading.said[-1] == "mine: 0 seeds, 50 bad lines skipped"


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20, 35])
async def test_files_of_any_length_are_loaded_completely(loading: Loading, count: int) -> None:
    await loading.open(b"".join(b"h%d.test\n" % i for i in range(count)))
    source = await loading.load(sizes=TENS)
    assert source.finished and source.lines == source.good == count
    assert len(await loading.world.states()) == count
    assert loading.batches == count // 10 + 1


async def test_batches_grow_so_that_the_first_fetch_starts_early(loading: Loading) -> None:
    await loading.open(b"".join(b"h%d.test\n" % i for i in range(25)))
    sizes = []

    class Watching(FailsAfter):
        async def add(self, urls: Any, *, as_seeds: bool = False) -> Added:
            sizes.append(len(urls))
            return await super().add(urls, as_seeds=as_seeds)

    frontier = Watching(loading.world.frontier, 99, committed=True)
    await loading.load(frontier=frontier, sizes=BatchSizes(first=2, largest=8))
    assert sizes == [2, 4, 8, 8, 3]


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("adds", [0, 1, 2, 3])
async def test_loading_resumes_at_the_bookmark(loading: Loading, adds: int, committed: bool) -> None:
    """After a failure before or after a commit, the rest is loaded, and bad lines keep their numbers."""
    lines = [b"bad line" if i % 7 == 3 else b"h%d.test" % i for i in range(35)]
    await loading.open(b"\r\n".join(lines))
    lost = FailsAfter(loading.world.frontier, adds, committed=committed)
    with pytest.raises(FrontierError):
        await loading.load(frontier=lost, sizes=TENS)
    (source,) = await loading.catalog.seed_sources()
    assert source.lines == adds * 10 and not source.finished
    loading.said.clear()
    source = await loading.load(sizes=TENS)
    assert source.finished and (source.lines, source.good, source.bad) == (35, 30, 5)
    assert set(await loading.world.states()) == {f"https://h{i}.test/" for i in range(35) if i % 7 != 3}
    bad = [i + 1 for i in range(35) if i % 7 == 3 and i >= adds * 10]
    assert loading.said[:-1] == [
        f"mine, line {n}: 'bad line' is not a domain or URL: it has a space in it" for n in bad
    ]


async def test_a_finished_file_is_not_loaded_again(loading: Loading) -> None:
    await loading.open(b"a.test\n")
    await loading.load()
    loading.path.write_bytes(b"a.test\nb.test\n")
    await loading.load()
    assert list(await loading.world.states()) == ["https://a.test/"]


async def test_the_bookmark_moves_after_the_seeds_are_added(loading: Loading) -> None:
    await loading.open(b"a.test\n")
    offsets = []

    class Watching(FailsAfter):
        async def add(self, urls: Any, *, as_seeds: bool = False) -> Added:
            offsets.append((await loading.catalog.seed_sources())[0].offset)
            return await super().add(urls, as_seeds=as_seeds)

    await loading.load(frontier=Watching(loading.world.frontier, 9, committed=True))
    assert offsets == [0]
    assert (await loading.catalog.seed_sources())[0].offset == 7


async def test_excluded_seeds_are_good_lines_but_not_accepted(loading: Loading) -> None:
    await loading.open(b"a.test\nwww.x.test\nhttp://x.test/\n")
    await loading.catalog.add_exclusions(["x.test"], who="me", reason="")
    source = await loading.load()
    assert (source.good, source.bad, source.unseen, source.refused) == (3, 0, 1, 2)
    assert loading.said == ["mine: 3 seeds: 1 new, 2 excluded or rejected by rules"]
    assert list(await loading.world.states()) == ["https://a.test/"]
    counts = await loading.world.frontier.counts()
    assert counts.not_accepted == {"excluded": 2}


async def test_seeds_that_rules_reject_are_named(loading: Loading) -> None:
    await loading.open(b"a.test\n" + b"".join(b"http://a.test/tag/%d\n" % number for number in range(7)))
    rules = replace(Settings(email="me@crawler.test"), reject=('path ~ "/tag/"',)).with_numbers().rules
    source = await loading.load(rules=rules)
    assert (source.good, source.unseen, source.refused) == (8, 1, 7)
    rejected = 'is rejected by rule 1: path ~ "/tag/"'
    assert loading.said[0] == f"mine, line 2: http://a.test/tag/0 {rejected}"
    assert loading.said[4] == f"mine, line 6: http://a.test/tag/4 {rejected} (further ones are only counted)"
    assert loading.said[5:] == ["mine: 8 seeds: 1 new, 7 excluded or rejected by rules"]
    counts = await loading.world.frontier.counts()
    assert counts.not_accepted == {"rule-1": 7}


async def test_ignored_parameters_are_removed_from_seeds_and_seeds_are_never_traps(loading: Loading) -> None:
    await loading.open(b"a.test\nhttps://a.test/?utm_source=x\nb.test/x/x/x/x/x?sid=1&mark=2\n")
    await loading.load(form=form_dropping("mark"))
    assert await loading.world.rows("SELECT url, assume_https, priority FROM url ORDER BY url") == [
        ("https://a.test/", 1, 0),
        ("https://b.test/x/x/x/x/x?sid=1", 0, 0),
    ]


async def test_a_repeated_seed_is_one_url(loading: Loading) -> None:
    await loading.open(b"a.test\nA.TEST/\nhttps://a.test\n")
    source = await loading.load()
    assert source.good == 3
    assert loading.said == ["mine: 3 seeds: 1 new, 2 known"]
    assert await loading.world.rows("SELECT url, assume_https FROM url") == [("https://a.test/", 1)]


async def settle_all(loading: Loading, states: dict[str, tuple[UrlState, str]]) -> None:
    """Visit all domains once and settle their URLs as given."""
    for lease in await loading.world.frontier.claim(10):
        settled = [
            Settled(fingerprint=url.fingerprint, state=states[url.url][0], reason=states[url.url][1])
            for url in lease.urls
        ]
        result = VisitResult(lease=lease, requested=True, since_finish=0.0, settled=settled)
        await loading.world.frontier.settle([result])


async def give_again(loading: Loading, name: str = "again") -> SeedSource:
    await loading.catalog.add_seed_source(SeedSource(id=0, path="seeds.txt", name=name))
    loading.said.clear()
    await loading.load_all()
    return (await loading.catalog.seed_sources())[-1]


async def test_failed_seeds_that_are_given_again_are_tried_again(loading: Loading) -> None:
    await loading.open(b"http://a.test/\nhttp://b.test/\nhttp://c.test/\nhttp://d.test/\n")
    await loading.load()
    ends = {"http://a.test/": (UrlState.FAILED, "dns"), "http://b.test/": (UrlState.DONE, "")}
    ends |= {
        "http://c.test/": (UrlState.REDIRECTED, "http://e.test/"),
        "http://d.test/": (UrlState.BLOCKED, "robots.txt"),
    }
    await settle_all(loading, ends)
    target = canonical("http://e.test/")
    assert target is not None
    await loading.world.frontier.add([target.new_url(depth=0)])
    await settle_all(loading, {"http://e.test/": (UrlState.FAILED, "status 404")})
    source = await give_again(loading)
    assert (source.good, source.unseen, source.retried) == (4, 0, 2)
    assert loading.said == ["again: 4 seeds: 0 new, 2 tried again, 2 known"]
    states = await loading.world.states()
    assert {url for url, state in states.items() if state == "pending"} == {"http://a.test/", "http://e.test/"}
    (retry,) = await loading.catalog.retries()
    assert (retry.urls, retry.filter.source, retry.filter.only_seeds) == (2, "again", True)
    await give_again(loading)
    assert len(await loading.catalog.retries()) == 1, "nothing had failed, so there is no retry to record"


async def test_a_guess_of_https_is_made_again(loading: Loading) -> None:
    await loading.open(b"a.test\n")
    await loading.load()
    await settle_all(loading, {"https://a.test/": (UrlState.REDIRECTED, "http://a.test/")})
    http = canonical("http://a.test/")
    assert http is not None
    await loading.world.frontier.add([http.new_url(depth=0)])
    loading.world.advance(1_000)
    await settle_all(loading, {"http://a.test/": (UrlState.FAILED, "status 404")})
    source = await give_again(loading)
    assert source.retried == 1
    states = await loading.world.states()
    assert set(states.values()) == {"pending"}


async def test_a_link_that_is_given_as_a_seed_becomes_one(loading: Loading) -> None:
    await loading.open(b"http://a.test/deep\n")
    deep = canonical("http://a.test/deep")
    assert deep is not None
    await loading.world.frontier.add([deep.new_url(depth=7)])
    source = await loading.load()
    assert (source.unseen, source.retried) == (0, 0)
    rows = await loading.world.rows("SELECT depth, priority, seed IS NOT NULL FROM url")
    assert rows == [(0, 0, 1)]


async def test_a_file_that_another_process_loads_is_left_to_it(loading: Loading) -> None:
    await loading.open(b"a.test\nb.test\n")
    with loading.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        source = await loading.load()
        assert not source.finished and not loading.said
    source = await loading.load()
    assert source.finished and source.unseen == 2


async def test_progress_is_shown_while_a_long_file_loads(loading: Loading) -> None:
    await loading.open(b"".join(b"h%02d.test\n" % i for i in range(15)))
    await loading.load(sizes=TENS, progress_seconds=0.0)
    assert loading.said == ["mine: 10 seeds loaded, 67% of the file", "mine: 15 seeds"]


@pytest.mark.parametrize(
    ("data", "bad", "is_mostly_bad"),
    [(b"a.test\nx y\n", 1, False), (b"a.test\nx y\nftp://b.test/\n", 2, True), (b"\n# c\na.test\n", 0, False)],
)
def test_a_survey_tells_whether_most_lines_are_bad(tmp_path: Path, data: bytes, bad: int, is_mostly_bad: bool) -> None:
    path = tmp_path / "seeds.txt"
    path.write_bytes(data)
    found = survey(path)
    assert (found.good, found.bad, found.is_mostly_bad) == (1, bad, is_mostly_bad)
    assert len(found.problems) == bad
