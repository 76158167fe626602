-- The queries of the embedded frontier. A batch arrives as one JSON array in :rows, so that a statement is a single
-- call that releases Python's lock while it runs. tests/contract/test_sqlite_plans.py reads the plan of each query and
-- fails on a table scan or a sort.

-- fragment: url_columns
fingerprint, url, depth, hops, attempts, assume_https, priority, position, sitemap_of, is_robots

-- fragment: due_columns
id, name, crawl_delay, backoff, failures, repeats, answered, leases + 1, ready_at, not_before

-- fragment: full_delay
max(:delay, crawl_delay, backoff)

-- fragment: pages_in_epoch
(CASE WHEN pages_epoch = :epoch THEN pages ELSE 0 END) + (e.value ->> 4)

-- fragment: longer_by
-- How much a new Crawl-delay adds to a lease that is out.
CASE WHEN owner IS NULL THEN 0 ELSE max(0, max(:delay, :longest) - max(:delay, crawl_delay)) END

-- fragment: troubled
-- The condition of the index url_troubled, word for word, so that the planner recognises it.
(state = 3 OR state = 0 AND priority >= 1048576)

-- fragment: suspected
-- The condition of the index url_suspect, word for word. Suspects are tried alone, and no ordinary claim takes them.
state = 0 AND priority >= 1048578

-- fragment: known_url
-- `domain` is d, `url` is u.
u.domain, u.fingerprint, u.url, u.state, u.reason, u.attempts, u.assume_https, u.seed,
    u.state = 0 AND u.priority IN (1048576, 1048577), coalesce(d.stored, 0)

-- fragment: domain_state
-- frontier.domain_list.DomainState. An expired lease may be claimed like any other domain that is due.
CASE WHEN excluded THEN 'excluded' WHEN ready_at <= :now THEN 'ready' WHEN owner IS NOT NULL THEN 'leased'
    WHEN pending = 0 OR capped THEN 'idle' ELSE 'waiting' END

-- fragment: lasting_delay
-- The delay between visits to a domain, as policy/pacing.py makes it of its columns. A test compares them.
max(:delay, crawl_delay, backoff,
    CASE WHEN failures > 0
    THEN min(86400000, max(:delay, crawl_delay, 100) * (1 << min(failures - 1, 20))) ELSE 0 END,
    CASE WHEN repeats > 500
    THEN max(:delay, crawl_delay) * min(10.0, 0.5 / max(1.0 - repeats / 1000.0, 0.001)) ELSE 0 END)

-- fragment: queue_columns
domain, priority, position, url, depth, attempts, is_robots, seed IS NOT NULL, reason

-- fragment: is_listed
-- frontier.domain_list: the domains of a query.
(:search = '' OR instr(name, :search) > 0)
    AND CASE :only WHEN '' THEN true WHEN 'failing' THEN failing = 1 AND ready_at IS NOT NULL WHEN 'capped' THEN capped
    ELSE {domain_state} = :only END
    AND CASE :by WHEN 'overdue' THEN ready_at <= :now WHEN 'next' THEN ready_at IS NOT NULL ELSE true END

-- fragment: list_key
-- frontier.domain_list.DomainOrder: the smallest comes first.
CAST(CASE :by WHEN 'pending' THEN -pending WHEN 'failures' THEN -failures WHEN 'pages' THEN -stored
    WHEN 'delay' THEN -{lasting_delay} ELSE ready_at END AS INTEGER)

-- fragment: leaves_alone
-- A domain that does not respond, or asks for a very long delay. A crawl does not stay up for it.
(failures >= :leaving OR crawl_delay > :alone)

-- name: due
-- The domains to lease. The partial index on ready_at already has the order.
SELECT {due_columns}
FROM domain
WHERE ready_at <= :now
ORDER BY ready_at
LIMIT :limit;

-- name: due_fresh
-- The domains to lease that were never leased before.
SELECT {due_columns}
FROM domain
WHERE token = 0 AND ready_at <= :now
ORDER BY ready_at
LIMIT :limit;

-- name: due_responding
-- The domains to lease that responded to their last visit.
SELECT {due_columns}
FROM domain
WHERE answered = 1 AND failures = 0 AND ready_at <= :now
ORDER BY ready_at
LIMIT :limit;

-- name: due_among
-- rows: domains. Those of them that are due.
SELECT {due_columns}
FROM (SELECT value AS wanted FROM json_each(:rows)) -- json_each itself has a column `id`
CROSS JOIN domain ON domain.id = wanted
WHERE ready_at <= :now
LIMIT :limit;

-- name: rest
-- rows: [domain, until]. Due domains that rest because the file may lack their last visits. Rescheduled next.
UPDATE domain SET not_before = e.value ->> 1, owner = NULL
FROM json_each(:rows) AS e
WHERE domain.id = e.value ->> 0;

-- name: losses
-- When the file was replaced by an older one: times with blanks between them.
SELECT value FROM meta WHERE key = 'rest_from';

-- name: visits_given
-- The highest visit number that was given out.
SELECT value FROM counter WHERE name = 'visits';

-- name: next_number
-- Takes :count numbers for visits or adds and returns the last.
INSERT INTO counter (name, value) VALUES (:name, :count)
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
RETURNING value;

-- name: lease
-- rows: [domain, token]. Both times cover the visit and the delay after it. A crash at any point can then not shorten a
-- delay, and a lost lease comes back by itself.
UPDATE domain SET
    ready_at   = :now + :budget + {full_delay},
    not_before = :now + :budget + {full_delay},
    token      = e.value ->> 1,
    owner      = :process,
    unsettled  = 1,
    leases     = leases + 1,
    failing    = 0
