-- The rows that requests leave become a ledger; domains remember how they answer; exclusions have a history.

ALTER TABLE domain ADD COLUMN backoff  INTEGER NOT NULL DEFAULT 0;  -- delay that 429 and 503 have led to
ALTER TABLE domain ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;  -- visits in a row without an answer

ALTER TABLE url ADD COLUMN sitemap_of TEXT NOT NULL DEFAULT '';     -- a sitemap, and the host whose URLs it may list

ALTER TABLE origin ADD COLUMN fetched_at    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE origin ADD COLUMN source        TEXT    NOT NULL DEFAULT '';  -- where redirects led
ALTER TABLE origin ADD COLUMN etag          TEXT    NOT NULL DEFAULT '';
ALTER TABLE origin ADD COLUMN last_modified TEXT    NOT NULL DEFAULT '';

-- Every robots.txt that was ever obeyed, once: what an audit holds the ledger against.
CREATE TABLE robots_text (
    hash INTEGER PRIMARY KEY,
    body BLOB NOT NULL              -- zlib
);

-- Times of the crawl's clock beside those of the wall clock. `domain` is that of the visit from now on.
ALTER TABLE request ADD COLUMN other_domain INTEGER;                -- the one asked, where a robots.txt led away
ALTER TABLE request ADD COLUMN began        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN ended        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN address      TEXT    NOT NULL DEFAULT '';
ALTER TABLE request ADD COLUMN delay        INTEGER NOT NULL DEFAULT 0;  -- milliseconds without a visit after this one
ALTER TABLE request ADD COLUMN delay_from   TEXT    NOT NULL DEFAULT 'delay';
ALTER TABLE request ADD COLUMN process      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN fate         TEXT    NOT NULL DEFAULT '';
UPDATE request SET began = CAST(started * 1000 AS INTEGER), ended = CAST(finished * 1000 AS INTEGER);
ALTER TABLE request DROP COLUMN finished;
CREATE INDEX request_of_domain ON request (domain, visit, seq);
CREATE INDEX request_elsewhere ON request (other_domain, visit, seq) WHERE other_domain IS NOT NULL;

-- Domains and hosts never to be touched, and those that were not for a while.
CREATE TABLE exclusion_history (
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
INSERT INTO exclusion_history (pattern, at, wall, who, reason) SELECT pattern, 0, 0, '', '' FROM exclusion;
DROP TABLE exclusion;
ALTER TABLE exclusion_history RENAME TO exclusion;
CREATE UNIQUE INDEX exclusion_in_force ON exclusion (pattern) WHERE lifted_at IS NULL;
