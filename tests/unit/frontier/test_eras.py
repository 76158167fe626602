from __future__ import annotations

from pathlib import Path

import pytest

from rove.frontier.era_file import WRITE_SECONDS, EraFile
from rove.frontier.eras import Era, Past, Remembered, Rest, Server, compare, rest_of, resting_text

FIRST = Era("first", Server("s", 1))
SECOND = Era("second", Server("s", 2), rest_from=5)
ON_FIRST = Remembered(crawl="first", era="first", system="s", timeline=1, visits=10)
ON_SECOND = Remembered(crawl="first", era="second", system="s", timeline=2, visits=10)
NOTHING = Remembered()


@pytest.mark.parametrize(
    ("server", "eras", "visits", "known", "past"),
    [
        pytest.param(Server("s", 1), [], 0, NOTHING, Past.FIRST, id="a new crawl"),
        pytest.param(Server("s", 1), [], 0, ON_FIRST, Past.FIRST, id="a new crawl in an old directory"),
        pytest.param(Server(), [], 10, NOTHING, Past.FIRST, id="a directory that joins"),
        pytest.param(Server("s", 1), [FIRST], 10, NOTHING, Past.SAME, id="a directory that joins later"),
        pytest.param(Server("s", 1), [FIRST], 10, ON_FIRST, Past.SAME, id="nothing happened"),
        pytest.param(Server("s", 2), [FIRST, SECOND], 10, ON_FIRST, Past.SAME, id="another process has noticed"),
        pytest.param(Server("s", 2), [FIRST], 10, ON_FIRST, Past.PROMOTED, id="a standby was promoted"),
        pytest.param(Server("s", 2), [FIRST], 10, NOTHING, Past.PROMOTED, id="promoted, seen by a new directory"),
        pytest.param(Server("s", 3), [FIRST], 10, ON_SECOND, Past.PROMOTED, id="the wrong standby, promoted later"),
        pytest.param(Server("s", 2), [FIRST], 10, ON_SECOND, Past.PROMOTED, id="two standbys, both promoted"),
        pytest.param(Server("s", 1), [FIRST], 10, ON_SECOND, Past.BEHIND, id="the former primary"),
        pytest.param(Server("s", 1), [FIRST, SECOND], 10, NOTHING, Past.BEHIND, id="a timeline that went back"),
        pytest.param(Server("other", 1), [FIRST], 10, ON_FIRST, Past.FOREIGN, id="a dump on another server"),
        pytest.param(Server("other", 1), [], 10, ON_FIRST, Past.OLDER, id="a dump that the operator confirmed"),
        pytest.param(Server("s", 1), [FIRST], 9, ON_FIRST, Past.OLDER, id="a visit is missing"),
        pytest.param(
            Server("s", 2), [FIRST, Era("x", Server("s", 2))], 10, ON_SECOND, Past.OLDER, id="an era is missing"
        ),
        pytest.param(Server("t", 1), [Era("x", Server("t", 1))], 1, ON_SECOND, Past.SAME, id="another crawl"),
        pytest.param(Server(), [FIRST], 9, ON_FIRST, Past.OLDER, id="a visit is missing on a managed server"),
        pytest.param(Server(), [Era("first", Server())], 10, ON_FIRST, Past.SAME, id="a managed server"),
        pytest.param(Server("s", 7), [Era("first", Server())], 10, ON_FIRST, Past.SAME, id="it shows itself now"),
    ],
)
def test_a_database_is_compared_with_what_is_known(
    server: Server, eras: list[Era], visits: int, known: Remembered, past: Past
) -> None:
    assert compare(server, eras, visits, known) is past


def test_a_domain_rests_for_a_visit_and_its_own_delay() -> None:
    rest = rest_of(1_000, budget=180.0, delay_ms=70_000)
    assert rest == Rest(181_000, 70_000)
    assert (rest.end(), rest.end(crawl_delay=90_000), rest.end(backoff=100_000)) == (251_000, 271_000, 281_000)
    assert rest_of(None, budget=180.0, delay_ms=70_000) is None
    assert "for 1 min 05 s more" in resting_text(65_000) and resting_text(0) == ""


def test_a_directory_remembers_its_database(tmp_path: Path) -> None:
    now = 100.0
    path = tmp_path / "database.json"
    file = EraFile(path, clock=lambda: now)
    file.note_era(SECOND, crawl="first")
    assert not path.exists(), "the crawl may turn out to be another one"
    file.save()
    assert EraFile(path).known == Remembered(crawl="first", era="second", system="s", timeline=2)
    file.note_visits(7)
    file.save()
    assert EraFile(path).known.visits == 0, "written rarely"
    now += WRITE_SECONDS
    file.save()
    file.note_visits(5)
    assert (
        EraFile(path).known == file.known == Remembered(crawl="first", era="second", system="s", timeline=2, visits=7)
    )
    file.note_visits(9)
    file.save(at_once=True)
    assert EraFile(path).known.visits == 9
    assert [found.name for found in tmp_path.iterdir()] == ["database.json"]


def test_another_crawl_in_the_directory_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "database.json"
    file = EraFile(path)
    file.note_era(FIRST, crawl="first")
    file.note_visits(500)
    file.save()
    other = EraFile(path)
    other.note_era(Era("other", Server("t", 1)), crawl="other")
    other.note_visits(3)
    other.save()
    assert EraFile(path).known == Remembered(crawl="other", era="other", system="t", timeline=1, visits=3)


def test_another_process_of_the_directory_may_know_later_visits(tmp_path: Path) -> None:
    path = tmp_path / "database.json"
    first, second = EraFile(path), EraFile(path)
    for file in (first, second):
        file.note_era(FIRST, crawl="first")
    first.note_visits(90)
    first.save(at_once=True)
    second.note_visits(80)
    second.save(at_once=True)
    assert EraFile(path).known.visits == 90


def test_a_process_learns_of_an_era_that_another_has_seen(tmp_path: Path) -> None:
    path = tmp_path / "database.json"
    first, second = EraFile(path), EraFile(path)
    for file in (first, second):
        file.note_era(FIRST, crawl="first")
        file.save()
    second.note_visits(10)
    first.note_era(SECOND, crawl="first")
    first.save()
    second.reread()
    assert second.known == ON_SECOND


@pytest.mark.parametrize("text", [b"", b"[]", b'{"visits": "many"}', b"\xff"])
def test_a_damaged_file_is_no_obstacle(tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "database.json"
    path.write_bytes(text)
    assert EraFile(path).known == NOTHING
    assert "could not read" in caplog.text


def test_a_file_that_cannot_be_written_is_no_obstacle(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """On a disk that was mounted again for reading only, nothing can be deleted either."""
    folder = tmp_path / "data"
    folder.mkdir()
    file = EraFile(folder / "database.json")
    folder.rmdir()
    folder.touch()
    file.note_visits(3)
    file.save(at_once=True)
    assert file.known.visits == 3
    assert "could not write" in caplog.text
