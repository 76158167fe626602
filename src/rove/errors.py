"""Every exception of rove, on one page.

What the web does to a crawl is never an exception: it is an outcome (see model.py). Exceptions are for
what a person got wrong and for a backend that is lost; each carries the sentence that the person reads.
"""


class RoveError(Exception):
    """Something that stops the command; its text is one clear sentence for the screen."""

    exit_code = 1


class UsageError(RoveError):
    """Bad usage or input: nothing was changed."""

    exit_code = 2


class Unreachable(UsageError):
    """The frontier's database cannot be reached; perhaps later."""


class FrontierError(RoveError):
    """The frontier's database cannot be used."""


class StoreError(RoveError):
    """The page store cannot be written or read."""


class DiskFull(StoreError):
    """No room left to write pages or the frontier; resume when there is."""
