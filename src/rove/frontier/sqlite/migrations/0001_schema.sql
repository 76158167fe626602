-- The embedded frontier. Times are milliseconds of the crawl's clock (clock.py).

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row per start of the crawl.
CREATE TABLE run (
    id      INTEGER PRIMARY KEY,
    started INTEGER NOT NULL,
    wall    REAL    NOT NULL                    -- wall-clock seconds since the epoch, for people
);

-- One row per process. A process owns leases; `seen` moves with every write, so that a crash leaves its length behind.
CREATE TABLE process (
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL,
    pid         INTEGER NOT NULL,
    started     INTEGER NOT NULL,
    seen        INTEGER NOT NULL,
    pages       INTEGER NOT NULL DEFAULT 0,
    pages_per_s REAL    NOT NULL DEFAULT 0,
    in_flight   INTEGER NOT NULL DEFAULT 0,
    at_once     INTEGER NOT NULL DEFAULT 0,
    held_by     TEXT    NOT NULL DEFAULT '',
    has_left    INTEGER NOT NULL DEFAULT 0,
    paused      INTEGER NOT NULL DEFAULT 0
);

-- The counters that status shows. The transaction that changes a row also changes its counters; nothing is ever
-- counted.
CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- The domain row is the queue head, the politeness clock and the lease in one.
-- Domains and URLs are stored in order of arrival, so that new rows go to the end of the table. Small indexes find them
-- by hash.
CREATE TABLE domain (
    -- The key must come first: RETURNING treats all columns as NOT NULL if the first one is.
    arrival     INTEGER PRIMARY KEY,
    id          INTEGER NOT NULL,               -- 64-bit hash of the name: no look-up before an insert
    name        TEXT    NOT NULL,
    ready_at    INTEGER,                        -- when it may be claimed; NULL: nothing to claim
    not_before  INTEGER NOT NULL DEFAULT 0,     -- the politeness clock; stays while the domain is idle
    crawl_delay INTEGER NOT NULL DEFAULT 0,     -- longest Crawl-delay of its origins
    pending     INTEGER NOT NULL DEFAULT 0,
    token       INTEGER NOT NULL DEFAULT 0,     -- fencing: the last visit that was leased
    owner       INTEGER,                        -- the process that holds the lease
    unsettled   INTEGER NOT NULL DEFAULT 0,     -- the last lease was not settled yet
    failing     INTEGER,                        -- every pending URL waits for an origin that keeps failing
    pages       INTEGER NOT NULL DEFAULT 0,     -- pages stored in limits epoch `pages_epoch`
    pages_epoch INTEGER NOT NULL DEFAULT 0,
    stored      INTEGER NOT NULL DEFAULT 0,     -- pages stored so far
    capped      INTEGER NOT NULL DEFAULT 0,     -- reached --max-pages-per-domain
    excluded    INTEGER NOT NULL DEFAULT 0,
    backoff     INTEGER NOT NULL DEFAULT 0,     -- delay after 429 and 503 responses
    failures    INTEGER NOT NULL DEFAULT 0,     -- consecutive visits without a response
    repeats     INTEGER NOT NULL DEFAULT 0,     -- share of its latest pages that repeated a text, per mille
    answered    INTEGER NOT NULL DEFAULT 0,     -- it has responded at least once
    leases      INTEGER NOT NULL DEFAULT 0,     -- how often it was leased; decides whose URLs come first
    address_group TEXT  NOT NULL DEFAULT ''     -- the network of an address; '' for a name
);
CREATE UNIQUE INDEX domain_key ON domain (id);
CREATE INDEX domain_due ON domain (ready_at, failing) WHERE ready_at IS NOT NULL;
CREATE INDEX domain_fresh ON domain (ready_at) WHERE token = 0 AND ready_at IS NOT NULL;
CREATE INDEX domain_responding ON domain (ready_at) WHERE answered = 1 AND failures = 0 AND ready_at IS NOT NULL;
CREATE INDEX domain_group ON domain (address_group) WHERE address_group <> '';
CREATE INDEX domain_leased ON domain (owner, ready_at) WHERE owner IS NOT NULL;
CREATE INDEX domain_capped ON domain (capped) WHERE capped = 1;

