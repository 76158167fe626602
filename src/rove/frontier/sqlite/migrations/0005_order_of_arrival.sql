-- Domains and URLs lie in the order in which they came, so that new rows go to the end of their tables; what finds them
-- by their hashes are small indexes. Before, every row went to the page of its hash, which was read and written for it.
-- A file with ten million URLs takes a few minutes, and three times its size of free space while it is at it.

ALTER TABLE domain RENAME TO old_domain;
DROP INDEX domain_due;
DROP INDEX domain_leased;
DROP INDEX domain_capped;
DROP INDEX domain_fresh;

-- The domain row is the queue head, the politeness clock and the lease, all in one.
CREATE TABLE domain (
    arrival     INTEGER PRIMARY KEY,            -- the row's number; first: RETURNING takes all for NOT NULL if the first is
    id          INTEGER NOT NULL,               -- 64-bit hash of the name: no look-up before an insert
    name        TEXT    NOT NULL,
    ready_at    INTEGER,                        -- when it may be claimed; NULL: nothing to claim
    not_before  INTEGER NOT NULL DEFAULT 0,     -- the politeness clock; outlives idleness
    crawl_delay INTEGER NOT NULL DEFAULT 0,     -- longest Crawl-delay of its origins
    pending     INTEGER NOT NULL DEFAULT 0,
    token       INTEGER NOT NULL DEFAULT 0,     -- fencing: the last visit that was leased
    owner       INTEGER,                        -- the process that holds the lease
    unsettled   INTEGER NOT NULL DEFAULT 0,     -- claims since the last settle
    failing     INTEGER,                        -- all that is pending waits for an origin that keeps failing
    pages       INTEGER NOT NULL DEFAULT 0,     -- pages stored since the limits were last given
    pages_epoch INTEGER NOT NULL DEFAULT 0,     -- which giving of the limits that was
    capped      INTEGER NOT NULL DEFAULT 0,     -- has had its pages by --max-pages-per-domain
    excluded    INTEGER NOT NULL DEFAULT 0,
    backoff     INTEGER NOT NULL DEFAULT 0,     -- delay that 429 and 503 have led to
    failures    INTEGER NOT NULL DEFAULT 0,     -- visits in a row without an answer
    repeats     INTEGER NOT NULL DEFAULT 0      -- per mille of its latest pages that it gave before
);
CREATE UNIQUE INDEX domain_key ON domain (id);
CREATE INDEX domain_due ON domain (ready_at, failing) WHERE ready_at IS NOT NULL;
CREATE INDEX domain_fresh ON domain (ready_at) WHERE token = 0 AND ready_at IS NOT NULL;
CREATE INDEX domain_leased ON domain (owner, ready_at) WHERE owner IS NOT NULL;
CREATE INDEX domain_capped ON domain (capped) WHERE capped = 1;

INSERT INTO domain (id, name, ready_at, not_before, crawl_delay, pending, token, owner, unsettled, failing, pages,
    pages_epoch, capped, excluded, backoff, failures, repeats)
SELECT id, name, ready_at, not_before, crawl_delay, pending, token, owner, unsettled, failing, pages,
    pages_epoch, capped, excluded, backoff, failures, repeats
FROM old_domain;
DROP TABLE old_domain;

ALTER TABLE url RENAME TO old_url;
DROP INDEX url_pending;

-- No foreign key to domain: an add must not look up or lock what it does not change.
CREATE TABLE url (
    arrival     INTEGER PRIMARY KEY,            -- the row's number
    domain      INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    url         TEXT    NOT NULL,
    state       INTEGER NOT NULL DEFAULT 0,     -- model.UrlState
    priority    INTEGER NOT NULL,               -- the depth; or one of the two classes for deferred URLs
    position    INTEGER NOT NULL,               -- first come, first served; for a deferred URL: when it is due
    depth       INTEGER NOT NULL,
    hops        INTEGER NOT NULL DEFAULT 0,
    attempts    INTEGER NOT NULL DEFAULT 0,
    bare        INTEGER NOT NULL DEFAULT 0,
    reason      TEXT    NOT NULL DEFAULT '',
    visit       INTEGER,                        -- the visit that settled it
    sitemap_of  TEXT    NOT NULL DEFAULT ''     -- a sitemap, and the host whose URLs it may list
);
CREATE UNIQUE INDEX url_key ON url (domain, fingerprint);
CREATE INDEX url_pending ON url (domain, priority, position) WHERE state = 0;

-- In the order of the old key, which is that of the new indexes: each of their pages is visited once.
INSERT INTO url (domain, fingerprint, url, state, priority, position, depth, hops, attempts, bare, reason, visit,
    sitemap_of)
SELECT domain, fingerprint, url, state, priority, position, depth, hops, attempts, bare, reason, visit, sitemap_of
FROM old_url ORDER BY domain, fingerprint;
DROP TABLE old_url;
