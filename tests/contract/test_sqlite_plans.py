"""Every statement of the embedded frontier is served by an index, without a table scan or a sort."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from rove.frontier.queries import load_migrations, load_queries

QUERIES = load_queries("sqlite")
SMALL_TABLES = ("counter", "meta", "run", "process", "seed_source", "exclusion", "retry")
"""Tables with few rows, or that are read whole only at the start."""
KEYS = ("PRIMARY KEY", "domain_key (id=?)", "url_key (domain=? AND fingerprint=?)")
READ_WHOLE = {
    "counters",
    "runs",
    "participants",
    "other_processes",
    "ended_uncleanly",
    "last_seen",
    "seed_sources",
    "exclusions",
    "exclusion_history",
    "retries",
    "skipped_links",
    "has_table",
    "has_any_table",
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path: Path = tmp_path_factory.mktemp("plans") / "frontier.sqlite"
    connection = sqlite3.connect(path)
    for _, script in load_migrations("sqlite"):
        connection.executescript(script)
    yield connection
    connection.close()


def plan(connection: sqlite3.Connection, query: str) -> list[str]:
    query = re.sub(r"\(([^()]+)\)\s+VALUES \(:row\)", _with_a_row, query)
    names = set(re.findall(r":(\w+)", query))
    parameters = {name: "[]" if name == "rows" else 1 for name in names}
    return [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + query, parameters)]


def _with_a_row(columns: re.Match[str]) -> str:
    """Replace the placeholder of a row by one value per column."""
    values = ", ".join("NULL" for _ in columns[1].split(","))
    return f"({columns[1]}) VALUES ({values})"


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_no_statement_scans_or_sorts(connection: sqlite3.Connection, name: str) -> None:
    for step in plan(connection, QUERIES[name]):
        assert "TEMP B-TREE" not in step, f"{name} sorts: {step}"
        if name not in READ_WHOLE:
            assert not _is_scan(step), f"{name} scans: {step}"


def _is_scan(step: str) -> bool:
    """Return whether a step scans a table. Scans of json_each, constants, subqueries and small indexes are harmless."""
    if not step.startswith("SCAN"):
        return False
    harmless = ("VIRTUAL TABLE", "CONSTANT ROW", "(subquery", "domain_capped", "domain_leased", "url_suspect")
    return not any(word in step for word in harmless) and step not in ("SCAN u", "SCAN slice")


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("due", "domain_due"),
        ("due_fresh", "domain_fresh"),
        ("due_responding", "domain_responding"),
        ("responding_due", "domain_responding"),
        ("count_addresses", "domain_group"),
        ("next_due", "domain_due"),
        ("last_backoff", "domain_due"),
        ("responding", "domain_due"),
        ("failing_domains", "domain_due"),
        ("failing_domains", "request_of_domain"),
        ("head_urls", "url_pending"),
        ("head_urls_foreign_first", "url_pending"),
        ("more_urls", "url_pending"),
        ("reschedule", "url_pending"),
        ("cut_leases", "domain_leased"),
        ("count_leased", "domain_leased"),
        ("count_ready", "domain_due"),
        ("pending_from", "url_pending"),
        ("trim", "url_pending"),
        ("foreign_urls", "url_pending"),
        ("count_worst", "url_pending"),
        ("crowded_domains", "domain_key"),
        ("lower_pending", "url_pending"),
        ("requests_of_domain", "request_of_domain"),
        ("count_wanted_robots", "url_robots"),
        ("requests_of_domain_before", "request_of_domain"),
        ("oldest_lease", "domain_leased"),
        ("ledger", "request_of_domain"),
        ("lift_exclusions", "exclusion_in_force"),
        ("copies", "request_copies"),
        ("copy_counts", "request_copies (content_hash=?)"),
        ("depths", "url_key (domain=? AND fingerprint=?)"),
        ("url_record", "url_key"),
        ("blocked_after", "url_key"),
        ("seeds_after", "url_seed"),
        ("urls_after", "url_key"),
        ("roots", "url_root (domain=?)"),
        ("troubled_after", "url_troubled"),
        ("troubled_of_domain", "url_troubled"),
        *[(name, "url_suspect") for name in ("due_suspect", "suspect_of", "reserve_suspects", "next_suspect")],
        *[(name, "domain_key") for name in ("due_suspect", "reserve_suspects", "next_suspect")],
        ("samples_after", "sqlite_autoindex_sample_1 ((ended,step)>(?,?) AND ended<?)"),
        ("oldest_sample", "sample_step"),
        ("take_samples", "sample_step (step=? AND ended>? AND ended<?)"),
        ("domain_record", "domain_key"),
        ("domain_names_after", "domain_key"),
        ("domains_in_slice", "INTEGER PRIMARY KEY (rowid>?)"),
        ("domains_by_due", "domain_due (ready_at>? AND ready_at<?)"),
        ("listed_domains", "request_of_domain (domain=?)"),
        ("queue_heads", "url_pending (domain=? AND priority>? AND priority<?)"),
        ("queue_more", "url_pending (domain=? AND priority>? AND priority<?)"),
        ("leased_domains", "domain_leased"),
        ("suspected_domains", "url_suspect"),
        ("set_crawl_delay", "domain_key"),
        ("domains_inserted", "PRIMARY KEY"),
        ("domain_names", "domain_key"),
        ("save_robots_text", "robots_text_of_domain (domain=? AND at>?)"),
        ("kept_robots_texts", "sqlite_autoindex_robots_text_1 (name=?)"),
        ("robots_text", "sqlite_autoindex_robots_text_1 (name=?)"),
        ("origins", "sqlite_autoindex_robots_text_1 (name=?)"),
    ],
)
def test_the_index_made_for_it_is_used(connection: sqlite3.Connection, name: str, index: str) -> None:
    assert any(index in step for step in plan(connection, QUERIES[name]))


@pytest.mark.parametrize(
    "name",
    [
        *("lease", "settle_urls", "defer_urls", "suspect_urls", "close_leases", "reschedule", "postpone"),
        *("reopen_urls", "relocate_pages", "forget_titles", "relocate_contents", "known_contents", "lower_pending"),
        *("raise_pending", "wake_domains", "known_domains", "url_states"),
        *("current_tokens", "end_late", "due_among", "listed_domains", "queued_domains"),
        *("known_urls", "mark_seeds", "retry_urls", "retry_domains", "retry_origins", "adopt_urls"),
    ],
)
def test_a_batch_drives_its_update(connection: sqlite3.Connection, name: str) -> None:
    """The batch is the outer loop and the whole key the inner one; the other way round is quadratic."""
    steps = [step for step in plan(connection, QUERIES[name]) if not step.startswith("CORRELATED")]
    assert "VIRTUAL TABLE" in steps[0]
    assert "SEARCH" in steps[1] and any(key in steps[1] for key in KEYS)