-- No foreign key to domain: an add must not look up or lock rows that it does not change.
CREATE TABLE url (
    arrival      INTEGER PRIMARY KEY,
    domain       INTEGER NOT NULL,
    fingerprint  INTEGER NOT NULL,
    url          TEXT    NOT NULL,
    state        INTEGER NOT NULL DEFAULT 0,    -- model.urls.UrlState
    priority     INTEGER NOT NULL,              -- the depth, more if it is foreign, or a class of deferred URLs
    position     INTEGER NOT NULL,              -- order of arrival; for a deferred URL, when it is due
    depth        INTEGER NOT NULL,
    hops         INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    assume_https INTEGER NOT NULL DEFAULT 0,
    reason       TEXT    NOT NULL DEFAULT '',
    visit        INTEGER,                       -- the visit that settled it
    sitemap_of   TEXT    NOT NULL DEFAULT '',   -- for a sitemap, the host whose URLs it may list
    is_robots    INTEGER NOT NULL DEFAULT 0,    -- a robots.txt that other origins wait for
    seed         INTEGER                        -- for a seed, its place in the order in which seeds were given
);
CREATE UNIQUE INDEX url_key ON url (domain, fingerprint);
CREATE INDEX url_robots ON url (domain) WHERE is_robots = 1 AND state = 0;
CREATE INDEX url_pending ON url (domain, priority, position) WHERE state = 0;
CREATE INDEX url_seed ON url (seed) WHERE seed IS NOT NULL;
-- Seeds and what they redirect to: with --scope host or path, they say which links are followed.
CREATE INDEX url_root ON url (domain) WHERE depth = 0;
-- URLs that failed, and pending ones that wait for a retry: what `rove retry` looks for. The number is priority.RETRIED.
CREATE INDEX url_troubled ON url (domain, fingerprint) WHERE state = 3 OR state = 0 AND priority >= 1048576;
-- URLs that a process was reading when it died: few, if any. The number is priority.SUSPECT.
CREATE INDEX url_suspect ON url (domain, position) WHERE state = 0 AND priority >= 1048578;

CREATE TABLE origin (
    domain        INTEGER NOT NULL,
    origin        TEXT    NOT NULL,
    status        TEXT    NOT NULL,             -- model.visits.RobotsStatus
    robots        TEXT    NOT NULL,             -- the name of its text; '' without one
    crawl_delay   INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    fetched_at    INTEGER NOT NULL DEFAULT 0,
    source        TEXT    NOT NULL DEFAULT '',  -- the URL that returned the body, after redirects
    etag          TEXT    NOT NULL DEFAULT '',
    last_modified TEXT    NOT NULL DEFAULT '',
    hops          INTEGER NOT NULL DEFAULT 0,   -- redirects that led to the answer
    waits_for     TEXT    NOT NULL DEFAULT '',  -- the robots.txt of another domain that decides
    PRIMARY KEY (domain, origin)
) WITHOUT ROWID;

-- The text of every robots.txt that was ever obeyed, once. The audit checks the ledger against it. The columns `domain`
-- and `at` limit what one domain may store.
CREATE TABLE robots_text (
    name   TEXT    PRIMARY KEY,                 -- model.text_hash.robots_name
    domain INTEGER NOT NULL,                    -- the first domain that had it
    at     INTEGER NOT NULL,
    body   BLOB    NOT NULL                     -- zlib
);
CREATE INDEX robots_text_of_domain ON robots_text (domain, at);

-- The ledger: one row per request. The columns are listed in rows/requests.py.
CREATE TABLE request (
    visit        INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    domain       INTEGER NOT NULL,
    kind         TEXT    NOT NULL,              -- model.ledger.RequestKind
    url          TEXT    NOT NULL,
    fingerprint  INTEGER NOT NULL,
    started      REAL    NOT NULL,              -- wall clock, for people
    status       INTEGER NOT NULL,
    error        TEXT    NOT NULL,
    media_type   TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    truncated    INTEGER NOT NULL,
    content_hash INTEGER,
    robots       TEXT    NOT NULL DEFAULT '',   -- the name of the robots.txt in force after a request for it
    target       TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    text_file    TEXT,
    text_offset  INTEGER,
    text_length  INTEGER,
    raw_file     TEXT,
    raw_offset   INTEGER,
    raw_length   INTEGER,
    began        INTEGER NOT NULL DEFAULT 0,
    ended        INTEGER NOT NULL DEFAULT 0,
    address      TEXT    NOT NULL DEFAULT '',
    delay        INTEGER NOT NULL DEFAULT 0,    -- milliseconds without a visit after this one
    delay_from   TEXT    NOT NULL DEFAULT 'delay',  -- model.ledger.DelaySource
    process      INTEGER NOT NULL DEFAULT 0,
    settlement   TEXT    NOT NULL DEFAULT '',   -- model.ledger.Settlement
    marks        TEXT    NOT NULL DEFAULT '',   -- what was cut, dropped or doubtful, by name
    languages    TEXT    NOT NULL DEFAULT '',   -- model.languages.languages_text
    usage        TEXT    NOT NULL DEFAULT '',   -- what the site states about the use of the page (model.usage)
    usage_from   TEXT    NOT NULL DEFAULT '',   -- where it states that
    purpose      TEXT    NOT NULL DEFAULT '',   -- for which the page was kept
    simhash      INTEGER,                       -- of the page's text; near duplicates differ in few bits
    is_copy      INTEGER NOT NULL DEFAULT 0,    -- its text is stored under `content`
    PRIMARY KEY (visit, seq)
) WITHOUT ROWID;
CREATE INDEX request_of_domain ON request (domain, visit, seq);
CREATE INDEX request_copies ON request (content_hash, visit, seq) WHERE is_copy;