FROM json_each(:rows) AS e
WHERE domain.id = e.value ->> 0;

-- fragment: own_heads
SELECT * FROM (
            SELECT arrival FROM url
            WHERE domain = d.value AND state = 0 AND priority < :foreign
            ORDER BY priority, position LIMIT :limit)
        UNION ALL
        SELECT * FROM (
            SELECT arrival FROM url
            WHERE domain = d.value AND state = 0 AND priority = :retried AND position <= :now
            ORDER BY position LIMIT :limit)
        UNION ALL
        SELECT * FROM (
            SELECT arrival FROM url
            WHERE domain = d.value AND state = 0 AND priority = :held AND position <= :now
            ORDER BY position LIMIT :limit)

-- fragment: foreign_heads
SELECT * FROM (
            SELECT arrival FROM url
            WHERE domain = d.value AND state = 0 AND priority >= :foreign AND priority < :retried
            ORDER BY priority, position LIMIT :limit)

-- name: head_urls
-- rows: domains. The first due URLs of each domain. Each class (normal, retried, waiting for a failing origin, foreign)
-- is read separately, so that ten thousand URLs that are not due yet are never walked over.
SELECT u.domain, {url_columns}
FROM json_each(:rows) AS d
CROSS JOIN url AS u ON u.arrival IN (
    SELECT arrival FROM (
        {own_heads}
        UNION ALL
        {foreign_heads}
    ) LIMIT :limit);

-- name: head_urls_foreign_first
-- The same for domains where it is the turn of foreign URLs.
SELECT u.domain, {url_columns}
FROM json_each(:rows) AS d
CROSS JOIN url AS u ON u.arrival IN (
    SELECT arrival FROM (
        {foreign_heads}
        UNION ALL
        {own_heads}
    ) LIMIT :limit);

-- name: more_urls
-- More due URLs of one domain, after a position in its order.
SELECT domain, {url_columns}
FROM url
WHERE domain = :domain AND state = 0 AND (priority, position) > (:priority, :position) AND priority < :suspect
    AND (priority < :retried OR position <= :now)
ORDER BY priority, position
LIMIT :limit;

-- name: current_tokens
-- rows: [domain, token]. The leases that are still valid.
SELECT domain.token
FROM json_each(:rows) AS e
CROSS JOIN domain ON domain.id = e.value ->> 0
WHERE domain.token = e.value ->> 1 AND domain.owner IS NOT NULL;

-- name: settle_urls
-- rows: [domain, fingerprint, state, reason, visit]. Only pending URLs change, so a settle may be repeated.
UPDATE url SET state = e.value ->> 2, reason = e.value ->> 3, visit = e.value ->> 4
FROM json_each(:rows) AS e
WHERE url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1 AND url.state = 0
RETURNING domain, state;

-- name: defer_urls
-- rows: [domain, fingerprint, priority, milliseconds, attempts, reason]. Without a reason the last one stays. A suspect
-- stays a suspect: its priority is one of the same two classes, as often as it has been suspected.
UPDATE url SET priority = (e.value ->> 2) + max(0, (priority - :retried) / :classes * :classes),
    position = :now + (e.value ->> 3), attempts = e.value ->> 4,
    reason = CASE WHEN e.value ->> 5 = '' THEN reason ELSE e.value ->> 5 END
FROM json_each(:rows) AS e
WHERE url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1 AND url.state = 0;

-- name: close_leases
-- rows: [domain, URLs that left pending, requested, milliseconds since the finish, pages, pause, backoff, failures,
-- repeats, answered]. A visit without a request costs no delay, only the pause. The domain was due when it was claimed,
-- so :now is not early.
UPDATE domain SET
    pending     = pending - (e.value ->> 1),
    not_before  = CASE WHEN e.value ->> 2
                  THEN :now - (e.value ->> 3) + max(:delay, crawl_delay, e.value ->> 5)
                  ELSE :now + (e.value ->> 5) END,
    backoff     = e.value ->> 6,
    failures    = e.value ->> 7,
    repeats     = e.value ->> 8,
    answered    = e.value ->> 9,
    owner       = NULL,
    unsettled   = 0,
    pages       = {pages_in_epoch},
    pages_epoch = :epoch,
    stored      = stored + (e.value ->> 4),
    capped      = :cap IS NOT NULL AND {pages_in_epoch} >= :cap
FROM json_each(:rows) AS e
WHERE domain.id = e.value ->> 0
RETURNING id, pending, crawl_delay;

-- name: end_late
-- rows: [domain, token, requested, milliseconds since the finish, pause]. Visits that lost their lease because their
-- domain was excluded. The delay counts from the end of the visit, unless another visit has begun since.
UPDATE domain SET
    not_before = CASE WHEN e.value ->> 2
                 THEN :now - (e.value ->> 3) + max(:delay, crawl_delay, e.value ->> 4)
                 ELSE :now + (e.value ->> 4) END,
    unsettled  = 0
FROM json_each(:rows) AS e
WHERE domain.id = e.value ->> 0 AND domain.token = e.value ->> 1 AND domain.owner IS NULL AND domain.unsettled
RETURNING id;

