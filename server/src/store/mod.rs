//! SQLite: what was asked for (functions, versions, tokens, sessions) and what happened (invocations, logs, rollups).