-- Examples of links that were not taken. Of each reason, those with the lowest fingerprints: a random choice.
CREATE TABLE skipped (
    reason      TEXT    NOT NULL,               -- model.urls.NotAccepted, or rule-N
    fingerprint INTEGER NOT NULL,
    domain      INTEGER NOT NULL,
    url         TEXT    NOT NULL,
    page        TEXT    NOT NULL,               -- where the link is
    at          INTEGER NOT NULL,
    PRIMARY KEY (reason, fingerprint, domain)
) WITHOUT ROWID;

-- Where each stored text is: one row for all pages that have it.
CREATE TABLE content (
    hash    INTEGER PRIMARY KEY,                -- 64 bits of the text's hash
    sha1_64 INTEGER NOT NULL,                   -- 64 bits of the SHA-1 of its stored block
    domain  INTEGER NOT NULL,                   -- of the page that the stored record names
    visit   INTEGER NOT NULL,                   -- the visit that fetched that page
    file    TEXT    NOT NULL,
    offset  INTEGER NOT NULL,
    length  INTEGER NOT NULL
);

-- Domains and hosts that must not be requested, with the lifted ones. Each pattern covers its subdomains.
CREATE TABLE exclusion (
    id          INTEGER PRIMARY KEY,
    pattern     TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    wall        REAL    NOT NULL,
    who         TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    lifted_at   INTEGER,
    lifted_wall REAL,
    lifted_by   TEXT
);
CREATE UNIQUE INDEX exclusion_in_force ON exclusion (pattern) WHERE lifted_at IS NULL;

CREATE TABLE seed_source (
    id       INTEGER PRIMARY KEY,
    path     TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    offset   INTEGER NOT NULL DEFAULT 0,
    lines    INTEGER NOT NULL DEFAULT 0,
    good     INTEGER NOT NULL DEFAULT 0,
    bad      INTEGER NOT NULL DEFAULT 0,
    unseen   INTEGER NOT NULL DEFAULT 0,        -- seeds that were new
    retried  INTEGER NOT NULL DEFAULT 0,        -- seeds that had failed and are pending again
    refused  INTEGER NOT NULL DEFAULT 0,        -- seeds that may not be fetched
    finished INTEGER NOT NULL DEFAULT 0
);

-- The history: what each machine did in intervals of `step` seconds. `figures` holds everything (rows/samples.py); the
-- columns before it are those that people ask for with SQL. Old samples are rolled up into longer steps.
CREATE TABLE sample (
    ended     INTEGER NOT NULL,                 -- wall clock in milliseconds since the epoch
    step      INTEGER NOT NULL,
    seconds   REAL    NOT NULL,                 -- the true length of the interval
    pages     INTEGER NOT NULL,
    visits    INTEGER NOT NULL,
    requests  INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    in_flight REAL,
    pending   INTEGER,                          -- pending URLs of the whole crawl
    figures   BLOB    NOT NULL,
    PRIMARY KEY (ended, step)
);
CREATE INDEX sample_step ON sample (step, ended);

