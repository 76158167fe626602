"""Links that were not taken, as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rove.errors import UsageError
from rove.inspect.rule_list import is_rule_counter
from rove.model.skipped import SkippedLink
from rove.model.urls import NotAccepted
from rove.notation.humanize import counted, iso_time
from rove.policy.exclusions import Exclusions


def parse_reason(text: str) -> str:
    """Return a reason for which links are not taken; raise UsageError if there is none of that name."""
    if text in {*NotAccepted} or is_rule_counter(text):
        return text
    raise UsageError(
        f"there is no reason {text!r}; choose one of {', '.join(sorted(NotAccepted))}, or rule-2 for a rule"
    )


def examples_by_reason(
    links: Sequence[SkippedLink], counts: Mapping[str, int], *, reason: str | None = None, domain: str | None = None
) -> dict[str, list[SkippedLink]]:
    """Return the examples of each reason that was counted; only links to a domain or on its pages, if one is given."""
    of_domain = None if domain is None else Exclusions([domain])
    found: dict[str, list[SkippedLink]] = {
        name: [] for name in sorted({*counts, *(link.reason for link in links)}) if reason in (None, name)
    }
    for link in links:
        if link.reason in found and (
            of_domain is None or of_domain.covers_url(link.url) or of_domain.covers_url(link.page)
        ):
            found[link.reason].append(link)
    return found


def skipped_json(link: SkippedLink, total: int) -> dict[str, Any]:
    """Return the object that `skipped --json` prints for a link; `total` counts the links of its reason."""
    return {
        "reason": link.reason,
        "url": link.url,
        "page": link.page or None,
        "noted": iso_time(link.at),
        "reason_total": total,
    }


def skipped_lines(reason: str, links: Sequence[SkippedLink], *, total: int, limit: int) -> Iterator[str]:
    """Yield what `skipped` prints for one reason."""
    shown = links[:limit]
    yield f"{reason}: {counted(total, 'link')}, {counted(len(links), 'example')}, {len(shown):,} shown"
    for link in shown:
        yield f"  {link.url}" + (f"  on {link.page}" if link.page else "")
