-- The first schema. Conventions of every table:
--   * STRICT: a value of the wrong type is refused, not converted.
--   * times are INTEGER microseconds since 1970-01-01 UTC, and their columns end in _us;
--   * durations of an invocation's stages are INTEGER microseconds as well, and end in _us;
--   * small enumerations are INTEGER codes; server/src/store/codes.rs is the list, and a code never changes its meaning.

------------------------------------------------------------------------------------------------------------------------
-- What was asked for
------------------------------------------------------------------------------------------------------------------------

-- AUTOINCREMENT: an id is never given again, because the uid a function runs as is made from it, and because rows of a
-- deleted function's history may still be waiting for their removal.
CREATE TABLE functions (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT    NOT NULL UNIQUE,
    active_version INTEGER NOT NULL,
    created_us     INTEGER NOT NULL,
    updated_us     INTEGER NOT NULL,
    -- Deferred, because a function and its first version are written in one transaction and refer to each other.
    FOREIGN KEY (id, active_version) REFERENCES versions (function_id, version) DEFERRABLE INITIALLY DEFERRED
) STRICT;

-- Immutable: rows are inserted, and deleted with their function, never updated.
CREATE TABLE versions (
    function_id INTEGER NOT NULL REFERENCES functions (id) ON DELETE CASCADE,
    version     INTEGER NOT NULL,
    spec        TEXT    NOT NULL, -- the settings as JSON; holds the values of env, which are secrets
    code_sha256 TEXT    NOT NULL, -- hex; name of the directory the code is unpacked in
    code_bytes  INTEGER NOT NULL,
    created_us  INTEGER NOT NULL,
    PRIMARY KEY (function_id, version)
) STRICT, WITHOUT ROWID;

-- API tokens. The secret itself is nowhere: 256 random bits need no slow hash, SHA-256 is enough.
CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL,
    rights     TEXT    NOT NULL,        -- JSON array: "read", "invoke", "write", "admin"
    hash       BLOB    NOT NULL UNIQUE, -- SHA-256 of the secret, 32 bytes
    bootstrap  INTEGER NOT NULL,        -- 1: came from the server's configuration, and is replaced when that changes
    created_us INTEGER NOT NULL
) STRICT;

-- Sessions of the console.
CREATE TABLE sessions (
    hash       BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the cookie, 32 bytes
    token_id   INTEGER NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    csrf       TEXT    NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- For the cascade above.
CREATE INDEX sessions_by_token ON sessions (token_id);
-- For the removal of expired ones.
CREATE INDEX sessions_by_expiry ON sessions (expires_us);

------------------------------------------------------------------------------------------------------------------------
-- What happened. No foreign keys: a history is written in bulk, and removed in pieces long after its function.
------------------------------------------------------------------------------------------------------------------------

-- Finished invocations. The id is a UUIDv7, which sorts by the time of admission: the table is kept in the order in which
-- it is read (one function, newest first), and each function's rows are appended at one place. Deleting by age is a
-- range of ids.
CREATE TABLE invocations (
    function_id    INTEGER NOT NULL,
    id             BLOB    NOT NULL, -- 16 bytes
    version        INTEGER NOT NULL,
    trigger_code   INTEGER NOT NULL,
    status         INTEGER NOT NULL,
    start_code     INTEGER,          -- NULL: it never got an instance
    received_us    INTEGER NOT NULL,
    finished_us    INTEGER,
    queue_us       INTEGER NOT NULL,
    start_us       INTEGER NOT NULL,
    send_us        INTEGER NOT NULL,
    run_us         INTEGER NOT NULL,
    recv_us        INTEGER NOT NULL,
    total_us       INTEGER NOT NULL,
    request_bytes  INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    error          TEXT,             -- JSON: errorType, errorMessage, stackTrace
    PRIMARY KEY (function_id, id)
) STRICT, WITHOUT ROWID;

-- One invocation by its id.
CREATE UNIQUE INDEX invocations_by_id ON invocations (id);
-- One function's invocations of one status, newest first.
CREATE INDEX invocations_by_status ON invocations (function_id, status, id);

-- Lines functions wrote, in the order in which they were stored.
CREATE TABLE logs (
    seq         INTEGER PRIMARY KEY,
    function_id INTEGER NOT NULL,
    invocation  BLOB,             -- 16 bytes; NULL: written while the function was imported
    time_us     INTEGER NOT NULL,
    stream      INTEGER NOT NULL, -- 1 stdout, 2 stderr
    text        TEXT    NOT NULL
) STRICT;

-- The newest lines of a function; deleting by age.
CREATE INDEX logs_by_time ON logs (function_id, time_us);
-- The lines of an invocation.
CREATE INDEX logs_by_invocation ON logs (invocation) WHERE invocation IS NOT NULL;

-- Latency and counts of the invocations of one function that finished in one minute. Several rows may be of the same
-- minute (a restart in the middle of it, an invocation recorded late): their sum counts.
CREATE TABLE rollups (
    id             INTEGER PRIMARY KEY,
    function_id    INTEGER NOT NULL,
    minute         INTEGER NOT NULL, -- minutes since 1970-01-01 UTC
    count          INTEGER NOT NULL,
    errors         INTEGER NOT NULL,
    warm           INTEGER NOT NULL,
    fork           INTEGER NOT NULL,
    restore        INTEGER NOT NULL,
    boot           INTEGER NOT NULL,
    max_queue_us   INTEGER NOT NULL, -- the histograms know the longest only to two digits
    max_start_us   INTEGER NOT NULL,
    max_send_us    INTEGER NOT NULL,
    max_run_us     INTEGER NOT NULL,
    max_recv_us    INTEGER NOT NULL,
    max_total_us   INTEGER NOT NULL,
    queue          BLOB    NOT NULL, -- HdrHistogram V2, uncompressed
    start          BLOB    NOT NULL,
    send           BLOB    NOT NULL,
    run            BLOB    NOT NULL,
    recv           BLOB    NOT NULL,
    total          BLOB    NOT NULL
) STRICT;

CREATE INDEX rollups_by_minute ON rollups (function_id, minute);

-- Functions whose row is gone and whose history is still being removed, a piece at a time. What a crash interrupts is
-- continued at the next start.
CREATE TABLE deleted_functions (
    id INTEGER PRIMARY KEY
) STRICT;