-- name: reschedule
-- rows: domains. Sets ready_at to the time at which the first pending URL may be requested; NULL without one, because a
-- suspect is not for ordinary claims.
UPDATE domain SET (ready_at, failing) = (
    SELECT max(domain.not_before, CASE WHEN priority >= :retried THEN position ELSE 0 END),
        priority = :held OR {leaves_alone}
    FROM url
    WHERE url.domain = domain.id AND state = 0 AND priority < :suspect AND NOT domain.capped AND NOT domain.excluded
    ORDER BY priority, position
    LIMIT 1)
FROM json_each(:rows) AS e
WHERE domain.id = e.value;

-- name: suspect_urls
-- rows: [domain, fingerprint, deaths before]. Makes pending URLs suspects that may be tried alone from now on. A death
-- that is evidence counts once, even if this is repeated, because it names the deaths before it.
UPDATE url SET position = :now, reason = :reason,
    priority = CASE
        WHEN priority < :suspect THEN :suspect
        WHEN (priority - :suspect) / :classes = e.value ->> 2 THEN priority + :classes
        ELSE priority END
FROM json_each(:rows) AS e
WHERE url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1 AND url.state = 0
RETURNING domain, fingerprint, url, priority;

-- name: due_suspect
-- A domain with a suspect that is due. There are few suspects, if any.
SELECT {due_columns}
FROM (SELECT domain AS suspected FROM url WHERE {suspected} AND position <= :now)
CROSS JOIN domain ON domain.id = suspected
WHERE not_before <= :now AND NOT capped AND NOT excluded
LIMIT 1;

-- name: suspect_of
-- The suspect of a leased domain that has waited longest.
SELECT domain, {url_columns} FROM url
WHERE domain = :domain AND {suspected} AND position <= :now
ORDER BY position LIMIT 1;

-- name: reserve_suspects
-- Keeps ordinary claims away from domains with a suspect that is due.
UPDATE domain SET ready_at = NULL
WHERE id IN (SELECT domain FROM url WHERE {suspected} AND position <= :now)
    AND owner IS NULL AND ready_at IS NOT NULL AND NOT {leaves_alone};

-- name: next_suspect
-- When a suspect may be tried. Those that a crawl does not wait for count only if they are due until :until.
SELECT min(due) FROM (
    SELECT max(position, not_before) AS due,
        (priority % :classes = 0 OR position <= :now) AND NOT {leaves_alone} AS is_worth_waiting
    FROM (SELECT domain AS suspected, priority, position FROM url WHERE {suspected})
    CROSS JOIN domain ON domain.id = suspected
    WHERE NOT capped AND NOT excluded)
WHERE is_worth_waiting OR due <= :until;

-- name: insert_requests
-- Only the location of a page ever changes afterwards.
INSERT INTO request ({request_columns})
VALUES (:row)
ON CONFLICT DO NOTHING
RETURNING kind, size, error;

-- name: insert_samples
INSERT INTO sample (ended, step, seconds, pages, visits, requests, errors, bytes, in_flight, pending, figures)
VALUES (:row)
ON CONFLICT DO NOTHING;

-- name: samples_after
-- The key is the same in both databases; here there is only one machine. The last sample that is read ends at :until.
SELECT ended, 0 AS machine, step, seconds, figures FROM sample
WHERE (ended, step) > (:ended, :step) AND ended <= :until
ORDER BY ended, step LIMIT :limit;

-- name: latest_samples
-- The latest sample of each machine. Every sample is later than 0; the condition bounds the search of the index.
SELECT ended, 0 AS machine, step, seconds, figures FROM sample WHERE ended > 0 ORDER BY ended DESC LIMIT 1;

-- name: oldest_sample
-- When the oldest sample of a step ended.
SELECT ended FROM sample WHERE step = :step ORDER BY ended LIMIT 1;

-- name: take_samples
-- Deletes the samples of a step that ended after :after and until :until, and returns them.
DELETE FROM sample WHERE step = :step AND ended > :after AND ended <= :until
RETURNING ended, 0 AS machine, step, seconds, figures;

-- name: insert_contents
-- The first process to store a text wins. A second copy that was stored at the same time stays unused.
INSERT INTO content (hash, sha1_64, domain, visit, file, offset, length)
VALUES (:row)
ON CONFLICT DO NOTHING;

-- name: known_contents
-- rows: hashes. Includes the URL and the time of the page that the stored record names.
SELECT c.hash, c.sha1_64, c.domain, c.visit, c.file, c.offset, c.length, r.url, r.started
FROM json_each(:rows) AS e
CROSS JOIN content AS c ON c.hash = e.value
CROSS JOIN request AS r ON r.visit = c.visit AND r.content_hash = c.hash AND r.kind = 'page';

-- name: last_url
-- The number of the newest URL. URLs that are inserted from now on have higher numbers.
SELECT coalesce(max(arrival), 0) FROM url;

-- name: insert_urls
-- Known URLs stay as they are. domains_inserted then reads the new ones as a single row: RETURNING would collect them
-- in a table and return them one by one.
INSERT INTO url (domain, fingerprint, priority, depth, position, url, hops, assume_https, sitemap_of, seed)
VALUES (:row)
ON CONFLICT DO NOTHING;

-- name: foreign_urls
-- rows: domains. Some of the pending foreign URLs of each.
SELECT u.domain, u.fingerprint
FROM json_each(:rows) AS d
CROSS JOIN url AS u ON u.arrival IN (
    {foreign_heads});

-- name: adopt_urls
-- rows: [domain, fingerprint, priority, depth, hops, sitemap_of]. Pending foreign URLs that their own domain names now.
UPDATE url SET priority = min(priority - :foreign, e.value ->> 2), depth = min(depth, e.value ->> 3),
    hops = min(hops, e.value ->> 4), sitemap_of = e.value ->> 5
