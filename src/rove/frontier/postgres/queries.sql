-- The queries of the frontier on PostgreSQL, by name. A batch comes in as one array a column, written as text
-- (arrays.py). Every connection plans generically and may neither scan a table nor hash one (see
-- database.py); tests/contract/test_postgres_plans.py reads the plan of each.
--
-- The order of locks, which all keep: URLs by key, then domains by id, then counters by name. Nobody waits for a
-- domain while he holds a counter, nor for a URL while he holds a domain that somebody else could want it for: URLs of
-- a domain are changed or deleted only under the lock of its row, and those that an add inserts are not to be seen
-- before its commit.

-- name: lease
-- The domains to lease: the index on ready_at is in order already. The lock is taken on the rows of the table, inside
-- the CTE, and a row that somebody else has taken is skipped, never waited for. Both times cover the visit and the
-- delay after it: a crash at any point can then shorten no delay, and a lost lease comes back by itself.
-- `bound`: versions of rows claimed before pile up at the low end of the index until vacuum comes, which an old
-- snapshot held open by anybody puts off; without a lower bound, every claim would walk over them. For the same reason
-- the row is updated where it was found, not looked up again by its key; one that changed in between is left for later.
-- `latest`, `earliest`: what the process that claims holds for the latest and the earliest that it can be; a server's
-- clock that was set forward must not make a domain due early, nor one that was set back a lease end before its time.
-- `ceiling`: the latest again, for times that are written, once that is certain: what is written too late stalls.
-- `lock_timeout`: SKIP LOCKED does wait where a row was updated, that update committed just now, and its successor is being
-- updated again (PostgreSQL then follows the chain and locks it in any case). Whoever is waited for may want a row that
-- this claim has locked; it gives up before that is found to be a deadlock, and is made again.
WITH clock AS MATERIALIZED (
    SELECT least(read, :latest::bigint) AS due_until,
        least(greatest(read, :earliest::bigint), :ceiling::bigint) AS now,
        greatest(least(read, :latest::bigint), :earliest::bigint) AS likely, set_config('lock_timeout', '200ms', true)
    FROM (SELECT clock_ms() AS read OFFSET 0) AS server
), due AS MATERIALIZED (
    SELECT ctid, ready_at FROM domain
    WHERE ready_at >= :bound::bigint AND ready_at <= (SELECT due_until FROM clock)
    ORDER BY ready_at
    LIMIT :limit::bigint
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE domain AS d SET
    ready_at   = now + :budget::bigint + greatest(:delay::bigint, crawl_delay, backoff),
    not_before = now + :budget::bigint + greatest(:delay::bigint, crawl_delay, backoff),
    token      = nextval('visit_number'),
    owner      = :process::bigint,
    unsettled  = unsettled + 1,
    failing    = false
FROM due CROSS JOIN clock
WHERE d.ctid = due.ctid
RETURNING d.id, d.name, d.crawl_delay, d.backoff, d.failures, d.repeats, d.unsettled, d.token, due.ready_at AS was_due,
    clock.likely AS now;

-- name: lease_fresh
-- As lease, of the domains that were never leased; all that is said there holds here. The low end of their index has old
-- versions too, and a bound of its own.
WITH clock AS MATERIALIZED (
    SELECT least(read, :latest::bigint) AS due_until,
        least(greatest(read, :earliest::bigint), :ceiling::bigint) AS now,
        greatest(least(read, :latest::bigint), :earliest::bigint) AS likely, set_config('lock_timeout', '200ms', true)
    FROM (SELECT clock_ms() AS read OFFSET 0) AS server
), due AS MATERIALIZED (
    SELECT ctid, ready_at FROM domain
    WHERE token = 0 AND ready_at >= :bound::bigint AND ready_at <= (SELECT due_until FROM clock)
    ORDER BY ready_at
    LIMIT :limit::bigint
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE domain AS d SET
    ready_at   = now + :budget::bigint + greatest(:delay::bigint, crawl_delay, backoff),
    not_before = now + :budget::bigint + greatest(:delay::bigint, crawl_delay, backoff),
    token      = nextval('visit_number'),
    owner      = :process::bigint,
    unsettled  = unsettled + 1,
    failing    = false
FROM due CROSS JOIN clock
WHERE d.ctid = due.ctid
RETURNING d.id, d.name, d.crawl_delay, d.backoff, d.failures, d.repeats, d.unsettled, d.token, due.ready_at AS was_due,
    clock.likely AS now;

-- name: head_urls
-- The first due URLs of each domain: by class (normal, retried, waiting for a failing origin), so that ten thousand URLs
-- that are not due yet are never walked over. A statement of its own, after the lease: one that did both would
-- read the URLs from a snapshot older than the row it locked, and serve URLs that were settled in between.
SELECT d.id, u.fingerprint, u.url, u.depth, u.hops, u.attempts, u.bare, u.priority, u.position, u.sitemap_of
FROM unnest(:domains::bigint[]) AS d (id)
CROSS JOIN LATERAL (
    (SELECT fingerprint, url, depth, hops, attempts, bare, priority, position, sitemap_of FROM url
     WHERE domain = d.id AND state = 0 AND priority < :retried::integer
     ORDER BY priority, position LIMIT :limit::bigint)
    UNION ALL
    (SELECT fingerprint, url, depth, hops, attempts, bare, priority, position, sitemap_of FROM url
     WHERE domain = d.id AND state = 0 AND priority = :retried::integer AND position <= :now::bigint
     ORDER BY position LIMIT :limit::bigint)
    UNION ALL
    (SELECT fingerprint, url, depth, hops, attempts, bare, priority, position, sitemap_of FROM url
     WHERE domain = d.id AND state = 0 AND priority = :held::integer AND position <= :now::bigint
     ORDER BY position LIMIT :limit::bigint)
    LIMIT :limit::bigint
) AS u;

-- name: more_urls
-- Further due URLs of one domain behind a place in its order.
SELECT domain, fingerprint, url, depth, hops, attempts, bare, priority, position, sitemap_of
FROM url
WHERE domain = :domain::bigint AND state = 0
    AND (priority, position) > (:priority::integer, :position::bigint)
    AND (priority < :retried::integer OR position <= (SELECT clock_ms()))
ORDER BY priority, position
LIMIT :limit::bigint;

-- name: lock_leases
-- The leases that still count, and those that were taken away by an exclusion, locked in id order: two settles, or a
-- settle and an add, that share domains then wait for each other and never in a circle. (num_nonnulls: not by the index
-- of all leases, once for each of the batch.)
SELECT d.token, num_nonnulls(d.owner) = 1
FROM unnest(:domains::bigint[], :tokens::bigint[]) AS e (id, token)
JOIN domain AS d ON d.id = e.id
WHERE d.token = e.token AND (num_nonnulls(d.owner) = 1 OR d.unsettled > 0)
ORDER BY d.id
FOR NO KEY UPDATE OF d;

-- name: settle_urls
-- Only what is pending leaves pending: a settle may be sent twice. `+ 0` keeps the planner from the index of what is
-- pending, which it takes for small while the table is empty, and would then read from end to end.
UPDATE url AS u SET state = e.state, reason = e.reason, visit = e.visit
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :states::smallint[], :reasons::text[], :visits::bigint[])
    AS e (domain, fingerprint, state, reason, visit)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 0
RETURNING u.domain, u.state;

-- name: defer_urls
UPDATE url AS u SET
    priority = e.priority,
    position = (SELECT least(greatest(clock_ms(), :earliest::bigint), :ceiling::bigint)) + e.wait,
    attempts = e.attempts
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :priorities::integer[], :waits::bigint[], :attempts::integer[])
    AS e (domain, fingerprint, priority, wait, attempts)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 0;

