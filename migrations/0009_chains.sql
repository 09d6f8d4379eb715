-- Chains: functions that pass requests on to each other.

-- AUTOINCREMENT: an id is never given again, because rows of a deleted chain's history may still be waiting for their removal.
CREATE TABLE chains (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT    NOT NULL UNIQUE,
    active_version INTEGER NOT NULL,
    created_us     INTEGER NOT NULL,
    updated_us     INTEGER NOT NULL,
    -- Deferred, because a chain and its first version are written in one transaction and refer to each other.
    FOREIGN KEY (id, active_version) REFERENCES chain_versions (chain_id, version) DEFERRABLE INITIALLY DEFERRED
) STRICT;

-- Immutable: rows are inserted, and deleted with their chain, never updated.
CREATE TABLE chain_versions (
    chain_id   INTEGER NOT NULL REFERENCES chains (id) ON DELETE CASCADE,
    version    INTEGER NOT NULL,
    spec       TEXT    NOT NULL, -- the settings as JSON
    created_us INTEGER NOT NULL,
    PRIMARY KEY (chain_id, version)
) STRICT, WITHOUT ROWID;

-- What a history is kept of: each function under its own id, and each chain under the negative of its own, so that
-- `function_id` in the history's tables names either. A row that is not here has a history that is not seen and is
-- being removed.
CREATE TABLE subjects (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

INSERT INTO subjects (id, name) SELECT id, name FROM functions;

CREATE TRIGGER functions_have_a_history AFTER INSERT ON functions
BEGIN
    INSERT INTO subjects (id, name) VALUES (new.id, new.name);
END;
CREATE TRIGGER functions_leave_their_history AFTER DELETE ON functions
BEGIN
    DELETE FROM subjects WHERE id = old.id;
END;
CREATE TRIGGER chains_have_a_history AFTER INSERT ON chains
BEGIN
    INSERT INTO subjects (id, name) VALUES (-new.id, new.name);
END;
CREATE TRIGGER chains_leave_their_history AFTER DELETE ON chains
BEGIN
    DELETE FROM subjects WHERE id = -old.id;
END;

-- Which members a chain's request passed, and when, as JSON; NULL for functions.
ALTER TABLE invocations ADD COLUMN trace TEXT;
