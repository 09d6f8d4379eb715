//! The rows of `invocations`, many to a statement, each value bound by itself: of a row of 20 columns in JSON, SQLite spends
//! more time on finding the columns than on storing them.
//!
//! A statement has a number of rows that is among [`SIZES`], so that a handful of prepared ones serve every batch.

use std::sync::LazyLock;

use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments as _, SqliteConnection};
use uuid::Uuid;

use crate::model::{InvocationCounters, InvocationRecord};
use crate::store::codes::{StoredCode, signed};

/// Rows of a statement, largest first, down to a single one.
const SIZES: [usize; 5] = [256, 64, 16, 4, 1];

/// The columns, in the order in which [`NewInvocationRow::bind`] gives their values.
const COLUMNS: [&str; 20] = [
    "function_id",
    "id",
    "version",
    "trigger_code",
    "status",
    "start_code",
    "received_us",
    "finished_us",
    "queue_us",
    "start_us",
    "send_us",
    "run_us",
    "recv_us",
    "total_us",
    "request_bytes",
    "response_bytes",
    "attempts",
    "error",
    "trace",
    "counters",
];

/// A statement for each of [`SIZES`].
static STATEMENTS: LazyLock<[String; SIZES.len()]> = LazyLock::new(|| SIZES.map(statement));

/// One row.
#[derive(Debug)]
pub(super) struct NewInvocationRow {
    function: i64,
    id: Uuid,
    /// From `version` to `attempts`.
    numbers: [Option<i64>; COLUMNS.len() - 5],
    error: Option<String>,
    trace: Option<String>,
    counters: Option<String>,
}

impl NewInvocationRow {
    /// A finished invocation of a function or chain, with its error and its trace in JSON.
    pub(super) fn new(
        function: i64,
        record: &InvocationRecord,
        error: Option<String>,
        trace: Option<String>,
    ) -> Self {
        let stages = &record.stages_us;
        Self {
            function,
            id: record.id.0,
            numbers: [
                Some(record.version.into()),
                Some(record.trigger.code()),
                Some(record.status.code()),
                record.start.map(StoredCode::code),
                Some(record.received_at.as_microsecond()),
                record.finished_at.map(|time| time.as_microsecond()),
                Some(signed(stages.queue)),
                Some(signed(stages.start)),
                Some(signed(stages.send)),
                Some(signed(stages.run)),
                Some(signed(stages.recv)),
                Some(signed(stages.total)),
                Some(signed(record.request_bytes)),
                Some(signed(record.response_bytes)),
                Some(record.attempts.into()),
            ],
            error,
            trace,
            counters: record.counters.as_ref().map(counters),
        }
    }

    fn bind(&self, values: &mut SqliteArguments) -> Result<(), sqlx::error::BoxDynError> {
        values.add(self.function)?;
        values.add(&self.id.as_bytes()[..])?;
        for number in self.numbers {
            values.add(number)?;
        }
        values.add(self.error.as_deref())?;
        values.add(self.trace.as_deref())?;
        values.add(self.counters.as_deref())
    }
}

/// Stores the rows whose functions are there, in the place of those that are stored already, and counts them.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    mut rows: &[NewInvocationRow],
) -> sqlx::Result<u64> {
    let mut stored = 0;
    for (size, statement) in SIZES.into_iter().zip(STATEMENTS.iter()) {
        while let Some((now, later)) = rows.split_at_checked(size) {
            let mut values = SqliteArguments::default();
            values.reserve(size * COLUMNS.len(), 0);
            for row in now {
                row.bind(&mut values).map_err(sqlx::Error::Encode)?;
            }
            let done = sqlx::query_with(statement.as_str(), values);
            stored += done.execute(&mut *connection).await?.rows_affected();
            rows = later;
        }
    }
    Ok(stored)
}

/// See the migration.
fn counters(counters: &InvocationCounters) -> String {
    let InvocationCounters {
        minor_faults,
        major_faults,
        preemptions,
        pauses,
        paused_us,
    } = counters;
    let or_null = |number: Option<u64>| number.map_or_else(|| "null".to_owned(), |n| n.to_string());
    let [preemptions, pauses] = [preemptions, pauses].map(|number| or_null(number.map(u64::from)));
    let paused_us = or_null(*paused_us);
    format!("[{minor_faults},{major_faults},{preemptions},{pauses},{paused_us}]")
}

/// The statement for this many rows.
fn statement(rows: usize) -> String {
    let columns = COLUMNS.join(", ");
    let values = format!("({})", ["?"; COLUMNS.len()].join(","));
    let values = vec![values; rows].join(",");
    let others: Vec<_> = (2..=COLUMNS.len())
        .map(|column| format!("r.column{column}"))
        .collect();
    // CROSS JOIN: take the rows first, and look up the function of each.
    format!(
        "INSERT OR REPLACE INTO invocations ({columns}) SELECT f.id, {} \
         FROM (VALUES {values}) r CROSS JOIN subjects f ON f.id = r.column1",
        others.join(", ")
    )
}
