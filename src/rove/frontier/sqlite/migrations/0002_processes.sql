-- Several processes work on one file. Each has a row and owns its leases; a run lasts as long as its processes are seen.

CREATE TABLE process (
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL,
    pid         INTEGER NOT NULL,
    started     INTEGER NOT NULL,
    seen        INTEGER NOT NULL,
    pages       INTEGER NOT NULL DEFAULT 0,
    pages_per_s REAL    NOT NULL DEFAULT 0,
    in_flight   INTEGER NOT NULL DEFAULT 0,
    has_left    INTEGER NOT NULL DEFAULT 0
);
-- Until now a run was one process.
INSERT INTO process (id, run, pid, started, seen) SELECT id, id, 0, started, seen FROM run;
ALTER TABLE run DROP COLUMN seen;