-- name: close_leases
-- Ends leases whose rows are locked. A visit that asked nothing costs no delay; the domain was due when it was claimed,
-- so `now` is not early. One update, as each leaves a version of the row behind; a statement after the URLs were
-- settled, so that the head it finds is the next one. ready_at is NULL when nothing is pending: the count in the row,
-- which an add raises under the same lock, is what keeps a new URL from being slept over. `earliest`, `ceiling`: as in a lease.
WITH clock AS MATERIALIZED (
    SELECT least(greatest(clock_ms(), :earliest::bigint), :ceiling::bigint) AS now
), head AS MATERIALIZED (
    SELECT e.*, now, u.priority, u.position
    FROM unnest(:domains::bigint[], :settled::integer[], :asked::boolean[], :since_finish::bigint[], :pages::integer[],
        :pauses::bigint[], :backoffs::bigint[], :failures::integer[], :repeats::smallint[])
        AS e (id, settled, asked, since_finish, pages, pause, backoff, failures, repeats)
    CROSS JOIN clock
    LEFT JOIN LATERAL (
        SELECT priority, position FROM url
        WHERE url.domain = e.id AND state = 0
        ORDER BY priority, position
        LIMIT 1
    ) AS u ON true
)
UPDATE domain AS d SET
    pending     = d.pending - h.settled,
    not_before  = CASE WHEN h.asked
        THEN now - h.since_finish + greatest(:delay::bigint, d.crawl_delay, h.pause) ELSE now END,
    backoff     = h.backoff,
    failures    = h.failures,
    repeats     = h.repeats,
    owner       = NULL,
    unsettled   = 0,
    pages       = CASE WHEN d.pages_epoch = :epoch::integer THEN d.pages ELSE 0 END + h.pages,
    pages_epoch = :epoch::integer,
    capped      = coalesce(CASE WHEN d.pages_epoch = :epoch::integer THEN d.pages ELSE 0 END + h.pages
        >= :cap::integer, false),
    failing     = coalesce(h.priority = :held::integer OR h.failures >= :leaving::integer
        OR d.crawl_delay > :alone::bigint, false),
    ready_at    = CASE
        WHEN h.priority IS NULL OR d.excluded
            OR CASE WHEN d.pages_epoch = :epoch::integer THEN d.pages ELSE 0 END + h.pages >= :cap::integer THEN NULL
        ELSE greatest(
            CASE WHEN h.asked THEN now - h.since_finish + greatest(:delay::bigint, d.crawl_delay, h.pause) ELSE now END,
            CASE WHEN h.priority >= :retried::integer THEN h.position END) END