FROM json_each(:rows) AS e
WHERE url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1 AND url.state = 0
    AND url.priority >= :foreign AND url.priority < :retried;

-- name: domains_inserted
-- The domain of each URL that was inserted after :last, as a JSON array.
SELECT json_group_array(domain) FROM url WHERE arrival > :last;

-- name: insert_domains
INSERT INTO domain (id, name, pending, ready_at, failing, address_group)
VALUES (:row);

-- name: raise_pending
-- rows: domains with the same number of new URLs, which is usual in a batch. Returns the domains that have a row.
-- The column before the name says that wake_domains would change nothing, which is true of most: their indexes stay untouched.
UPDATE domain SET pending = pending + :unseen
FROM json_each(:rows) AS e
WHERE domain.id = e.value
RETURNING id, pending, excluded, crawl_delay, repeats,
    (owner IS NULL AND {leaves_alone}) IS failing
        AND NOT capped AND NOT excluded AND ready_at <= max(:now, not_before),
    name;

-- name: wake_domains
-- rows: domains. An idle domain is woken, but not before its politeness clock. A domain that only waits for a retry is
-- moved forward. A leased domain has ready_at = not_before and stays.
UPDATE domain SET
    failing  = CASE WHEN owner IS NULL AND {leaves_alone} THEN 1
               WHEN capped OR excluded THEN failing ELSE 0 END,
    ready_at = CASE
        WHEN capped OR excluded THEN NULL
        ELSE min(coalesce(ready_at, max(:now, not_before)), max(:now, not_before)) END
FROM json_each(:rows) AS e
WHERE domain.id = e.value;

-- fragment: worst_urls
-- The worst URLs of a domain that is over its budget, from the end of its order: foreign ones first. Seeds have priority
-- 0, which is never trimmed: there may be any number of them. Nor are sitemaps that the domain itself names.
    SELECT arrival FROM url
    WHERE domain = :domain AND state = 0 AND priority > 0 AND priority < :retried AND depth > 0
        AND (sitemap_of = '' OR priority >= :foreign)
        AND fingerprint NOT IN (SELECT value FROM json_each(:exempt))
    ORDER BY priority DESC, position DESC
    LIMIT :excess

-- name: trim
DELETE FROM url WHERE arrival IN (
{worst_urls})
RETURNING domain, fingerprint, priority, position >= :first;

-- name: count_worst
-- How many URLs trim would delete.
SELECT count(*) FROM (
{worst_urls});

-- name: crowded_domains
-- The domains after an id that may be over their budget, in slices. Reads the whole table once, when a shorter horizon
-- is given.
SELECT id, pending, crawl_delay, repeats FROM domain
WHERE id > :after AND pending > :least
ORDER BY id
LIMIT :limit;

-- name: lower_pending
-- rows: [domain, URLs that were deleted]. Also returns whether the domain has only retries left and no lease, because
-- then it was woken for nothing.
UPDATE domain SET pending = pending - (e.value ->> 1)
FROM json_each(:rows) AS e
WHERE domain.id = e.value ->> 0
RETURNING id, owner IS NULL AND NOT EXISTS (
    SELECT 1 FROM url WHERE url.domain = domain.id AND state = 0 AND priority < :retried);

-- name: known_domains
-- rows: domains. Those that have a URL: with --scope domain, the domains of the seeds. A robots.txt that others wait for
-- does not count. There are few of those, so the first URL nearly always decides.
SELECT domain.id FROM json_each(:rows) AS e CROSS JOIN domain ON domain.id = e.value
WHERE EXISTS (SELECT 1 FROM url WHERE url.domain = domain.id AND is_robots = 0);

-- name: count_addresses
-- How many domains are addresses of a network, up to a limit. The second condition is that of the index.
SELECT count(*) FROM (
    SELECT 1 FROM domain WHERE address_group = :address_group AND address_group <> '' LIMIT :limit);

-- name: domain_names
-- rows: domains. The names that their rows belong to.
SELECT domain.id, domain.name FROM json_each(:rows) AS e CROSS JOIN domain ON domain.id = e.value;

-- name: count_wanted_robots
SELECT count(*) FROM url WHERE domain = :domain AND is_robots = 1 AND state = 0;

-- name: insert_wanted_robots
INSERT INTO url (domain, fingerprint, url, priority, position, depth, is_robots)
VALUES (:domain, :fingerprint, :url, :priority, :position, 0, 1);

-- name: rewant_robots
UPDATE url SET state = 0, priority = :priority, position = :position, attempts = 0, reason = '', visit = NULL
WHERE domain = :domain AND fingerprint = :fingerprint;

-- name: url_states
-- rows: [domain, fingerprint].
SELECT url.domain, url.fingerprint, url.state
FROM json_each(:rows) AS e
CROSS JOIN url ON url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1;

-- name: origins
-- rows: [domain, origin].
SELECT origin.domain, origin.origin, origin.status, t.body, origin.crawl_delay, origin.failures,
    origin.expires_at - :now, :now - origin.fetched_at, origin.source, origin.etag, origin.last_modified, origin.hops,
    origin.waits_for
FROM json_each(:rows) AS e
CROSS JOIN origin ON origin.domain = e.value ->> 0 AND origin.origin = e.value ->> 1
LEFT JOIN robots_text AS t ON t.name = origin.robots;

-- name: put_origin
INSERT INTO origin (domain, origin, status, robots, crawl_delay, failures, expires_at, fetched_at, source, etag,
    last_modified, hops, waits_for)
