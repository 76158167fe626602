"""The options and the data directory decide which database a crawl is in."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rove.datadir import DataDir, Remote
from rove.errors import UsageError
from rove.frontier.backends import DEFAULT_CRAWL_NAME, backend_for, node_of, remote_for_move, remote_given
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.sqlite.backend import SqliteBackend

URL = "postgresql://rove:s3cret@db.test/crawls"
OTHER = "postgres://rove@other.test/crawls"
KNOWN = Remote(url=URL, crawl_name="mine", node_key="00ff")


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    data = DataDir(tmp_path / "data")
    data.root.mkdir()
    return data


@pytest.fixture
def joined(data: DataDir) -> DataDir:
    """Return a data directory that belongs to a crawl in PostgreSQL."""
    data.remember(KNOWN)
    return data


def test_a_new_crawl_is_in_sqlite_by_default(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "nothing" / "yet")
    assert remote_given(data, None, None) is None
    assert not data.root.exists(), "reading creates nothing"


def test_a_crawl_in_sqlite_stays_there(data: DataDir) -> None:
    data.frontier.touch()
    assert remote_given(data, None, None) is None


@pytest.mark.parametrize("url", [URL, OTHER])
def test_a_new_data_directory_gets_the_default_crawl_name_and_its_own_key(data: DataDir, url: str) -> None:
    first = remote_given(data, url, None)
    second = remote_given(data, url, None)
    assert first is not None and second is not None
    assert (first.url, first.crawl_name) == (url, DEFAULT_CRAWL_NAME)
    assert first.node_key and first.node_key != second.node_key
    assert data.remote() is None, "nothing is stored yet"


def test_the_name_of_the_crawl_may_be_given(data: DataDir) -> None:
    remote = remote_given(data, URL, "theirs")
    assert remote is not None and remote.crawl_name == "theirs"


@pytest.mark.parametrize("name", [None, "mine"])
def test_the_remote_need_not_be_given_again(joined: DataDir, name: str | None) -> None:
    assert remote_given(joined, None, name) == KNOWN


@pytest.mark.parametrize("name", [None, "mine"])
def test_the_url_of_the_server_may_change(joined: DataDir, name: str | None) -> None:
    """The crawl and the key of the data directory stay the same."""
    remote = remote_given(joined, OTHER, name)
    assert remote == Remote(url=OTHER, crawl_name="mine", node_key="00ff")


def test_a_data_directory_belongs_to_one_crawl(joined: DataDir) -> None:
    with pytest.raises(UsageError, match=r"belongs to the crawl 'mine'.*for 'theirs'"):
        remote_given(joined, URL, "theirs")


@pytest.mark.parametrize("name", ["theirs", DEFAULT_CRAWL_NAME])
def test_a_name_without_a_server_is_refused(joined: DataDir, tmp_path: Path, name: str) -> None:
    for folder, sentence in (
        (joined, "belongs to the crawl 'mine'"),
        (DataDir(tmp_path / "other"), "give --frontier too"),
    ):
        with pytest.raises(UsageError, match=sentence):
            remote_given(folder, None, name)


@pytest.mark.parametrize("url", ["", "db.test", "mysql://db.test/x", "sqlite:///x", "POSTGRES"])
def test_other_urls_are_refused(data: DataDir, url: str) -> None:
    with pytest.raises(UsageError, match="begins with postgresql:"):
        remote_given(data, url, None)
    with pytest.raises(UsageError, match="begins with postgresql:"):
        remote_for_move(data, url, None)


def test_a_password_is_not_shown_when_its_url_is_refused(data: DataDir) -> None:
    for ask in (remote_given, remote_for_move):
        with pytest.raises(UsageError) as caught:
            ask(data, f" {URL}", None)
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["Mine", "pg_mine", "a-b", "public"])
def test_bad_names_are_refused(data: DataDir, name: str) -> None:
    with pytest.raises(UsageError, match="not a valid name"):
        remote_given(data, URL, name)
    with pytest.raises(UsageError, match="not a valid name"):
        remote_for_move(data, URL, name)


def test_a_crawl_in_sqlite_is_not_left_behind(data: DataDir) -> None:
    data.frontier.touch()
    with pytest.raises(UsageError, match="rove move --to"):
        remote_given(data, URL, None)


def test_a_moved_crawl_is_in_postgresql(joined: DataDir) -> None:
    """Even if the move was killed before it renamed the old file."""
    joined.frontier.touch()
    assert remote_given(joined, URL, None) == KNOWN
    assert remote_given(joined, None, None) == KNOWN
    joined.set_frontier_aside()
    assert remote_given(joined, URL, None) == KNOWN


def test_a_damaged_remote_is_not_ignored(joined: DataDir) -> None:
    """Otherwise a second crawl would begin in SQLite."""
    (joined.root / "frontier.json").write_text("{")
    for url in (None, URL):
        with pytest.raises(UsageError, match="cannot be read"):
            remote_given(joined, url, None)


def test_a_move_goes_to_the_crawl_that_is_given(data: DataDir) -> None:
    data.frontier.touch()
    remote = remote_for_move(data, URL, "theirs")
    assert (remote.url, remote.crawl_name) == (URL, "theirs")
    assert remote_for_move(data, OTHER, None).crawl_name == DEFAULT_CRAWL_NAME
    assert data.remote() is None, "nothing is stored yet"


def test_a_resumed_move_keeps_the_key_of_the_data_directory(joined: DataDir) -> None:
    remote = remote_for_move(joined, OTHER, "mine")
    assert remote == Remote(url=OTHER, crawl_name="mine", node_key="00ff")


def test_a_new_move_makes_a_new_key(data: DataDir) -> None:
    keys = {remote_for_move(data, URL, None).node_key for _ in range(3)}
    assert len(keys) == 3


def test_the_remote_chooses_the_backend(data: DataDir) -> None:
    assert isinstance(backend_for(data, None), SqliteBackend)
    remote = backend_for(data, KNOWN)
    assert isinstance(remote, PostgresBackend)
    assert "'mine'" in remote.location and "db.test" in remote.location
    assert "s3cret" not in remote.location


def test_a_node_has_the_key_the_host_and_the_absolute_path(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data.root.parent)
    node = node_of(DataDir(Path("data")), KNOWN)
    assert (node.key, node.host) == ("00ff", socket.gethostname())
    assert Path(node.path).is_absolute() and Path(node.path).samefile(data.root)


def test_a_directory_whose_name_is_not_utf_8_has_a_path_that_can_be_stored(tmp_path: Path) -> None:
    node = node_of(DataDir(tmp_path / os.fsdecode(b"caf\xe9")), KNOWN)
    assert node.path.endswith("caf\ufffd") and node.path.encode()
