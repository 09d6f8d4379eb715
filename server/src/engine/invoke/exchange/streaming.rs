//! An answer that is passed on as it comes.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use hearth_abi::Kind;

use super::Exchange;
use crate::channel::Received;
use crate::engine::InvokeError;
use crate::engine::invoke::ahead::{self, Ahead};

impl Exchange {
    /// The rest of the answer as a stream, starting with what was read already. It is read on a task of its own: the
    /// clock goes on whether or not somebody asks for the stream's next piece.
    pub(super) fn into_body(
        self,
        started: Result<Option<(Received, Vec<u8>)>, InvokeError>,
    ) -> BoxStream<'static, Result<Bytes, std::io::Error>> {
        let (ahead, body) = ahead::queue();
        tokio::spawn(self.pump(started, ahead));
        body.boxed()
    }

    async fn pump(
        mut self,
        started: Result<Option<(Received, Vec<u8>)>, InvokeError>,
        ahead: Ahead,
    ) {
        let last = match self.pass_on(started, &ahead).await {
            // Nobody wants it any more: dropping cancels.
            Ok(None) => return,
            Ok(Some(last)) => self.conclude(Ok(last)).await,
            Err(error) => self.conclude(Err(error)).await,
        };
        // The instance is free, and the drain need not wait for who reads.
        drop(self);
        match last {
            Ok(last) => {
                ahead.put(last).await;
            }
            Err(error) => ahead.fail(std::io::Error::other(error.to_string())),
        }
    }

    /// Passes on the pieces of the answer as they come. Returns the last one; None when the client is gone.
    async fn pass_on(
        &mut self,
        started: Result<Option<(Received, Vec<u8>)>, InvokeError>,
        ahead: &Ahead,
    ) -> Result<Option<Bytes>, InvokeError> {
        let mut next = started?;
        loop {
            let (received, payload) = match next.take() {
                Some(ready) => ready,
                None => {
                    let mut payload = Vec::new();
                    tokio::select! {
                        biased;
                        received = self.receive(&mut payload) => (received?, payload),
                        () = ahead.abandoned() => return Ok(None),
                    }
                }
            };
            match received.kind {
                Kind::ResponseBody => {}
                Kind::ResponseError => return Err(self.error(payload, received.more).await),
                other => return Err(self.out_of_turn(other)),
            }
            if let Some(captured) = self.captured() {
                captured.result(&payload);
            }
            self.invocation.record.response_bytes += payload.len() as u64;
            let piece = Bytes::from(payload);
            if !received.more {
                return Ok(Some(piece));
            }
            match tokio::time::timeout_at(self.deadline, ahead.put(piece)).await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(_) => return Err(InvokeError::NotRead(self.timeout_ms)),
            }
        }
    }
}
