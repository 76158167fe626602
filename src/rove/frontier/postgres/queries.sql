-- The queries of the frontier on PostgreSQL. A batch arrives as one array per column, written as text (arrays.py).
-- Every connection uses generic plans and may neither scan a table nor hash one (database.py).
-- tests/contract/test_postgres_plans.py reads the plan of each query.
--
-- All transactions take locks in the same order: URLs by key, then domains by id, then skipped links by key, then counters
-- by name. No transaction
-- waits for a domain row while it holds a counter row. None waits for a URL row while it holds the row of its domain:
-- URLs are changed or deleted only under the lock of their domain's row, and URLs that an add inserts are invisible
-- until it commits.

-- fragment: now
-- The time to write down. :earliest and :ceiling are the limits that the process knows from its own clock (clock.py),
-- so that a step of the server's clock neither shortens a delay nor stalls the crawl.
least(greatest(clock_ms(), :earliest::bigint), :ceiling::bigint)

-- fragment: clock
clock AS MATERIALIZED (
    SELECT {now} AS now
)

-- fragment: server_clock
-- OFFSET 0 keeps the planner from calling the function once per row.
(SELECT clock_ms() AS now OFFSET 0) AS clock

-- fragment: full_delay
greatest(:delay::bigint, crawl_delay, backoff)

-- fragment: free_at
-- When a domain may be visited again. A visit without a request costs no delay, only the pause. The domain was due when
-- it was claimed, so `now` is not early.
CASE WHEN e.requested THEN now - e.since_finish + greatest(:delay::bigint, d.crawl_delay, e.pause)
    ELSE now + e.pause END

-- fragment: pages_in_epoch
CASE WHEN d.pages_epoch = :epoch::integer THEN d.pages ELSE 0 END + e.pages

-- fragment: suspected
-- The condition of the index url_suspect, word for word. Suspects are tried alone, and no ordinary claim takes them.
state = 0 AND priority >= 1048578

-- fragment: leaves_alone
-- A domain `d` that does not respond, or asks for a very long delay. A crawl does not stay up for it.
(d.failures >= :leaving::integer OR d.crawl_delay > :alone::bigint)

-- fragment: domain_state
-- frontier.domain_list.DomainState. An expired lease may be claimed like any other domain that is due.
CASE WHEN excluded THEN 'excluded' WHEN ready_at <= :now::bigint THEN 'ready' WHEN num_nonnulls(owner) = 1 THEN 'leased'
    WHEN pending = 0 OR capped THEN 'idle' ELSE 'waiting' END

-- fragment: lasting_delay
-- The delay between visits to a domain, as policy/pacing.py makes it of its columns. A test compares them.
greatest(:delay::bigint, crawl_delay, backoff,
    CASE WHEN failures > 0
    THEN least(86400000, greatest(:delay::bigint, crawl_delay, 100) * (1 << least(failures - 1, 20))) ELSE 0 END,
    CASE WHEN repeats > 500
    THEN trunc(greatest(:delay::bigint, crawl_delay) * least(10.0, 0.5 / greatest(1.0 - repeats / 1000.0, 0.001)))::bigint
    ELSE 0 END)

-- fragment: queue_columns
domain, priority, position, url, depth, attempts, is_robots, seed IS NOT NULL, reason

-- fragment: is_listed
-- frontier.domain_list: the domains of a query.
(:search::text = '' OR strpos(name, :search::text) > 0)
    AND CASE :only::text WHEN '' THEN true WHEN 'failing' THEN failing AND ready_at IS NOT NULL WHEN 'capped' THEN capped
    ELSE {domain_state} = :only::text END
    AND CASE :by::text WHEN 'overdue' THEN ready_at <= :now::bigint WHEN 'next' THEN ready_at IS NOT NULL ELSE true END

-- fragment: list_key
-- frontier.domain_list.DomainOrder: the smallest comes first.
CASE :by::text WHEN 'pending' THEN -pending WHEN 'failures' THEN -failures WHEN 'pages' THEN -stored
    WHEN 'delay' THEN -{lasting_delay} ELSE ready_at END

-- fragment: head_url
-- The first pending URL of each domain of a batch, without suspects.
LEFT JOIN LATERAL (
    SELECT priority, position FROM url
    WHERE url.domain = e.id AND state = 0 AND priority < :suspect::integer
    ORDER BY priority, position
    LIMIT 1
) AS u ON true

-- fragment: url_columns
fingerprint, url, depth, hops, attempts, assume_https, priority, position, sitemap_of, is_robots

-- fragment: troubled
-- The condition of the index url_troubled, word for word.
(state = 3 OR state = 0 AND priority >= 1048576)

-- fragment: known_url
-- `domain` is d, `url` is u.
u.domain, u.fingerprint, u.url, u.state, u.reason, u.attempts, u.assume_https, u.seed,
    u.state = 0 AND u.priority IN (1048576, 1048577), coalesce(d.stored, 0)

-- fragment: request_rows
SELECT {request_columns}, machine FROM request

-- fragment: lease_clock
-- :latest, :earliest: the limits of the time that the claiming process knows. A server's clock that was set forward
-- must not make a domain due early, and one that was set back must not let a lease end early. :ceiling is the latest
-- again, once it is certain, for times that are written: a time that is written too late stalls the domain.
-- lock_timeout: SKIP LOCKED does wait if a row was updated, that update has just committed, and its successor is being
-- updated again. PostgreSQL then follows the chain and locks the successor. The transaction that holds it may want a
-- row that this claim has locked. The claim gives up before PostgreSQL reports a deadlock, and is repeated.
clock AS MATERIALIZED (
    SELECT least(read, :latest::bigint) AS due_until,
        least(greatest(read, :earliest::bigint), :ceiling::bigint) AS now,
        greatest(least(read, :latest::bigint), :earliest::bigint) AS likely, set_config('lock_timeout', '200ms', true)
    FROM (SELECT clock_ms() AS read OFFSET 0) AS server
)

-- fragment: due_in_order
-- :bound: old versions of claimed rows pile up at the low end of the index until vacuum removes them, which any old
-- snapshot delays. Without a lower bound, every claim would walk over them (claim_floor.py).
ready_at >= :bound::bigint AND ready_at <= (SELECT due_until FROM clock)
    ORDER BY ready_at
    LIMIT :limit::bigint
    FOR NO KEY UPDATE SKIP LOCKED

-- fragment: lease_due
-- Both times cover the visit and the delay after it. A crash at any point can then not shorten a delay, and a lost
-- lease comes back by itself. The row is updated where it was found and not looked up by its key, because the key's
-- index holds old versions too. A row that changed in between is left for later.
UPDATE domain AS d SET
    ready_at   = now + :budget::bigint + {full_delay},
    not_before = now + :budget::bigint + {full_delay},
    token      = nextval('visit_number'),
    owner      = :process::bigint,
    unsettled  = true,
    leases     = leases + 1,
    failing    = false
FROM due CROSS JOIN clock
WHERE d.ctid = due.ctid
RETURNING d.id, d.name, d.crawl_delay, d.backoff, d.failures, d.repeats, d.answered, d.leases, due.ready_at,
    due.not_before, d.token, clock.likely

-- name: lease
-- The domains to lease. The index on ready_at already has the order. The CTE locks rows of the table, and skips rows
-- that another claim has locked.
WITH {lease_clock}, due AS MATERIALIZED (
    SELECT ctid, ready_at, not_before FROM domain
    WHERE {due_in_order}
)
{lease_due};

-- name: lease_fresh
-- The same for domains that were never leased. Their index also collects old versions and has a bound of its own.
WITH {lease_clock}, due AS MATERIALIZED (
    SELECT ctid, ready_at, not_before FROM domain
    WHERE token = 0 AND {due_in_order}
)
{lease_due};