FROM head AS h
WHERE d.id = h.id
RETURNING d.id, d.pending, d.crawl_delay;

-- name: end_late
-- Visits from which their lease was taken, as their domain was excluded: now that they are over, the delay counts from
-- their end. The rows are locked, and no other visit has begun since.
WITH clock AS MATERIALIZED (
    SELECT least(greatest(clock_ms(), :earliest::bigint), :ceiling::bigint) AS now
)
UPDATE domain AS d SET
    not_before = CASE WHEN e.asked
        THEN now - e.since_finish + greatest(:delay::bigint, d.crawl_delay, e.pause) ELSE now END,
    unsettled  = 0
FROM unnest(:domains::bigint[], :asked::boolean[], :since_finish::bigint[], :pauses::bigint[])
    AS e (id, asked, since_finish, pause) CROSS JOIN clock
WHERE d.id = e.id;

-- name: give_up
-- The head URL of a domain that was leased again and again was settled: the lease that was just made is its first.
UPDATE domain AS d SET pending = d.pending - e.settled, unsettled = 1
FROM unnest(:domains::bigint[], :settled::integer[]) AS e (id, settled)
WHERE d.id = e.id
RETURNING d.id, d.pending;

-- name: insert_requests
-- Never updated afterwards, but for where a page is stored.
INSERT INTO request (visit, seq, domain, kind, url, fingerprint, started, status, error, media_type, size, truncated,
    content_hash, target, title, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, other_domain,
    began, ended, address, delay, delay_from, process, fate, marks, is_copy, machine)
SELECT *, :machine::integer
FROM unnest(:visit::bigint[], :seq::smallint[], :domain::bigint[], :kind::text[], :url::text[], :fingerprint::bigint[],
    :started::double precision[], :status::integer[], :error::text[], :media_type::text[], :size::bigint[],
    :truncated::boolean[], :content_hash::bigint[], :target::text[], :title::text[], :text_file::text[],
    :text_offset::bigint[], :text_length::bigint[], :raw_file::text[], :raw_offset::bigint[], :raw_length::bigint[],
    :other_domain::bigint[], :began::bigint[], :ended::bigint[], :address::text[], :delay::bigint[],
    :delay_from::text[], :process::bigint[], :fate::text[], :marks::text[], :is_copy::boolean[])
ON CONFLICT DO NOTHING
RETURNING size, error;

-- name: insert_contents
-- Whoever stored a text first has it; what another process stored at the same time stays beside it. The rows come sorted,
-- as two processes that store the same texts wait for each other here.
INSERT INTO content (hash, checked, domain, visit, file, "offset", length, machine)
SELECT *, :machine::integer
FROM unnest(:hashes::bigint[], :checked::bigint[], :domains::bigint[], :visits::bigint[], :files::text[],
    :offsets::bigint[], :lengths::bigint[])
ON CONFLICT DO NOTHING;

-- name: known_contents
-- With the URL and the time of the page that the record names.
SELECT c.hash, c.checked, c.domain, c.visit, c.file, c."offset", c.length, r.url, r.started, c.machine
FROM unnest(:hashes::bigint[]) AS e (hash)
JOIN content AS c ON c.hash = e.hash
JOIN request AS r ON r.visit = c.visit AND r.content_hash = c.hash AND r.kind = 'page';

-- name: insert_urls
-- What is known is dropped by an anti-join, which writes nothing. The rest goes in sorted by key: two adders with the
-- same new URLs wait for each other, and never in a circle; the second then fails, and is done again as
-- insert_urls_beside. To be ready for another costs every row an eighth more, and there seldom is one. A column with
-- nothing but zeros or empty texts comes as an empty array, which unnest fills up with NULL. Returns how many were new,
-- by domain.
WITH first AS MATERIALIZED (
    SELECT nextval('add_number') * :urls_per_add::bigint AS position
), inserted AS (
    INSERT INTO url (domain, fingerprint, url, priority, position, depth, hops, bare, sitemap_of)
    SELECT DISTINCT ON (e.domain, e.fingerprint)
        e.domain, e.fingerprint, e.url, least(e.depth + coalesce(e.penalty, 0), :retried::integer - 1),
        first.position + e.place, e.depth, coalesce(e.hops, 0), coalesce(e.bare, false), coalesce(e.sitemap_of, '')
    FROM unnest(:domains::bigint[], :fingerprints::bigint[], :urls::text[], :depths::integer[], :hops::integer[],
        :bares::boolean[], :sitemaps_of::text[], :penalties::integer[])
        WITH ORDINALITY AS e (domain, fingerprint, url, depth, hops, bare, sitemap_of, penalty, place)
    CROSS JOIN first
    WHERE NOT EXISTS (SELECT FROM url AS u WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint)
    ORDER BY e.domain, e.fingerprint, e.depth
    RETURNING domain
)
SELECT domain, count(*) FROM inserted GROUP BY domain;

