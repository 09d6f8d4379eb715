-- What the import of a version was seen to leave running. Not part of the version, which never changes: it is found out
-- when the version is booted.
CREATE TABLE version_threads (
    function_id INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    threads     TEXT    NOT NULL, -- JSON: how many, and what the first few are called
    PRIMARY KEY (function_id, version),
    FOREIGN KEY (function_id, version) REFERENCES versions (function_id, version) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
