"""One crawl of the whole zoo: it ends soon, needs little memory, and every URL has an accepted outcome.

The healthy sites among the animals are crawled to their end as if the others were not there.
"""

from __future__ import annotations

import fnmatch
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from rove.model.urls import UrlState
from tests.acceptance.command import crawl_options, started
from tests.acceptance.results import check_audit, frontier_rows, ledger_entries
from tests.urls import canonical
from tests.zoo.animal import Animal, Fate
from tests.zoo.keeper import PAGES_PER_DOMAIN, Zoo, everyone, opened
from tests.zoo.table import lines

DELAY = 0.2
TIMEOUT = 1.5
CONCURRENCY = 200
LONGEST_SECONDS = 120
IMPATIENT = {"silence": 5.0}
"""Sites that answer only for robots.txt may be all that is left; rove takes that for an outage for a while."""
MOST_MEMORY = 400 * 1024 * 1024
HEALTHY_SECONDS = 60.0
"""Ten pages take two seconds at this delay. The rest is for a busy machine, because a site is left alone for ten times
as long as its answer took. The benchmark checks the pace itself."""
CLOCK_STEP = 0.002
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, kw_only=True)
class UrlOutcome:
    """The outcome of a URL."""

    state: str
    reason: str
    marks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Outing:
    """A finished crawl of the zoo."""

    zoo: Zoo
    data: Path
    output: str
    code: int
    seconds: float
    peak: int
    """Peak memory of the crawl, or of any process that it started."""
    began: float
    outcomes: dict[str, UrlOutcome]


@pytest.fixture(scope="module")
def outing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outing]:
    folder = tmp_path_factory.mktemp("zoo")
    data = folder / "data"
    with opened(everyone) as zoo:
        seeds = zoo.write_seeds(folder / "seeds.txt")
        words = [
            *("crawl", seeds, *crawl_options(data, delay=DELAY, concurrency=CONCURRENCY)),
            *("--timeout", TIMEOUT, "--max-duration", f"{LONGEST_SECONDS}s", "--sitemaps"),
            *("--max-pages-per-domain", PAGES_PER_DOMAIN, *zoo.reach),
        ]
        began = time.monotonic()
        with (folder / "output").open("w+") as output:
            with started(*words, stdout=output, outage_rules=IMPATIENT) as process:
                peak, check_at = 0, began
                while process.poll() is None:
                    peak = max(peak, *_peaks(process.pid).values(), 0)
                    if time.monotonic() > check_at:
                        check_at = time.monotonic() + 1.0
                        if _is_left_to_slowed_animals(data):
                            process.send_signal(signal.SIGINT)
                            process.wait()
                    time.sleep(0.1)
            output.seek(0)
            yield Outing(
                zoo=zoo,
                data=data,
                output=output.read(),
                code=process.returncode,
                seconds=time.monotonic() - began,
                peak=peak,
                began=began,
                outcomes=_outcomes(data),
            )


def _is_left_to_slowed_animals(data: Path) -> bool:
    """Whether only domains are left that wait for minutes, because their pages took long to read."""
    rows = frontier_rows(
        data,
        """SELECT count(*) FILTER (WHERE pending > 0 AND NOT (ifnull(failing, 0) OR capped OR excluded) AND NOT EXISTS (
               SELECT 1 FROM request WHERE domain = domain.id AND delay_from = 'expensive')),
           sum(stored) FROM domain""",
    )
    return bool(rows) and rows[0][0] == 0 and bool(rows[0][1])


def _peaks(pid: int) -> dict[int, int]:
    """Return the peak memory so far of a process and of those that it started."""
    peaks = {}
    with suppress(psutil.NoSuchProcess, OSError):
        for one in (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))):
            match = PEAK.search(Path(f"/proc/{one}/status").read_text())
            if match is not None:
                peaks[one] = int(match[1]) * 1024
    return peaks


