//! A row of the table of invocations, and the record that it holds.

use uuid::Uuid;

use crate::model::{
    InvocationCounters, InvocationId, InvocationRecord, Stages, StartKind, Status, Trigger,
};
use crate::store::codes::{StoredCode, decode_error, narrow, timestamp, unsigned};

/// An invocation as its columns hold it, with the name of its function or chain.
pub(super) struct InvocationRow {
    pub function: String,
    pub id: Vec<u8>,
    pub version: i64,
    pub trigger_code: i64,
    pub status: i64,
    pub start_code: Option<i64>,
    pub received_us: i64,
    pub finished_us: Option<i64>,
    pub queue_us: i64,
    pub start_us: i64,
    pub send_us: i64,
    pub run_us: i64,
    pub recv_us: i64,
    pub total_us: i64,
    pub request_bytes: i64,
    pub response_bytes: i64,
    pub attempts: i64,
    pub error: Option<String>,
    pub trace: Option<String>,
    pub counters: Option<String>,
}

impl InvocationRow {
    pub(super) fn read(self) -> Result<InvocationRecord, sqlx::Error> {
        Ok(InvocationRecord {
            id: InvocationId(Uuid::from_slice(&self.id).map_err(decode_error)?),
            function: self.function,
            version: narrow("version number", self.version)?,
            trigger: Trigger::from_code(self.trigger_code)?,
            status: Status::from_code(self.status)?,
            start: self.start_code.map(StartKind::from_code).transpose()?,
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
            counters: self
                .counters
                .as_deref()
                .map(counters)
                .transpose()
                .map_err(decode_error)?,
            request_bytes: unsigned(self.request_bytes),
            response_bytes: unsigned(self.response_bytes),
            attempts: narrow("number of attempts", self.attempts)?,
            error: self
                .error
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .map_err(decode_error)?,
            chain: self
                .trace
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .map_err(decode_error)?,
            logs: Vec::new(),
        })
    }
}

/// See the migration.
fn counters(text: &str) -> serde_json::Result<InvocationCounters> {
    let (minor_faults, major_faults, preemptions, pauses, paused_us) = serde_json::from_str(text)?;
    Ok(InvocationCounters {
        minor_faults,
        major_faults,
        preemptions,
        pauses,
        paused_us,
    })
}
