-- What looking into a large history needs: indexes for its filters, events and results, a search over log lines, sizes, and
-- the settings by which all of it is kept.

------------------------------------------------------------------------------------------------------------------------
-- Filters. Rows are read one function at a time, newest first, from the table itself; what is frequent is found that way
-- soon. An index pays for what is rare. An invocation costs as much to write with these five as with the three of before
-- (6.5 µs of CPU in batches of 4,096, SQLite 3.51), because most rows are in none of the partial ones.
------------------------------------------------------------------------------------------------------------------------

DROP INDEX invocations_by_status;
-- What did not succeed (3), by how it ended.
CREATE INDEX invocations_unsuccessful ON invocations (function_id, status, id) WHERE status <> 3;
-- What did not find a warm instance (1), by the start_kind it began on.
CREATE INDEX invocations_cold ON invocations (function_id, start_code, id) WHERE start_code <> 1;
-- What took a second or more: how many of them a host can end in a second is bounded by how many it can run at once.
CREATE INDEX invocations_slow ON invocations (function_id, id, total_us) WHERE total_us >= 1000000;
-- An old version's, which all that came later would be in front of.
CREATE INDEX invocations_by_version ON invocations (function_id, version, id);

------------------------------------------------------------------------------------------------------------------------
-- Events and results, each cut to a size and only so many a second: see server/src/history/payload.rs.
------------------------------------------------------------------------------------------------------------------------

-- A table of its own, so that the history stays narrow. Rows are added at the end, and removed from the beginning or with
-- their invocation.
CREATE TABLE invocation_payloads (
    seq          INTEGER PRIMARY KEY,
    invocation   BLOB    NOT NULL UNIQUE, -- 16 bytes
    event        TEXT,                    -- NULL: not kept, or not text
    event_flags  INTEGER NOT NULL,        -- 1: there is more of it than is kept; 2: it is not text
    result       TEXT,
    result_flags INTEGER NOT NULL
) STRICT;

------------------------------------------------------------------------------------------------------------------------
-- Search. The index holds words and where they are, not the lines; `owner` is a word that stands for the function, so
-- that a search in one function meets only its lines. Kept in step by triggers: whoever writes or deletes lines cannot
-- forget it. A thousand lines of 60 bytes cost 2.6 ms of CPU without it and 6.5 ms with it, in batches of 4,096.
------------------------------------------------------------------------------------------------------------------------

CREATE VIEW log_search_source AS SELECT seq, 'f' || function_id AS owner, text FROM logs;

-- Accents count, as they do in most logs; columnsize is for ranking, and lines are found by their time.
CREATE VIRTUAL TABLE log_search USING fts5 (
    owner, text,
    content = 'log_search_source', content_rowid = 'seq', columnsize = 0, tokenize = 'unicode61 remove_diacritics 0'
);
INSERT INTO log_search (log_search) VALUES ('rebuild');

CREATE TRIGGER logs_indexed AFTER INSERT ON logs BEGIN
    INSERT INTO log_search (rowid, owner, text) VALUES (new.seq, 'f' || new.function_id, new.text);
END;
CREATE TRIGGER logs_unindexed AFTER DELETE ON logs BEGIN
    INSERT INTO log_search (log_search, rowid, owner, text)
    VALUES ('delete', old.seq, 'f' || old.function_id, old.text);
END;

------------------------------------------------------------------------------------------------------------------------
-- Retention
------------------------------------------------------------------------------------------------------------------------

-- Settings of the node that are changed while it runs, each as JSON.
CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How much of each kind there is, counted by those who write and delete, because counting ten million rows takes seconds.
-- `text_bytes` is the text of variable length; what a row takes beside it is known.
CREATE TABLE history_sizes (
    kind       TEXT    NOT NULL PRIMARY KEY, -- invocations, payloads, logs
    row_count  INTEGER NOT NULL,
    text_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO history_sizes (kind, row_count, text_bytes)
SELECT 'invocations', count(*), coalesce(sum(length(CAST(error AS BLOB))), 0) FROM invocations;
INSERT INTO history_sizes (kind, row_count, text_bytes) VALUES ('payloads', 0, 0);
INSERT INTO history_sizes (kind, row_count, text_bytes)
SELECT 'logs', count(*), coalesce(sum(length(CAST(text AS BLOB))), 0) FROM logs;
