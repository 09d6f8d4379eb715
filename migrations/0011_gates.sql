-- Gates: a function's new versions must not be slower than the active one before they become active.

-- When a version first became active; NULL: never. Whether those that are there already were is not known: no gate holds them up.
ALTER TABLE versions ADD COLUMN activated_us INTEGER;
UPDATE versions SET activated_us = created_us;

CREATE TABLE gates (
    function_id INTEGER PRIMARY KEY REFERENCES functions (id) ON DELETE CASCADE,
    settings    TEXT    NOT NULL -- JSON
) STRICT;

-- What a gate said of a version, the last time it was to become active.
CREATE TABLE version_gates (
    function_id   INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    against       INTEGER NOT NULL, -- the version that was active
    experiment_id INTEGER NOT NULL, -- which may have been deleted since
    state         INTEGER NOT NULL,
    reason        TEXT,
    deadline_us   INTEGER NOT NULL,
    actor_kind    INTEGER NOT NULL, -- who wants the version to be active
    actor         TEXT    NOT NULL,
    begun_us      INTEGER NOT NULL,
    ended_us      INTEGER,
    PRIMARY KEY (function_id, version),
    FOREIGN KEY (function_id, version) REFERENCES versions (function_id, version) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX version_gates_by_state ON version_gates (state);