-- name: lease_responding
-- The same for domains that responded to their last visit, with a bound of its own too.
WITH {lease_clock}, due AS MATERIALIZED (
    SELECT ctid, ready_at, not_before FROM domain
    WHERE answered AND failures = 0 AND {due_in_order}
)
{lease_due};

-- name: lease_among
-- The same for given domains. `+ 0` keeps the planner from the index of due times.
WITH {lease_clock}, due AS MATERIALIZED (
    SELECT ctid, ready_at, not_before FROM domain
    WHERE id = ANY (:domains::bigint[]) AND ready_at + 0 <= (SELECT due_until FROM clock)
    LIMIT :limit::bigint
    FOR NO KEY UPDATE SKIP LOCKED
)
{lease_due};

-- name: rest
-- Leases that end at once, because their domains rest at the beginning of an era. Rescheduled next. The rows are locked.
UPDATE domain AS d SET not_before = e.until, owner = NULL, unsettled = false
FROM unnest(:domains::bigint[], :until::bigint[]) AS e (id, until)
WHERE d.id = e.id;

-- name: lease_suspect
-- The same for a domain with a suspect that is due. There are few suspects, if any.
WITH {lease_clock}, due AS MATERIALIZED (
    SELECT d.ctid, d.not_before AS ready_at, d.not_before
    FROM (SELECT domain FROM url WHERE {suspected} AND position <= (SELECT due_until FROM clock)) AS u
    JOIN domain AS d ON d.id = u.domain
    WHERE d.not_before <= (SELECT due_until FROM clock) AND NOT d.capped AND NOT d.excluded
    LIMIT :limit::bigint
    FOR NO KEY UPDATE OF d SKIP LOCKED
)
{lease_due};

-- name: suspect_of
-- The suspect of a leased domain that has waited longest.
SELECT domain, {url_columns} FROM url
WHERE domain = :domain::bigint AND {suspected} AND position <= :now::bigint
ORDER BY position LIMIT 1;

-- name: lock_suspected
-- Locks the domains with a suspect that is due and that ordinary claims may take, in id order.
SELECT d.id FROM (SELECT domain FROM url WHERE {suspected} AND position <= (SELECT clock_ms())) AS u
JOIN domain AS d ON d.id = u.domain
WHERE num_nonnulls(d.owner) = 0 AND num_nonnulls(d.ready_at) = 1 AND NOT {leaves_alone}
ORDER BY d.id
FOR NO KEY UPDATE OF d;

-- name: reserve_domains
-- Keeps ordinary claims away from locked domains.
UPDATE domain AS d SET ready_at = NULL
FROM unnest(:domains::bigint[]) AS e (id)
WHERE d.id = e.id;

-- name: next_suspect
-- When a suspect may be tried. Those that a crawl does not wait for count only if they are due within this time.
SELECT min(due) - min(now) FROM (
    SELECT now, greatest(u.position, d.not_before) AS due,
        (u.priority % :classes::integer = 0 OR u.position <= now) AND NOT {leaves_alone} AS is_worth_waiting
    FROM {server_clock}
    CROSS JOIN (SELECT domain, priority, position FROM url WHERE {suspected}) AS u
    JOIN domain AS d ON d.id = u.domain
    WHERE NOT d.capped AND NOT d.excluded
) AS suspect
WHERE is_worth_waiting OR due <= now + :within::bigint;

-- name: head_urls
-- The first due URLs of each domain. Each class (normal, retried, waiting for a failing origin, foreign) is read
-- separately, so that ten thousand URLs that are not due yet are never walked over. Foreign URLs come before the others
-- or after them: one of :foreign_before and :foreign_after is such that the class is empty. This is a statement of its
-- own, after the lease: a single statement would read the URLs from a snapshot older than the row it locked, and return
-- URLs that were settled since.
SELECT d.id, u.*
FROM unnest(:domains::bigint[], :foreign_before::integer[], :foreign_after::integer[])
    AS d (id, foreign_before, foreign_after)
CROSS JOIN LATERAL (
    (SELECT {url_columns} FROM url
     WHERE domain = d.id AND state = 0 AND priority >= d.foreign_before AND priority < :retried::integer
     ORDER BY priority, position LIMIT :limit::bigint)
    UNION ALL
    (SELECT {url_columns} FROM url
     WHERE domain = d.id AND state = 0 AND priority < :foreign::integer
     ORDER BY priority, position LIMIT :limit::bigint)
    UNION ALL
    (SELECT {url_columns} FROM url
     WHERE domain = d.id AND state = 0 AND priority = :retried::integer AND position <= :now::bigint
     ORDER BY position LIMIT :limit::bigint)
    UNION ALL
    (SELECT {url_columns} FROM url
     WHERE domain = d.id AND state = 0 AND priority = :held::integer AND position <= :now::bigint
     ORDER BY position LIMIT :limit::bigint)
    UNION ALL
    (SELECT {url_columns} FROM url
     WHERE domain = d.id AND state = 0 AND priority >= d.foreign_after AND priority < :retried::integer
     ORDER BY priority, position LIMIT :limit::bigint)
    LIMIT :limit::bigint
) AS u;

-- name: more_urls
-- More due URLs of one domain, after a position in its order.
SELECT domain, {url_columns}
FROM url
WHERE domain = :domain::bigint AND state = 0
    AND (priority, position) > (:priority::integer, :position::bigint) AND priority < :suspect::integer
    AND (priority < :retried::integer OR position <= (SELECT clock_ms()))
ORDER BY priority, position
LIMIT :limit::bigint;

-- name: lock_leases
-- The leases that are still valid, and those that an exclusion took away. Locked in id order: two settles, or a settle
-- and an add, that share domains wait for each other but never in a circle. num_nonnulls keeps the planner from reading
-- the index of all leases once per row of the batch.
SELECT d.token, num_nonnulls(d.owner) = 1
FROM unnest(:domains::bigint[], :tokens::bigint[]) AS e (id, token)
JOIN domain AS d ON d.id = e.id
WHERE d.token = e.token AND (num_nonnulls(d.owner) = 1 OR d.unsettled)
ORDER BY d.id
FOR NO KEY UPDATE OF d;

-- name: settle_urls
-- Only pending URLs change, so a settle may be repeated. `+ 0` keeps the planner from the index of pending URLs: it
-- takes that for small while the table is empty, and would then read it from end to end.
UPDATE url AS u SET state = e.state, reason = e.reason, visit = e.visit
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :states::smallint[], :reasons::text[], :visits::bigint[])
    AS e (domain, fingerprint, state, reason, visit)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 0
RETURNING u.domain, u.state;

-- name: defer_urls
-- Without a reason the last one stays. A suspect stays a suspect: its priority is one of the same two classes, as often
-- as it has been suspected.
UPDATE url AS u SET
    priority = e.priority + greatest(0, (u.priority - :retried::integer) / :classes::integer * :classes::integer),
    position = (SELECT {now}) + e.wait,
    attempts = e.attempts,
    reason   = CASE WHEN e.reason = '' THEN u.reason ELSE e.reason END
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :priorities::integer[], :waits::bigint[],
    :attempts::integer[], :reasons::text[])
    AS e (domain, fingerprint, priority, wait, attempts, reason)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 0;