VALUES (:domain, :origin, :status, :robots, :crawl_delay, :failures, :now + :valid_for, :now, :source, :etag,
    :last_modified, :hops, :waits_for)
ON CONFLICT (domain, origin) DO UPDATE SET
    status = excluded.status, robots = excluded.robots, crawl_delay = excluded.crawl_delay,
    failures = excluded.failures, expires_at = excluded.expires_at, fetched_at = excluded.fetched_at,
    source = excluded.source, etag = excluded.etag, last_modified = excluded.last_modified, hops = excluded.hops,
    waits_for = excluded.waits_for;

-- name: save_robots_text
-- A known text costs nothing. A new one is kept while its domain has room for it.
INSERT INTO robots_text (name, domain, at, body)
SELECT :name, :domain, :now, :body
WHERE length(:body) + (
    SELECT coalesce(sum(length(body)), 0) FROM robots_text WHERE domain = :domain AND at > :since) <= :most
ON CONFLICT DO NOTHING;

-- name: kept_robots_texts
-- rows: names.
SELECT t.name FROM json_each(:rows) AS e CROSS JOIN robots_text AS t ON t.name = e.value;

-- name: robots_text
SELECT body FROM robots_text WHERE name = :name;

-- name: longest_crawl_delay
SELECT coalesce(max(crawl_delay), 0) FROM origin WHERE domain = :domain;

-- name: set_crawl_delay
-- A lease that is out was computed with the old delay. If the new one is longer, both times move by the difference. The
-- page is requested only after this is committed.
UPDATE domain SET
    crawl_delay = :longest,
    ready_at    = ready_at + {longer_by},
    not_before  = not_before + {longer_by}
WHERE id = :domain AND crawl_delay <> :longest;

-- name: add_counters
-- rows: [name, amount].
INSERT INTO counter (name, value)
SELECT value ->> 0, value ->> 1 FROM json_each(:rows) WHERE true
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value;

-- name: seen_now
UPDATE process SET seen = :now WHERE id = :process;

-- name: note_alive
UPDATE process SET seen = :now, pages = :pages, pages_per_s = :pages_per_s, in_flight = :in_flight, at_once = :at_once,
    held_by = :held_by, paused = :paused, has_left = :has_left
WHERE id = :process;

-- name: next_due
-- :until: failing domains that are due until then are waited for too.
SELECT ready_at FROM domain
WHERE ready_at IS NOT NULL AND (failing IS NOT 1 OR ready_at <= :until)
ORDER BY ready_at LIMIT 1;

-- name: last_backoff
-- The last of the failing domains that are due until :until.
SELECT ready_at FROM domain WHERE ready_at <= :until AND failing = 1 ORDER BY ready_at DESC LIMIT 1;

-- name: responding
-- Those of the next domains that responded to their last visit.
SELECT id FROM (
    SELECT id, answered, failures FROM domain
    WHERE ready_at IS NOT NULL
    ORDER BY ready_at
    LIMIT :limit)
WHERE answered AND failures = 0;

-- name: responding_due
-- How many domains are due until :until that responded to their last visit, up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM domain WHERE answered = 1 AND failures = 0 AND ready_at <= :until LIMIT :limit);

-- name: failing_domains
-- The domains that a crawl does not wait for, each with the error of its last request.
SELECT name, pending, ready_at - :now, (
    SELECT error FROM request WHERE request.domain = domain.id ORDER BY visit DESC, seq DESC LIMIT 1)
FROM domain
WHERE ready_at IS NOT NULL AND failing = 1
ORDER BY ready_at
LIMIT :limit;

-- name: cut_leases
-- rows: processes that died. Of their leases only the delay remains, counted from now. One more, because the clock is
-- truncated.
UPDATE domain SET
    ready_at   = CASE WHEN pending > 0 THEN min(ready_at, :now + 1 + {full_delay}) END,
    not_before = min(not_before, :now + 1 + {full_delay}),
    owner      = NULL
FROM json_each(:rows) AS e
WHERE domain.owner = e.value
RETURNING id;

-- name: postpone
-- rows: [domain, visit, earliest time]. Applies what a lost visit had learnt, unless another visit has begun since.
UPDATE domain SET
    not_before = max(not_before, e.value ->> 2),
    ready_at   = CASE WHEN ready_at IS NULL THEN NULL ELSE max(ready_at, e.value ->> 2) END
FROM json_each(:rows) AS e
WHERE domain.id = e.value ->> 0 AND domain.token = e.value ->> 1;

-- name: mark_gone
-- rows: processes.
UPDATE process SET has_left = 1, pages_per_s = 0, in_flight = 0
FROM json_each(:rows) AS e
WHERE process.id = e.value AND has_left = 0;

-- name: ended_uncleanly
-- Whether a process has died without leaving the crawl.
SELECT 1 FROM process WHERE has_left = 0 LIMIT 1;

-- name: other_processes
SELECT id FROM process WHERE id <> :process;

-- name: capped_domains
SELECT id FROM domain WHERE capped = 1 AND pages_epoch <> :epoch;

-- name: lift_caps
UPDATE domain SET capped = 0 WHERE capped = 1 AND pages_epoch <> :epoch;

-- name: exclude_domain
-- Its pending URLs are settled afterwards, in slices.
INSERT INTO domain (id, name, excluded) VALUES (:id, :name, 1)
ON CONFLICT (id) DO UPDATE SET excluded = 1, ready_at = NULL, owner = NULL;

