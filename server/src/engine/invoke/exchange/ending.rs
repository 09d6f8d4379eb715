//! The end of an exchange: what happens to the instance, and the record for the history.

use std::mem;
use std::time::{Duration, Instant};

use hearth_abi::monotonic_ns;
use jiff::Timestamp;

use super::Exchange;
use crate::engine::InvokeError;
use crate::engine::invoke::invocation::{described, micros};
use crate::engine::invoke::stages::checked;
use crate::model::{FunctionError, InvocationRecord, LogLine, LogStream, Status};

/// The log's last line when an instance did not only answer.
const LEFTOVER: &str =
    "hearth: the instance was ended because it left more than its response in the channel";

impl Exchange {
    /// Ends the invocation: returns or kills the instance, completes the record and hands it to the history.
    pub(super) async fn conclude<T>(
        &mut self,
        answer: Result<T, InvokeError>,
    ) -> Result<T, InvokeError> {
        let (status, error, keep) = match &answer {
            Ok(_) => (Status::Succeeded, None, true),
            Err(InvokeError::Function(error)) => (Status::Failed, Some(error.clone()), true),
            Err(error @ InvokeError::ResultTooLarge { .. }) => (
                Status::Failed,
                Some(described("Runtime.ResultTooLarge", error)),
                true,
            ),
            // Workers send JSON only: this one is not itself any more.
            Err(error @ InvokeError::InvalidResult(_)) => (
                Status::Failed,
                Some(described("Runtime.InvalidResult", error)),
                false,
            ),
            Err(error @ InvokeError::Timeout(_)) => (
                Status::TimedOut,
                Some(described("Runtime.Timeout", error)),
                false,
            ),
            Err(error @ InvokeError::OutOfMemory(_)) => (
                Status::OutOfMemory,
                Some(described("Runtime.OutOfMemory", error)),
                false,
            ),
            Err(error @ InvokeError::Crashed(_)) => (
                Status::Crashed,
                Some(described("Runtime.Crashed", error)),
                false,
            ),
            Err(error @ InvokeError::HostExhausted(_)) => (
                Status::Failed,
                Some(described("Host.Exhausted", error)),
                false,
            ),
            Err(error @ InvokeError::ShuttingDown) => (
                Status::Cancelled,
                Some(described("Server.ShuttingDown", error)),
                false,
            ),
            Err(error @ InvokeError::NotRead(_)) => (
                Status::Cancelled,
                Some(described("Client.NotRead", error)),
                false,
            ),
            Err(error @ InvokeError::RequestTimeout(_)) => (
                Status::Cancelled,
                Some(described("Client.RequestTimeout", error)),
                false,
            ),
            Err(error @ InvokeError::RequestBody(_)) => (
                Status::Cancelled,
                Some(described("Client.RequestBody", error)),
                false,
            ),
            Err(error) => (
                Status::Failed,
                Some(described("Runtime.Internal", error)),
                false,
            ),
        };
        let (function, record) = self.end(status, error, keep);
        let captured = self.captured.take();
        self.history.record_with(function, record, captured).await;
        answer
    }

    fn end(
        &mut self,
        status: Status,
        error: Option<FunctionError>,
        keep: bool,
    ) -> (i64, InvocationRecord) {
        self.instants.now = monotonic_ns();
        let ended = Instant::now();
        let mut function = 0;
        if let Some(lease) = &self.lease
            && self.instants.answered.is_none()
        {
            self.handler = checked(lease.channel.stamps_so_far(), self.instants);
        }
        self.write_stages();
        if let Some(mut lease) = self.lease.take() {
            let deployment = lease.deployment().clone();
            function = deployment.function.get();
            // What it wrote beside its answer would be taken for the next request's.
            let leftover = keep && !lease.channel.is_quiet();
            if leftover {
                tracing::warn!(function = %deployment.name, version = deployment.version(), "{LEFTOVER}");
            }
            if !keep || leftover {
                lease.kill();
            }
            self.invocation.record.logs = lease.logs.finish();
            if leftover {
                self.invocation.record.logs.push(LogLine {
                    time: Timestamp::now(),
                    stream: LogStream::Stderr,
                    text: LEFTOVER.into(),
                });
            } else if keep {
                let run = self.invocation.record.stages_us.run;
                lease.release(Duration::from_micros(run));
            }
        }
        self.invocation.record.stages_us.total = micros(ended - self.invocation.received);
        self.invocation.record.status = status;
        self.invocation.record.error = error;
        self.invocation.record.finished_at = Some(self.invocation.at(ended));
        self.recorded = true;
        if self.captured.is_none() && status != Status::Succeeded {
            let trigger = self.invocation.record.trigger;
            self.captured = self
                .history
                .capture_failed(function, trigger, &self.invocation.event);
        }
        // What is on the heap moves: of the rest a copy stays for who asks for the stage times.
        let record = InvocationRecord {
            function: mem::take(&mut self.invocation.record.function),
            error: self.invocation.record.error.take(),
            logs: mem::take(&mut self.invocation.record.logs),
            ..self.invocation.record.clone()
        };
        (function, record)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.recorded {
            return;
        }
        let error = match self.running.is_cut_off() {
            true => described("Server.ShuttingDown", &InvokeError::ShuttingDown),
            false => FunctionError {
                error_type: "Client.Disconnected".into(),
                error_message: "the client went away before the answer; the instance was killed"
                    .into(),
                stack_trace: Vec::new(),
            },
        };
        let (function, record) = self.end(Status::Cancelled, Some(error), false);
        let (history, captured) = (self.history.clone(), self.captured.take());
        // Counted as running until it is recorded, for the drain.
        let running = self.running.again();
        tokio::spawn(async move {
            history.record_with(function, record, captured).await;
            drop(running);
        });
    }
}
