-- Latency over days, read in milliseconds: what needed a start is told apart, old minutes are merged, and there are
-- totals that outlive both.

-- Of `total`, the invocations that needed a start (fork, restore, boot), and those that never got an instance. NULL when
-- there were none; NULL too in rows from before this migration, which cannot be told apart when fork + restore + boot or
-- what is in none of the four counts is not 0.
ALTER TABLE rollups ADD COLUMN cold BLOB;
ALTER TABLE rollups ADD COLUMN unserved BLOB;

-- The sum of the minutes of a quarter of an hour. Minutes are moved here two hours after they are over, in one
-- transaction, so that an invocation is counted either there or here and never twice.
CREATE TABLE rollup_quarters (
    function_id    INTEGER NOT NULL,
    quarter        INTEGER NOT NULL, -- quarters of an hour since 1970-01-01 UTC
    count          INTEGER NOT NULL,
    errors         INTEGER NOT NULL,
    warm           INTEGER NOT NULL,
    fork           INTEGER NOT NULL,
    restore        INTEGER NOT NULL,
    boot           INTEGER NOT NULL,
    max_queue_us   INTEGER NOT NULL,
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
    total          BLOB    NOT NULL,
    cold           BLOB,             -- as in rollups
    unserved       BLOB,
    PRIMARY KEY (function_id, quarter)
) STRICT, WITHOUT ROWID;

-- All that ever finished, by function; function 0 is all functions together, deleted ones included. Changed in the
-- transaction that stores a rollup, never by the removal of old ones: a counter must not go backwards.
CREATE TABLE totals (
    function_id INTEGER PRIMARY KEY,
    count       INTEGER NOT NULL,
    errors      INTEGER NOT NULL
) STRICT;

INSERT INTO totals (function_id, count, errors)
SELECT function_id, sum(count), sum(errors) FROM rollups GROUP BY function_id;
INSERT INTO totals (function_id, count, errors)
SELECT 0, coalesce(sum(count), 0), coalesce(sum(errors), 0) FROM totals;