-- name: include_domain
UPDATE domain SET excluded = 0 WHERE id = :id;

-- name: domain_state
SELECT pending, excluded, token FROM domain WHERE id = :id;

-- name: pending_from
-- All pending URLs of a domain, due or not, from a position in its order on.
SELECT fingerprint, url, priority, position, depth, is_robots = 0 AND sitemap_of = '' FROM url
WHERE domain = :domain AND state = 0 AND (priority, position) >= (:priority, :position)
ORDER BY priority, position
LIMIT :limit;

-- name: blocked_after
-- The URLs of a domain after a fingerprint, and why each of them is blocked, '' if it is not.
SELECT fingerprint, url, depth, CASE WHEN state = 2 THEN reason ELSE '' END FROM url
WHERE domain = :domain AND fingerprint > :fingerprint
ORDER BY fingerprint
LIMIT :limit;

-- name: reopen_urls
-- rows: [domain, fingerprint].
UPDATE url SET state = 0, reason = '', visit = NULL
FROM json_each(:rows) AS e
WHERE url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1 AND state = 2 AND reason = :reason
RETURNING domain;

-- name: mark_seeds
-- rows: [domain, fingerprint, number]. URLs that were known before they were given as seeds. They come first from now
-- on, like all seeds, and are never deleted for lack of room.
UPDATE url SET seed = e.value ->> 2, depth = 0, priority = CASE WHEN priority < :retried THEN 0 ELSE priority END
FROM json_each(:rows) AS e
WHERE url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1 AND url.seed IS NULL
RETURNING domain;

-- name: seeds_after
-- All seeds in the order in which they were given, in slices.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE u.seed > :seed ORDER BY u.seed LIMIT :limit;

-- name: roots
-- rows: domains. Their pages of depth 0, and whether each is a seed.
SELECT u.domain, u.url, u.seed IS NOT NULL FROM json_each(:rows) AS e
CROSS JOIN url AS u INDEXED BY url_root ON u.domain = e.value
WHERE u.depth = 0 AND u.is_robots = 0 AND u.sitemap_of = '';

-- name: known_urls
-- rows: [domain, fingerprint].
SELECT {known_url} FROM json_each(:rows) AS e
CROSS JOIN url AS u ON u.domain = e.value ->> 0 AND u.fingerprint = e.value ->> 1
LEFT JOIN domain AS d ON d.id = u.domain;

-- name: urls_after
-- All URLs after a key, in slices.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE (u.domain, u.fingerprint) > (:domain, :fingerprint)
ORDER BY u.domain, u.fingerprint LIMIT :limit;

-- name: troubled_after
-- URLs that failed or wait for a retry, after a key, in slices.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE {troubled} AND (u.domain, u.fingerprint) > (:domain, :fingerprint)
ORDER BY u.domain, u.fingerprint LIMIT :limit;

-- name: troubled_of_domain
-- The same for one domain.
SELECT {known_url} FROM url AS u LEFT JOIN domain AS d ON d.id = u.domain
WHERE {troubled} AND u.domain = :domain AND u.fingerprint > :fingerprint
ORDER BY u.domain, u.fingerprint LIMIT :limit;

-- name: retry_urls
-- rows: [domain, fingerprint, position]. URLs in this state become pending and come first, like seeds. Of pending URLs,
-- only those that wait for a retry change, and no suspects.
UPDATE url SET state = 0, reason = '', visit = NULL, attempts = 0, priority = 0, position = e.value ->> 2
FROM json_each(:rows) AS e
WHERE url.domain = e.value ->> 0 AND url.fingerprint = e.value ->> 1 AND url.state = :state
    AND (url.state <> 0 OR url.priority >= :retried AND url.priority < :suspect)
RETURNING domain;

-- name: retry_domains
-- rows: [domain, more pending URLs]. Failed visits no longer count, so the pause that they led to ends. The delay of the
-- operator, the Crawl-delay and the back-off stay, counted from now. One more, because the clock is truncated.
UPDATE domain SET
    pending    = pending + (e.value ->> 1),
    not_before = CASE WHEN failures > 0 AND owner IS NULL THEN min(not_before, :now + 1 + {full_delay})
                 ELSE not_before END,
    failures   = 0
FROM json_each(:rows) AS e
WHERE domain.id = e.value ->> 0
RETURNING id, pending, excluded, owner IS NOT NULL;

-- name: retry_origins
-- rows: domains. A robots.txt that could not be fetched is requested again at the next visit.
UPDATE origin SET expires_at = min(expires_at, :now), failures = 0
FROM json_each(:rows) AS e
WHERE origin.domain = e.value AND origin.status = 'unreachable';

-- name: begin_retry
INSERT INTO retry (at, ended, wall, who, error, status, domain, domain_name, only_seeds, source, delay)
VALUES (:now, :now, :wall, :who, :error, :status, :domain, :domain_name, :only_seeds, :source, :delay)
RETURNING id;

-- name: count_retried
UPDATE retry SET urls = urls + :urls, ended = :now WHERE id = :id;

-- name: retries
SELECT id, at, ended, wall, who, urls, delay, error, status, domain, domain_name, only_seeds, source
FROM retry ORDER BY id;

-- name: add_to_pending
UPDATE domain SET pending = pending + :change WHERE id = :domain
RETURNING pending, excluded, owner IS NOT NULL;

-- name: domain_names_after
SELECT id, name FROM domain WHERE id > :after ORDER BY id LIMIT :limit;