-- name: close_leases
-- Ends leases whose rows are locked. A single update, because each one leaves an old row version behind. It runs after
-- the URLs were settled, so that the head it finds is the next one. ready_at is NULL if nothing is pending: an add
-- raises the count in the row under the same lock, so no new URL is overlooked.
WITH {clock}, e AS MATERIALIZED (
    SELECT e.*, now, u.priority, u.position
    FROM unnest(:domain::bigint[], :settled::integer[], :requested::boolean[], :since_finish::bigint[],
        :pages::integer[], :pause::bigint[], :backoff::bigint[], :failures::integer[], :repeats::smallint[],
        :answered::boolean[])
        AS e (id, settled, requested, since_finish, pages, pause, backoff, failures, repeats, answered)
    CROSS JOIN clock
    {head_url}
)
UPDATE domain AS d SET
    pending     = d.pending - e.settled,
    not_before  = {free_at},
    backoff     = e.backoff,
    failures    = e.failures,
    repeats     = e.repeats,
    answered    = e.answered,
    owner       = NULL,
    unsettled   = false,
    pages       = {pages_in_epoch},
    pages_epoch = :epoch::integer,
    stored      = d.stored + e.pages,
    capped      = coalesce({pages_in_epoch} >= :cap::integer, false),
    failing     = coalesce(e.priority = :held::integer OR e.failures >= :leaving::integer
        OR d.crawl_delay > :alone::bigint, false),
    ready_at    = CASE
        WHEN e.priority IS NULL OR d.excluded OR {pages_in_epoch} >= :cap::integer THEN NULL
        ELSE greatest({free_at}, CASE WHEN e.priority >= :retried::integer THEN e.position END) END
FROM e
WHERE d.id = e.id
RETURNING d.id, d.pending, d.crawl_delay;

-- name: end_late
-- Visits that lost their lease because their domain was excluded. The delay counts from the end of the visit. The rows
-- are locked, and no other visit has begun since.
WITH {clock}
UPDATE domain AS d SET
    not_before = {free_at},
    unsettled  = false
FROM unnest(:domains::bigint[], :requested::boolean[], :since_finish::bigint[], :pauses::bigint[])
    AS e (id, requested, since_finish, pause) CROSS JOIN clock
WHERE d.id = e.id;

-- name: suspect_urls
-- Makes pending URLs suspects that may be tried alone from now on. Their domains are locked. A death that is evidence
-- counts once, even if this is repeated, because it names the deaths before it.
UPDATE url AS u SET position = (SELECT {now}), reason = :reason::text,
    priority = CASE
        WHEN u.priority < :suspect::integer THEN :suspect::integer
        WHEN (u.priority - :suspect::integer) / :classes::integer = e.deaths THEN u.priority + :classes::integer
        ELSE u.priority END
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :deaths::integer[]) AS e (domain, fingerprint, deaths)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 0
RETURNING u.domain, u.fingerprint, u.url, u.priority;

-- name: end_forgotten
-- Visits that the database does not know, because it has lost their claims. Nothing happens to a domain that was leased
-- again since. The rows are locked.
WITH {clock}
UPDATE domain AS d SET
    not_before = greatest(d.not_before, {free_at}),
    ready_at   = CASE WHEN d.ready_at IS NOT NULL THEN greatest(d.ready_at, {free_at}) END
FROM unnest(:domains::bigint[], :tokens::bigint[], :requested::boolean[], :since_finish::bigint[], :pauses::bigint[])
    AS e (id, token, requested, since_finish, pause) CROSS JOIN clock
WHERE d.id = e.id AND d.token < e.token;

-- name: insert_requests
-- Only the location of a page ever changes afterwards.
INSERT INTO request ({request_columns}, machine)
SELECT *, :machine::integer
FROM unnest({request_arrays})
ON CONFLICT DO NOTHING
RETURNING kind, size, error;

-- name: insert_samples
INSERT INTO sample (machine, ended, step, seconds, pages, visits, requests, errors, bytes, in_flight, pending, figures)
SELECT * FROM unnest(:machine::integer[], :ended::bigint[], :step::integer[], :seconds::double precision[],
    :pages::bigint[], :visits::bigint[], :requests::bigint[], :errors::bigint[], :bytes::bigint[],
    :in_flight::double precision[], :pending::bigint[], :figures::bytea[])
ON CONFLICT DO NOTHING;

-- name: samples_after
-- The last sample that is read ends at :until.
SELECT ended, machine, step, seconds, figures FROM sample
WHERE (ended, machine, step) > (:ended::bigint, :machine::integer, :step::integer) AND ended <= :until::bigint
ORDER BY ended, machine, step LIMIT :limit::bigint;

-- name: latest_samples
-- The latest sample of each machine. The comparison of rows keeps the planner from the index of all times, in which it
-- would walk over all samples since a machine that is gone took its last one.
SELECT s.ended, s.machine, s.step, s.seconds, s.figures
FROM machine AS m CROSS JOIN LATERAL (
    SELECT * FROM sample WHERE (sample.machine, ended) < (m.id + 1, 0)
    ORDER BY sample.machine DESC, ended DESC LIMIT 1) AS s
WHERE s.machine = m.id;

-- name: oldest_sample
-- When the oldest sample of a step ended.
SELECT ended FROM sample WHERE step = :step::integer ORDER BY ended LIMIT 1;

-- name: take_samples
-- Deletes the samples of a step that ended after :after and until :until, and returns them. Of two processes that take
-- the same, the second one waits for the first and finds none.
DELETE FROM sample WHERE step = :step::integer AND ended > :after::bigint AND ended <= :until::bigint
RETURNING ended, machine, step, seconds, figures;

-- name: insert_contents
-- The first process to store a text wins. A second copy that was stored at the same time stays unused. The rows arrive
-- sorted, because two processes that store the same texts wait for each other here.
INSERT INTO content (hash, sha1_64, domain, visit, file, "offset", length, machine)
SELECT *, :machine::integer
FROM unnest(:hashes::bigint[], :sha1_64::bigint[], :domains::bigint[], :visits::bigint[], :files::text[],
    :offsets::bigint[], :lengths::bigint[])
ON CONFLICT DO NOTHING;

-- name: known_contents
-- Includes the URL and the time of the page that the stored record names.
SELECT c.hash, c.sha1_64, c.domain, c.visit, c.file, c."offset", c.length, r.url, r.started, c.machine
FROM unnest(:hashes::bigint[]) AS e (hash)
JOIN content AS c ON c.hash = e.hash
JOIN request AS r ON r.visit = c.visit AND r.content_hash = c.hash AND r.kind = 'page';

-- fragment: new_priority
least(e.depth + coalesce(e.penalty, 0), :foreign::integer - 1) + CASE WHEN e.is_foreign THEN :foreign::integer ELSE 0 END

-- fragment: insert_unseen
-- An anti-join drops the known URLs without writing anything. The rest is inserted in key order: two adders with the
-- same new URLs wait for each other, but never in a circle. A column of zeros or empty texts arrives as an empty array,
-- which unnest fills with NULL.
WITH first AS MATERIALIZED (
    SELECT nextval('add_number') * :urls_per_add::bigint AS position
), inserted AS (
    INSERT INTO url (domain, fingerprint, url, priority, position, depth, hops, assume_https, sitemap_of, seed)
    SELECT DISTINCT ON (e.domain, e.fingerprint)
        e.domain, e.fingerprint, e.url, {new_priority},
        first.position + e.number, e.depth, coalesce(e.hops, 0), coalesce(e.assume_https, false),
        coalesce(e.sitemap_of, ''), CASE WHEN :as_seeds::boolean THEN first.position + e.number END
    FROM unnest(:domains::bigint[], :fingerprints::bigint[], :urls::text[], :depths::integer[], :hops::integer[],
        :assume_https::boolean[], :sitemaps_of::text[], :penalties::integer[], :are_foreign::boolean[])
        WITH ORDINALITY
        AS e (domain, fingerprint, url, depth, hops, assume_https, sitemap_of, penalty, is_foreign, number)
    CROSS JOIN first
    WHERE NOT EXISTS (SELECT FROM url AS u WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint)
    ORDER BY e.domain, e.fingerprint, {new_priority}, e.depth

-- fragment: inserted_by_domain
    RETURNING domain
)
SELECT domain, count(*) FROM inserted GROUP BY domain

