//! Reading finished invocations.

use uuid::Uuid;

use super::codes::{Code, decode_error, narrow, timestamp, unsigned};
use super::{During, Store, StoreError};
use crate::model::{InvocationId, InvocationRecord, Stages, StartRung, Status, Trigger};

/// An invocation as its columns hold it, with its function's name.
struct InvocationRow {
    function: String,
    id: Vec<u8>,
    version: i64,
    trigger_code: i64,
    status: i64,
    start_code: Option<i64>,
    received_us: i64,
    finished_us: Option<i64>,
    queue_us: i64,
    start_us: i64,
    send_us: i64,
    run_us: i64,
    recv_us: i64,
    total_us: i64,
    request_bytes: i64,
    response_bytes: i64,
    attempts: i64,
    error: Option<String>,
}

impl InvocationRow {
    fn read(self) -> Result<InvocationRecord, sqlx::Error> {
        Ok(InvocationRecord {
            id: InvocationId(Uuid::from_slice(&self.id).map_err(decode_error)?),
            function: self.function,
            version: narrow("version number", self.version)?,
            trigger: Trigger::from_code(self.trigger_code)?,
            status: Status::from_code(self.status)?,
            start: self.start_code.map(StartRung::from_code).transpose()?,
            received_at: timestamp(self.received_us)?,
            finished_at: self.finished_us.map(timestamp).transpose()?,
            stages_us: Stages {
                queue: unsigned(self.queue_us),
                start: unsigned(self.start_us),
                send: unsigned(self.send_us),
                run: unsigned(self.run_us),
                recv: unsigned(self.recv_us),
                total: unsigned(self.total_us),
            },
            request_bytes: unsigned(self.request_bytes),
            response_bytes: unsigned(self.response_bytes),
            attempts: narrow("number of attempts", self.attempts)?,
            error: self
                .error
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .map_err(decode_error)?,
            logs: Vec::new(),
        })
    }
}

/// The columns of [`InvocationRow`], followed by a condition. A macro, because the checked queries take literals only.
/// The history of a deleted function is not seen, because the join finds no function.
macro_rules! select {
    ($condition:literal, $($argument:expr),+) => {
        sqlx::query_as!(
            InvocationRow,
            "SELECT f.name AS function, i.id, i.version, i.trigger_code, i.status, i.start_code, i.received_us, \
                    i.finished_us, i.queue_us, i.start_us, i.send_us, i.run_us, i.recv_us, i.total_us, \
                    i.request_bytes, i.response_bytes, i.attempts, i.error \
             FROM invocations i JOIN functions f ON f.id = i.function_id " + $condition,
            $($argument),+
        )
    };
}

impl Store {
    /// A function's invocations older than `before`, newest first.
    pub(crate) async fn invocations(
        &self,
        function: i64,
        status: Option<Status>,
        before: Option<InvocationId>,
        limit: u32,
    ) -> Result<Vec<InvocationRecord>, StoreError> {
        // Sorts after every UUIDv7: those have a 7 where this has an f.
        let before = before.map_or([0xff; 16], |id| id.0.into_bytes());
        let before = before.as_slice();
        let rows = match status.map(Code::code) {
            None => {
                select!(
                    "WHERE i.function_id = ?1 AND i.id < ?2 ORDER BY i.id DESC LIMIT ?3",
                    function,
                    before,
                    limit
                )
                .fetch_all(self.readers())
                .await
            }
            Some(status) => {
                select!(
                    "WHERE i.function_id = ?1 AND i.status = ?4 AND i.id < ?2 ORDER BY i.id DESC LIMIT ?3",
                    function,
                    before,
                    limit,
                    status
                )
                .fetch_all(self.readers())
                .await
            }
        };
        rows.during("list invocations")?
            .into_iter()
            .map(InvocationRow::read)
            .collect::<Result<_, _>>()
            .during("read an invocation")
    }

    /// One invocation with its log lines.
    pub(crate) async fn invocation(
        &self,
        id: InvocationId,
    ) -> Result<Option<InvocationRecord>, StoreError> {
        let key = id.0.as_bytes().as_slice();
        let row = select!("WHERE i.id = ?1", key)
            .fetch_optional(self.readers())
            .await
            .during("find an invocation")?;
        let Some(row) = row else {
            return Ok(None);
        };
        let mut record = row.read().during("read an invocation")?;
        record.logs = self.logs_of(id).await?;
        Ok(Some(record))
    }
}