-- name: insert_urls_beside
-- As insert_urls, beside somebody who inserts some of the same: whoever comes second waits, and leaves those out.
WITH first AS MATERIALIZED (
    SELECT nextval('add_number') * :urls_per_add::bigint AS position
), inserted AS (
    INSERT INTO url (domain, fingerprint, url, priority, position, depth, hops, bare, sitemap_of)
    SELECT e.domain, e.fingerprint, e.url, least(e.depth + coalesce(e.penalty, 0), :retried::integer - 1),
        first.position + e.place, e.depth, coalesce(e.hops, 0), coalesce(e.bare, false), coalesce(e.sitemap_of, '')
    FROM unnest(:domains::bigint[], :fingerprints::bigint[], :urls::text[], :depths::integer[], :hops::integer[],
        :bares::boolean[], :sitemaps_of::text[], :penalties::integer[])
        WITH ORDINALITY AS e (domain, fingerprint, url, depth, hops, bare, sitemap_of, penalty, place)
    CROSS JOIN first
    WHERE NOT EXISTS (SELECT FROM url AS u WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint)
    ORDER BY e.domain, e.fingerprint, e.depth
    ON CONFLICT DO NOTHING
    RETURNING domain
)
SELECT domain, count(*) FROM inserted GROUP BY domain;

-- name: raise_pending
-- Creates or locks each domain in id order and raises its count by the rows that were really inserted. An idle domain
-- is woken, but not before its politeness clock; one that waits for a retry only is drawn forward; a leased one
-- has ready_at = not_before and stays. After the URLs, not before: while a domain is locked here, a claim skips it.
-- xmax is 0 in a row version that was inserted, not updated.
WITH clock AS MATERIALIZED (
    SELECT least(clock_ms(), :ceiling::bigint) AS now
)
INSERT INTO domain AS d (id, name, pending, ready_at)
SELECT e.id, e.name, e.unseen, now
FROM unnest(:domains::bigint[], :names::text[], :unseen::integer[]) AS e (id, name, unseen)
CROSS JOIN clock
ORDER BY e.id
ON CONFLICT (id) DO UPDATE SET
    pending  = d.pending + excluded.pending,
    failing  = d.owner IS NULL AND (d.failures >= :leaving::integer OR d.crawl_delay > :alone::bigint)
        OR d.failing AND (d.capped OR d.excluded),
    ready_at = CASE WHEN d.capped OR d.excluded THEN NULL
        ELSE least(d.ready_at, greatest(excluded.ready_at, d.not_before)) END
RETURNING d.id, d.pending, d.xmax = 0 AS is_new, d.excluded, d.crawl_delay, d.repeats;

-- name: trim
-- The worst URLs of domains that have more than there is room for, from the end of their order. Seeds are in the first
-- class, which is not looked at: there may be any number of them. The domains are locked: nobody else changes or deletes
-- their URLs, and those that another add has inserted are neither seen nor counted yet. An add that offers one of these
-- waits for our commit at worst, and holds no domain while it does. xmin is ours where this add has inserted the URL.
WITH worst AS MATERIALIZED (
    SELECT e.domain, u.fingerprint
    FROM unnest(:domains::bigint[], :excess::integer[]) AS e (domain, excess)
    CROSS JOIN LATERAL (
        SELECT fingerprint FROM url
        WHERE domain = e.domain AND state = 0 AND priority > 0 AND priority < :retried::integer AND depth > 0
            AND sitemap_of = '' AND fingerprint <> ALL (:kept::bigint[])
        ORDER BY priority DESC, position DESC
        LIMIT e.excess
    ) AS u
)
DELETE FROM url AS u USING worst AS w
WHERE u.domain = w.domain AND u.fingerprint = w.fingerprint AND u.state + 0 = 0
RETURNING u.domain, u.fingerprint, u.priority, u.xmin = pg_current_xact_id()::xid;

-- name: lower_pending
-- So many URLs were taken out of domains that are locked. Those that have only retries left, and no lease, are woken for
-- nothing. (Their head by its order: an EXISTS would be answered from a hash of all that is pending.)
UPDATE domain AS d SET pending = d.pending - e.fewer
FROM unnest(:domains::bigint[], :fewer::integer[]) AS e (id, fewer)
WHERE d.id = e.id
RETURNING d.id, d.owner IS NULL AND coalesce((
    SELECT priority FROM url WHERE url.domain = d.id AND state = 0
    ORDER BY priority, position
    LIMIT 1) >= :retried::integer, false);

-- name: known_domains
-- Those that have a row: with --seeds-only, the domains of the seeds.
SELECT d.id FROM unnest(:domains::bigint[]) AS e (id) JOIN domain AS d ON d.id = e.id;

