//! One invocation, from admission to the end of its answer.

mod ahead;
mod bodies;
mod exchange;
mod invocation;
mod running;
mod stages;

use std::sync::atomic::Ordering;

use jiff::Timestamp;

pub(super) use self::bodies::Bodies;
use self::exchange::Exchange;
pub use self::invocation::{Invocation, Receipt};
use self::invocation::{described, micros};
pub use self::running::Admitted;
use self::running::Running;
use super::{Engine, InvokeError, InvokeReply};
use crate::model::{Stages, Status, Trigger};
use crate::scheduler::{BootFailure, Deployment, LeaseError};

/// When to retry after a 429.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

impl Engine {
    /// Runs a function once. Dropping the future, or the stream of a streamed answer, cancels the invocation: its
    /// instance is killed, the history says `cancelled`.
    pub async fn invoke(
        &self,
        invocation: Invocation,
    ) -> (Receipt, Result<InvokeReply, InvokeError>) {
        let mut receipt = invocation.receipt();
        let reply = self.run(invocation, &mut receipt).await;
        (receipt, reply)
    }

    /// Admits the invocation, leases an instance and runs it there.
    async fn run(
        &self,
        mut invocation: Invocation,
        receipt: &mut Receipt,
    ) -> Result<InvokeReply, InvokeError> {
        if self.inner.draining.load(Ordering::Acquire) {
            return Err(InvokeError::ShuttingDown);
        }
        let not_found =
            |invocation: &Invocation| InvokeError::NotFound(invocation.record.function.clone());
        let Some(function) = self.inner.registry.get(&invocation.record.function) else {
            return Err(not_found(&invocation));
        };
        let running = Running::begin(self);
        let body = self.inner.bodies.read_ahead(invocation.body.take()).await?;
        let received = invocation.received;
        let (deployment, lease) = match invocation.version {
            None => function.lease(received).await,
            Some(version) => self.lease_apart(&function, version, received).await?,
        };
        invocation.record.version = deployment.version();
        *receipt = invocation.receipt();
        let lease = match lease {
            Ok(lease) => lease,
            Err(LeaseError::Retired) => return Err(not_found(&invocation)),
            Err(LeaseError::Full { max, queued }) => {
                return Err(InvokeError::TooManyRequests {
                    max_concurrency: max,
                    queued,
                    retry_after: RETRY_AFTER,
                });
            }
            Err(LeaseError::Boot(failure)) => {
                let error = unserved(&failure, &running);
                receipt.stages = self.record_unserved(&deployment, invocation, &error).await;
                return Err(error);
            }
        };
        let trigger = invocation.record.trigger;
        let exchange = Exchange::new(self.inner.history.clone(), running, lease, invocation);
        match trigger {
            Trigger::Http => exchange.http(body, receipt).await,
            _ => exchange.invoke(receipt).await,
        }
    }

    /// An admitted invocation that got no instance is part of the history, too.
    async fn record_unserved(
        &self,
        deployment: &Deployment,
        invocation: Invocation,
        error: &InvokeError,
    ) -> Stages {
        let waited = micros(invocation.received.elapsed());
        let mut record = invocation.record;
        record.stages_us = Stages {
            queue: waited,
            total: waited,
            ..Stages::default()
        };
        let (status, error_type) = match error {
            InvokeError::ShuttingDown => (Status::Cancelled, "Server.ShuttingDown"),
            InvokeError::HostExhausted(_) => (Status::Failed, "Host.Exhausted"),
            _ => (Status::Failed, "Runtime.Unavailable"),
        };
        record.status = status;
        record.error = Some(described(error_type, error));
        record.finished_at = Some(Timestamp::now());
        let stages = record.stages_us;
        let function = deployment.function.get();
        self.inner.history.record(function, record).await;
        stages
    }
}

/// Why no instance could be started.
fn unserved(failure: &BootFailure, running: &Running) -> InvokeError {
    let reason = failure.reason.clone();
    if running.is_cut_off() {
        InvokeError::ShuttingDown
    } else if failure.is_of_host() {
        InvokeError::HostExhausted(reason)
    } else {
        InvokeError::Unavailable(reason)
    }
}