-- name: insert_urls
-- Returns the number of new URLs by domain. Fails if another transaction inserts one of the same URLs; the add is then
-- repeated as insert_urls_beside. A conflict is rare, and being ready for one makes every row an eighth dearer.
{insert_unseen}
{inserted_by_domain};

-- name: insert_urls_beside
-- The same while another transaction inserts some of the same URLs: the second one waits, and skips those.
{insert_unseen}
    ON CONFLICT DO NOTHING
{inserted_by_domain};

-- name: foreign_urls
-- Some of the pending foreign URLs of each domain.
SELECT e.id, u.fingerprint FROM unnest(:domains::bigint[]) AS e (id)
CROSS JOIN LATERAL (
    SELECT fingerprint FROM url
    WHERE domain = e.id AND state = 0 AND priority >= :foreign::integer AND priority < :retried::integer
    ORDER BY priority, position
    LIMIT :limit::bigint
) AS u;

-- name: adopt_urls
-- Pending foreign URLs that their own domain names now. Their domains are locked.
UPDATE url AS u SET
    priority   = least(u.priority - :foreign::integer, e.priority),
    depth      = least(u.depth, e.depth),
    hops       = least(u.hops, e.hops),
    sitemap_of = e.sitemap_of
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :priorities::integer[], :depths::integer[], :hops::integer[],
    :sitemaps_of::text[])
    AS e (domain, fingerprint, priority, depth, hops, sitemap_of)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 0
    AND u.priority + 0 >= :foreign::integer AND u.priority + 0 < :retried::integer;

-- name: raise_pending
-- Creates or locks each domain in id order and adds the number of URLs that were really inserted. An idle domain is
-- woken, but not before its politeness clock. A domain that only waits for a retry is moved forward. A leased domain
-- has ready_at = not_before and stays. This comes after the URLs, because a claim skips a domain while it is locked
-- here. xmax is 0 in a row version that was inserted and not updated.
WITH clock AS MATERIALIZED (
    SELECT least(clock_ms(), :ceiling::bigint) AS now
)
INSERT INTO domain AS d (id, name, pending, ready_at, address_group)
SELECT e.id, e.name, e.unseen, now, coalesce(e.address_group, '')
FROM unnest(:domains::bigint[], :names::text[], :unseen::integer[], :address_groups::text[])
    AS e (id, name, unseen, address_group)
CROSS JOIN clock
ORDER BY e.id
ON CONFLICT (id) DO UPDATE SET
    pending  = d.pending + excluded.pending,
    failing  = d.owner IS NULL AND (d.failures >= :leaving::integer OR d.crawl_delay > :alone::bigint)
        OR d.failing AND (d.capped OR d.excluded),
    ready_at = CASE WHEN d.capped OR d.excluded THEN NULL
        ELSE least(d.ready_at, greatest(excluded.ready_at, d.not_before)) END
RETURNING d.id, d.pending, d.xmax = 0 AS is_new, d.excluded, d.crawl_delay, d.repeats, d.name;

-- fragment: worst_urls
-- The worst URLs of domains that are over their budget, from the end of their order: foreign ones first. Seeds have
-- priority 0, which is never trimmed: there may be any number of them. Nor are sitemaps that the domain itself names.
WITH worst AS MATERIALIZED (
    SELECT e.domain, u.fingerprint
    FROM unnest(:domains::bigint[], :excess::integer[]) AS e (domain, excess)
    CROSS JOIN LATERAL (
        SELECT fingerprint FROM url
        WHERE domain = e.domain AND state = 0 AND priority > 0 AND priority < :retried::integer AND depth > 0
            AND (sitemap_of = '' OR priority >= :foreign::integer) AND fingerprint <> ALL (:exempt::bigint[])
        ORDER BY priority DESC, position DESC
        LIMIT e.excess
    ) AS u
)

-- name: trim
-- The domains are locked, so no other transaction changes or deletes their URLs, and URLs that another add has inserted
-- are neither visible nor counted yet. An add that inserts one of these URLs again waits for our commit at worst, and
-- holds no domain while it waits. xmin is ours if this add inserted the URL.
{worst_urls}
DELETE FROM url AS u USING worst AS w
WHERE u.domain = w.domain AND u.fingerprint = w.fingerprint AND u.state + 0 = 0
RETURNING u.domain, u.fingerprint, u.priority, u.xmin = pg_current_xact_id()::xid;

-- name: count_worst
-- How many URLs trim would delete.
{worst_urls}
SELECT count(*) FROM worst;

-- name: lock_crowded
-- Locks the domains after an id that may be over their budget, in slices. Reads the whole table once, when a shorter
-- horizon is given.
SELECT id, pending, crawl_delay, repeats FROM domain
WHERE id > :after::bigint AND pending > :least::integer
ORDER BY id
LIMIT :limit::bigint
FOR NO KEY UPDATE;

-- name: lower_pending
-- Subtracts deleted URLs from domains that are locked. Also returns whether the domain has only retries left and no
-- lease, because then it was woken for nothing. (An EXISTS would build a hash of all pending URLs.)
UPDATE domain AS d SET pending = d.pending - e.fewer
FROM unnest(:domains::bigint[], :fewer::integer[]) AS e (id, fewer)
WHERE d.id = e.id
RETURNING d.id, d.owner IS NULL AND coalesce((
    SELECT priority FROM url WHERE url.domain = d.id AND state = 0
    ORDER BY priority, position
    LIMIT 1) >= :retried::integer, false);

-- name: known_domains
-- The domains that have a URL: with --scope domain, those of the seeds. A robots.txt that others wait for does not count.
-- There are few of those, so the first URL nearly always decides. (An EXISTS would build a hash of all URLs.)
SELECT e.id FROM unnest(:domains::bigint[]) AS e (id)
CROSS JOIN LATERAL (SELECT FROM url WHERE url.domain = e.id AND NOT is_robots LIMIT 1) AS u;

-- name: count_addresses
-- How many domains are addresses of each network, up to a limit. The second condition is that of the index.
SELECT e.name, (
    SELECT count(*) FROM (
        SELECT FROM domain WHERE address_group = e.name AND address_group <> '' LIMIT :limit::bigint) AS known)
FROM unnest(:address_groups::text[]) AS e (name);

-- name: domain_names
-- The names that the rows of these domains belong to.
SELECT d.id, d.name FROM unnest(:domains::bigint[]) AS e (id) JOIN domain AS d ON d.id = e.id;

-- name: count_wanted_robots
SELECT e.id, (SELECT count(*) FROM url WHERE domain = e.id AND is_robots AND state = 0)
FROM unnest(:domains::bigint[]) AS e (id);

-- name: insert_wanted_robots
-- Sorted by key, like insert_urls. Another transaction may insert the same ones.
WITH first AS MATERIALIZED (
    SELECT nextval('add_number') * :urls_per_add::bigint AS position
)
INSERT INTO url (domain, fingerprint, url, priority, position, depth, is_robots)
SELECT e.domain, e.fingerprint, e.url, :priority::integer, first.position + e.number, 0, true
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :urls::text[])
    WITH ORDINALITY AS e (domain, fingerprint, url, number)
CROSS JOIN first
ORDER BY e.domain, e.fingerprint
ON CONFLICT DO NOTHING
RETURNING domain, fingerprint;

-- name: rewant_robots
-- Makes settled ones pending again. Their domains are locked. Returns the state and the reason of each before.
WITH settled AS MATERIALIZED (
    SELECT u.domain, u.fingerprint, u.state, u.reason
    FROM unnest(:domains::bigint[], :fingerprints::bigint[]) AS e (domain, fingerprint)
    JOIN url AS u ON u.domain = e.domain AND u.fingerprint = e.fingerprint
    WHERE u.state + 0 <> 0
), first AS MATERIALIZED (
    SELECT nextval('add_number') * :urls_per_add::bigint AS position
)
UPDATE url AS u SET state = 0, priority = :priority::integer, position = first.position, attempts = 0, reason = '',
    visit = NULL