-- name: url_states
SELECT u.domain, u.fingerprint, u.state
FROM unnest(:domains::bigint[], :fingerprints::bigint[]) AS e (domain, fingerprint)
JOIN url AS u ON u.domain = e.domain AND u.fingerprint = e.fingerprint;

-- name: origins
SELECT o.domain, o.origin, o.status, o.body, o.crawl_delay, o.failures, o.expires_at - now, now - o.fetched_at,
    o.source, o.etag, o.last_modified
FROM (SELECT clock_ms() AS now OFFSET 0) AS clock
CROSS JOIN unnest(:domains::bigint[], :origins::text[]) AS e (domain, origin)
JOIN origin AS o ON o.domain = e.domain AND o.origin = e.origin;

-- name: put_origins
INSERT INTO origin (domain, origin, status, body, crawl_delay, failures, expires_at, fetched_at, source, etag,
    last_modified)
SELECT e.domain, e.origin, e.status, e.body, e.crawl_delay, e.failures, now + e.valid_for, now, e.source, e.etag,
    e.last_modified
FROM (SELECT clock_ms() AS now OFFSET 0) AS clock
CROSS JOIN unnest(:domains::bigint[], :origins::text[], :statuses::text[], :bodies::bytea[], :crawl_delays::bigint[],
    :failures::integer[], :valid_for::bigint[], :sources::text[], :etags::text[], :last_modified::text[])
    AS e (domain, origin, status, body, crawl_delay, failures, valid_for, source, etag, last_modified)
ORDER BY e.domain, e.origin
ON CONFLICT (domain, origin) DO UPDATE SET
    status = excluded.status, body = excluded.body, crawl_delay = excluded.crawl_delay,
    failures = excluded.failures, expires_at = excluded.expires_at, fetched_at = excluded.fetched_at,
    source = excluded.source, etag = excluded.etag, last_modified = excluded.last_modified;

-- name: keep_robots_texts
INSERT INTO robots_text (hash, body)
SELECT e.hash, e.body FROM unnest(:hashes::bigint[], :bodies::bytea[]) AS e (hash, body)
ORDER BY e.hash
ON CONFLICT DO NOTHING;

-- name: robots_text
SELECT body FROM robots_text WHERE hash = :hash::bigint;

-- name: lock_domains
-- A statement of its own before one that reads other rows: what that one reads is then as new as the lock.
SELECT d.id, d.token FROM unnest(:domains::bigint[]) AS e (id) JOIN domain AS d ON d.id = e.id
ORDER BY d.id
FOR NO KEY UPDATE OF d;

-- name: lengthen_delays
-- A lease that is out reckoned with the old delay: where the new one is longer, both times move by the difference. The
-- page is asked only after this is committed.
WITH longest AS MATERIALIZED (
    SELECT e.id, (SELECT max(crawl_delay) FROM origin WHERE domain = e.id) AS crawl_delay
    FROM unnest(:domains::bigint[]) AS e (id)
), changed AS MATERIALIZED (
    SELECT d.id, l.crawl_delay,
        CASE WHEN d.owner IS NULL THEN 0
        ELSE greatest(0, greatest(:delay::bigint, l.crawl_delay) - greatest(:delay::bigint, d.crawl_delay)) END AS more
    FROM longest AS l JOIN domain AS d ON d.id = l.id
    WHERE d.crawl_delay <> l.crawl_delay
)
UPDATE domain AS d SET
    crawl_delay = c.crawl_delay, ready_at = d.ready_at + c.more, not_before = d.not_before + c.more
FROM changed AS c
WHERE d.id = c.id;

-- name: add_counters
INSERT INTO counter AS c (name, slot, value)
SELECT e.name, pg_backend_pid(), e.amount FROM unnest(:names::text[], :amounts::bigint[]) AS e (name, amount)
ORDER BY e.name
ON CONFLICT (name, slot) DO UPDATE SET value = c.value + excluded.value;

-- name: counters
SELECT name, sum(value)::bigint FROM counter GROUP BY name;

-- name: pages
SELECT coalesce(sum(value), 0)::bigint FROM counter WHERE name = 'urls.done';

-- name: next_due
SELECT ready_at - (SELECT clock_ms()) FROM domain
WHERE ready_at >= :bound::bigint AND NOT failing
ORDER BY ready_at
LIMIT 1;

-- name: cut_leases
-- The processes that held these are dead: what is left to wait for is the delay, counted from now.
WITH clock AS MATERIALIZED (
    SELECT least(greatest(clock_ms(), :earliest::bigint), :ceiling::bigint) AS now
), lost AS MATERIALIZED (
    SELECT id FROM domain WHERE owner = ANY (:processes::bigint[]) ORDER BY id FOR NO KEY UPDATE
)
UPDATE domain AS d SET
    ready_at   = CASE WHEN pending > 0 THEN least(ready_at, now + greatest(:delay::bigint, crawl_delay, backoff)) END,
    not_before = least(not_before, now + greatest(:delay::bigint, crawl_delay, backoff)),
    owner      = NULL