-- name: exclusions
SELECT pattern FROM exclusion WHERE lifted_at IS NULL ORDER BY pattern;

-- name: exclusion_history
SELECT pattern, at, wall, who, reason, lifted_at, lifted_wall, lifted_by FROM exclusion ORDER BY id;

-- name: add_exclusions
-- rows: patterns.
INSERT INTO exclusion (pattern, at, wall, who, reason)
SELECT value, :now, :wall, :who, :reason FROM json_each(:rows) WHERE true
ON CONFLICT DO NOTHING
RETURNING pattern;

-- name: lift_exclusions
-- rows: patterns.
UPDATE exclusion SET lifted_at = :now, lifted_wall = :wall, lifted_by = :who
FROM json_each(:rows) AS e
WHERE exclusion.pattern = e.value AND lifted_at IS NULL
RETURNING pattern;

-- name: revise_exclusions
INSERT INTO meta (key, value) VALUES ('exclusions', '1')
ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT);

-- name: count_ready
SELECT count(*) FROM domain WHERE ready_at <= :now;

-- name: count_leased
-- The plus keeps the planner on the small index of leases.
SELECT count(*) FROM domain WHERE owner IS NOT NULL AND +ready_at > :now;

-- name: oldest_lease
SELECT min(token) FROM domain WHERE owner IS NOT NULL;

-- name: count_capped
-- Capped domains with pending URLs, which the counter of active domains includes.
SELECT count(*) FROM domain WHERE capped = 1 AND pending > 0 AND NOT excluded;

-- name: counters
SELECT name, value FROM counter;

-- name: pages
SELECT value FROM counter WHERE name = 'urls.done';

-- name: runs
SELECT r.id, r.started, max(r.started, coalesce(max(p.seen), 0)), r.wall
FROM run AS r LEFT JOIN process AS p ON p.run = r.id
GROUP BY r.id ORDER BY r.id;

-- name: participants
SELECT id, pid, has_left, paused, pages, pages_per_s, in_flight, at_once, held_by, (:now - started) / 1000.0,
    (:now - seen) / 1000.0
FROM process ORDER BY id;

-- name: begin_run
INSERT INTO run (started, wall) VALUES (:now, :wall) RETURNING id;

-- name: begin_process
INSERT INTO process (run, pid, started, seen) VALUES (:run, :pid, :now, :now) RETURNING id;

-- name: last_seen
SELECT max(seen) FROM process;

-- name: get_meta
SELECT value FROM meta WHERE key = :key;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: keep_secret
-- The first one stays.
INSERT INTO meta (key, value) VALUES ('secret', :secret) ON CONFLICT DO NOTHING;

-- name: has_table
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = :name;

-- name: has_any_table
SELECT 1 FROM sqlite_schema WHERE type = 'table' LIMIT 1;

-- name: seed_sources
SELECT id, path, name, offset, lines, good, bad, unseen, retried, refused, finished FROM seed_source ORDER BY id;

-- name: add_seed_source
INSERT INTO seed_source (path, name) VALUES (:path, :name) RETURNING id;

-- name: update_seed_source
UPDATE seed_source SET offset = :offset, lines = :lines, good = :good, bad = :bad, unseen = :unseen,
    retried = :retried, refused = :refused, finished = :finished
WHERE id = :id;

-- name: url_record
SELECT domain, fingerprint, url, state, depth, attempts, reason, visit, seed IS NOT NULL
FROM url WHERE domain = :domain AND fingerprint = :fingerprint;

-- name: requests_of_visit
SELECT {request_columns} FROM request WHERE visit = :visit ORDER BY seq;

-- name: requests_before
-- Newest first, in slices.
SELECT {request_columns} FROM request
WHERE (visit, seq) < (:visit, :seq) ORDER BY visit DESC, seq DESC LIMIT :limit;

-- name: requests_after
-- Oldest first, in slices.
SELECT {request_columns} FROM request
WHERE (visit, seq) > (:visit, :seq) ORDER BY visit, seq LIMIT :limit;

-- name: requests_of_domain_before
-- The visits to one domain, newest first, in slices.
SELECT {request_columns} FROM request
WHERE domain = :domain AND (visit, seq) < (:visit, :seq) ORDER BY visit DESC, seq DESC LIMIT :limit;

-- name: requests_of_domain
-- The visits to one domain, in slices.
SELECT {request_columns} FROM request
WHERE domain = :domain AND (visit, seq) > (:visit, :seq) ORDER BY visit, seq LIMIT :limit;

-- name: ledger
-- The whole ledger, domain by domain, in slices.
SELECT {request_columns} FROM request
WHERE (domain, visit, seq) > (:domain, :visit, :seq) ORDER BY domain, visit, seq LIMIT :limit;

-- name: copies
-- The pages whose text is stored once under this hash, in slices.
SELECT {request_columns} FROM request
WHERE content_hash = :hash AND is_copy AND (visit, seq) > (:visit, :seq) ORDER BY visit, seq LIMIT :limit;

-- name: copy_counts
-- rows: hashes. How many pages have a text that is stored as another page's.
SELECT e.value, (SELECT count(*) FROM request WHERE content_hash = e.value AND is_copy) FROM json_each(:rows) AS e;

-- name: depths
-- rows: [domain, fingerprint].
SELECT u.domain, u.fingerprint, u.depth FROM json_each(:rows) AS e
CROSS JOIN url AS u ON u.domain = e.value ->> 0 AND u.fingerprint = e.value ->> 1;