-- One row per retry that a person asked for. The audit reads from it which URLs may have been requested again.
CREATE TABLE retry (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,               -- before the first URL became pending
    ended       INTEGER NOT NULL,               -- when the last one did
    wall        REAL    NOT NULL,
    who         TEXT    NOT NULL,
    error       TEXT    NOT NULL,               -- only URLs with this error; '': any
    status      INTEGER,                        -- only URLs with this HTTP status
    domain      INTEGER,                        -- only URLs of this domain
    domain_name TEXT    NOT NULL,
    only_seeds  INTEGER NOT NULL,
    source      TEXT    NOT NULL,               -- the seed file that gave the seeds again; '' for `rove retry`
    delay       INTEGER NOT NULL,               -- the operator's delay at that time
    urls        INTEGER NOT NULL DEFAULT 0      -- URLs that became pending or due
);

-- Views for people (docs/sql.md). Nothing of rove reads them. Times are UTC, durations are seconds.

CREATE VIEW v_requests AS
SELECT r.visit, r.seq AS number, d.name AS domain, r.kind, r.url,
    strftime('%Y-%m-%d %H:%M:%f', r.started, 'unixepoch') AS requested, (r.ended - r.began) / 1000.0 AS seconds,
    r.status, nullif(r.error, '') AS error, nullif(r.media_type, '') AS media_type, r.size AS bytes, r.truncated,
    nullif(r.target, '') AS redirect_to, nullif(r.title, '') AS title, nullif(r.marks, '') AS marks,
    nullif(substr(r.languages, 1, 3), '') AS language, nullif(r.languages, '') AS languages,
    nullif(r.usage, '') AS usage, nullif(r.usage_from, '') AS usage_from, nullif(r.purpose, '') AS purpose, r.simhash,
    nullif(r.address, '') AS address, r.text_file IS NOT NULL OR r.raw_file IS NOT NULL AS stored, r.is_copy AS copy,
    CASE r.settlement WHEN '' THEN 'settled' ELSE r.settlement END AS fate, r.delay / 1000.0 AS delay_after,
    r.delay_from, r.process, '' AS machine
FROM request AS r LEFT JOIN domain AS d ON d.id = r.domain;

CREATE VIEW v_pages AS
SELECT url, domain, requested AS fetched, seconds, status, media_type, bytes, truncated, title, copy, marks, language,
    languages, usage, usage_from, purpose, simhash, visit, machine
FROM v_requests WHERE kind = 'page' AND stored;

CREATE VIEW v_urls AS
SELECT d.name AS domain, u.url,
    CASE u.state WHEN 0 THEN 'pending' WHEN 1 THEN 'done' WHEN 2 THEN 'blocked' WHEN 3 THEN 'failed'
        WHEN 4 THEN 'redirected' WHEN 5 THEN 'read' END AS state,
    nullif(u.reason, '') AS reason, u.depth, u.attempts, u.seed IS NOT NULL AS seed, u.visit
FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain;

-- The numbers are those of priority.py.
CREATE VIEW v_queue AS
SELECT d.name AS domain, u.url,
    CASE WHEN u.priority >= 1048578 THEN 'suspect' WHEN u.priority = 1048577 THEN 'held'
        WHEN u.priority = 1048576 THEN 'retry' WHEN u.priority >= 524288 THEN 'foreign' ELSE 'own' END AS class,
    strftime('%Y-%m-%d %H:%M:%f',
        max(d.ready_at, CASE WHEN u.priority >= 1048576 THEN u.position ELSE 0 END) / 1000.0, 'unixepoch') AS due,
    u.depth, u.attempts, nullif(u.reason, '') AS reason, u.seed IS NOT NULL AS seed, u.priority, u.position
FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE u.state = 0;

CREATE VIEW v_domains AS
SELECT name AS domain,
    CASE WHEN excluded THEN 'excluded'
        WHEN ready_at <= (julianday('now') - 2440587.5) * 86400000 THEN 'ready'
        WHEN owner IS NOT NULL THEN 'leased' WHEN pending = 0 OR capped THEN 'idle' ELSE 'waiting' END AS state,
    stored AS pages, pending, leases AS visits,
    strftime('%Y-%m-%d %H:%M:%f', ready_at / 1000.0, 'unixepoch') AS next_visit,
    failures, answered AS responded, failing IS 1 AND ready_at IS NOT NULL AS failing, capped,
    crawl_delay / 1000.0 AS crawl_delay, backoff / 1000.0 AS backoff, repeats / 1000.0 AS repeats
FROM domain;

CREATE VIEW v_samples AS
SELECT strftime('%Y-%m-%d %H:%M:%f', ended / 1000.0, 'unixepoch') AS ended, '' AS machine, step, seconds, pages, visits, requests, errors, bytes, in_flight, pending
FROM sample;
