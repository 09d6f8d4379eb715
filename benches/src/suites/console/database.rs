//! The database that the pages are measured with: made once, by SQL, and kept below `target` for some hours.
//!
//! A server makes the file and deploys one function; that function is copied, and its history is put together row by row
//! inside SQLite. One function in a hundred is busy, one of them by far the most.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, ensure};
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

use crate::server::{Runtime, Server};

/// The function with the most invocations.
pub const BUSY: &str = "fn-0001";
/// One of those with few.
pub const QUIET: &str = "fn-0015";
/// A word of one line in a hundred thousand.
pub const RARE_WORD: &str = "needle";
/// A word of every line.
pub const FREQUENT_WORD: &str = "order";
/// How long a database is used before another is made: its newest rows must be of the last hour for the pages that show
/// that.
const FRESH: Duration = Duration::from_secs(2 * 3600);
/// The history's length, s.
const WEEK: u64 = 7 * 86_400;

/// How much is put into it.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    name: &'static str,
    functions: u64,
    invocations: u64,
    /// One invocation in so many wrote a line.
    one_line_in: u64,
}

impl Extent {
    /// The goal's.
    pub const WHOLE: Self = Self {
        name: "whole",
        functions: 1_000,
        invocations: 10_000_000,
        one_line_in: 5,
    };
    /// Enough to show that it works.
    pub const QUICK: Self = Self {
        name: "quick",
        functions: 20,
        invocations: 20_000,
        one_line_in: 5,
    };

    /// Last row number of the busiest function, and of the ten busy ones together.
    fn shares(&self) -> (u64, u64) {
        (self.invocations / 5, self.invocations * 3 / 5)
    }
}

/// The database.
pub struct Data {
    /// The server's data directory.
    pub path: PathBuf,
    /// An invocation of the busiest function, in the middle of its history.
    pub middle: String,
    counts: Vec<(&'static str, f64, &'static str)>,
}

impl Data {
    /// How large it is.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, f64, &'static str)> {
        self.counts.iter().copied()
    }
}

/// The database of this extent, made when there is none that is fresh.
pub fn prepare(extent: &Extent) -> anyhow::Result<Data> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let target = std::env::current_exe()?
        .ancestors()
        .nth(2)
        .context("no target directory")?
        .join("bench");
    let path = target.join(format!("console-{}", extent.name));
    if !is_fresh(&path) {
        let begun = Instant::now();
        let parts = target.join(format!("console-{}.parts", extent.name));
        for old in [&path, &parts] {
            if old.exists() {
                std::fs::remove_dir_all(old)?;
            }
        }
        std::fs::create_dir_all(&parts)?;
        deploy(&parts)?;
        runtime.block_on(fill(&parts, extent))?;
        std::fs::write(parts.join(MARK), "")?;
        std::fs::rename(&parts, &path)?;
        println!(
            "console: made a database in {} s",
            begun.elapsed().as_secs()
        );
    }
    runtime.block_on(describe(path))
}

/// Says that a database is complete, and since when.
const MARK: &str = "bench-database";

fn is_fresh(path: &Path) -> bool {
    // What the migrations say decides what can be in it: another set needs another database.
    let schema = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified());
    let made = match schema(&path.join(MARK)) {
        Ok(made) => made,
        Err(_) => return false,
    };
    let program = crate::server::executable().and_then(|file| Ok(schema(&file)?));
    let age = SystemTime::now().duration_since(made);
    age.is_ok_and(|age| age < FRESH) && program.is_ok_and(|built| built < made)
}

/// Lets a server make the file and one function in it.
fn deploy(data: &Path) -> anyhow::Result<()> {
    let server = Server::start_in(data.to_owned(), &[])?;
    server.deploy(BUSY, Runtime::Python, Runtime::Python.echo(), &json!({}))?;
    server.call("POST", &format!("/functions/{BUSY}/invoke"), &json!({}))?;
    // The minute's statistics, for their form, are stored when the server stops.
    server.stop()
}

async fn open(data: &Path) -> anyhow::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(data.join("hearth.db"))
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("cache_size", "-262144")
        .pragma("temp_store", "MEMORY");
    Ok(options.connect().await?)
}

async fn run(database: &mut SqliteConnection, sql: String) -> anyhow::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql.clone()))
        .execute(database)
        .await
        .with_context(|| sql)?;
    Ok(())
}

async fn fill(data: &Path, extent: &Extent) -> anyhow::Result<()> {
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

async fn describe(path: PathBuf) -> anyhow::Result<Data> {
    let mut database = open(&path).await?;
    let mut ask = async |sql: &'static str| -> anyhow::Result<f64> {
        let found: i64 = sqlx::query_scalar(sql).fetch_one(&mut database).await?;
        Ok(found as f64)
    };
    let counts = vec![
        (
            "functions",
            ask("SELECT count(*) FROM functions").await?,
            "",
        ),
        (
            "invocations",
            ask("SELECT row_count FROM history_sizes WHERE kind = 'invocations'").await?,
            "",
        ),
        (
            "log lines",
            ask("SELECT row_count FROM history_sizes WHERE kind = 'logs'").await?,
            "",
        ),
        (
            "size of the file",
            std::fs::metadata(path.join("hearth.db"))?.len() as f64 / f64::from(1 << 20),
            "MiB",
        ),
    ];
    // Half of the week ago: ids begin with the time.
    let middle: String = sqlx::query_scalar(
        "SELECT lower(hex(id)) FROM invocations WHERE function_id = 1 \
         AND id > unhex(printf('%012x', (unixepoch() - 302400) * 1000)) ORDER BY id LIMIT 1",
    )
    .fetch_one(&mut database)
    .await?;
    database.close().await?;
    Ok(Data {
        path,
        middle,
        counts,
    })
}
