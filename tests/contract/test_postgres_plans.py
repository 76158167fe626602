"""Every statement of the frontier on PostgreSQL is served by an index, with statistics and without.

The tests read the generic plans that the frontier's own connections use under their settings. A setting makes a scan
expensive but does not forbid it, so each plan is searched for one.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import QUERIES
from tests.contract.harness import PostgresHarness, connected

SCHEMA = "plans"
BIG_TABLES = {"domain", "url", "request", "origin", "robots_text", "content", "sample"}
COUNTED_INDEXES = {
    "count_leased": "domain_leased",
    "oldest_lease": "domain_leased",
    "leased_domains": "domain_leased",
    "suspected_domains": "url_suspect",
    "pages_and_leases": "domain_leased",
    "count_capped": "domain_capped",
    "lease_suspect": "url_suspect",
    "lock_suspected": "url_suspect",
    "next_suspect": "url_suspect",
    "latest_samples": "machine_pkey",
}
"""Small indexes of leased or capped domains, suspects and machines, which are read from end to end."""
SORTED_INDEXES = {"lock_capped": "domain_capped", "cut_leases": "domain_leased"}
"""Indexes whose rows may be sorted by id: leases of dead processes, and capped domains when a limit changes."""
BATCHES = {"Function Scan", "CTE Scan", "Result", "Values Scan", "WorkTable Scan"}
COMPARISON = re.compile(r" [<>=]+ ")
"""A condition that restricts the rows read from an index contains a comparison."""
STATES = ("empty", "just filled", "analyzed")
"""States of the tables. A plan made while they were empty is used until they are analyzed."""
CLAIMS = {"lease": "domain_due", "lease_fresh": "domain_fresh", "lease_responding": "domain_responding"}
BOUND = f"${1 + QUERIES['lease'].parameters.index('bound')}"

USED = {
    "lease": [f"domain_due: ready_at >= {BOUND}, ready_at <= "],
    "lease_fresh": [f"domain_fresh: ready_at >= {BOUND}, ready_at <= "],
    "lease_responding": [f"domain_responding: ready_at >= {BOUND}, ready_at <= "],
    "lease_among": ["domain_pkey: id"],
    "rest": ["domain_pkey: id"],
    "head_urls": ["url_pending: domain, priority"],
    "more_urls": ["url_pending: domain, priority, position"],
    "lock_leases": ["domain_pkey: id"],
    "settle_urls": ["url_pkey: domain, fingerprint"],
    "defer_urls": ["url_pkey: domain, fingerprint"],
    "close_leases": ["domain_pkey: id", "url_pending: domain"],
    "end_late": ["domain_pkey: id"],
    "end_forgotten": ["domain_pkey: id"],
    "lease_suspect": ["url_suspect: ", "domain_pkey: id"],
    "suspect_of": ["url_suspect: domain, position"],
    "lock_suspected": ["url_suspect: ", "domain_pkey: id"],
    "reserve_domains": ["domain_pkey: id"],
    "next_suspect": ["url_suspect: ", "domain_pkey: id"],
    "suspect_urls": ["url_pkey: domain, fingerprint"],
    "insert_requests": [],
    "insert_urls": ["url_pkey: domain, fingerprint"],
    "insert_urls_beside": ["url_pkey: domain, fingerprint"],
    "foreign_urls": ["url_pending: domain, priority"],
    "adopt_urls": ["url_pkey: domain, fingerprint"],
    "raise_pending": [],
    "trim": ["url_pending: domain, priority", "url_pkey: domain, fingerprint"],
    "count_worst": ["url_pending: domain, priority"],
    "lock_crowded": ["domain_pkey: id"],
    "lower_pending": ["domain_pkey: id", "url_pending: domain"],
    "known_domains": ["url_pkey: domain"],
    "count_addresses": ["domain_group: address_group"],
    "domain_names": ["domain_pkey: id"],
    "count_wanted_robots": ["url_robots: domain"],
    "insert_wanted_robots": [],
    "rewant_robots": ["url_pkey: domain, fingerprint"],
    "url_states": ["url_pkey: domain, fingerprint"],
    "origins": ["origin_pkey: domain, origin", "robots_text_pkey: name"],
    "put_origins": [],
    "lengthen_delays": ["origin_pkey: domain", "domain_pkey: id"],
    "add_counters": [],
    "pages": [],
    "pages_and_leases": ["domain_leased: "],
    "next_due": ["domain_due: ready_at"],
    "last_backoff": ["domain_due: ready_at"],
    "responding": ["domain_due: ready_at"],
    "responding_due": ["domain_responding: ready_at"],
    "failing_domains": ["domain_due: ready_at", "request_of_domain: domain"],
    "cut_leases": ["domain_leased: owner", "domain_pkey: id"],
    "lift_caps": ["domain_pkey: id"],
    "lock_to_exclude": [],
    "lock_domains": ["domain_pkey: id"],
    "lock_capped": ["domain_capped: pages_epoch"],
    "exclude_domains": ["domain_pkey: id"],
    "excluded_with_pending": ["domain_pkey: id"],
    "include_domains": ["domain_pkey: id"],
    "reschedule": ["url_pending: domain", "domain_pkey: id"],
    "postpone": ["domain_pkey: id"],
    "pending_from": ["url_pending: domain, priority, position"],
    "blocked_after": ["url_pkey: domain, fingerprint"],
    "reopen_urls": ["url_pkey: domain, fingerprint"],
    "add_to_pending": ["domain_pkey: id"],
    "mark_seeds": ["url_pkey: domain, fingerprint"],
    "seeds_after": ["url_seed: seed", "domain_pkey: id"],
    "roots": ["url_root: domain"],
    "known_urls": ["url_pkey: domain, fingerprint", "domain_pkey: id"],
    "urls_after": ["url_pkey: domain, fingerprint", "domain_pkey: id"],
    "troubled_after": ["url_troubled: domain, fingerprint", "domain_pkey: id"],
    "troubled_of_domain": ["url_troubled: domain, fingerprint", "domain_pkey: id"],
    "retry_urls": ["url_pkey: domain, fingerprint"],
    "retry_domains": ["domain_pkey: id"],
    "retry_origins": ["origin_pkey: domain"],
    "domain_names_after": ["domain_pkey: id"],
    "domain_record": ["domain_pkey: id"],
    "domains_in_slice": ["domain_pkey: id"],
    "domains_by_due": ["domain_due: ready_at"],
    "listed_domains": ["domain_pkey: id", "request_of_domain: domain"],
    "queued_domains": ["domain_pkey: id"],
    "queue_heads": ["url_pending: domain, priority"],
    "queue_more": ["url_pending: domain, priority"],
    "leased_domains": ["domain_leased: "],
    "suspected_domains": ["url_suspect: "],
    "sample_urls": ["domain_due: ready_at", "url_pending: domain"],
    "sample_requests": ["request_pkey: visit"],
    "save_robots_texts": ["robots_text_of_domain: domain, at"],
    "kept_robots_texts": ["robots_text_pkey: name"],
    "robots_text": ["robots_text_pkey: name"],
    "insert_samples": [],
    "samples_after": ["sample_time: ROW(ended, machine, step)"],
    "latest_samples": ["sample_pkey: machine"],
    "oldest_sample": ["sample_step: step"],
    "take_samples": ["sample_step: step, ended"],
    "count_ready": ["domain_due: ready_at"],
    "count_leased": ["domain_leased: "],
    "count_capped": ["domain_capped: "],
    "url_record": ["url_pkey: domain, fingerprint"],
    "requests_of_visit": ["request_pkey: visit"],
    "requests_before": ["request_pkey: visit, seq"],
    "requests_of_domain": ["request_of_domain: domain, visit, seq"],
    "requests_after": ["request_pkey: visit, seq"],
    "requests_of_domain_before": ["request_of_domain: domain, visit, seq"],
    "oldest_lease": ["domain_leased: "],
    "ledger": ["request_of_domain: domain, visit, seq"],
    "relocate_pages": ["request_pkey: visit, seq"],
    "forget_titles": ["request_pkey: visit, seq"],
    "insert_contents": [],
    "known_contents": ["content_pkey: hash", "request_pkey: visit"],
    "copies": ["request_copies: content_hash, visit, seq"],
    "copy_counts": ["request_copies: content_hash"],
    "depths": ["url_pkey: domain, fingerprint"],
    "relocate_contents": ["content_pkey: hash"],
    "forget_contents": ["content_pkey: hash"],
}
"""By statement: the indexes that it uses, and what the condition of each must contain."""


@dataclass
class Node:
    """A node of a plan and its children."""

    kind: str
    relation: str
    index: str
    condition: str
    children: list[Node] = field(default_factory=list)
    role: str = "Outer"
    """Its relationship to the parent node."""

    @property
    def inputs(self) -> list[Node]:
        """The children that produce its rows, without subqueries."""
        return [child for child in self.children if child.role not in ("InitPlan", "SubPlan")]

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        names = " ".join(name for name in (self.kind, self.relation, self.index) if name)
        return f"{names} ({self.condition})" if self.condition else names


def node_from(plan: dict[str, Any]) -> Node:
    return Node(
        kind=plan["Node Type"],
        relation=plan.get("Relation Name", ""),
        index=plan.get("Index Name", ""),
        condition=plan.get("Index Cond", ""),
        children=[node_from(child) for child in plan.get("Plans", [])],
        role=plan.get("Parent Relationship", ""),
    )


@pytest.fixture(scope="module")
def plans(postgres_url: str) -> Iterator[dict[tuple[str, str], Node]]:
    """Return the plan of each statement in each state of the tables."""
    harness = PostgresHarness(postgres_url, SCHEMA)
    asyncio.run(harness.drop())
    yield asyncio.run(_read_plans(postgres_url))
    asyncio.run(harness.drop())


async def _read_plans(url: str) -> dict[tuple[str, str], Node]:
    database = PostgresDatabase(url, SCHEMA)
    await database.open(create=True)
    try:
        async with connected(PostgresHarness(url, SCHEMA)) as connection:
            plans = {("empty", name): await _plan(connection, name) for name in USED}
            await _fill(connection)
            plans |= {("just filled", name): await _plan(connection, name) for name in USED}
            await connection.execute("ANALYZE domain, url, origin, request, robots_text, content, sample, counter")
            await connection.execute("DISCARD PLANS")
            plans |= {("analyzed", name): await _plan(connection, name) for name in USED}
            return plans
    finally:
        await database.close()


async def _fill(connection: Any) -> None:
    """Insert twenty thousand domains of ten URLs each, with autovacuum off so that no statistics appear."""
    for table in sorted(BIG_TABLES):
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    await connection.execute(
        """
        INSERT INTO domain (id, name, ready_at, pending, owner, capped, answered, address_group)
        SELECT i, 'd' || i, CASE WHEN i % 10 > 0 THEN i END, 5, CASE WHEN i % 100 = 1 THEN 1 END,
            i % 1000 = 0, i % 3 > 0, CASE WHEN i % 50 = 0 THEN '192.0.' || i % 250 || '.0/24' ELSE '' END
        FROM generate_series(1, 20000) AS i;
        INSERT INTO url (domain, fingerprint, position, priority, depth, state, visit, url)
        SELECT i % 20000 + 1, i, i, i % 7, i % 7, i % 2, i, 'http://d' || i % 20000 || '/' || i
        FROM generate_series(1, 200000) AS i;
        INSERT INTO origin (domain, expires_at, crawl_delay, failures, origin, status, robots)
        SELECT i, 0, 0, 0, 'http://d' || i, 'rules', i::text FROM generate_series(1, 20000) AS i;
        INSERT INTO request (visit, domain, fingerprint, started, size, machine, seq,
            status, truncated, kind, url, error, media_type, target, title,
            content_hash, is_copy)
        SELECT i, i % 20000 + 1, i, 0, 0, 1, 0, 200, false, 'page', 'http://d/' || i, '', '',
            '', '', i % 50000, i >= 50000
        FROM generate_series(1, 100000) AS i;
        INSERT INTO content (hash, sha1_64, domain, visit, machine, file, "offset", length)
        SELECT i, i, i, i, 1, 'f', i, 1 FROM generate_series(1, 50000) AS i;
        INSERT INTO sample (ended, machine, step, seconds, pages, visits, requests, errors, bytes, figures)
        SELECT i * 10000, i % 3, 10, 10, 1, 1, 1, 1, 1, '' FROM generate_series(1, 20000) AS i;
        INSERT INTO robots_text (name, domain, at, body) SELECT i::text, i, 0, '' FROM generate_series(1, 20000) AS i;
        """
    )


async def _plan(connection: Any, name: str) -> Node:
    query = QUERIES[name]
    prepared = f"plan_of_{name}"
    values = ", ".join("NULL" for _ in query.parameters)
    await connection.execute(f"PREPARE {prepared} AS {query.text}")
    call = f"{prepared}({values})" if values else prepared
    explained = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE {call}")
    await connection.execute(f"DEALLOCATE {prepared}")
    return node_from(json.loads(explained)[0]["Plan"])


def faults_in(plan: Node, *, counts: str = "", sorts: str = "") -> list[str]:
    """Return the parts of a plan whose cost grows with the tables; one index each may be read whole or sorted."""
    faults = []
    for node in plan.walk():
        is_big = node.relation in BIG_TABLES
        below = [n for n in node.walk() if n.relation in BIG_TABLES]
        if node.kind == "Seq Scan" and is_big:
            faults.append(f"scans: {node}")
        if node.kind.startswith("Bitmap"):
            faults.append(f"reads by bitmap: {node}")
        if node.kind in ("Hash Join", "Merge Join") and below:
            faults.append(f"joins in bulk: {node} over {below[0]}")
        if node.kind in ("Sort", "Incremental Sort"):
            faults += [f"sorts: {n}" for n in _unbounded(node) if not n.index or n.index != sorts]
        is_index_scan = node.kind in ("Index Scan", "Index Only Scan")
        if is_index_scan and node.index != counts and not COMPARISON.search(node.condition):
            faults.append(f"reads a whole index: {node}")
    return faults


def _unbounded(node: Node) -> list[Node]:
    """Return the nodes that give a sort more rows than the batch has; a batch drives the inner sides of its loops."""
    if node.kind == "Limit" or node.kind in BATCHES:
        return []
    if node.kind == "Nested Loop":
        return _unbounded(node.inputs[0])
    if node.relation in BIG_TABLES:
        return [node]
    return [source for child in node.inputs for source in _unbounded(child)]


def test_a_scan_would_be_found() -> None:
    """The check can fail."""
    scan = Node("Seq Scan", "url", "", "")
    batch = Node("Function Scan", "", "", "")
    whole = Node("Index Scan", "url", "url_pkey", "")
    one = Node("Index Scan", "url", "url_pkey", "(domain = e.domain)")
    assert faults_in(scan)
    assert faults_in(whole)
    assert faults_in(Node("Bitmap Heap Scan", "url", "", ""))
    assert faults_in(Node("Hash Join", "", "", "", [one, batch]))
    driven = Node("Nested Loop", "", "", "", [batch, one])
    assert not faults_in(Node("Sort", "", "", "", [driven]))
    driving = Node("Nested Loop", "", "", "", [one, batch])
    assert faults_in(Node("Sort", "", "", "", [driving]))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", sorted(USED))
def test_no_statement_scans_or_sorts_a_table(plans: dict[tuple[str, str], Node], name: str, state: str) -> None:
    faults = faults_in(plans[state, name], counts=COUNTED_INDEXES.get(name, ""), sorts=SORTED_INDEXES.get(name, ""))
    assert faults == [], f"{name}, tables {state}"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", sorted(USED))
def test_the_index_made_for_it_is_used(plans: dict[tuple[str, str], Node], name: str, state: str) -> None:
    """The condition covers as many columns of the index as the statement knows."""
    scans = [node for node in plans[state, name].walk() if node.relation in BIG_TABLES]
    reading = [node for node in scans if node.index]
    used = {node.index for node in reading}
    assert {expected.partition(":")[0] for expected in USED[name]} <= used, f"{name}, {state}"
    for expected in USED[name]:
        index, _, wanted = expected.partition(": ")
        conditions = [node.condition for node in reading if node.index == index]
        for part in wanted.split(", "):
            assert all(part in _plain(condition) for condition in conditions), (
                f"{name}, tables {state}: {index} is not read by {part!r} but by {conditions}"
            )


def _plain(condition: str) -> str:
    """Return a condition without casts."""
    return re.sub(r"::\w+", "", condition)


def test_every_statement_on_a_big_table_is_looked_at() -> None:
    """A new statement has to be added to the list above."""
    table = re.compile(rf"\b(?:FROM|JOIN|UPDATE|INTO)\s+(?:{'|'.join(sorted(BIG_TABLES))})\b")
    assert {name for name, query in QUERIES.items() if table.search(query.text)} <= set(USED)


@pytest.mark.parametrize(("name", "index"), CLAIMS.items())
@pytest.mark.parametrize("state", STATES)
def test_a_claim_reads_its_index_between_the_bound_and_now(
    plans: dict[tuple[str, str], Node], state: str, name: str, index: str
) -> None:
    """The index is read in order below a limit, so domains that are due later are not read."""
    plan = plans[state, name]
    (limit,) = [node for node in plan.walk() if node.kind == "Limit"]
    (locking,) = limit.inputs
    (scan,) = locking.inputs
    assert (locking.kind, scan.kind, scan.index) == ("LockRows", "Index Scan", index)
    assert re.fullmatch(
        rf"\(\(ready_at >= {re.escape(BOUND)}\) AND \(ready_at <= (\$\d+|\(InitPlan \d+\)\.col1)\)\)", scan.condition
    ), scan.condition


@pytest.mark.parametrize("state", STATES)
def test_the_head_of_a_domain_is_read_in_order_below_a_limit(plans: dict[tuple[str, str], Node], state: str) -> None:
    """A domain of a million URLs costs no more than one of ten."""
    names = ("head_urls", "close_leases", "reschedule", "pending_from", "foreign_urls", "trim", "lower_pending")
    for name in names:
        plan = plans[state, name]
        limited = [
            child
            for node in plan.walk()
            if node.kind == "Limit"
            for child in node.inputs
            if child.index == "url_pending"
        ]
        reading = [node for node in plan.walk() if node.index == "url_pending"]
        assert limited == reading, f"{name}, tables {state}"