FROM settled AS s CROSS JOIN first
WHERE u.domain = s.domain AND u.fingerprint = s.fingerprint
RETURNING s.domain, s.state, s.reason;

-- name: url_states
SELECT u.domain, u.fingerprint, u.state
FROM unnest(:domains::bigint[], :fingerprints::bigint[]) AS e (domain, fingerprint)
JOIN url AS u ON u.domain = e.domain AND u.fingerprint = e.fingerprint;

-- name: origins
SELECT o.domain, o.origin, o.status, t.body, o.crawl_delay, o.failures, o.expires_at - now, now - o.fetched_at,
    o.source, o.etag, o.last_modified, o.hops, o.waits_for
FROM {server_clock}
CROSS JOIN unnest(:domains::bigint[], :origins::text[]) AS e (domain, origin)
JOIN origin AS o ON o.domain = e.domain AND o.origin = e.origin
LEFT JOIN robots_text AS t ON t.name = o.robots;

-- name: put_origins
INSERT INTO origin (domain, origin, status, robots, crawl_delay, failures, expires_at, fetched_at, source, etag,
    last_modified, hops, waits_for)
SELECT e.domain, e.origin, e.status, e.robots, e.crawl_delay, e.failures, now + e.valid_for, now, e.source, e.etag,
    e.last_modified, e.hops, e.waits_for
FROM {server_clock}
CROSS JOIN unnest(:domain::bigint[], :origin::text[], :status::text[], :robots::text[], :crawl_delay::bigint[],
    :failures::integer[], :valid_for::bigint[], :source::text[], :etag::text[], :last_modified::text[],
    :hops::integer[], :waits_for::text[])
    AS e (domain, origin, status, robots, crawl_delay, failures, valid_for, source, etag, last_modified, hops, waits_for)
ORDER BY e.domain, e.origin
ON CONFLICT (domain, origin) DO UPDATE SET
    status = excluded.status, robots = excluded.robots, crawl_delay = excluded.crawl_delay,
    failures = excluded.failures, expires_at = excluded.expires_at, fetched_at = excluded.fetched_at,
    source = excluded.source, etag = excluded.etag, last_modified = excluded.last_modified, hops = excluded.hops,
    waits_for = excluded.waits_for;

-- name: save_robots_texts
-- A known text costs nothing. A new one is kept while its domain has room for it. The texts of one batch do not count
-- against each other: a visit brings a handful at most. Sorted by name, because two processes that save the same texts
-- wait for each other here.
INSERT INTO robots_text (name, domain, at, body)
SELECT e.name, e.domain, now, e.body
FROM {server_clock}
CROSS JOIN unnest(:names::text[], :domains::bigint[], :bodies::bytea[]) AS e (name, domain, body)
WHERE length(e.body) + (
    SELECT coalesce(sum(length(t.body)), 0) FROM robots_text AS t
    WHERE t.domain = e.domain AND t.at > now - :day_ms::bigint) <= :most::bigint
ORDER BY e.name
ON CONFLICT DO NOTHING;

-- name: kept_robots_texts
SELECT t.name FROM unnest(:names::text[]) AS e (name) JOIN robots_text AS t ON t.name = e.name;

-- name: robots_text
SELECT body FROM robots_text WHERE name = :name::text;

-- name: lock_domains
-- A statement of its own before one that reads other rows, so that those are as new as the lock.
SELECT d.id, d.token FROM unnest(:domains::bigint[]) AS e (id) JOIN domain AS d ON d.id = e.id
ORDER BY d.id
FOR NO KEY UPDATE OF d;

-- name: lengthen_delays
-- A lease that is out was computed with the old delay. If the new one is longer, both times move by the difference. The
-- page is requested only after this is committed.
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

-- name: pages_and_leases
-- Pages stored and leases that have not expired, in one snapshot: a settle turns one into the other.
SELECT (SELECT coalesce(sum(value), 0)::bigint FROM counter WHERE name = 'urls.done')
    + (SELECT count(*) FROM domain WHERE owner IS NOT NULL AND ready_at + 0 > (SELECT clock_ms()));

-- name: next_due
-- :within: failing domains that are due within this time are waited for too.
SELECT ready_at - (SELECT clock_ms()) FROM domain
WHERE ready_at >= :bound::bigint AND (NOT failing OR ready_at <= (SELECT clock_ms()) + :within::bigint)
ORDER BY ready_at
LIMIT 1;

-- name: last_backoff
-- The last of the failing domains that are due within this time.
SELECT ready_at - (SELECT clock_ms()) FROM domain
WHERE ready_at <= (SELECT clock_ms()) + :within::bigint AND failing
ORDER BY ready_at DESC
LIMIT 1;

-- name: responding
-- Those of the next domains that responded to their last visit.
SELECT id FROM (
    SELECT id, answered, failures FROM domain
    WHERE ready_at >= :bound::bigint
    ORDER BY ready_at
    LIMIT :limit::bigint
) AS next
WHERE answered AND failures = 0;

-- name: responding_due
-- How many domains are due within :within that responded to their last visit, up to a limit.
SELECT count(*) FROM (
    SELECT FROM domain
    WHERE answered AND failures = 0 AND ready_at >= :bound::bigint
        AND ready_at <= (SELECT clock_ms() + :within::bigint OFFSET 0)
    LIMIT :limit::bigint) AS due;

-- name: failing_domains
-- The domains that a crawl does not wait for, each with the error of its last request.
SELECT d.name, d.pending, d.ready_at - (SELECT clock_ms()), (
    SELECT error FROM request AS r WHERE r.domain = d.id ORDER BY visit DESC, seq DESC LIMIT 1)
FROM domain AS d
WHERE d.ready_at >= 0 AND d.failing
ORDER BY d.ready_at
LIMIT :limit::bigint;

-- name: cut_leases
-- Of the leases of dead processes only the delay remains, counted from now. One more, because the clock is truncated.
-- The rows that `postpone` changes next are locked with them, so that all locks are taken in the order of ids.
WITH {clock}, lost AS MATERIALIZED (
    SELECT d.id, d.owner FROM (
        SELECT id FROM domain WHERE owner = ANY (:processes::bigint[])
        UNION
        SELECT unnest(:domains::bigint[])
    ) AS e JOIN domain AS d ON d.id = e.id
    ORDER BY d.id
    FOR NO KEY UPDATE OF d
)
UPDATE domain AS d SET
    ready_at   = CASE WHEN pending > 0 THEN least(ready_at, now + 1 + {full_delay}) END,
    not_before = least(not_before, now + 1 + {full_delay}),
    owner      = NULL
FROM lost CROSS JOIN clock
WHERE d.id = lost.id AND lost.owner = ANY (:processes::bigint[])
RETURNING d.id;

-- name: postpone
-- Applies what a lost visit had learnt, unless another visit has begun since. The rows are locked.
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
-- Domains that had reached the limit of an earlier epoch. They are locked, and rescheduled next.
UPDATE domain AS d SET capped = false
FROM unnest(:domains::bigint[]) AS e (id)
WHERE d.id = e.id;

-- name: lock_to_exclude
-- Creates or locks the domains that are not excluded yet, in id order.
INSERT INTO domain AS d (id, name, excluded)
SELECT e.id, e.name, true FROM unnest(:domains::bigint[], :names::text[]) AS e (id, name)
ORDER BY e.id
ON CONFLICT (id) DO UPDATE SET excluded = false WHERE NOT d.excluded
RETURNING d.id, d.pending, d.xmax = 0 AS is_new;