FROM lost CROSS JOIN clock
WHERE d.id = lost.id
RETURNING d.id;

-- name: postpone
-- What a visit learnt that was lost with its process; unless another came since. The rows are locked.
UPDATE domain AS d SET
    not_before = greatest(d.not_before, e.earliest),
    ready_at   = CASE WHEN d.ready_at IS NOT NULL THEN greatest(d.ready_at, e.earliest) END
FROM unnest(:domains::bigint[], :visits::bigint[], :earliest::bigint[]) AS e (id, visit, earliest)
WHERE d.id = e.id AND d.token = e.visit;

-- name: mark_gone
UPDATE process SET has_left = true, pages_per_s = 0, in_flight = 0
WHERE id = ANY (:processes::bigint[]) AND NOT has_left;

-- name: own_processes
SELECT id FROM process WHERE machine = :machine::integer AND id <> :process::bigint;

-- name: lock_capped
SELECT id FROM domain WHERE capped AND pages_epoch < :epoch::integer ORDER BY id FOR NO KEY UPDATE;

-- name: lift_caps
-- Domains that had reached the limit of an earlier epoch, and are locked; they are rescheduled next.
UPDATE domain AS d SET capped = false
FROM unnest(:domains::bigint[]) AS e (id)
WHERE d.id = e.id;

-- name: lock_to_exclude
-- Creates or locks those that are not excluded yet, all in id order.
INSERT INTO domain AS d (id, name, excluded)
SELECT e.id, e.name, true FROM unnest(:domains::bigint[], :names::text[]) AS e (id, name)
ORDER BY e.id
ON CONFLICT (id) DO UPDATE SET excluded = false WHERE NOT d.excluded
RETURNING d.id, d.pending, d.xmax = 0 AS is_new;

-- name: exclude_domains
-- What they have pending leaves pending afterwards, slice by slice.
UPDATE domain AS d SET excluded = true, ready_at = NULL, owner = NULL
FROM unnest(:domains::bigint[]) AS e (id)
WHERE d.id = e.id;

-- name: excluded_with_pending
-- Whoever excluded these may have been killed before all that was pending had left.
SELECT d.id FROM unnest(:domains::bigint[]) AS e (id) JOIN domain AS d ON d.id = e.id
WHERE d.excluded AND d.pending > 0;

-- name: include_domains
-- The rows are locked.
UPDATE domain AS d SET excluded = false
FROM unnest(:domains::bigint[]) AS e (id)
WHERE d.id = e.id AND d.excluded
RETURNING d.id, d.pending;

-- name: reschedule
-- When the head of what is pending may be asked, of domains that are locked; one that is leased keeps its time.
-- Not before now: claims that start from their lower bound would not find it.
WITH head AS MATERIALIZED (
    SELECT c.id, u.priority, u.position
    FROM unnest(:domains::bigint[]) AS c (id)
    LEFT JOIN LATERAL (
        SELECT priority, position FROM url
        WHERE url.domain = c.id AND state = 0
        ORDER BY priority, position
        LIMIT 1
    ) AS u ON true
)
UPDATE domain AS d SET
    failing  = CASE WHEN d.owner IS NOT NULL THEN d.failing
        ELSE coalesce(h.priority = :held::integer OR d.failures >= :leaving::integer
            OR d.crawl_delay > :alone::bigint, false) END,
    ready_at = CASE
        WHEN d.owner IS NOT NULL THEN d.ready_at
        WHEN h.priority IS NULL OR d.excluded OR d.capped THEN NULL
        ELSE greatest(d.not_before, (SELECT clock_ms()),
            CASE WHEN h.priority >= :retried::integer THEN h.position END) END
FROM head AS h
WHERE d.id = h.id;

-- name: pending_after
-- All that is pending in a domain, due or not, behind a place in its order.
SELECT fingerprint, url, priority, position FROM url
WHERE domain = :domain::bigint AND state = 0 AND (priority, position) > (:priority::integer, :position::bigint)
ORDER BY priority, position
LIMIT :limit::bigint;

-- name: excluded_after
-- The URLs of a domain behind one of them; those that an exclusion has blocked may be wanted again.
SELECT fingerprint, url, state = 2 AND reason = 'excluded' FROM url
WHERE domain = :domain::bigint AND fingerprint > :fingerprint::bigint
ORDER BY fingerprint
LIMIT :limit::bigint;

-- name: reopen_urls
UPDATE url AS u SET state = 0, reason = '', visit = NULL
FROM unnest(:domains::bigint[], :fingerprints::bigint[]) AS e (domain, fingerprint)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 2 AND u.reason = 'excluded'
RETURNING u.domain;

-- name: add_to_pending
-- Where there are more or fewer URLs pending without a visit; the row is locked.
UPDATE domain SET pending = pending + :change::integer WHERE id = :domain::bigint RETURNING pending, excluded;

