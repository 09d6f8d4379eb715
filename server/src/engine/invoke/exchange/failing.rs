//! What keeps an exchange from its answer: the deadline, the instance's death, a frame out of turn, an error or a result
//! that is too large; and the error that the caller gets for each.

use hearth_abi::Kind;

use super::Exchange;
use super::answers::MAX_RESULT;
use crate::channel::ChannelError;
use crate::engine::InvokeError;
use crate::instance::Death;
use crate::model::FunctionError;

/// Largest error a runtime may report.
const MAX_ERROR: usize = 1024 * 1024;

impl Exchange {
    /// Kills the instance. Returns the caller's error.
    pub(super) fn timed_out(&mut self) -> Result<InvokeError, InvokeError> {
        self.lease()?.kill();
        Ok(InvokeError::Timeout(self.timeout_ms))
    }

    /// Turns a failure of the channel, or the deadline's passing, into the caller's error.
    pub(super) async fn settle<T>(
        &mut self,
        result: Result<Result<T, ChannelError>, tokio::time::error::Elapsed>,
    ) -> Result<T, InvokeError> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Err(_) => Err(self.timed_out()?),
            Ok(Err(ChannelError::Gone)) if self.running.is_cut_off() => {
                Err(InvokeError::ShuttingDown)
            }
            Ok(Err(ChannelError::Gone)) => {
                let lease = self.lease()?;
                let memory_mb = lease.deployment().spec.memory_mb;
                Err(match lease.vitals.clone().died().await {
                    Death::OutOfMemory => InvokeError::OutOfMemory(memory_mb),
                    Death::Crashed(how) => InvokeError::Crashed(how.clone()),
                    Death::Unlimited(error) => InvokeError::HostExhausted(error.to_string()),
                })
            }
            Ok(Err(other)) => Err(InvokeError::Crashed(other.to_string())),
        }
    }

    /// The rest of a RESPONSE_ERROR message.
    pub(super) async fn error(&mut self, mut bytes: Vec<u8>, mut more: bool) -> InvokeError {
        while more {
            match self.receive(&mut bytes).await {
                Ok(received)
                    if received.kind == Kind::ResponseError && bytes.len() <= MAX_ERROR =>
                {
                    more = received.more
                }
                Ok(received) => return self.out_of_turn(received.kind),
                Err(error) => return error,
            }
        }
        InvokeError::Function(parse_error(&bytes))
    }

    /// Reads a result that is over the limit to its end, so that the instance can go on serving.
    pub(super) async fn too_large(&mut self, mut more: bool) -> InvokeError {
        let mut scratch = Vec::new();
        while more {
            scratch.clear();
            match self.receive(&mut scratch).await {
                Ok(received) => more = received.more,
                Err(error) => return error,
            }
        }
        InvokeError::ResultTooLarge { limit: MAX_RESULT }
    }

    /// The worker sent a kind of frame that has no place here.
    pub(super) fn out_of_turn(&self, kind: Kind) -> InvokeError {
        self.broken(format!("a frame of kind {kind:?} came out of turn"))
    }

    /// The worker broke the protocol above the frames.
    pub(super) fn broken(&self, how: String) -> InvokeError {
        InvokeError::Crashed(format!("it broke the channel's protocol: {how}"))
    }
}

/// Parses RESPONSE_ERROR; a runtime that sends nonsense still ends in one clear error.
fn parse_error(bytes: &[u8]) -> FunctionError {
    serde_json::from_slice(bytes).unwrap_or_else(|error| FunctionError {
        error_type: "Runtime.ProtocolError".into(),
        error_message: format!("the runtime reported an error that makes no sense: {error}"),
        stack_trace: Vec::new(),
    })
}
