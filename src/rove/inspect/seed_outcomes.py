"""What became of each seed, through the redirects that it led to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rove.frontier.contract import FrontierReader
from rove.frontier.retries import KnownUrl
from rove.model.urls import UrlState
from rove.notation.harmless import one_line
from rove.notation.humanize import counted
from rove.urls.canonical import UrlForm

MAX_HOPS = 10
"""Redirects that are followed from a seed."""

LookUp = Callable[[Sequence[tuple[int, int]]], Awaitable[list[KnownUrl]]]
"""Returns the URLs that the frontier knows, given by domain and fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOutcome:
    """A seed and where it led."""

    seed: KnownUrl
    final: KnownUrl
    """The end of its redirects, as far as the frontier knows it; the seed itself if it does not redirect."""

    @property
    def has_failed(self) -> bool:
        """Whether the seed brought no page because of an error, so far or for good."""
        return self.final.is_troubled

    @property
    def redirected_to(self) -> str:
        """The URL at the end of its redirects; '' if it does not redirect."""
        if self.final.state is UrlState.REDIRECTED:
            return self.final.reason
        return "" if self.final is self.seed else self.final.url

    def to_retry(self) -> list[KnownUrl]:
        """Return the URLs to try again if the seed is given again; none if it has not failed."""
        if not self.has_failed:
            return []
        if self.final is not self.seed and self._was_guessed():
            # https could not be reached at that time, and http took its place. It gets another chance.
            return [self.seed, self.final]
        return [self.final]

    def _was_guessed(self) -> bool:
        return self.seed.assume_https and self.seed.reason == "http" + self.seed.url.removeprefix("https")


async def outcomes_of(seeds: Sequence[KnownUrl], look_up: LookUp, form: UrlForm) -> list[SeedOutcome]:
    """Follow the redirects of a slice of seeds."""
    final = {seed.key: seed for seed in seeds}
    passed = {seed.key: {seed.key} for seed in seeds}
    for _ in range(MAX_HOPS):
        targets = {
            key: target for key, at in final.items() if (target := _target(at, form)) and target not in passed[key]
        }
        if not targets:
            break
        known = {url.key: url for url in await look_up(list(set(targets.values())))}
        for key, target in targets.items():
            passed[key].add(target)
            if target in known:
                final[key] = known[target]
    return [SeedOutcome(seed=seed, final=final[seed.key]) for seed in seeds]


async def seed_outcomes(
    reader: FrontierReader, form: UrlForm, *, only_failed: bool = False
) -> AsyncIterator[SeedOutcome]:
    """Iterate over all seeds, in the order in which they were given."""
    async for seeds in reader.seeds():
        for outcome in await outcomes_of(seeds, reader.known_urls, form):
            if outcome.has_failed or not only_failed:
                yield outcome


def urls_to_retry(outcomes: Iterable[SeedOutcome]) -> list[KnownUrl]:
    """Return the URLs to try again for these seeds, each once."""
    return list({url.key: url for outcome in outcomes for url in outcome.to_retry()}.values())


def _target(url: KnownUrl, form: UrlForm) -> tuple[int, int] | None:
    if url.state is not UrlState.REDIRECTED:
        return None
    target = form.in_full.canonical(url.reason)
    return None if target is None else (target.domain, target.fingerprint)


def as_line(outcome: SeedOutcome) -> str:
    """Return the line that `seeds list` prints for a seed."""
    parts = [f"{_state_text(outcome.final):<10}", one_line(outcome.seed.url)]
    if outcome.redirected_to:
        parts.append(f"-> {one_line(outcome.redirected_to)}")
    details = _details(outcome.final)
    return "  ".join([*parts, details] if details else parts)


def _state_text(url: KnownUrl) -> str:
    match url.state:
        case UrlState.DONE:
            return "stored"
        case UrlState.PENDING if url.is_waiting:
            return "failing"
        case state:
            return state.name.lower()


def _details(url: KnownUrl) -> str:
    details = []
    if url.reason and url.state is not UrlState.REDIRECTED:
        details.append(one_line(url.reason))
    if url.is_waiting and url.attempts:
        details.append(counted(url.attempts, "failed attempt"))
    if url.pages:
        details.append(f"{counted(url.pages, 'page')} of its domain")
    return f"({', '.join(details)})" if details else ""


def as_json(outcome: SeedOutcome) -> dict[str, Any]:
    """Return the object that `seeds list --json` prints for a seed."""
    final = outcome.final
    return {
        "seed": outcome.seed.url,
        "state": _state_text(final),
        "reason": (final.reason or None) if final.state is not UrlState.REDIRECTED else None,
        "redirected_to": outcome.redirected_to or None,
        "attempts": final.attempts,
        "domain_pages": final.pages,
        "failed": outcome.has_failed,
    }
