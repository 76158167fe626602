"""Says which URLs were being read when a process died, and what becomes of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from rove.frontier.records import Suspicion
from rove.notation.log_line import log_line

MAX_SHOWN = 5
"""URLs that are shown after one death. The log has all."""

log = logging.getLogger(__name__)


def tell_suspicions(suspicions: Sequence[Suspicion], say: Callable[[str], None]) -> None:
    """Log every suspect, and show the first few."""
    for suspicion in suspicions:
        fields = {"url": suspicion.url, "deaths_alone": suspicion.deaths, "failed": suspicion.has_failed}
        log.warning("%s", log_line("suspect", **fields))
    for suspicion in suspicions[:MAX_SHOWN]:
        say(suspicion_text(suspicion))
    if len(suspicions) > MAX_SHOWN:
        say(f"{len(suspicions) - MAX_SHOWN} more URLs were being read when a process died; rove.log names them")


def suspicion_text(suspicion: Suspicion) -> str:
    """Return the sentence about one suspect.

    >>> suspicion_text(Suspicion(url="http://a.test/", deaths=0, has_failed=False))
    'a process died while it read http://a.test/; rove tries that URL again in a process of its own'
    """
    if suspicion.has_failed:
        return f"gave up {suspicion.url}: it killed {suspicion.deaths} processes that had nothing else to read"
    if suspicion.deaths:
        return f"a process that read nothing but {suspicion.url} died; rove tries that URL once more"
    return f"a process died while it read {suspicion.url}; rove tries that URL again in a process of its own"
