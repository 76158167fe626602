"""The version of a frontier's schema: which migrations are missing, and which databases are refused.

A database records the number of its newest migration and a fingerprint of all migrations that made it. Until the first
release the one schema is edited in place, so the number alone does not tell two schemas apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rove.errors import UsageError
from rove.frontier.queries import load_migrations

_COMMENT = re.compile(r"--[^\n]*")


@dataclass(frozen=True, slots=True)
class Schema:
    """The numbered migrations that make a backend's tables, in order."""

    migrations: Sequence[tuple[int, str]]

    @classmethod
    def of(cls, backend: str) -> Schema:
        """Load the migrations of a backend."""
        return cls(load_migrations(backend))

    @property
    def newest(self) -> int:
        """The version that this rove reads and writes."""
        return self.migrations[-1][0]

    def fingerprint(self, version: int) -> str:
        """Return a hash of the migrations up to a version, without comments and white space."""
        scripts = [script for number, script in self.migrations if number <= version]
        tokens = _COMMENT.sub("", "\n".join(scripts)).split()
        return hashlib.blake2b(" ".join(tokens).encode(), digest_size=8).hexdigest()

    def missing(self, where: str, version: int, fingerprint: str | None, *, migrate: bool) -> list[tuple[int, str]]:
        """Return the migrations that a database needs; raise UsageError if this rove cannot use it.

        `version` is 0 for an empty database. Without `migrate`, a database that needs migrations is refused.
        """
        if version > self.newest and fingerprint is not None:
            raise UsageError(
                f"{where} was written by a newer rove (schema {version}, this one knows {self.newest}); "
                "use that version or newer"
            )
        if not version and fingerprint is not None:
            raise UsageError(f"{where} is damaged: it has tables of rove, but its schema version is 0")
        if version and fingerprint != self.fingerprint(version):
            raise UsageError(
                f"{where} was written by a development version of rove with another schema; "
                "use that version, or start a new crawl somewhere else"
            )
        missing = [(number, script) for number, script in self.migrations if number > version]
        if missing and not migrate:
            raise UsageError(
                f"{where} is from an older rove; resume the crawl once to update it"
                if version
                else f"there is no crawl in {where}"
            )
        return missing
