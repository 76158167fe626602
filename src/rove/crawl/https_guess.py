"""Tries http for a bare domain in the seeds, which is read as https, if its https server cannot be reached.

- If http has a final outcome, it is recorded for the http URL, and the https URL is settled as redirected to it.
- If http fails for now too, only the https URL stays in the frontier, and the guess is made again later.
- If http redirects to https, the https URL is tried again later. Most sites redirect like this, and settling
  the https URL would lose them.
"""

from __future__ import annotations

from rove.crawl.target import Target
from rove.crawl.visit_record import VisitRecord
from rove.model.outcomes import UNREACHABLE_FAILURES, Failed
from rove.model.urls import UrlState
from rove.urls.canonical import CrawlUrl, UrlForm


def is_wrong_guess(target: Target, failure: Failed | None) -> bool:
    """Whether https was only a guess, and its server cannot be reached."""
    return target.assume_https and failure is not None and failure.kind in UNREACHABLE_FAILURES


class HttpsGuess:
    """An https URL that cannot be reached, and the http URL that stands in for it."""

    def __init__(self, https: Target, form: UrlForm) -> None:
        self.https = https
        self.http = Target(url=form.http_twin(https.url), depth=https.depth, attempts=https.attempts)

    def leads_back(self, url: CrawlUrl) -> bool:
        """Whether a redirect to this URL leads back to the https URL."""
        return url.text == self.https.url.text

    def settle_https(self, record: VisitRecord) -> None:
        """Settle the https URL as redirected to http, which enters the frontier."""
        record.settle(self.https.url.fingerprint, UrlState.REDIRECTED, self.http.url.text)
        record.links.append(self.http.as_new_url())

    def reopen_https(self, record: VisitRecord) -> None:
        """Take back that the https URL was settled in this visit."""
        record.settled.pop(self.https.url.fingerprint, None)
