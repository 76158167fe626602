"""The contract that every frontier fulfils. The crawl knows only this module.

A domain is the queue head, the politeness clock and the lease in one; URLs are never claimed. Every verb takes a batch.
Callers pass durations, never times: the frontier's own clock turns them into times, so that all processes agree. Every
backend passes the tests in tests/contract.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from rove.frontier.history import History, HistoryReader
from rove.frontier.looking import Looking
from rove.frontier.query_times import TimesReader
from rove.frontier.records import (
    Added,
    DomainRecord,
    Exclusion,
    FailingDomain,
    LostVisit,
    MovedContent,
    Policy,
    Reach,
    Suspicion,
    UrlRecord,
)
from rove.frontier.retries import KnownUrl, Retry
from rove.frontier.runs import Participant, Run, Vitals
from rove.frontier.seed_source import SeedSource
from rove.model.counts import Counts
from rove.model.instructions import Instruction, InstructionKind, Instructions
from rove.model.ledger import Content, Location, RequestRow
from rove.model.samples import Distribution
from rove.model.skipped import SkippedLink
from rove.model.urls import NewUrl, NotAccepted, PendingUrl, UrlState
from rove.model.visits import Lease, OriginRecord, VisitResult
from rove.policy.retry_filter import RetryFilter


class Frontier(History, Protocol):
    """The queue of a crawl, as one of its processes uses it."""

    @property
    def process(self) -> int:
        """The number of this process, which owns its leases."""

    @property
    def outages(self) -> int:
        """How often the connection to the database was lost and restored."""

    @property
    def eras(self) -> int:
        """How often the database has come back without its last transactions, as far as that was noticed."""

    def troubles(self) -> dict[str, str]:
        """Return why nothing can be claimed or written at the moment, by cause: a sentence each, '' for none."""

    async def claim(self, limit: int) -> list[Lease]:
        """Lease up to `limit` due domains, longest overdue first, each with its first URLs.

        The URLs that a domain itself names come before those that only others name, except in every sixteenth lease.
        Every second claim prefers domains that were never leased, so that they get a head start and no domain starves.
        Leases of all processes together never exceed the pages that are left until the policy's page limit.
        """

    async def claim_responding(self, limit: int) -> list[Lease]:
        """Lease up to `limit` due domains that responded to their last visit, longest overdue first."""

    async def claim_among(self, domains: Sequence[int], limit: int) -> list[Lease]:
        """Lease up to `limit` of these domains that are due, each with its first URLs."""

    async def claim_suspect(self) -> list[Lease]:
        """Lease one domain with a suspect that is due, with that URL alone. Without one, return an empty list."""

    async def reserve_suspects(self) -> float | None:
        """Keep ordinary claims away from domains with a suspect that is due; return the seconds until one may be tried.

        None: there is no suspect. A domain is free again when the visit to its suspect is settled.
        """

    async def more(self, lease: Lease, after: PendingUrl, limit: int) -> list[PendingUrl]:
        """Return more due URLs of a leased domain, after the given one."""

    async def settle(self, visits: Sequence[VisitResult]) -> int:
        """End the leases whose token is still valid; return their number. May be repeated."""

    async def add(
        self,
        urls: Sequence[NewUrl],
        *,
        refuse_new_domains: NotAccepted | None = None,
        exempt: Collection[tuple[int, int]] = (),
        as_seeds: bool = False,
    ) -> Added:
        """Insert the unseen URLs and wake their domains; `as_seeds` marks them as seeds.

        With `refuse_new_domains`, URLs of domains without any URL are not accepted, and counted under this reason. New
        address literals are accepted only up to a number per network (address_groups.py), except at depth 0.

        If a URL occurs twice in a batch, the shallower one counts. A domain keeps only as many URLs as its budget
        allows (policy/budget.py): the worst URLs, new or old, are deleted and counted, but never more than were
        inserted. Foreign URLs go first, then the deepest, and among those the latest. A deleted URL is unknown from
        then on. Never deleted are depth 0, sitemaps that are not foreign, retries, and the URLs in `exempt` (domain and
        fingerprint), which a visit has fetched and settles next. URLs of a domain that has the id of another are
        counted and not taken (collisions.py).

        A foreign URL that is pending becomes its domain's own when it is added again and is not foreign.
        """

    async def excess(self) -> int:
        """Return how many pending URLs `drop_excess` would delete."""

    async def drop_excess(self) -> int:
        """Delete the worst URLs of domains that are over their budget, and count them; return their number.

        An add never makes the URLs of a domain fewer, even if its budget has shrunk. Never deleted are the same URLs as
        in an add.
        """

    async def known_contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        """Return the locations of those texts that are stored."""

    async def states(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], UrlState]:
        """Return the states of those (domain, fingerprint) pairs that are known."""

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        """Return the robots.txt records of these (domain, origin) pairs."""

    async def put_origins(self, records: Sequence[OriginRecord]) -> Collection[str]:
        """Save robots.txt records, and lengthen the delay of their leased domains if they ask for it.

        Each text is stored once, whichever domains have it. A domain stores at most MAX_ROBOTS_BYTES_A_DAY of new
        texts; the record of any further text is NOT_KEPT and has expired. Returns the names of those texts.
        """

    async def want_robots(self, urls: Sequence[NewUrl]) -> None:
        """Have these robots.txt fetched in the next visits of their domains, because other origins wait for them.

        Such a URL is pending until its origin has a record, and pending again when it is wanted again. It comes before
        all other URLs of its domain, and it does not make the domain a part of the crawl: `refuse_new_domains` ignores
        it. A domain has at most MAX_WANTED_ROBOTS of them pending; the others are counted as not accepted.
        """

    async def exclude(self, domains: Mapping[int, str]) -> int:
        """Stop leasing these domains and block their pending URLs; return the number of URLs."""

    async def include(self, domains: Sequence[int]) -> None:
        """Allow excluded domains to be leased again."""

    async def withdraw(
        self, domain: int, state: UrlState, reason: str, matching: Callable[[str], bool], *, after: int | None = None
    ) -> int:
        """Settle the pending URLs of a domain that match, without a visit; return their number.

        With `after`, only while this is the last visit that the domain was leased for.
        """

    async def reopen(self, domain: int, matching: Callable[[str], bool]) -> int:
        """Make the URLs of a domain pending again that an exclusion blocked and that match; return their number."""

    async def rejudge(self, domain: int, judge: Callable[[str, int], str | None]) -> int:
        """Block the pending pages of a domain for which rules have a reason; return their number.

        `judge` gets a URL and its depth, and returns the reason. Sitemaps and robots.txt files are left alone.
        """

    async def reopen_rejected(self, domain: int, judge: Callable[[str, int], str | None]) -> int:
        """Make the URLs of a domain pending again that rules blocked and `judge` does not; return their number."""

    async def known_urls(self, keys: Sequence[tuple[int, int]]) -> list[KnownUrl]:
        """Return those of the URLs, given by domain and fingerprint, that are in the frontier."""

    async def roots(self, domains: Iterable[int]) -> Mapping[int, Sequence[tuple[str, bool]]]:
        """Return the pages of depth 0 of each domain that has any, and whether each is a seed.

        The others are what seeds redirect to.
        """

    async def mark_seeds(self, keys: Sequence[tuple[int, int]]) -> int:
        """Mark known URLs as seeds, which come first in their domain; return how many were not seeds yet."""

    async def retry(self, urls: Sequence[KnownUrl], retry: int) -> int:
        """Make URLs pending and due that failed or wait for a retry, in one transaction; return their number.

        A URL that is given as redirected is tried again too. A URL whose state has changed since is left alone.
        `retry` is the number from `Catalog.begin_retry`, under which they are counted. Failed visits of their domains
        and robots.txt files that could not be fetched no longer count. A domain still waits for the longest of the
        operator's delay, its Crawl-delay and its back-off.
        """

    async def domain_names(self, after: int, limit: int) -> list[tuple[int, str]]:
        """Return ids and names of all domains, by id, in slices."""

    async def record_lost(self, visits: Sequence[LostVisit]) -> list[Suspicion]:
        """Enter the requests of lost visits into the ledger. The URLs that were being read become suspects.

        A suspect fails when DEATHS_TO_CONVICT deaths are evidence against it. Return what became of those that are
        pending.
        """

    async def count(self, deltas: Mapping[str, int]) -> None:
        """Add to counters."""

    async def next_due(self, *, failing_within: float = 0.0) -> float | None:
        """Return the seconds until a domain worth waiting for is due (0: now); None if the crawl is exhausted.

        A failing domain is worth waiting for if it is due within `failing_within` seconds. So is a suspect.
        """

    async def due_in(self) -> float | None:
        """Return the seconds until the next domain is due; negative if it has been due for that long. None: no domain.

        Failing domains count once they are due.
        """

    async def last_backoff(self, *, within: float) -> float | None:
        """Return the seconds until the last of the failing domains is due that are due within this time, if any is."""

    async def reach(self) -> Reach:
        """Return how many domains the crawl has, and how many of them it can reach. Cheap."""

    async def responding_due(self, *, within: float, limit: int) -> int:
        """Return how many domains are due within these seconds that responded to their last visit, up to `limit`."""

    async def pages(self) -> int:
        """Return how many pages all processes have stored."""

    async def recover(self, processes: Sequence[int] | None = None, lost: Sequence[LostVisit] = ()) -> int:
        """Shorten the leases of dead processes to the delays that the responses of their lost visits asked for.

        Return the number of shortened leases. Without `processes`, all other processes that this node ever had count
        as dead.
        """

    async def note_alive(self, vitals: Vitals) -> None:
        """Record a heartbeat of this process."""

    async def counts(self) -> Counts:
        """Return the counters."""

    def connections(self) -> Mapping[str, int]:
        """Return the number of connections to a database server by state: busy and idle. Empty without a server."""

    def query_times(self, reader: TimesReader) -> Mapping[str, Distribution]:
        """Return the durations of queries by name since the reader's last call."""

    def stop_waiting(self, seconds: float) -> None:
        """From now on, wait at most this long for a database that is unreachable."""


