-- Secrets that functions use. The values are sealed with the key in the file `secrets.key` beside the database, each for its
-- name and revision.
CREATE TABLE secrets (
    name         TEXT    NOT NULL PRIMARY KEY,
    revision     INTEGER NOT NULL, -- another one for each value, also of a later secret of the same name
    sealed       BLOB    NOT NULL,
    created_us   INTEGER NOT NULL,
    updated_us   INTEGER NOT NULL,
    last_used_us INTEGER
) STRICT, WITHOUT ROWID;
