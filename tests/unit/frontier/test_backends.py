"""Which database a crawl is in, by what is given and by what the data directory remembers."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rove.datadir import DataDir, Remote
from rove.errors import UsageError
from rove.frontier.backends import (
    DEFAULT_CRAWL_NAME,
    backend_for,
    machine_of,
    remote_for_move,
    remote_given,
)
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.sqlite.backend import SqliteBackend

URL = "postgresql://rove:s3cret@db.test/crawls"
OTHER = "postgres://rove@other.test/crawls"
KNOWN = Remote(url=URL, crawl_name="mine", machine="00ff")


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    made = DataDir(tmp_path / "data")
    made.root.mkdir()
    return made


@pytest.fixture
def joined(data: DataDir) -> DataDir:
    """A data directory that belongs to a crawl."""
    data.remember(KNOWN)
    return data


def test_where_nothing_is_given_and_nothing_known_the_crawl_is_in_sqlite(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "nothing" / "yet")
    assert remote_given(data, None, None) is None
    assert not data.root.exists(), "looking makes nothing"


def test_a_crawl_in_sqlite_stays_there(data: DataDir) -> None:
    data.frontier.touch()
    assert remote_given(data, None, None) is None


@pytest.mark.parametrize("url", [URL, OTHER])
def test_a_new_one_gets_a_name_for_the_crawl_and_one_of_its_own(data: DataDir, url: str) -> None:
    found = remote_given(data, url, None)
    again = remote_given(data, url, None)
    assert found is not None and again is not None
    assert (found.url, found.crawl_name) == (url, DEFAULT_CRAWL_NAME)
    assert found.machine and found.machine != again.machine
    assert data.remote() is None, "nothing is remembered by asking"


def test_the_name_of_the_crawl_may_be_given(data: DataDir) -> None:
    found = remote_given(data, URL, "theirs")
    assert found is not None and found.crawl_name == "theirs"


@pytest.mark.parametrize("name", [None, "mine"])
def test_what_is_remembered_need_not_be_given_again(joined: DataDir, name: str | None) -> None:
    assert remote_given(joined, None, name) == KNOWN


@pytest.mark.parametrize("name", [None, "mine"])
def test_a_server_may_have_another_url_than_before(joined: DataDir, name: str | None) -> None:
    """The crawl and the machine stay who they are."""
    found = remote_given(joined, OTHER, name)
    assert found == Remote(url=OTHER, crawl_name="mine", machine="00ff")


def test_a_data_directory_belongs_to_one_crawl(joined: DataDir) -> None:
    with pytest.raises(UsageError, match=r"belongs to the crawl 'mine'.*for 'theirs'"):
        remote_given(joined, URL, "theirs")


@pytest.mark.parametrize("name", ["theirs", DEFAULT_CRAWL_NAME])
def test_a_name_without_a_server_is_refused(joined: DataDir, tmp_path: Path, name: str) -> None:
    for place, sentence in (
        (joined, "belongs to the crawl 'mine'"),
        (DataDir(tmp_path / "other"), "give --frontier as well"),
    ):
        with pytest.raises(UsageError, match=sentence):
            remote_given(place, None, name)


@pytest.mark.parametrize("url", ["", "db.test", "mysql://db.test/x", "sqlite:///x", "POSTGRES"])
def test_other_urls_are_refused(data: DataDir, url: str) -> None:
    with pytest.raises(UsageError, match="is not a postgresql:// URL"):
        remote_given(data, url, None)
    with pytest.raises(UsageError, match="is not a postgresql:// URL"):
        remote_for_move(data, url, None)


def test_a_password_is_not_shown_when_its_url_is_refused(data: DataDir) -> None:
    for ask in (remote_given, remote_for_move):
        with pytest.raises(UsageError) as caught:
            ask(data, f" {URL}", None)
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["Mine", "pg_mine", "a-b", "public"])
def test_bad_names_are_refused(data: DataDir, name: str) -> None:
    with pytest.raises(UsageError, match="not a name for a crawl"):
        remote_given(data, URL, name)
    with pytest.raises(UsageError, match="not a name for a crawl"):
        remote_for_move(data, URL, name)


def test_a_crawl_in_sqlite_is_not_left_behind(data: DataDir) -> None:
    data.frontier.touch()
    with pytest.raises(UsageError, match="rove move --to"):
        remote_given(data, URL, None)


def test_a_crawl_that_was_moved_is_where_it_was_moved_to(joined: DataDir) -> None:
    """Even if the move was killed before the old file was set aside."""
    joined.frontier.touch()
    assert remote_given(joined, URL, None) == KNOWN
    assert remote_given(joined, None, None) == KNOWN
    joined.set_frontier_aside()
    assert remote_given(joined, URL, None) == KNOWN


def test_a_file_that_cannot_be_read_is_not_taken_for_none(joined: DataDir) -> None:
    """Else a second crawl would begin in SQLite."""
    (joined.root / "frontier.json").write_text("{")
    for url in (None, URL):
        with pytest.raises(UsageError, match="cannot be read"):
            remote_given(joined, url, None)


def test_a_move_goes_to_the_crawl_that_is_given(data: DataDir) -> None:
    data.frontier.touch()
    found = remote_for_move(data, URL, "theirs")
    assert (found.url, found.crawl_name) == (URL, "theirs")
    assert remote_for_move(data, OTHER, None).crawl_name == DEFAULT_CRAWL_NAME
    assert data.remote() is None, "nothing is remembered by asking"


def test_a_move_that_is_gone_on_with_is_one_of_the_same_machine(joined: DataDir) -> None:
    found = remote_for_move(joined, OTHER, "mine")
    assert found == Remote(url=OTHER, crawl_name="mine", machine="00ff")


def test_a_new_move_makes_a_new_machine(data: DataDir) -> None:
    machines = {remote_for_move(data, URL, None).machine for _ in range(3)}
    assert len(machines) == 3


def test_the_backend_is_the_one_that_is_meant(data: DataDir) -> None:
    assert isinstance(backend_for(data, None), SqliteBackend)
    remote = backend_for(data, KNOWN)
    assert isinstance(remote, PostgresBackend)
    assert "'mine'" in remote.location and "db.test" in remote.location
    assert "s3cret" not in remote.location


def test_a_machine_is_known_by_its_key_host_and_whole_path(
    data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.root.parent)
    found = machine_of(DataDir(Path("data")), KNOWN)
    assert (found.key, found.host) == ("00ff", socket.gethostname())
    assert Path(found.path).is_absolute() and Path(found.path).samefile(data.root)
