-- Events that the test panel offers again. They belong to a function and to nobody in particular: who may change the
-- function may change them.
CREATE TABLE saved_events (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    function_id INTEGER NOT NULL REFERENCES functions (id) ON DELETE CASCADE,
    name        TEXT    NOT NULL,
    event       TEXT    NOT NULL, -- JSON, as it was typed
    created_us  INTEGER NOT NULL,
    updated_us  INTEGER NOT NULL,
    UNIQUE (function_id, name)
) STRICT;
