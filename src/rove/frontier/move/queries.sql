-- The statements of a move, in three parts: read from SQLite, run in both databases, run in PostgreSQL.

-- fragment: tables
-- The same as TABLES in tables.py; a test compares them.
domain, url, origin, request, skipped, content, robots_text, sample, exclusion, seed_source, retry, run, process, counter


-- SQLite: what the source is.

-- name: settings
SELECT value FROM meta WHERE key = 'settings';

-- name: counters
SELECT name, value FROM counter ORDER BY name;

-- The next five change when the crawl goes on, like the settings and the counters. All are cheap to read.

-- name: exclusion_state
SELECT count(*), count(lifted_at) FROM exclusion;

-- name: seed_source_state
SELECT * FROM seed_source ORDER BY id;

-- name: retry_state
SELECT count(*), coalesce(sum(urls), 0) FROM retry;

-- name: run_state
SELECT count(*) FROM run;

-- name: process_state
SELECT max(id), max(seen) FROM process;


-- SQLite: one slice of each table, after a key.
--
-- The first columns, key0 and key1, are the key. The others have the names of the columns in PostgreSQL. Where a name
-- occurs twice, the last one counts: the values after * replace those of the table. :shift converts a time from the
-- clock of SQLite to that of PostgreSQL.

-- name: slice_domain
SELECT id AS key0, *, ready_at + :shift AS ready_at, not_before + :shift AS not_before
FROM domain WHERE id > :key0 ORDER BY id LIMIT :limit;

-- name: slice_url
-- The position of a deferred URL is the time when it is due.
SELECT domain AS key0, fingerprint AS key1, *,
    position + CASE WHEN priority >= :retried THEN :shift ELSE 0 END AS position
FROM url WHERE (domain, fingerprint) > (:key0, :key1) ORDER BY domain, fingerprint LIMIT :limit;

-- name: slice_origin
SELECT domain AS key0, hex(origin) AS key1, *, expires_at + :shift AS expires_at, fetched_at + :shift AS fetched_at
FROM origin WHERE (domain, origin) > (:key0, CAST(:key1 AS TEXT)) ORDER BY domain, origin LIMIT :limit;

-- name: slice_request
SELECT visit AS key0, seq AS key1, *, began + :shift AS began, ended + :shift AS ended, :machine AS machine
FROM request WHERE (visit, seq) > (:key0, :key1) ORDER BY visit, seq LIMIT :limit;

-- name: slice_skipped
SELECT hex(reason) AS key0, fingerprint AS key1, domain AS key2, *, at + :shift AS at
FROM skipped WHERE (reason, fingerprint, domain) > (CAST(:key0 AS TEXT), :key1, :key2)
ORDER BY reason, fingerprint, domain LIMIT :limit;

-- name: slice_content
SELECT hash AS key0, *, :machine AS machine FROM content WHERE hash > :key0 ORDER BY hash LIMIT :limit;

-- name: slice_robots_text
SELECT hex(name) AS key0, *, at + :shift AS at
FROM robots_text WHERE name > CAST(:key0 AS TEXT) ORDER BY name LIMIT :limit;

-- name: slice_sample
-- The times are those of the wall clock.
SELECT ended AS key0, step AS key1, *, :machine AS machine FROM sample
WHERE (ended, step) > (:key0, :key1) ORDER BY ended, step LIMIT :limit;

-- name: slice_exclusion
SELECT id AS key0, *, CASE WHEN at = 0 THEN 0 ELSE at + :shift END AS at, lifted_at + :shift AS lifted_at
FROM exclusion WHERE id > :key0 ORDER BY id LIMIT :limit;

-- name: slice_seed_source
SELECT id AS key0, *, :machine AS machine FROM seed_source WHERE id > :key0 ORDER BY id LIMIT :limit;

-- name: slice_retry
SELECT id AS key0, *, at + :shift AS at, ended + :shift AS ended FROM retry WHERE id > :key0 ORDER BY id LIMIT :limit;

-- name: slice_run
SELECT id AS key0, *, started + :shift AS started FROM run WHERE id > :key0 ORDER BY id LIMIT :limit;

-- name: slice_process
SELECT id AS key0, *, started + :shift AS started, seen + :shift AS seen, :machine AS machine
FROM process WHERE id > :key0 ORDER BY id LIMIT :limit;