-- name: relocate_pages
-- rows: [visit, seq, is_copy, text_file, text_offset, text_length, raw_file, raw_offset, raw_length]. After a purge.
UPDATE request SET is_copy = e.value ->> 2, text_file = e.value ->> 3, text_offset = e.value ->> 4,
    text_length = e.value ->> 5, raw_file = e.value ->> 6, raw_offset = e.value ->> 7, raw_length = e.value ->> 8
FROM json_each(:rows) AS e
WHERE request.visit = e.value ->> 0 AND request.seq = e.value ->> 1;

-- name: forget_titles
-- rows: [visit, seq]. For a purge.
UPDATE request SET title = '' FROM json_each(:rows) AS e
WHERE request.visit = e.value ->> 0 AND request.seq = e.value ->> 1;

-- name: relocate_contents
-- rows: [hash, file, offset, domain, visit, new file, new offset, new length]. Skips texts that are no longer at the
-- old location.
UPDATE content SET domain = coalesce(e.value ->> 3, domain), visit = coalesce(e.value ->> 4, visit),
    file = e.value ->> 5, offset = e.value ->> 6, length = e.value ->> 7
FROM json_each(:rows) AS e
WHERE content.hash = e.value ->> 0 AND content.file = e.value ->> 1 AND content.offset = e.value ->> 2;

-- name: forget_contents
-- rows: [hash, file, offset].
DELETE FROM content
WHERE (hash, file, offset) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rows));

-- name: domain_record
SELECT id, name, ready_at - :now, not_before - :now, crawl_delay, backoff, failures, repeats, answered, pending,
    owner IS NOT NULL, excluded, capped,
    EXISTS (SELECT 1 FROM url WHERE url.domain = domain.id AND is_robots = 0)
FROM domain WHERE id = :id;

-- name: domains_in_slice
-- A slice of all domains. The first row tells where it ends and how many of its domains are listed; the key of that row
-- is NULL. The others are those that may be on the page: after its cursor, and before the worst that was found so far.
WITH slice AS MATERIALIZED (
    SELECT arrival, id, :sign * {list_key} AS key, {is_listed} AS is_listed
    FROM domain WHERE arrival > :after ORDER BY arrival LIMIT :slice
)
SELECT NULL, max(arrival), count(*) FILTER (WHERE is_listed) FROM slice
UNION ALL
SELECT key, id, 1 FROM slice
WHERE is_listed AND (key, id) > (:after_key, :after_id) AND (key, id) < (:worst_key, :worst_id);

-- name: domains_by_due
-- Waiting domains in the order in which they are due, after those that were read before.
SELECT ready_at, id FROM domain
WHERE ready_at >= :ready_at AND ready_at <= :until
ORDER BY ready_at, failing
LIMIT :limit OFFSET :skip;

-- name: listed_domains
-- rows: domains, each with its last request.
SELECT d.id, d.name, {domain_state}, d.pending, d.stored, d.ready_at - :now, d.not_before - :now, d.crawl_delay,
    d.backoff, d.failures, d.repeats, d.answered, d.failing = 1 AND d.ready_at IS NOT NULL, d.capped,
    r.error, r.delay, r.delay_from
FROM json_each(:rows) AS e
CROSS JOIN domain AS d ON d.id = e.value
LEFT JOIN request AS r ON (r.visit, r.seq) = (
    SELECT visit, seq FROM request WHERE request.domain = d.id ORDER BY visit DESC, seq DESC LIMIT 1);

-- name: queued_domains
-- rows: domains.
SELECT d.id, d.name, d.ready_at, d.not_before, d.capped OR d.excluded, d.owner IS NOT NULL AND d.ready_at > :now,
    d.leases, CAST({lasting_delay} AS INTEGER)
FROM json_each(:rows) AS e
CROSS JOIN domain AS d ON d.id = e.value;

-- name: queue_heads
-- rows: domains. The first pending URLs of each in a range of priorities, due or not.
SELECT {queue_columns}
FROM json_each(:rows) AS d
CROSS JOIN url AS u ON u.arrival IN (
    SELECT arrival FROM url
    WHERE domain = d.value AND state = 0 AND priority >= :low AND priority < :below
    ORDER BY priority, position LIMIT :limit);

-- name: queue_more
-- More of one domain, after those that were read before.
SELECT {queue_columns}
FROM url
WHERE domain = :domain AND state = 0 AND priority >= :low AND priority < :below
ORDER BY priority, position
LIMIT :limit OFFSET :skip;

-- name: leased_domains
-- The domains that are being visited. The plus keeps the planner on the small index of leases.
SELECT id FROM domain WHERE owner IS NOT NULL AND +ready_at > :now LIMIT :limit;

-- name: suspected_domains
SELECT domain FROM url WHERE {suspected} LIMIT :limit;

-- name: insert_skipped
-- rows: [reason, fingerprint, domain, url, page].
INSERT INTO skipped (reason, fingerprint, domain, url, page, at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now FROM json_each(:rows) WHERE true
ON CONFLICT DO NOTHING;

-- name: trim_skipped
-- Keeps the :most lowest of a reason.
DELETE FROM skipped WHERE reason = :reason AND fingerprint >= (
    SELECT fingerprint FROM skipped WHERE reason = :reason ORDER BY fingerprint LIMIT 1 OFFSET :most);

-- name: skipped_links
SELECT reason, fingerprint, domain, url, page, at FROM skipped ORDER BY reason, fingerprint;

-- name: forget_skipped
-- rows: [reason, fingerprint, domain].
DELETE FROM skipped
WHERE (reason, fingerprint, domain) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rows));
