-- Accounts: users, their sessions, what tokens may reach, and the log of every change.

-- Users of the console and, through their session, of the API.
CREATE TABLE users (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE, -- lower case, so that no two differ by case alone
    role          INTEGER NOT NULL,        -- 1 viewer, 2 operator, 3 admin
    password      TEXT    NOT NULL,        -- argon2id with its parameters and salt, as a PHC string
    disabled      INTEGER NOT NULL,        -- 1: cannot log in, and has no session
    created_us    INTEGER NOT NULL,
    last_login_us INTEGER
) STRICT;

ALTER TABLE tokens ADD COLUMN scope TEXT;           -- JSON array of functions' names; NULL: every function
ALTER TABLE tokens ADD COLUMN expires_us INTEGER;   -- NULL: never
ALTER TABLE tokens ADD COLUMN last_used_us INTEGER; -- written in batches; NULL: never used

-- Sessions know their owner, their origin and when they were last used. Those from before know none of it and end.
DROP TABLE sessions;

CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- names a session in an address; opens nothing
    hash       BLOB    NOT NULL UNIQUE,           -- SHA-256 of the cookie, 32 bytes
    user_id    INTEGER REFERENCES users (id) ON DELETE CASCADE,
    token_id   INTEGER REFERENCES tokens (id) ON DELETE CASCADE,
    csrf       TEXT    NOT NULL,
    address    TEXT    NOT NULL, -- where it was opened from
    agent      TEXT    NOT NULL, -- the browser's User-Agent, cut
    created_us INTEGER NOT NULL,
    seen_us    INTEGER NOT NULL, -- at most a minute behind
    expires_us INTEGER NOT NULL, -- however much it is used
    CHECK ((user_id IS NULL) <> (token_id IS NULL))
) STRICT;

-- For the cascades, and for an owner's list.
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_token ON sessions (token_id);
-- For the removal of expired ones.
CREATE INDEX sessions_by_expiry ON sessions (expires_us);

-- Who changed what. No foreign keys: a row outlives whom and what it names. Rows are added and, when they are old,
-- removed; nobody changes one.
CREATE TABLE audit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of the changes; the key of the pages
    time_us    INTEGER NOT NULL,
    actor_kind INTEGER NOT NULL, -- 1 user, 2 token, 3 nobody who is known
    actor      TEXT    NOT NULL, -- the name at that time; what was typed, when a log-in failed
    action     TEXT    NOT NULL, -- such as function.create
    target     TEXT    NOT NULL, -- name of the function, user, token …; may be empty
    address    TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    detail     TEXT    NOT NULL  -- names of changed fields and the like, never a secret; may be empty
) STRICT;

-- Each ends with the id, as every index does, so that a filtered page is read in its order.
CREATE INDEX audit_by_actor ON audit (actor);
CREATE INDEX audit_by_action ON audit (action);
CREATE INDEX audit_by_target ON audit (target);
-- For the removal of old ones.
CREATE INDEX audit_by_time ON audit (time_us);