-- name: domain_names_after
SELECT id, name FROM domain WHERE id > :after::bigint ORDER BY id LIMIT :limit::bigint;

-- name: exclusions
SELECT pattern FROM exclusion WHERE lifted_at IS NULL ORDER BY pattern;

-- name: exclusion_history
SELECT pattern, at, wall, who, reason, lifted_at, lifted_wall, lifted_by FROM exclusion ORDER BY id;

-- name: add_exclusions
INSERT INTO exclusion (pattern, at, wall, who, reason)
SELECT e, clock_ms(), :wall::double precision, :who::text, :reason::text FROM unnest(:patterns::text[]) AS e ORDER BY e
ON CONFLICT DO NOTHING
RETURNING pattern;

-- name: lift_exclusions
UPDATE exclusion SET lifted_at = clock_ms(), lifted_wall = :wall::double precision, lifted_by = :who::text
FROM unnest(:patterns::text[]) AS e (pattern)
WHERE exclusion.pattern = e.pattern AND lifted_at IS NULL
RETURNING exclusion.pattern;

-- name: revise_exclusions
INSERT INTO meta (key, value) VALUES ('exclusions', '1')
ON CONFLICT (key) DO UPDATE SET value = (meta.value::bigint + 1)::text;

-- name: count_ready
SELECT count(*) FROM domain WHERE ready_at <= (SELECT clock_ms());

-- name: count_leased
SELECT count(*) FROM domain WHERE owner IS NOT NULL AND ready_at + 0 > (SELECT clock_ms());

-- name: count_capped
-- Those that have something pending, and count as active for it.
SELECT count(*) FROM domain WHERE capped AND pending > 0 AND NOT excluded;

-- name: this_machine
INSERT INTO machine (key, host, path) VALUES (:key::text, :host::text, :path::text)
ON CONFLICT (key) DO UPDATE SET host = excluded.host, path = excluded.path
RETURNING id;

-- name: same_machine_elsewhere
-- A copy of a data directory has the key of the one that it was copied from.
SELECT m.host, m.path FROM machine AS m JOIN process AS p ON p.machine = m.id
WHERE m.key = :key::text AND (m.host, m.path) <> (:host::text, :path::text)
    AND NOT p.has_left AND p.seen > clock_ms() - :alive_ms::bigint
LIMIT 1;

-- name: machines
SELECT id, key, host, path FROM machine;

-- name: begin_run
INSERT INTO run (started, wall) VALUES (clock_ms(), :wall::double precision) RETURNING id;

-- name: begin_process
INSERT INTO process (run, machine, pid, started, seen)
SELECT :run::bigint, :machine::integer, :pid::integer, now, now FROM (SELECT clock_ms() AS now) AS clock
RETURNING id;

-- name: note_alive
UPDATE process SET seen = clock_ms(), pages = :pages::bigint, pages_per_s = :pages_per_s::real,
    in_flight = :in_flight::integer, has_left = :has_left::boolean
WHERE id = :process::bigint;

-- name: runs
SELECT r.id, r.started, greatest(r.started, max(p.seen)), r.wall
FROM run AS r LEFT JOIN process AS p ON p.run = r.id
GROUP BY r.id ORDER BY r.id;

-- name: nodes
SELECT m.key, m.host, m.path, p.id, p.pid, p.has_left, p.pages, p.pages_per_s, p.in_flight,
    (now - p.started) / 1000.0::double precision, (now - p.seen) / 1000.0::double precision
FROM process AS p JOIN machine AS m ON m.id = p.machine CROSS JOIN (SELECT clock_ms() AS now) AS clock
ORDER BY p.id;

-- name: get_meta
SELECT value FROM meta WHERE key = :key::text;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (:key::text, :value::text) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: identify
INSERT INTO meta (key, value) VALUES ('identity', :identity::text) ON CONFLICT DO NOTHING;

-- name: revise
INSERT INTO meta (key, value) VALUES ('revision', '1')
ON CONFLICT (key) DO UPDATE SET value = (meta.value::bigint + 1)::text;

-- name: seed_sources
-- Whoever has the copy of a file may be gone.
SELECT s.id, s.path, s.name, s."offset", s.lines, s.good, s.bad, s.finished, s.machine = :machine::integer,
    s.machine <> :machine::integer AND NOT EXISTS (
        SELECT FROM process AS p
        WHERE p.machine = s.machine AND NOT p.has_left AND p.seen > clock_ms() - :alive_ms::bigint)
FROM seed_source AS s ORDER BY s.id;

-- name: add_seed_source
INSERT INTO seed_source (machine, path, name) VALUES (:machine::integer, :path::text, :name::text);

-- name: update_seed_source
UPDATE seed_source SET "offset" = :offset::bigint, lines = :lines::bigint, good = :good::bigint, bad = :bad::bigint,
    finished = :finished::boolean
WHERE id = :id::integer;