-- name: exclude_domains
-- Their pending URLs are settled afterwards, in slices.
UPDATE domain AS d SET excluded = true, ready_at = NULL, owner = NULL
FROM unnest(:domains::bigint[]) AS e (id)
WHERE d.id = e.id;

-- name: excluded_with_pending
-- The process that excluded these may have been killed before it had settled all pending URLs.
SELECT d.id FROM unnest(:domains::bigint[]) AS e (id) JOIN domain AS d ON d.id = e.id
WHERE d.excluded AND d.pending > 0;

-- name: include_domains
-- The rows are locked.
UPDATE domain AS d SET excluded = false
FROM unnest(:domains::bigint[]) AS e (id)
WHERE d.id = e.id AND d.excluded
RETURNING d.id, d.pending;

-- name: reschedule
-- Sets ready_at of locked domains to the time at which the first pending URL may be requested. A leased domain keeps
-- its time. The result is never before now, because claims start from a lower bound and would not find it.
WITH head AS MATERIALIZED (
    SELECT e.id, u.priority, u.position
    FROM unnest(:domains::bigint[]) AS e (id)
    {head_url}
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

-- name: pending_from
-- All pending URLs of a domain, due or not, from a position in its order on.
SELECT fingerprint, url, priority, position, depth, NOT is_robots AND sitemap_of = '' FROM url
WHERE domain = :domain::bigint AND state = 0 AND (priority, position) >= (:priority::integer, :position::bigint)
ORDER BY priority, position
LIMIT :limit::bigint;

-- name: blocked_after
-- The URLs of a domain after a fingerprint, and why each of them is blocked, '' if it is not.
SELECT fingerprint, url, depth, CASE WHEN state = 2 THEN reason ELSE '' END FROM url
WHERE domain = :domain::bigint AND fingerprint > :fingerprint::bigint
ORDER BY fingerprint
LIMIT :limit::bigint;

-- name: reopen_urls
UPDATE url AS u SET state = 0, reason = '', visit = NULL
FROM unnest(:domains::bigint[], :fingerprints::bigint[]) AS e (domain, fingerprint)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = 2 AND u.reason = :reason::text
RETURNING u.domain;

-- name: next_add_number
SELECT nextval('add_number');

-- name: mark_seeds
-- URLs that were known before they were given as seeds. They come first from now on, like all seeds, and are never
-- deleted for lack of room. Their domains are locked.
UPDATE url AS u SET seed = e.number, depth = 0,
    priority = CASE WHEN u.priority < :retried::integer THEN 0 ELSE u.priority END
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :numbers::bigint[]) AS e (domain, fingerprint, number)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND num_nonnulls(u.seed) = 0
RETURNING u.domain;

-- name: seeds_after
-- All seeds in the order in which they were given, in slices.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE u.seed > :seed::bigint ORDER BY u.seed LIMIT :limit::bigint;

-- name: roots
-- The pages of depth 0 of these domains, and whether each is a seed.
-- (OFFSET 0 keeps the planner from reading the whole index while it is small.)
SELECT e.id, u.url, u.is_seed FROM unnest(:domains::bigint[]) AS e (id)
CROSS JOIN LATERAL (
    SELECT url, seed IS NOT NULL AS is_seed FROM url
    WHERE url.domain = e.id AND depth = 0 AND NOT is_robots AND sitemap_of = '' OFFSET 0
) AS u;

-- name: known_urls
SELECT {known_url} FROM unnest(:domains::bigint[], :fingerprints::bigint[]) AS e (domain, fingerprint)
JOIN url AS u ON u.domain = e.domain AND u.fingerprint = e.fingerprint
LEFT JOIN domain AS d ON d.id = u.domain;

-- name: urls_after
-- All URLs after a key, in slices.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE (u.domain, u.fingerprint) > (:domain::bigint, :fingerprint::bigint)
ORDER BY u.domain, u.fingerprint LIMIT :limit::bigint;

-- name: troubled_after
-- URLs that failed or wait for a retry, after a key, in slices.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE {troubled} AND (u.domain, u.fingerprint) > (:domain::bigint, :fingerprint::bigint)
ORDER BY u.domain, u.fingerprint LIMIT :limit::bigint;

-- name: troubled_of_domain
-- The same for one domain.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE {troubled} AND u.domain = :domain::bigint AND u.fingerprint > :fingerprint::bigint
ORDER BY u.domain, u.fingerprint LIMIT :limit::bigint;

-- name: retry_urls
-- URLs in this state become pending and come first, like seeds. Of pending URLs, only those that wait for a retry
-- change, and no suspects. Their domains are locked.
UPDATE url AS u SET state = 0, reason = '', visit = NULL, attempts = 0, priority = 0, position = e.position
FROM unnest(:domains::bigint[], :fingerprints::bigint[], :positions::bigint[]) AS e (domain, fingerprint, position)
WHERE u.domain = e.domain AND u.fingerprint = e.fingerprint AND u.state + 0 = :state::integer
    AND (u.state + 0 <> 0 OR u.priority >= :retried::integer AND u.priority < :suspect::integer)
RETURNING u.domain;

-- name: retry_domains
-- Failed visits of these locked domains no longer count, so the pause that they led to ends. The delay of the operator,
-- the Crawl-delay and the back-off stay, counted from now. One more, because the clock is truncated.
WITH {clock}
UPDATE domain AS d SET
    pending    = d.pending + e.more,
    not_before = CASE WHEN d.failures > 0 AND num_nonnulls(d.owner) = 0
                 THEN least(d.not_before, now + 1 + {full_delay}) ELSE d.not_before END,
    failures   = 0
FROM unnest(:domains::bigint[], :more::integer[]) AS e (id, more) CROSS JOIN clock
WHERE d.id = e.id
RETURNING d.id, d.pending, d.excluded;

-- name: retry_origins
-- A robots.txt that could not be fetched is requested again at the next visit. This comes before the domains are locked,
-- as in put_origins.
UPDATE origin AS o SET expires_at = least(o.expires_at, (SELECT clock_ms())), failures = 0
FROM unnest(:domains::bigint[]) AS e (domain)
WHERE o.domain = e.domain AND o.status = 'unreachable';

-- name: begin_retry
INSERT INTO retry (at, ended, wall, who, error, status, domain, domain_name, only_seeds, source, delay)
SELECT now, now, :wall::double precision, :who::text, :error::text, :status::integer, :domain::bigint,
    :domain_name::text, :only_seeds::boolean, :source::text, :delay::bigint
FROM {server_clock}
RETURNING id;

-- name: count_retried
UPDATE retry SET urls = urls + :urls::bigint, ended = clock_ms() WHERE id = :id::bigint;

-- name: retries
SELECT id, at, ended, wall, who, urls, delay, error, status, domain, domain_name, only_seeds, source
FROM retry ORDER BY id;

-- name: add_to_pending
-- The row is locked.
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

-- name: oldest_lease
SELECT min(token) FROM domain WHERE owner IS NOT NULL;

-- name: count_capped
-- Capped domains with pending URLs, which the counter of active domains includes.
SELECT count(*) FROM domain WHERE capped AND pending > 0 AND NOT excluded;

-- name: this_machine
INSERT INTO machine (key, host, path) VALUES (:key::text, :host::text, :path::text)
ON CONFLICT (key) DO UPDATE SET host = excluded.host, path = excluded.path
RETURNING id;

-- name: same_machine_elsewhere
-- A copy of a data directory has the same key as the original.
SELECT m.host, m.path FROM machine AS m JOIN process AS p ON p.machine = m.id
WHERE m.key = :key::text AND (m.host, m.path) <> (:host::text, :path::text)
    AND NOT p.has_left AND p.seen > clock_ms() - :gone_after_ms::bigint
LIMIT 1;

