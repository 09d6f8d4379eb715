//! Reads stored events and results.

use super::codes::{PAYLOAD_BINARY, PAYLOAD_TRUNCATED};
use super::{During, Store, StoreError};
use crate::model::{InvocationId, InvocationPayloads, Payload};

fn read(text: Option<String>, flags: i64) -> Option<Payload> {
    let binary = flags & PAYLOAD_BINARY != 0;
    (text.is_some() || binary).then_some(Payload {
        text,
        truncated: flags & PAYLOAD_TRUNCATED != 0,
        binary,
    })
}

impl Store {
    /// What is kept of an invocation's event and result; nothing when nothing is.
    pub(crate) async fn payloads(
        &self,
        id: InvocationId,
    ) -> Result<InvocationPayloads, StoreError> {
        let id = id.0.as_bytes().as_slice();
        let row = sqlx::query!(
            "SELECT event, event_flags, result, result_flags FROM invocation_payloads WHERE invocation = ?1",
            id
        )
        .fetch_optional(self.readers())
        .await
        .during("read an invocation's event and result")?;
        Ok(
            row.map_or_else(InvocationPayloads::default, |row| InvocationPayloads {
                event: read(row.event, row.event_flags),
                result: read(row.result, row.result_flags),
            }),
        )
    }
}