-- name: slice_counter
-- 'visits' and 'adds' are sequences in PostgreSQL.
SELECT hex(name) AS key0, *, 0 AS slot
FROM counter WHERE name > CAST(:key0 AS TEXT) AND name NOT IN ('visits', 'adds') ORDER BY name LIMIT :limit;


-- Both databases: numbers that must be the same after the move. The first one is the number of rows.

-- name: count_domain
SELECT count(*) AS "domains", coalesce(sum(pending), 0) AS "pending URLs of domains" FROM domain;

-- name: count_url
SELECT count(*) AS "URLs",
    count(*) FILTER (WHERE state = 0) AS "pending URLs",
    count(*) FILTER (WHERE state = 1) AS "done URLs",
    count(*) FILTER (WHERE state = 2) AS "blocked URLs",
    count(*) FILTER (WHERE state = 3) AS "failed URLs",
    count(*) FILTER (WHERE state = 4) AS "redirected URLs",
    count(*) FILTER (WHERE state = 5) AS "read URLs"
FROM url;

-- name: count_origin
SELECT count(*) AS "robots.txt records" FROM origin;

-- name: count_request
SELECT count(*) AS "requests" FROM request;

-- name: count_skipped
SELECT count(*) AS "skipped links" FROM skipped;

-- name: count_content
SELECT count(*) AS "texts" FROM content;

-- name: count_robots_text
SELECT count(*) AS "robots.txt files" FROM robots_text;

-- name: count_sample
SELECT count(*) AS "samples" FROM sample;

-- name: count_exclusion
SELECT count(*) AS "exclusions" FROM exclusion;

-- name: count_seed_source
SELECT count(*) AS "seed files" FROM seed_source;

-- name: count_retry
SELECT count(*) AS "retries" FROM retry;

-- name: count_run
SELECT count(*) AS "runs" FROM run;

-- name: count_process
SELECT count(*) AS "processes" FROM process;

-- name: count_counter
SELECT count(*) AS "counters" FROM counter WHERE name NOT IN ('visits', 'adds');


-- PostgreSQL

-- name: lock_schema
SELECT pg_advisory_xact_lock(hashtextextended(:name::text, 0));

-- name: holds_rows
SELECT EXISTS (SELECT FROM domain) OR EXISTS (SELECT FROM url) OR EXISTS (SELECT FROM origin)
    OR EXISTS (SELECT FROM request) OR EXISTS (SELECT FROM skipped) OR EXISTS (SELECT FROM content)
    OR EXISTS (SELECT FROM robots_text) OR EXISTS (SELECT FROM sample)
    OR EXISTS (SELECT FROM exclusion) OR EXISTS (SELECT FROM seed_source) OR EXISTS (SELECT FROM retry)
    OR EXISTS (SELECT FROM run) OR EXISTS (SELECT FROM process) OR EXISTS (SELECT FROM counter);

-- name: clear
TRUNCATE {tables};

-- name: advance_bookmark
UPDATE meta SET value = :new::text WHERE key = 'move' AND value = :old::text RETURNING true;

-- name: forget_other_machine
DELETE FROM machine WHERE key = :key::text AND id <> :machine::integer;

-- name: rename_machine
UPDATE machine SET key = :key::text, host = :host::text, path = :path::text WHERE id = :machine::integer
AND NOT EXISTS (SELECT FROM machine AS other WHERE other.key = :key::text AND other.id <> :machine::integer);

-- name: clock
SELECT clock_ms();

-- name: continue_era
INSERT INTO era (id, system, timeline, at, rest_from)
VALUES (:id::text, :system::text, :timeline::bigint, clock_ms(), :rest_from::bigint);

-- name: columns
SELECT table_name, column_name, data_type = 'boolean' AS is_boolean
FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY ordinal_position;

-- name: advance_sequences
-- setval does nothing where its value is NULL.
SELECT setval('visit_number', nullif(:visits::bigint, 0)), setval('add_number', nullif(:adds::bigint, 0)),
    setval(pg_get_serial_sequence('run', 'id'), (SELECT max(id) FROM run)),
    setval(pg_get_serial_sequence('process', 'id'), (SELECT max(id) FROM process)),
    setval(pg_get_serial_sequence('seed_source', 'id'), (SELECT max(id) FROM seed_source)),
    setval(pg_get_serial_sequence('retry', 'id'), (SELECT max(id) FROM retry)),
    setval(pg_get_serial_sequence('exclusion', 'id'), (SELECT max(id) FROM exclusion));

-- name: analyze
ANALYZE {tables};