class Catalog(Protocol):
    """The settings, instructions, exclusions and seed files of a crawl."""

    async def settings(self) -> str | None:
        """Return the settings last saved; None if the frontier holds no crawl yet."""

    async def secret(self) -> bytes:
        """Return the random bytes that the crawl's ids are keyed with; raise FrontierError if there are none.

        They are made with the first `save` and never change. Nobody but the crawl and its operator may know them.
        """

    async def identity(self) -> str:
        """Return an id that differs between crawls of the same name; '' where there can be only one crawl."""

    async def revision(self) -> int:
        """Return a number that increases when settings change."""

    async def save(self, settings: str, seeds: SeedSource | None) -> None:
        """Save the settings and, in the same transaction, one more seed file."""

    async def instructions(self) -> Instructions:
        """Return what the owner has told all machines of the crawl."""

    async def instruct(self, kind: InstructionKind, instruction: Instruction | None) -> None:
        """Tell all machines of the crawl something; None withdraws what they were told."""

    async def exclusions(self) -> list[str]:
        """Return the patterns of the exclusions in force."""

    async def exclusions_revision(self) -> int:
        """Return a number that increases when exclusions are added or lifted."""

    async def exclusion_history(self) -> list[Exclusion]:
        """Return all exclusions, lifted ones too, in the order in which they were added."""

    async def add_exclusions(self, patterns: Sequence[str], *, who: str, reason: str) -> list[str]:
        """Add exclusions; return the patterns that are new."""

    async def lift_exclusions(self, patterns: Sequence[str], *, who: str) -> list[str]:
        """Lift exclusions; return the patterns that were in force."""

    async def begin_retry(self, filter: RetryFilter, *, who: str, delay: float) -> int:
        """Record a retry before its first URL becomes pending; return its number."""

    async def retries(self) -> list[Retry]:
        """Return all retries, oldest first."""

    async def rules_applied(self) -> str:
        """Return how far the rules were applied to the queue, as it was saved last; '' if it never was."""

    async def save_rules_applied(self, progress: str) -> None:
        """Save how far the rules have been applied to the queue."""

    async def add_seed_source(self, source: SeedSource) -> SeedSource:
        """Add a seed file of this node; return it with its number."""

    async def seed_sources(self) -> list[SeedSource]:
        """Return all seed files, in the order in which they were given."""

    async def save_progress(self, source: SeedSource) -> None:
        """Save how far a seed file has been loaded."""


