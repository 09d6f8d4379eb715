//! Reading log lines.

use uuid::Uuid;

use super::codes::{Code, decode_error, timestamp};
use super::{During, Store, StoreError};
use crate::history::LogEntry;
use crate::model::{InvocationId, LogLine, LogStream};

struct LogRow {
    invocation: Option<Vec<u8>>,
    time_us: i64,
    stream: i64,
    text: String,
}

impl LogRow {
    fn read(self) -> Result<LogEntry, sqlx::Error> {
        let invocation = match self.invocation {
            Some(id) => Some(InvocationId(Uuid::from_slice(&id).map_err(decode_error)?)),
            None => None,
        };
        Ok(LogEntry {
            invocation,
            line: LogLine {
                time: timestamp(self.time_us)?,
                stream: LogStream::from_code(self.stream)?,
                text: self.text,
            },
        })
    }
}

impl Store {
    /// The newest `limit` lines of a function, oldest first; lines of the same time in the order they were stored in.
    pub(crate) async fn newest_logs(
        &self,
        function: i64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let rows = sqlx::query_as!(
            LogRow,
            "SELECT invocation, time_us, stream, text FROM logs WHERE function_id = ?1 \
             ORDER BY time_us DESC, seq DESC LIMIT ?2",
            function,
            limit
        )
        .fetch_all(self.readers())
        .await
        .during("read a function's log")?;
        rows.into_iter()
            .rev()
            .map(LogRow::read)
            .collect::<Result<_, _>>()
            .during("read a log line")
    }

    /// An invocation's lines, oldest first; lines of the same time in the order they were stored in.
    pub(super) async fn logs_of(&self, id: InvocationId) -> Result<Vec<LogLine>, StoreError> {
        let id = id.0.as_bytes().as_slice();
        let rows = sqlx::query_as!(
            LogRow,
            "SELECT invocation, time_us, stream, text FROM logs WHERE invocation = ?1 ORDER BY time_us, seq",
            id
        )
        .fetch_all(self.readers())
        .await
        .during("read an invocation's log")?;
        rows.into_iter()
            .map(|row| row.read().map(|entry| entry.line))
            .collect::<Result<_, _>>()
            .during("read a log line")
    }
}