-- name: machines
SELECT id, key, host, path FROM machine;

-- name: begin_run
INSERT INTO run (started, wall) VALUES (clock_ms(), :wall::double precision) RETURNING id;

-- name: begin_process
INSERT INTO process (run, machine, pid, started, seen)
SELECT :run::bigint, :machine::integer, :pid::integer, now, now FROM {server_clock}
RETURNING id;

-- name: note_alive
UPDATE process SET seen = clock_ms(), pages = :pages::bigint, pages_per_s = :pages_per_s::real,
    in_flight = :in_flight::integer, at_once = :at_once::integer, held_by = :held_by::text,
    paused = :paused::boolean, has_left = :has_left::boolean
WHERE id = :process::bigint;

-- name: runs
SELECT r.id, r.started, greatest(r.started, max(p.seen)), r.wall
FROM run AS r LEFT JOIN process AS p ON p.run = r.id
GROUP BY r.id ORDER BY r.id;

-- name: participants
SELECT m.key, m.host, m.path, p.id, p.pid, p.has_left, p.paused, p.pages, p.pages_per_s, p.in_flight,
    p.at_once, p.held_by, (now - p.started) / 1000.0::double precision, (now - p.seen) / 1000.0::double precision
FROM process AS p JOIN machine AS m ON m.id = p.machine CROSS JOIN {server_clock}
ORDER BY p.id;

-- name: get_meta
SELECT value FROM meta WHERE key = :key::text;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (:key::text, :value::text) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: identify
INSERT INTO meta (key, value) VALUES ('identity', :identity::text) ON CONFLICT DO NOTHING;

-- name: keep_secret
-- The first one stays, whichever machine saves it.
INSERT INTO meta (key, value) VALUES ('secret', :secret::text) ON CONFLICT DO NOTHING;

-- name: revise
INSERT INTO meta (key, value) VALUES ('revision', '1')
ON CONFLICT (key) DO UPDATE SET value = (meta.value::bigint + 1)::text;

-- name: seed_sources
-- The last two columns: whether this node has the copy of the file, and whether the node that has it is gone.
SELECT s.id, s.path, s.name, s."offset", s.lines, s.good, s.bad, s.unseen, s.retried, s.refused, s.finished,
    s.machine = :machine::integer,
    s.machine <> :machine::integer AND NOT EXISTS (
        SELECT FROM process AS p
        WHERE p.machine = s.machine AND NOT p.has_left AND p.seen > clock_ms() - :gone_after_ms::bigint)
FROM seed_source AS s ORDER BY s.id;

-- name: add_seed_source
INSERT INTO seed_source (machine, path, name) VALUES (:machine::integer, :path::text, :name::text) RETURNING id;

-- name: update_seed_source
UPDATE seed_source SET "offset" = :offset::bigint, lines = :lines::bigint, good = :good::bigint, bad = :bad::bigint,
    unseen = :unseen::bigint, retried = :retried::bigint, refused = :refused::bigint, finished = :finished::boolean
WHERE id = :id::integer;

-- name: url_record
SELECT domain, fingerprint, url, state, depth, attempts, reason, visit, num_nonnulls(seed) = 1
FROM url WHERE domain = :domain::bigint AND fingerprint = :fingerprint::bigint;

-- name: requests_of_visit
{request_rows} WHERE visit = :visit::bigint ORDER BY seq;

-- name: requests_before
-- Newest first, in slices.
{request_rows} WHERE (visit, seq) < (:visit::bigint, :seq::smallint) ORDER BY visit DESC, seq DESC LIMIT :limit::bigint;

-- name: requests_after
-- Oldest first, in slices.
{request_rows} WHERE (visit, seq) > (:visit::bigint, :seq::smallint) ORDER BY visit, seq LIMIT :limit::bigint;

-- name: requests_of_domain_before
-- The visits to one domain, newest first, in slices.
{request_rows} WHERE domain = :domain::bigint AND (visit, seq) < (:visit::bigint, :seq::smallint)
ORDER BY visit DESC, seq DESC LIMIT :limit::bigint;

-- name: requests_of_domain
-- The visits to one domain, in slices.
{request_rows} WHERE domain = :domain::bigint AND (visit, seq) > (:visit::bigint, :seq::smallint)
ORDER BY visit, seq LIMIT :limit::bigint;

-- name: ledger
-- The whole ledger, domain by domain, in slices.
{request_rows} WHERE (domain, visit, seq) > (:domain::bigint, :visit::bigint, :seq::smallint)
ORDER BY domain, visit, seq LIMIT :limit::bigint;

-- name: copies
-- The pages whose text is stored once under this hash, in slices.
{request_rows} WHERE content_hash = :hash::bigint AND is_copy AND (visit, seq) > (:visit::bigint, :seq::smallint)
ORDER BY visit, seq LIMIT :limit::bigint;

-- name: copy_counts
-- How many pages have a text that is stored as another page's.
SELECT e.hash, (SELECT count(*) FROM request WHERE content_hash = e.hash AND is_copy)
FROM unnest(:hashes::bigint[]) AS e (hash);

-- name: depths
SELECT u.domain, u.fingerprint, u.depth FROM unnest(:domains::bigint[], :fingerprints::bigint[]) AS e (domain, fingerprint)
JOIN url AS u ON u.domain = e.domain AND u.fingerprint = e.fingerprint;

-- name: relocate_pages
-- After a purge.
UPDATE request AS r SET text_file = e.text_file, text_offset = e.text_offset, text_length = e.text_length,
    raw_file = e.raw_file, raw_offset = e.raw_offset, raw_length = e.raw_length, is_copy = e.is_copy
FROM unnest(:visit::bigint[], :seq::smallint[], :text_file::text[], :text_offset::bigint[], :text_length::bigint[],
    :raw_file::text[], :raw_offset::bigint[], :raw_length::bigint[], :is_copy::boolean[])
    AS e (visit, seq, text_file, text_offset, text_length, raw_file, raw_offset, raw_length, is_copy)
WHERE r.visit = e.visit AND r.seq = e.seq;

-- name: forget_titles
-- For a purge.
UPDATE request AS r SET title = ''
FROM unnest(:visits::bigint[], :seqs::smallint[]) AS e (visit, seq)
WHERE r.visit = e.visit AND r.seq = e.seq;

-- name: relocate_contents
-- Skips texts that are no longer at the old location on this node.
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
SELECT id, name, ready_at - now, not_before - now, crawl_delay, backoff, failures, repeats, answered, pending,
    owner IS NOT NULL, excluded, capped,
    coalesce((SELECT true FROM url WHERE url.domain = :id::bigint AND NOT is_robots LIMIT 1), false)
FROM {server_clock} CROSS JOIN domain WHERE id = :id::bigint;

-- name: read_clock
SELECT server_ms(), (SELECT value::bigint FROM meta WHERE key = 'clock_amendment');

-- name: amend_clock
SELECT amend_clock(:amendment::bigint);

-- name: advisory_lock
-- One transaction at a time does what `name` says.
SELECT pg_advisory_xact_lock(hashtextextended(:name::text, 0));

-- name: eras
SELECT id, system, timeline, rest_from FROM era ORDER BY number;

-- name: losses
-- When the database came back without its last transactions.
SELECT rest_from FROM era WHERE rest_from IS NOT NULL ORDER BY number;

-- name: visits_given
-- The highest visit number that was given out.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM visit_number;

-- name: begin_era
INSERT INTO era (id, system, timeline, at, rest_from)
SELECT :id::text, :system::text, :timeline::bigint, now, CASE WHEN :rests::boolean THEN now END
FROM (SELECT {now} AS now OFFSET 0) AS clock
RETURNING rest_from;

