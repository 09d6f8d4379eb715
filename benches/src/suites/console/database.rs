//! The database for measuring pages, created by SQL and kept below `target` for some hours.
//!
//! A server creates the file and deploys one function; that function is copied, and its history is generated inside
//! SQLite. One function in a hundred is busy, one of them by far the most.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _};

use super::filling::fill;
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

/// How much is put into it.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    name: &'static str,
    pub(super) functions: u64,
    pub(super) invocations: u64,
    /// One in this many invocations wrote a line.
    pub(super) one_line_in: u64,
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
    pub(super) fn shares(&self) -> (u64, u64) {
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

/// The database of this size. Creates it if there is no recent one.
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
    server.stop();
    Ok(())
}

pub(super) async fn open(data: &Path) -> anyhow::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(data.join("hearth.db"))
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("cache_size", "-262144")
        .pragma("temp_store", "MEMORY");
    Ok(options.connect().await?)
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
