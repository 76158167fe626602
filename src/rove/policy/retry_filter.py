"""Which failed URLs a person wants to be tried again."""

from __future__ import annotations

from dataclasses import dataclass

from rove.model.reasons import error_behind, refused_status


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryFilter:
    """The failed URLs that a retry covers. Every condition that is given must hold."""

    error: str = ""
    """The error as `rove status` counts it, or the reason as `rove show` prints it; '' for any."""
    status: int | None = None
    """The HTTP status of the response; None for any."""
    domain: int | None = None
    domain_name: str = ""
    only_seeds: bool = False
    """Only seeds, and the URLs that they redirect to."""
    source: str = ""
    """The seed file that gave the seeds again; '' for `rove retry`."""

    def matches(self, reason: str) -> bool:
        """Whether the retry covers a URL that failed for this reason.

        >>> RetryFilter(error="status-404").matches("status 404"), RetryFilter(status=404).matches("status 404")
        (True, True)
        >>> RetryFilter(error="connect").matches("domain given up: connect"), RetryFilter(error="dns").matches("tls")
        (True, False)
        """
        if self.status is not None and reason != refused_status(self.status):
            return False
        return not self.error or self.error in (reason, error_behind(reason))

    def __str__(self) -> str:
        """Return the filter as the options of `rove retry`; '' if it covers everything."""
        parts = (
            f"--error {self.error}" if self.error else "",
            f"--status {self.status}" if self.status is not None else "",
            f"--domain {self.domain_name}" if self.domain_name else "",
            "--seeds" if self.only_seeds and not self.source else "",
            f"seeds given again in {self.source}" if self.source else "",
        )
        return " ".join(part for part in parts if part)
