"""The last lines of a crawl and its exit code: the same sentence and code for the same situation.

A run that stored a page is a success, even if some sites keep failing: in a broad crawl some always do.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rove.app.application import Summary
from rove.crawl.shutdown import Ending
from rove.errors import EXIT_SITES_FAIL
from rove.frontier.records import FailingDomain
from rove.model.urls import UrlState
from rove.notation.humanize import counted, seconds_text, size_text, utc_text

ERRORS_SHOWN = 5
SITES_SHOWN = 5
_LIMIT_OPTIONS = {Ending.MAX_PAGES: "--max-pages", Ending.MAX_DURATION: "--max-duration"}
_NOTHING_LEFT = frozenset({Ending.EXHAUSTED, Ending.UNREACHABLE})


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a crawl prints when it has ended, and its exit code unless a signal ended it."""

    lines: list[str]
    exit_code: int = 0


def conclude(
    summary: Summary, *, resume_command: str, has_joined: bool = False, now: Callable[[], float] = time.time
) -> Conclusion:
    """Return the last lines and the exit code of a crawl; `resume_command` continues it, unless it is empty."""
    counters, ending = summary.counters, summary.ending
    numbers = (
        f"{ending}: {counted(counters.pages, 'page')}, {size_text(counters.bytes)}, "
        f"{counted(counters.requests, 'request')} in {seconds_text(summary.seconds)} "
        f"({counters.pages / max(summary.seconds, 0.001):.1f} pages/s)"
    )
    if ending in _NOTHING_LEFT:
        sentences, exit_code = _nothing_left(summary, resume_command, now())
        return Conclusion([numbers, *sentences], exit_code)
    was_reached_before = (ending is Ending.MAX_PAGES and not counters.pages) or (
        ending is Ending.MAX_DURATION and summary.seconds < 1
    )
    if was_reached_before and has_joined:
        limit = _LIMIT_OPTIONS[ending]
        before = f"the crawl had reached its {limit} before; 'rove crawl --resume' continues it without the limit"
        return Conclusion([numbers, before])
    if resume_command and not any(summary.counts.urls.values()):
        return Conclusion([numbers, f"No seed is loaded yet; continue with: {resume_command}"])
    return Conclusion([numbers, *_pending(summary, resume_command)])


def _nothing_left(summary: Summary, resume_command: str, now: float) -> tuple[list[str], int]:
    """Return what to say when only failing sites are left, or nothing, and the exit code."""
    counts, failing = summary.counts, summary.failing
    next_steps = [_next_tries(failing, now)] if failing else []
    next_steps += _pending(summary, resume_command)
    if counts.requests and not counts.domains_answered:
        return [f"No seed could be reached ({_commonest(counts.failures)}).", *next_steps], EXIT_SITES_FAIL
    if failing:
        return [_failing_sites(failing), *next_steps], 0 if summary.counters.pages else EXIT_SITES_FAIL
    if not counts.pages and counts.urls[UrlState.FAILED]:
        return [f"No page could be stored ({_commonest(counts.failures)})."], EXIT_SITES_FAIL
    if counts.urls_pending:
        return [f"{counted(counts.urls_pending, 'URL')} left: their sites reached --max-pages-per-domain."], 0
    return [], 0


def _failing_sites(failing: Sequence[FailingDomain]) -> str:
    verb = "keeps" if len(failing) == 1 else "keep"
    errors = Counter(site.error for site in failing if site.error)
    why = f" ({_commonest(errors)})" if errors else ""
    return f"Nothing is left but {counted(len(failing), 'site')} that {verb} failing{why}."


def _next_tries(failing: Sequence[FailingDomain], now: float) -> str:
    """Name the sites that are tried again first, with the time."""
    shown = [f"{site.name} at {utc_text(now + max(0.0, site.ready_in))}" for site in failing[:SITES_SHOWN]]
    more = f", and {len(failing) - SITES_SHOWN:,} more" if len(failing) > SITES_SHOWN else ""
    return f"Next tries: {', '.join(shown)}{more}."


def _pending(summary: Summary, resume_command: str) -> list[str]:
    pending = summary.counts.urls_pending
    if not pending or not resume_command:
        return []
    return [f"{counted(pending, 'URL')} {'is' if pending == 1 else 'are'} pending; continue with: {resume_command}"]


def _commonest(errors: Mapping[str, int]) -> str:
    """Return the commonest errors, such as 'connect 12, dns 3'."""
    return ", ".join(f"{error} {count:,}" for error, count in Counter(errors).most_common(ERRORS_SHOWN))
