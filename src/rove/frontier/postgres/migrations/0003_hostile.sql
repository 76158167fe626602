-- Texts are stored once; domains remember how much of what they give is new; answers say what was cut or doubtful.

ALTER TABLE domain ADD COLUMN repeats smallint NOT NULL DEFAULT 0;  -- per mille of its latest pages that it gave before

ALTER TABLE request
    ADD COLUMN marks   text    NOT NULL DEFAULT '',                 -- what was cut, dropped or doubtful, by name
    ADD COLUMN is_copy boolean NOT NULL DEFAULT false;              -- its text is that of `content`
CREATE INDEX request_copies ON request (content_hash, visit, seq) WHERE is_copy;

-- Where a text lies that was stored: once for all pages that have it.
CREATE TABLE content (
    hash    bigint  PRIMARY KEY,                    -- 64 bits of the text's hash
    checked bigint  NOT NULL,                       -- 64 more
    domain  bigint  NOT NULL,                       -- of the page that its record names
    visit   bigint  NOT NULL,                       -- that brought it
    machine integer NOT NULL,                       -- where it is stored
    file    text    NOT NULL,
    "offset" bigint NOT NULL,
    length  bigint  NOT NULL
);

-- Domains that were never leased have a head start.
CREATE INDEX domain_fresh ON domain (ready_at) WHERE token = 0 AND ready_at IS NOT NULL;
