-- Experiments of the lab: their configuration, how far they are, and what came of them.

-- AUTOINCREMENT: an id is never given again, because agents name functions after it.
CREATE TABLE experiments (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    kind         TEXT    NOT NULL, -- stellar, tail, duet
    title        TEXT    NOT NULL,
    config       TEXT    NOT NULL, -- JSON, as it was sent
    state        INTEGER NOT NULL,
    progress     TEXT,             -- JSON, while it runs
    result       TEXT,             -- JSON, when it has ended
    error        TEXT,
    created_by   TEXT    NOT NULL,
    created_us   INTEGER NOT NULL,
    started_us   INTEGER,
    cancelled_us INTEGER,          -- when it was asked to be cancelled
    heard_us     INTEGER,          -- when its agent has last reported
    ended_us     INTEGER
) STRICT;

CREATE INDEX experiments_by_state ON experiments (state, id);

CREATE TABLE experiment_files (
    experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    path          TEXT    NOT NULL,
    content       BLOB    NOT NULL,
    PRIMARY KEY (experiment_id, path)
) STRICT;
