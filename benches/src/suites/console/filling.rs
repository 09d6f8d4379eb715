//! Fills the database by SQL: functions and versions, invocations and lines, statistics.

use std::path::Path;

use anyhow::{Context, ensure};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::database::{Extent, FREQUENT_WORD, RARE_WORD, open};

/// The history's length, s.
const WEEK: u64 = 7 * 86_400;

async fn run(database: &mut SqliteConnection, sql: String) -> anyhow::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql.clone()))
        .execute(database)
        .await
        .with_context(|| sql)?;
    Ok(())
}

pub(super) async fn fill(data: &Path, extent: &Extent) -> anyhow::Result<()> {
    let mut database = open(data).await?;
    // It is thrown away when it is not completed.
    run(
        &mut database,
        "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF".into(),
    )
    .await?;
    // Rows first, then what is built over them: many times faster than row by row.
    let built: Vec<(String, String)> = sqlx::query(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('index', 'trigger') \
         AND tbl_name IN ('invocations', 'logs')",
    )
    .fetch_all(&mut database)
    .await?
    .iter()
    .map(|row| {
        let (kind, name): (String, String) = (row.get(0), row.get(1));
        (format!("DROP {kind} {name}"), row.get(2))
    })
    .collect();
    for (drop, _) in &built {
        run(&mut database, drop.clone()).await?;
    }
    for sql in statements(extent) {
        run(&mut database, sql).await?;
    }
    for (_, create) in built {
        run(&mut database, create).await?;
    }
    run(
        &mut database,
        "INSERT INTO log_search (log_search) VALUES ('rebuild'); PRAGMA wal_checkpoint(TRUNCATE)"
            .into(),
    )
    .await?;
    statistics(&mut database).await?;
    run(&mut database, "PRAGMA wal_checkpoint(TRUNCATE)".into()).await?;
    database.close().await?;
    Ok(())
}

/// Functions, invocations and lines.
fn statements(extent: &Extent) -> Vec<String> {
    let Extent {
        functions,
        invocations,
        one_line_in,
        ..
    } = *extent;
    let (busiest, busy) = extent.shares();
    let others = functions.saturating_sub(11).max(1);
    vec![
        format!(
            "DELETE FROM invocations; DELETE FROM logs; DELETE FROM invocation_payloads; \
             INSERT INTO functions (id, name, active_version, created_us, updated_us) \
             WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {functions}) \
             SELECT i, printf('fn-%04d', i), active_version, created_us, updated_us \
             FROM n CROSS JOIN functions f ON f.id = 1"
        ),
        "INSERT INTO versions (function_id, version, spec, code_sha256, code_bytes, created_us) \
         SELECT f.id, v.version, json_set(v.spec, '$.name', f.name), v.code_sha256, v.code_bytes, v.created_us \
         FROM functions f CROSS JOIN versions v ON v.function_id = 1 WHERE f.id > 1"
            .to_owned(),
        // Ids as UUIDv7 makes them, over the week before now, in each function's own order. `r` is spread by a
        // multiplication, so that the same number gives the same row.
        format!(
            "INSERT INTO invocations \
                 (function_id, id, version, trigger_code, status, start_code, received_us, finished_us, \
                  queue_us, start_us, send_us, run_us, recv_us, total_us, request_bytes, response_bytes, attempts, error) \
             WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {invocations} - 1), \
             placed (i, function, share) AS (SELECT i, \
                 CASE WHEN i < {busiest} THEN 1 \
                      WHEN i < {busy} THEN 2 + (i - {busiest}) * 10 / ({busy} - {busiest}) \
                      ELSE 12 + (i - {busy}) * {others} / ({invocations} - {busy}) END, \
                 CASE WHEN i < {busiest} THEN i * 1.0 / {busiest} \
                      WHEN i < {busy} THEN ((i - {busiest}) * 10 % ({busy} - {busiest})) * 1.0 / ({busy} - {busiest}) \
                      ELSE ((i - {busy}) * {others} % ({invocations} - {busy})) * 1.0 / ({invocations} - {busy}) END \
                 FROM n), \
             timed (i, function, share, ms, r) AS (SELECT i, function, share, \
                 CAST((unixepoch() - {WEEK} + share * {WEEK}) * 1000 AS INTEGER), (i * 2654435761) & 1048575 FROM placed) \
             SELECT min(function, {functions}), unhex(printf('%012x7%03x8%015x', ms, i & 4095, i)), \
                 CASE WHEN share < 0.05 THEN 1 ELSE 2 END, \
                 CASE WHEN r % 10 = 0 THEN 2 ELSE 1 END, \
                 CASE WHEN r % 200 = 7 THEN 4 WHEN r % 5000 = 11 THEN 5 ELSE 3 END, \
                 CASE WHEN r % 20000 = 3 THEN 4 WHEN r % 500 = 3 THEN 2 ELSE 1 END, \
                 ms * 1000, ms * 1000 + t, 1, 0, 3, t - 5, 1, t, 100, 300, 1, \
                 CASE WHEN r % 200 = 7 THEN '{ERROR}' END \
             FROM (SELECT *, CASE WHEN r % 50000 = 17 THEN 1500000 WHEN r % 1000 = 9 THEN 15000 + r % 10000 \
                                  ELSE 200 + r % 3000 END AS t FROM timed)"
        ),
        format!(
            "INSERT INTO logs (function_id, invocation, time_us, stream, text) \
             SELECT function_id, id, received_us, CASE WHEN status = 3 THEN 1 ELSE 2 END, \
                 printf('{FREQUENT_WORD} %d of customer %d was %s in %d us', received_us % 1000003, total_us % 977, \
                        CASE WHEN received_us % 100003 = 0 THEN '{RARE_WORD}' \
                             WHEN function_id > 1 AND received_us % 1009 = 0 THEN 'elsewhere' ELSE 'served' END, total_us) \
             FROM invocations WHERE abs(random()) % {one_line_in} = 0 ORDER BY received_us"
        ),
        "DELETE FROM history_sizes; \
         INSERT INTO history_sizes SELECT 'invocations', count(*), coalesce(sum(octet_length(error)), 0) FROM invocations; \
         INSERT INTO history_sizes SELECT 'logs', count(*), sum(octet_length(text)) FROM logs; \
         INSERT INTO history_sizes VALUES ('payloads', 0, 0); \
         INSERT OR REPLACE INTO settings VALUES \
             ('retention', '{\"invocations_mib\": 100000, \"logs_mib\": 100000}')"
            .to_owned(),
    ]
}

