-- Texts are stored once; domains remember how much of what they give is new; answers say what was cut or doubtful.

ALTER TABLE domain ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;   -- per mille of its latest pages that it gave before

ALTER TABLE request ADD COLUMN marks   TEXT    NOT NULL DEFAULT ''; -- what was cut, dropped or doubtful, by name
ALTER TABLE request ADD COLUMN is_copy INTEGER NOT NULL DEFAULT 0;  -- its text is that of `content`
CREATE INDEX request_copies ON request (content_hash, visit, seq) WHERE is_copy;

-- Where a text lies that was stored: once for all pages that have it.
CREATE TABLE content (
    hash    INTEGER PRIMARY KEY,                -- 64 bits of the text's hash
    checked INTEGER NOT NULL,                   -- 64 more
    domain  INTEGER NOT NULL,                   -- of the page that its record names
    visit   INTEGER NOT NULL,                   -- that brought it
    file    TEXT    NOT NULL,
    offset  INTEGER NOT NULL,
    length  INTEGER NOT NULL
);

-- Domains that were never leased have a head start.
CREATE INDEX domain_fresh ON domain (ready_at) WHERE token = 0 AND ready_at IS NOT NULL;