def _outcomes(data: Path) -> dict[str, UrlOutcome]:
    """Return the outcome of every URL; for a pending one, the last error is its reason."""
    errors: dict[str, str] = {}
    marks: dict[str, tuple[str, ...]] = {}
    for url, error, words, truncated in frontier_rows(
        data, "SELECT url, error, marks, truncated FROM request ORDER BY began, seq"
    ):
        errors[url] = error
        marks[url] = (*words.split(), "truncated") if truncated else tuple(words.split())
    found = {}
    for url, state, reason in frontier_rows(data, "SELECT url, state, reason FROM url"):
        if state == UrlState.PENDING:
            parsed = canonical(url)
            assert parsed is not None
            reason = errors.get(url) or errors.get(f"{parsed.origin}/robots.txt", "")
        found[url] = UrlOutcome(state=UrlState(state).name.lower(), reason=reason, marks=marks.get(url, ()))
    return found


def _is_one_of(outcome: UrlOutcome | None, fates: tuple[Fate, ...]) -> bool:
    if outcome is None:
        return any(fate.state == "absent" for fate in fates)
    return any(
        fate.state == outcome.state
        and fnmatch.fnmatchcase(outcome.reason, fate.because)
        and (not fate.mark or fnmatch.filter(outcome.marks, fate.mark))
        for fate in fates
    )


def _strays(outing: Outing, animal: Animal) -> list[str]:
    """Describe every outcome that the animal does not accept."""
    strays = []
    for url, fates in animal.expects.items():
        parsed = canonical(url)
        found = None if parsed is None else outing.outcomes.get(parsed.text)
        if not _is_one_of(found, fates):
            strays.append(f"{url[:100]} is {found}, not one of {[tuple(fate) for fate in fates]}")
    asked = outing.zoo.requests_to(animal)
    if animal.most is not None and len(asked) > animal.most:
        strays.append(f"{animal.name} was asked {len(asked)} times, not {animal.most} at most")
    return strays


def test_nothing_is_left_but_animals_that_are_slowed_down(outing: Outing) -> None:
    assert outing.code == 130, outing.output[-3000:]
    assert outing.seconds < LONGEST_SECONDS


def test_every_url_ends_as_it_should(outing: Outing) -> None:
    strays = [stray for animal in outing.zoo.animals for stray in _strays(outing, animal)]
    assert not strays, "\n".join(strays)
    assert not outing.zoo.lost


def test_nothing_inward_is_reached(outing: Outing) -> None:
    assert outing.zoo.trespasses == []


def test_memory_stays_bounded(outing: Outing) -> None:
    assert 0 < outing.peak < MOST_MEMORY, f"{outing.peak / 1e6:.0f} MB"


def test_nothing_goes_wrong_inside(outing: Outing) -> None:
    logged = "".join(path.read_text() for path in outing.data.glob("*.log*"))
    assert logged
    for text in (logged, outing.output):
        assert "Traceback" not in text and " ERROR " not in text, text[-3000:]
        assert "internal error" not in text.lower()


def test_the_books_are_right(outing: Outing) -> None:
    check_audit(outing.data)
    ledger = {url.partition("://")[2] for url, _ in ledger_entries(outing.data)}
    seen = {one.url.partition("://")[2] for one in outing.zoo.requests}
    assert seen <= ledger, sorted(seen - ledger)[:5]


def test_healthy_sites_keep_their_pace(outing: Outing) -> None:
    for animal in outing.zoo.animals:
        if not animal.name.startswith("healthy-"):
            continue
        asked = [one for one in outing.zoo.requests_to(animal) if one.path != "/robots.txt"]
        assert {one.url for one in asked} == set(animal.expects), animal.name
        gaps = [after.at - before.at for before, after in pairwise(asked)]
        assert min(gaps) > DELAY - CLOCK_STEP, f"{animal.name} was asked after {min(gaps):.3f} s"
        took = asked[-1].at - outing.began
        assert took < HEALTHY_SECONDS, f"{animal.name} took {took:.1f} s"


def test_the_manual_has_every_animal() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "hostile.md").read_text().splitlines()
    missing = [line for line in lines() if line not in manual]
    assert not missing, "python -m tests.zoo.table prints what belongs there:\n" + "\n".join(missing)
