-- The embedded frontier, version 1. Times are milliseconds of the crawl's clock (see clock.py).

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row per start of the crawl; `seen` moves with every write, so that a crash leaves its length behind.
CREATE TABLE run (
    id      INTEGER PRIMARY KEY,
    started INTEGER NOT NULL,
    seen    INTEGER NOT NULL,
    wall    REAL    NOT NULL  -- wall-clock seconds at the start, for people
);

-- What status shows. Kept by the transactions that change the rows, never counted.
CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- The domain row is the queue head, the politeness clock and the lease, all in one.
CREATE TABLE domain (
    id          INTEGER PRIMARY KEY,            -- 64-bit hash of the name: no look-up before an insert
    name        TEXT    NOT NULL,
    ready_at    INTEGER,                        -- when it may be claimed; NULL: nothing to claim
    not_before  INTEGER NOT NULL DEFAULT 0,     -- the politeness clock; outlives idleness
    crawl_delay INTEGER NOT NULL DEFAULT 0,     -- longest Crawl-delay of its origins
    pending     INTEGER NOT NULL DEFAULT 0,
    token       INTEGER NOT NULL DEFAULT 0,     -- fencing: the last visit that was leased
    owner       INTEGER,                        -- the run that holds the lease
    unsettled   INTEGER NOT NULL DEFAULT 0,     -- claims since the last settle
    failing     INTEGER,                        -- all that is pending waits for an origin that keeps failing
    pages       INTEGER NOT NULL DEFAULT 0,     -- pages stored since the limits were last given
    pages_epoch INTEGER NOT NULL DEFAULT 0,     -- which giving of the limits that was
    capped      INTEGER NOT NULL DEFAULT 0,     -- has had its pages by --max-pages-per-domain
    excluded    INTEGER NOT NULL DEFAULT 0,
    first_add   INTEGER NOT NULL                -- number of the add that made it
);
CREATE INDEX domain_due ON domain (ready_at, failing) WHERE ready_at IS NOT NULL;
CREATE INDEX domain_leased ON domain (owner, ready_at) WHERE owner IS NOT NULL;
CREATE INDEX domain_capped ON domain (capped) WHERE capped = 1;

-- No foreign key to domain: an add must not look up or lock what it does not change.
CREATE TABLE url (
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
    PRIMARY KEY (domain, fingerprint)
) WITHOUT ROWID;
CREATE INDEX url_pending ON url (domain, priority, position) WHERE state = 0;

CREATE TABLE origin (
    domain      INTEGER NOT NULL,
    origin      TEXT    NOT NULL,
    status      TEXT    NOT NULL,               -- model.RobotsStatus
    body        BLOB    NOT NULL,               -- zlib
    crawl_delay INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (domain, origin)
) WITHOUT ROWID;

CREATE TABLE request (
    visit        INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    domain       INTEGER NOT NULL,
    kind         TEXT    NOT NULL,              -- model.RequestKind
    url          TEXT    NOT NULL,
    fingerprint  INTEGER NOT NULL,
    started      REAL    NOT NULL,              -- wall clock, for people
    finished     REAL    NOT NULL,
    status       INTEGER NOT NULL,
    error        TEXT    NOT NULL,
    media_type   TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    truncated    INTEGER NOT NULL,
    content_hash INTEGER,
    target       TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    text_file    TEXT,
    text_offset  INTEGER,
    text_length  INTEGER,
    raw_file     TEXT,
    raw_offset   INTEGER,
    raw_length   INTEGER,
    PRIMARY KEY (visit, seq)
) WITHOUT ROWID;

-- Domains and hosts never to be touched; each covers its subdomains.
CREATE TABLE exclusion (
    pattern TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE seed_source (
    id       INTEGER PRIMARY KEY,
    path     TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    offset   INTEGER NOT NULL DEFAULT 0,
    lines    INTEGER NOT NULL DEFAULT 0,
    good     INTEGER NOT NULL DEFAULT 0,
    bad      INTEGER NOT NULL DEFAULT 0,
    finished INTEGER NOT NULL DEFAULT 0
);