-- name: url_record
SELECT domain, fingerprint, url, state, depth, attempts, reason, visit
FROM url WHERE domain = :domain::bigint AND fingerprint = :fingerprint::bigint;

-- name: requests_of_visit
SELECT visit, seq, domain, kind, url, fingerprint, started, status, error, media_type, size, truncated, content_hash,
    target, title, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, other_domain, began, ended,
    address, delay, delay_from, process, fate, marks, is_copy, machine
FROM request WHERE visit = :visit::bigint ORDER BY seq;

-- name: requests_before
-- Newest first, in slices, so that no snapshot stays open while a person pages through.
SELECT visit, seq, domain, kind, url, fingerprint, started, status, error, media_type, size, truncated, content_hash,
    target, title, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, other_domain, began, ended,
    address, delay, delay_from, process, fate, marks, is_copy, machine
FROM request WHERE (visit, seq) < (:visit::bigint, :seq::smallint) ORDER BY visit DESC, seq DESC LIMIT :limit::bigint;

-- name: requests_of_domain
-- The visits to one domain behind a place in their order.
SELECT visit, seq, domain, kind, url, fingerprint, started, status, error, media_type, size, truncated, content_hash,
    target, title, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, other_domain, began, ended,
    address, delay, delay_from, process, fate, marks, is_copy, machine
FROM request WHERE domain = :domain::bigint AND (visit, seq) > (:visit::bigint, :seq::smallint)
ORDER BY visit, seq LIMIT :limit::bigint;

-- name: requests_elsewhere
-- What a domain was asked in visits to others, whose robots.txt led there.
SELECT visit, seq, domain, kind, url, fingerprint, started, status, error, media_type, size, truncated, content_hash,
    target, title, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, other_domain, began, ended,
    address, delay, delay_from, process, fate, marks, is_copy, machine
FROM request WHERE other_domain = :domain::bigint AND (visit, seq) > (:visit::bigint, :seq::smallint)
ORDER BY visit, seq LIMIT :limit::bigint;

-- name: ledger
-- The whole ledger, domain by domain, in slices.
SELECT visit, seq, domain, kind, url, fingerprint, started, status, error, media_type, size, truncated, content_hash,
    target, title, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, other_domain, began, ended,
    address, delay, delay_from, process, fate, marks, is_copy, machine
FROM request WHERE (domain, visit, seq) > (:domain::bigint, :visit::bigint, :seq::smallint)
ORDER BY domain, visit, seq LIMIT :limit::bigint;

-- name: copies
-- The pages that have no text of their own but this one, behind a place in their order.
SELECT visit, seq, domain, kind, url, fingerprint, started, status, error, media_type, size, truncated, content_hash,
    target, title, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, other_domain, began, ended,
    address, delay, delay_from, process, fate, marks, is_copy, machine
FROM request WHERE content_hash = :hash::bigint AND is_copy AND (visit, seq) > (:visit::bigint, :seq::smallint)
ORDER BY visit, seq LIMIT :limit::bigint;

-- name: place_again
-- After a purge.
UPDATE request AS r SET text_file = e.text_file, text_offset = e.text_offset, text_length = e.text_length,
    raw_file = e.raw_file, raw_offset = e.raw_offset, raw_length = e.raw_length, is_copy = e.is_copy
FROM unnest(:visit::bigint[], :seq::smallint[], :text_file::text[], :text_offset::bigint[], :text_length::bigint[],
    :raw_file::text[], :raw_offset::bigint[], :raw_length::bigint[], :is_copy::boolean[])
    AS e (visit, seq, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, is_copy)
WHERE r.visit = e.visit AND r.seq = e.seq;

-- name: place_contents
-- Only while a text is where it was thought to be, on this machine.
UPDATE content AS c SET domain = coalesce(e.domain, c.domain), visit = coalesce(e.visit, c.visit),
    file = e.new_file, "offset" = e.new_offset, length = e.new_length
FROM unnest(:hashes::bigint[], :files::text[], :offsets::bigint[], :domains::bigint[], :visits::bigint[],
    :new_files::text[], :new_offsets::bigint[], :new_lengths::bigint[])
    AS e (hash, file, at, domain, visit, new_file, new_offset, new_length)
WHERE c.hash = e.hash AND c.machine = :machine::integer AND c.file = e.file AND c."offset" = e.at;

-- name: forget_contents
DELETE FROM content AS c
USING unnest(:hashes::bigint[], :files::text[], :offsets::bigint[]) AS e (hash, file, at)
WHERE c.hash = e.hash AND c.machine = :machine::integer AND c.file = e.file AND c."offset" = e.at;

-- name: domain_record
SELECT id, name, ready_at - now, not_before - now, crawl_delay, backoff, failures, repeats, pending, owner IS NOT NULL,
    excluded, capped
FROM (SELECT clock_ms() AS now OFFSET 0) AS clock CROSS JOIN domain WHERE id = :id::bigint;

-- name: server_clock
SELECT server_ms(), (SELECT value::bigint FROM meta WHERE key = 'clock_amendment');