class FrontierReader(Looking, HistoryReader, Protocol):
    """The queries of the inspecting commands, which may run beside a crawl."""

    async def counts(self) -> Counts:
        """Return the counters."""

    async def runs(self) -> list[Run]:
        """Return all starts of the crawl, on any node."""

    async def losses(self) -> list[int]:
        """Return when the database came back without its last transactions, in milliseconds of the crawl's clock."""

    async def participants(self) -> list[Participant]:
        """Return all processes that ever took part, in order of arrival."""

    async def next_due(self) -> float | None:
        """Return the seconds until a domain worth waiting for is due (0: now); None if there is none."""

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        """Return one URL."""

    async def known_urls(self, keys: Sequence[tuple[int, int]]) -> list[KnownUrl]:
        """Return those of the URLs, given by domain and fingerprint, that are in the frontier."""

    async def roots(self, domains: Iterable[int]) -> Mapping[int, Sequence[tuple[str, bool]]]:
        """Return the pages of depth 0 of each domain that has any, and whether each is a seed.

        The others are what seeds redirect to.
        """

    def seeds(self) -> AsyncIterator[list[KnownUrl]]:
        """Iterate over all seeds in the order in which they were given, in slices."""

    def urls(self, *, after: int = -(1 << 63)) -> AsyncIterator[list[KnownUrl]]:
        """Iterate over the URLs of the domains whose ids are larger than `after`, by their ids, in slices."""

    def troubled(self, domain: int | None = None) -> AsyncIterator[list[KnownUrl]]:
        """Iterate over URLs that failed or wait for a retry, of one domain or of all, in slices."""

    async def domain(self, id: int) -> DomainRecord | None:
        """Return one domain."""

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        """Return the robots.txt records of these (domain, origin) pairs."""

    async def failing_domains(self, limit: int) -> list[FailingDomain]:
        """Return the domains that keep failing, in the order in which they are tried again."""

    async def robots_text(self, name: str) -> bytes | None:
        """Return the text of a robots.txt that the ledger names; None if it was not kept."""

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        """Return the locations of those texts that are stored, with their nodes."""

    async def copy_counts(self, hashes: Iterable[int]) -> dict[int, int]:
        """Return how many pages have a text that is stored as another page's, by its hash."""

    async def depths(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Return the depths of those URLs, given by domain and fingerprint, that are in the frontier."""

    def copies(self, hash: int) -> AsyncIterator[RequestRow]:
        """Iterate over the pages whose text is stored only once, under this hash."""

    def pages(
        self, *, domain: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> AsyncIterator[RequestRow]:
        """Iterate over requests for pages, newest first: all or those of one domain, between two wall-clock times.

        Failed requests for robots.txt are among them: a site that never answers has no other requests.
        """

    def visits_after(self, visit: int, *, domain: int | None = None) -> AsyncIterator[RequestRow]:
        """Iterate over all requests of the visits after this one, oldest first: all or those of one domain."""

    async def oldest_lease(self) -> int | None:
        """Return the first visit that has not ended; None if none is under way."""

    async def known_domains(self, ids: Iterable[int]) -> set[int]:
        """Return those domains that the crawl knows."""

    def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        """Iterate over all requests of all visits to a domain, in order."""

    def ledger(self) -> AsyncIterator[RequestRow]:
        """Iterate over all requests, domain by domain, in order."""

    async def requests(self, visit: int) -> list[RequestRow]:
        """Return all requests of one visit, in order."""


class Backend(Protocol):
    """A database that holds a crawl."""

    @property
    def catalog(self) -> Catalog:
        """The settings, exclusions and seed files."""

    @property
    def reader(self) -> FrontierReader:
        """The queries of the inspecting commands."""

    @property
    def location(self) -> str:
        """Where the crawl is, for messages."""

    async def exists(self) -> bool:
        """Return whether the database holds a schema of rove."""

    async def open(self, *, create: bool = False) -> None:
        """Connect; with `create`, create or update the schema."""

    async def begin_run(self) -> int:
        """Record a start of the crawl; return its number."""

    async def begin(self, policy: Policy, run: int | None) -> Frontier:
        """Join a run with one more process. Without a run, the frontier can be maintained but not claimed from."""

    async def relocate_pages(self, rows: Sequence[RequestRow]) -> None:
        """Save the new locations of pages whose requests are in the ledger."""

    async def forget_titles(self, pages: Sequence[tuple[int, int]]) -> None:
        """Delete the titles of these requests, given by visit and number, from the ledger."""

    async def forget_skipped(self, links: Sequence[SkippedLink]) -> None:
        """Delete these examples of links that were not taken."""

    async def relocate_contents(self, moved: Sequence[MovedContent]) -> None:
        """Save the new locations of texts of this node; skip those that have moved elsewhere since."""

    async def forget_contents(self, texts: Sequence[tuple[int, Location]]) -> None:
        """Delete the records of these texts of this node, given by hash and location."""

    async def close(self) -> None:
        """Finish running work and disconnect."""
