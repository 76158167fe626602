"""Every exception of rove.

Nothing that the web does to a crawl is an exception: a fetch returns an outcome (see model/outcomes.py). Exceptions are
for mistakes of the user and for a database or disk that fails. The text of each is the sentence that the user reads.
"""

import errno

EXIT_SITES_FAIL = 3
"""Exit code of a crawl that stored no page and ends because nothing is left but sites that fail."""
FULL_DISK_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class RoveError(Exception):
    """Stops the command; its text is one or two sentences for the screen."""

    exit_code = 1


class UsageError(RoveError):
    """The options or the input are wrong. Nothing was changed."""

    exit_code = 2


class Unreachable(UsageError):
    """The frontier's database does not answer; it may later."""


class StaleDatabase(UsageError):
    """The frontier's database is not the current one: a former primary, or another server."""


class Interrupted(RoveError):
    """A signal ended the command before it had begun its work."""

    def __init__(self, number: int) -> None:
        super().__init__("stopped before the crawl began; nothing was fetched")
        self.exit_code = 128 + number


class FrontierError(RoveError):
    """The frontier's database failed."""


class StoreError(RoveError):
    """A file of the data directory cannot be written or read."""


class DiskFull(StoreError):
    """There is no room left on the disk. The crawl can be resumed when there is."""


def is_disk_full(error: OSError) -> bool:
    """Whether an operation failed for lack of room on the disk."""
    return error.errno in FULL_DISK_ERRNOS