/// An error as the history has it.
const ERROR: &str = r#"{"errorType":"ValueError","errorMessage":"no such order","stackTrace":["Traceback (most recent call last):\n","  File \"main.py\", line 2, in handler\n"]}"#;

/// Statistics of every quarter of an hour, in the form the server stored its own in.
async fn statistics(database: &mut SqliteConnection) -> anyhow::Result<()> {
    let has_quarters: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = 'rollup_quarters'")
            .fetch_one(&mut *database)
            .await?;
    let form: i64 = sqlx::query_scalar("SELECT count(*) FROM rollups WHERE function_id = 1")
        .fetch_one(&mut *database)
        .await?;
    ensure!(form > 0, "the server stored no statistics");
    let columns =
        async |database: &mut SqliteConnection, table: &str| -> anyhow::Result<Vec<String>> {
            let sql = format!("SELECT name FROM pragma_table_info('{table}')");
            let rows = sqlx::query_scalar(AssertSqlSafe(sql))
                .fetch_all(database)
                .await?;
            Ok(rows)
        };
    let form_columns = columns(database, "rollups").await?;
    let copied = |skip: &[&str], of: &[String]| -> String {
        let kept = of
            .iter()
            .filter(|name| !skip.contains(&name.as_str()) && form_columns.contains(*name));
        kept.map(|name| format!(", {name}")).collect()
    };
    let quarters = "WITH RECURSIVE q (i) AS (SELECT 9 UNION ALL SELECT i + 1 FROM q WHERE i < 7 * 96), \
                    form AS (SELECT * FROM rollups WHERE function_id = 1 LIMIT 1)";
    // What is younger than two hours is not merged yet: those are minutes.
    let (table, place, value) = match has_quarters {
        0 => ("rollups", "minute", "unixepoch() / 60 - i * 15"),
        _ => ("rollup_quarters", "quarter", "unixepoch() / 900 - i"),
    };
    let target = columns(database, table).await?;
    let rest = copied(&["id", "function_id", "minute", "quarter"], &target);
    run(
        database,
        format!(
            "INSERT INTO {table} (function_id, {place}{rest}) {quarters} \
             SELECT f.id, {value}{rest} FROM functions f CROSS JOIN q CROSS JOIN form"
        ),
    )
    .await?;
    let rest = copied(&["id", "function_id", "minute"], &form_columns);
    run(
        database,
        format!(
            "INSERT INTO rollups (function_id, minute{rest}) \
             WITH RECURSIVE m (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM m WHERE i < 120), \
             form AS (SELECT * FROM rollups WHERE function_id = 1 LIMIT 1) \
             SELECT f.id, unixepoch() / 60 - i{rest} FROM functions f CROSS JOIN m CROSS JOIN form \
             WHERE f.id <= 11 OR i % 3 = 0"
        ),
    )
    .await?;
    // The newest minute of each says that nothing came after it: the start has nothing to count again.
    let counts = rest.replace(", count", "").replace(", errors", "");
    run(
        database,
        format!(
            "INSERT INTO rollups (function_id, minute, count, errors{counts}) \
             SELECT f.id, unixepoch() / 60 + 1, 0, 0{counts} \
             FROM functions f CROSS JOIN (SELECT * FROM rollups WHERE function_id = 1 LIMIT 1)"
        ),
    )
    .await?;
    let has_totals: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = 'totals'")
            .fetch_one(&mut *database)
            .await?;
    if has_totals > 0 {
        let totals = "DELETE FROM totals; INSERT INTO totals (function_id, count, errors) \
                      SELECT function_id, count(*), sum(status <> 3) FROM invocations GROUP BY function_id; \
                      INSERT INTO totals (function_id, count, errors) SELECT 0, sum(count), sum(errors) FROM totals";
        run(database, totals.to_owned()).await?;
    }
    Ok(())
}
