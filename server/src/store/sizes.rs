//! Row counts and sizes of each kind.
//!
//! Counting ten million rows takes seconds, and asking SQLite for the pages of a table reads all of them. So writers
//! and removers maintain counters in their own transactions. Disk usage is estimated from them: the text plus a
//! constant per row for columns and indexes. The file's own size is exact.

use sqlx::{Sqlite, Transaction};

use super::codes::{signed, unsigned};
use super::{During, Store, StoreError};

/// Bytes an invocation takes beside its error, its share of the indexes included: measured on three million rows, and its counters,
/// up to 15 bytes as a rule.
const INVOCATION_BYTES: u64 = 145;
/// Bytes an event with its result takes beside their text.
const PAYLOAD_BYTES: u64 = 70;
/// Bytes a log line takes beside its text, its share of two indexes included.
const LINE_BYTES: u64 = 100;
/// Bytes a log line takes for each byte of its text, in tenths: the text itself and the index for its search.
const LINE_TEXT_TENTHS: u64 = 19;

/// Rows of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// How many.
    pub rows: u64,
    /// Bytes of their text of variable length.
    pub text: u64,
}

impl Size {
    /// A size; no rows have no text.
    pub(super) fn of(rows: u64, text: usize) -> Self {
        Self {
            rows,
            text: if rows == 0 { 0 } else { text as u64 },
        }
    }
}

/// How much there is of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Invocations; the text is that of errors and traces.
    pub invocations: Size,
    /// Events and results.
    pub payloads: Size,
    /// Log lines.
    pub logs: Size,
}

impl Sizes {
    /// About how many bytes invocations with their events and results take on disk.
    pub(crate) fn invocation_bytes(&self) -> u64 {
        self.invocations.rows * INVOCATION_BYTES
            + self.invocations.text
            + self.payloads.rows * PAYLOAD_BYTES
            + self.payloads.text
    }

    /// About how many bytes log lines take on disk.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.logs.rows * LINE_BYTES + self.logs.text * LINE_TEXT_TENTHS / 10
    }

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts rows that the transaction has added.
pub(super) async fn add(
    transaction: &mut Transaction<'static, Sqlite>,
    added: &Sizes,
) -> Result<(), sqlx::Error> {
    change(transaction, added, 1).await
}

/// Counts rows that the transaction has removed.
pub(super) async fn subtract(
    transaction: &mut Transaction<'static, Sqlite>,
    removed: &Sizes,
) -> Result<(), sqlx::Error> {
    change(transaction, removed, -1).await
}

async fn change(
    transaction: &mut Transaction<'static, Sqlite>,
    sizes: &Sizes,
    sign: i64,
) -> Result<(), sqlx::Error> {
    if sizes.is_zero() {
        return Ok(());
    }
    let [invocations, payloads, logs] = [sizes.invocations, sizes.payloads, sizes.logs]
        .map(|size| (sign * signed(size.rows), sign * signed(size.text)));
    // No count goes below nothing, whatever an older version of the server left out.
    sqlx::query!(
        "UPDATE history_sizes SET \
             row_count = max(0, row_count + CASE kind WHEN 'invocations' THEN ?1 WHEN 'payloads' THEN ?3 ELSE ?5 END), \
             text_bytes = max(0, text_bytes + CASE kind WHEN 'invocations' THEN ?2 WHEN 'payloads' THEN ?4 ELSE ?6 END)",
        invocations.0,
        invocations.1,
        payloads.0,
        payloads.1,
        logs.0,
        logs.1
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

impl Store {
    /// How much there is of each kind.
    pub(crate) async fn sizes(&self) -> Result<Sizes, StoreError> {
        let rows = sqlx::query!("SELECT kind, row_count, text_bytes FROM history_sizes")
            .fetch_all(self.readers())
            .await
            .during("read how much is kept")?;
        let mut sizes = Sizes::default();
        for row in rows {
            let size = Size {
                rows: unsigned(row.row_count),
                text: unsigned(row.text_bytes),
            };
            match row.kind.as_str() {
                "invocations" => sizes.invocations = size,
                "payloads" => sizes.payloads = size,
                _ => sizes.logs = size,
            }
        }
        Ok(sizes)
    }
}