-- name: jump_numbers
-- The lost past may have given out the next numbers of visits, adds, runs, processes and nodes.
SELECT setval('visit_number', greatest((SELECT last_value FROM visit_number), :visits::bigint) + :jump::bigint),
    setval('add_number', (SELECT last_value FROM add_number) + :jump::bigint),
    setval(pg_get_serial_sequence('run', 'id'), 1000 + nextval(pg_get_serial_sequence('run', 'id'))),
    setval(pg_get_serial_sequence('process', 'id'), 1000 + nextval(pg_get_serial_sequence('process', 'id'))),
    setval(pg_get_serial_sequence('machine', 'id'), 1000 + nextval(pg_get_serial_sequence('machine', 'id')));

-- name: restore_machine
-- The row of this node, if the database has lost it.
INSERT INTO machine (id, key, host, path) OVERRIDING SYSTEM VALUE
VALUES (:id::integer, :key::text, :host::text, :path::text)
ON CONFLICT DO NOTHING;

-- name: restore_run
-- The same for the run of this process.
INSERT INTO run (id, started, wall) VALUES (:id::bigint, clock_ms(), :wall::double precision) ON CONFLICT DO NOTHING;

-- name: restore_process
-- The same for this process.
INSERT INTO process (id, run, machine, pid, started, seen)
SELECT :id::bigint, :run::bigint, :machine::integer, :pid::integer, now, now FROM {server_clock}
ON CONFLICT DO NOTHING;

-- name: is_standby
SELECT pg_is_in_recovery();

-- name: timeline
-- Eight hexadecimal digits. Needs no privilege.
SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);

-- name: system_identifier
SELECT system_identifier::text FROM pg_control_system();

-- name: raise_durability
-- A commit that returns must survive a crash. An operator who asks for more keeps it.
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') <> ALL (ARRAY['on', 'remote_apply']);

-- name: waiting_commits
-- Which of our sessions wait for a synchronous standby.
SELECT pid FROM pg_stat_activity WHERE pid = ANY (:pids::integer[]) AND wait_event = 'SyncRep';

-- name: is_read_only
SELECT current_setting('transaction_read_only') = 'on';

-- name: has_table
SELECT to_regclass(format('%I.%I', :schema::text, :name::text)) IS NOT NULL;

-- name: create_migration_table
CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, fingerprint text NOT NULL);

-- name: note_migration
INSERT INTO migration (number, fingerprint) VALUES (:number::integer, :fingerprint::text);

-- name: schema_version
-- By way of JSON, because the table of an early development version has no column `fingerprint`.
SELECT number, to_jsonb(migration) ->> 'fingerprint' FROM migration ORDER BY number DESC LIMIT 1;

-- name: now
SELECT clock_ms();

-- name: domains_in_slice
-- A slice of all domains. The first row tells where it ends and how many of its domains are listed; the key of that row
-- is NULL. The others are those that may be on the page: after its cursor, and before the worst that was found so far.
WITH slice AS MATERIALIZED (
    SELECT id, :sign::bigint * {list_key} AS key, {is_listed} AS is_listed
    FROM domain WHERE id > :after::bigint ORDER BY id LIMIT :slice::bigint
)
SELECT NULL, max(id), count(*) FILTER (WHERE is_listed) FROM slice
UNION ALL
SELECT key, id, 1 FROM slice
WHERE is_listed AND (key, id) > (:after_key::bigint, :after_id::bigint)
    AND (key, id) < (:worst_key::bigint, :worst_id::bigint);

-- name: domains_by_due
-- Waiting domains in the order in which they are due, after those that were read before.
SELECT ready_at, id FROM domain
WHERE ready_at >= :ready_at::bigint AND ready_at <= :until::bigint
ORDER BY ready_at, failing
LIMIT :limit::bigint OFFSET :skip::bigint;

-- name: listed_domains
-- Domains, each with its last request.
SELECT d.id, d.name, {domain_state}, d.pending, d.stored, d.ready_at - :now::bigint, d.not_before - :now::bigint,
    d.crawl_delay, d.backoff, d.failures, d.repeats, d.answered, d.failing AND d.ready_at IS NOT NULL, d.capped,
    r.error, r.delay, r.delay_from
FROM unnest(:domains::bigint[]) AS e (id)
JOIN domain AS d ON d.id = e.id
LEFT JOIN LATERAL (
    SELECT error, delay, delay_from FROM request WHERE request.domain = d.id ORDER BY visit DESC, seq DESC LIMIT 1
) AS r ON true;

-- name: queued_domains
SELECT d.id, d.name, d.ready_at, d.not_before, d.capped OR d.excluded,
    num_nonnulls(d.owner) = 1 AND d.ready_at > :now::bigint, d.leases, {lasting_delay}
FROM unnest(:domains::bigint[]) AS e (id)
JOIN domain AS d ON d.id = e.id;

-- name: queue_heads
-- The first pending URLs of each domain in a range of priorities, due or not.
SELECT u.*
FROM unnest(:domains::bigint[]) AS d (id)
CROSS JOIN LATERAL (
    SELECT {queue_columns} FROM url
    WHERE domain = d.id AND state = 0 AND priority >= :low::integer AND priority < :below::integer
    ORDER BY priority, position LIMIT :limit::bigint
) AS u;

-- name: queue_more
-- More of one domain, after those that were read before.
SELECT {queue_columns}
FROM url
WHERE domain = :domain::bigint AND state = 0 AND priority >= :low::integer AND priority < :below::integer
ORDER BY priority, position
LIMIT :limit::bigint OFFSET :skip::bigint;

-- name: leased_domains
-- The domains that are being visited.
SELECT id FROM domain WHERE owner IS NOT NULL AND ready_at + 0 > :now::bigint LIMIT :limit::bigint;

-- name: suspected_domains
SELECT domain FROM url WHERE {suspected} LIMIT :limit::bigint;

-- name: sample_urls
-- The domains that are due next, each with its first URL, as parameters of explain_query.
SELECT d.id, d.name, d.token, u.fingerprint, u.url, u.priority, u.position
FROM (SELECT id, name, token FROM domain WHERE ready_at >= 0 ORDER BY ready_at LIMIT :limit::bigint) AS d
CROSS JOIN LATERAL (
    SELECT fingerprint, url, priority, position FROM url
    WHERE url.domain = d.id AND state = 0
    ORDER BY priority, position LIMIT 1
) AS u;

-- name: sample_requests
-- The last requests, as parameters of explain_query.
SELECT visit, seq, coalesce(content_hash, 0), process, robots FROM request
WHERE visit >= 0 ORDER BY visit DESC, seq DESC LIMIT :limit::bigint;

-- name: insert_skipped
-- Sorted by key, so that two settles never wait for each other in a circle.
INSERT INTO skipped (reason, fingerprint, domain, url, page, at)
SELECT e.*, now
FROM {server_clock}
CROSS JOIN unnest(:reasons::text[], :fingerprints::bigint[], :domains::bigint[], :urls::text[], :pages::text[])
    AS e (reason, fingerprint, domain, url, page)
ORDER BY e.reason, e.fingerprint, e.domain
ON CONFLICT DO NOTHING;

-- name: trim_skipped
-- Keeps the :most lowest of a reason.
DELETE FROM skipped WHERE reason = :reason::text AND fingerprint >= (
    SELECT fingerprint FROM skipped WHERE reason = :reason::text ORDER BY fingerprint LIMIT 1 OFFSET :most::bigint);

-- name: skipped_links
SELECT reason, fingerprint, domain, url, page, at FROM skipped ORDER BY reason, fingerprint;

-- name: forget_skipped
DELETE FROM skipped AS s USING unnest(:reasons::text[], :fingerprints::bigint[], :domains::bigint[])
    AS e (reason, fingerprint, domain)
WHERE s.reason = e.reason AND s.fingerprint = e.fingerprint AND s.domain = e.domain;
