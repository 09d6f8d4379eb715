//! Writes the history: many invocations and log lines in one transaction, one statement per table.
//!
//! A batch costs a handful of round trips to the connection's thread instead of one per row.
//! - Payloads and lines: a statement takes all its rows as one JSON text, an array of arrays that SQLite decodes, and
//!   the query stays a literal that is checked at compile time. `jsonb_each` (since SQLite 3.51, which sqlx bundles)
//!   returns each row in SQLite's binary form, so that it is not parsed again for every column.
//! - Invocations, one per request with many small columns: see [`rows`].

mod rows;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use self::rows::NewInvocationRow;
use super::codes::{PAYLOAD_BINARY, PAYLOAD_TRUNCATED, StoredCode as _};
use super::sizes::{self, Size, Sizes};
use super::{During, Store, StoreError};
use crate::model::{
    InvocationId, InvocationPayloads, InvocationRecord, LogEntry, LogLine, Payload,
};

/// A statement's JSON is closed when it reaches this many bytes, and another statement takes the rest: SQLite keeps the
/// text and its parse in memory at once.
const STATEMENT_BYTES: usize = 4 << 20;

/// Rows on their way into the database.
#[derive(Debug, Default)]
pub(crate) struct HistoryBatch {
    invocations: Vec<NewInvocationRow>,
    /// Bytes of text of variable length in them.
    invocation_text: usize,
    payloads: JsonRows,
    logs: JsonRows,
}

/// One row of `invocation_payloads`, with its function before it.
#[derive(Serialize)]
struct PayloadTuple<'a>(i64, Hex, Option<&'a str>, i64, Option<&'a str>, i64);

/// One row of `logs`.
#[derive(Serialize)]
struct LogTuple<'a>(i64, Option<Hex>, i64, i64, &'a str);

/// A UUID as 32 hexadecimal digits, which `unhex` turns into the 16 bytes that are stored.
struct Hex(Uuid);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.simple().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl HistoryBatch {
    /// Adds an invocation and its log lines.
    pub(crate) fn push(
        &mut self,
        function: i64,
        record: &InvocationRecord,
    ) -> Result<(), StoreError> {
        let error = record
            .error
            .as_ref()
            .map(serde_json::to_string)
            .transpose()
            .map_err(encode_error)?;
        let trace = record
            .chain
            .as_ref()
            .map(serde_json::to_string)
            .transpose()
            .map_err(encode_error)?;
        for text in [&error, &trace] {
            self.invocation_text += text.as_ref().map_or(0, String::len);
        }
        self.invocations
            .push(NewInvocationRow::new(function, record, error, trace));
        for line in &record.logs {
            self.push_line(function, Some(record.id), line)?;
        }
        Ok(())
    }

    /// Adds what is kept of an invocation's event and result.
    pub(crate) fn push_payloads(
        &mut self,
        function: i64,
        id: InvocationId,
        payloads: &InvocationPayloads,
    ) -> Result<(), StoreError> {
        let text = |payload: &Option<Payload>| {
            payload
                .as_ref()
                .map_or(0, |kept| kept.text.as_ref().map_or(0, String::len))
        };
        self.payloads.text += text(&payloads.event) + text(&payloads.result);
        self.payloads.push(&PayloadTuple(
            function,
            Hex(id.0),
            payloads
                .event
                .as_ref()
                .and_then(|kept| kept.text.as_deref()),
            payloads.event.as_ref().map_or(0, flags),
            payloads
                .result
                .as_ref()
                .and_then(|kept| kept.text.as_deref()),
            payloads.result.as_ref().map_or(0, flags),
        ))
    }

    /// Adds log lines of an invocation that is stored already, or of none.
    pub(crate) fn push_logs(
        &mut self,
        function: i64,
        entries: &[LogEntry],
    ) -> Result<(), StoreError> {
        entries
            .iter()
            .try_for_each(|entry| self.push_line(function, entry.invocation, &entry.line))
    }

    fn push_line(
        &mut self,
        function: i64,
        invocation: Option<InvocationId>,
        line: &LogLine,
    ) -> Result<(), StoreError> {
        self.logs.text += line.text.len();
        self.logs.push(&LogTuple(
            function,
            invocation.map(|id| Hex(id.0)),
            line.time.as_microsecond(),
            line.stream.code(),
            &line.text,
        ))
    }
}

impl Store {
    /// Writes a batch in one transaction: all of it or nothing. Rows of functions and chains that are gone are passed over; an
    /// invocation that is stored already is replaced.
    pub(crate) async fn write_history(&self, batch: &HistoryBatch) -> Result<(), StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let mut added = Added {
                invocations: rows::insert(&mut transaction, &batch.invocations).await?,
                ..Added::default()
            };
            for rows in batch.payloads.statements() {
                added.payloads += sqlx::query!(
                    "INSERT OR REPLACE INTO invocation_payloads \
                         (invocation, event, event_flags, result, result_flags) \
                     SELECT unhex(r.value->>1), r.value->>2, r.value->>3, r.value->>4, r.value->>5 \
                     FROM jsonb_each(?1) r CROSS JOIN subjects f ON f.id = r.value->>0",
                    rows
                )
                .execute(&mut *transaction)
                .await?
                .rows_affected();
            }
            for rows in batch.logs.statements() {
                added.logs += sqlx::query!(
                    "INSERT INTO logs (function_id, invocation, time_us, stream, text) \
                     SELECT f.id, unhex(r.value->>1), r.value->>2, r.value->>3, r.value->>4 \
                     FROM jsonb_each(?1) r CROSS JOIN subjects f ON f.id = r.value->>0",
                    rows
                )
                .execute(&mut *transaction)
                .await?
                .rows_affected();
            }
            sizes::add(
                &mut transaction,
                &Sizes {
                    invocations: Size::of(added.invocations, batch.invocation_text),
                    payloads: Size::of(added.payloads, batch.payloads.text),
                    logs: Size::of(added.logs, batch.logs.text),
                },
            )
            .await?;
            transaction.commit().await
        };
        work.await.during("write the history")
    }
}

/// JSON arrays of rows, each the argument of one statement.
#[derive(Debug, Default)]
struct JsonRows {
    full: Vec<String>,
    open: String,
    /// Bytes of text of variable length in the rows.
    text: usize,
}

/// Rows that were added. Those of functions that are gone are not.
#[derive(Default)]
struct Added {
    invocations: u64,
    payloads: u64,
    logs: u64,
}

impl JsonRows {
    fn push(&mut self, row: &impl Serialize) -> Result<(), StoreError> {
        self.open.push(if self.open.is_empty() { '[' } else { ',' });
        self.open
            .push_str(&serde_json::to_string(row).map_err(encode_error)?);
        if self.open.len() >= STATEMENT_BYTES {
            self.full.push(std::mem::take(&mut self.open));
        }
        Ok(())
    }

    /// The texts, each closed.
    fn statements(&self) -> impl Iterator<Item = String> {
        self.full
            .iter()
            .chain(std::iter::once(&self.open))
            .filter(|rows| !rows.is_empty())
            .map(|rows| format!("{rows}]"))
    }
}

/// How a payload is marked; see the migration.
fn flags(kept: &Payload) -> i64 {
    i64::from(kept.truncated) * PAYLOAD_TRUNCATED + i64::from(kept.binary) * PAYLOAD_BINARY
}

fn encode_error(error: serde_json::Error) -> StoreError {
    StoreError::Sqlx {
        operation: "encode the history",
        source: sqlx::Error::Encode(Box::new(error)),
    }
}
