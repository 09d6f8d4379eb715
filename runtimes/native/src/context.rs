//! One invocation's context.

use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hearth_worker::chain::{CallError, ChainMember};
use hearth_worker::channel::{Channel, Head};
use hearth_worker::message::{ID_TEXT_BYTES, id_text};

use crate::chain::{Chain, ChainError, Values};
use crate::template::Config;

/// What a handler is told of its invocation, and what it can do meanwhile. `P` says how it has payloads: as [`Values`] or
/// [`InPlace`](crate::InPlace).
#[derive(Debug)]
pub struct Context<'a, P = Values> {
    channel: &'a mut Channel,
    config: &'a Config,
    id: [u8; ID_TEXT_BYTES],
    deadline: Duration,
    traceparent: Option<String>,
    _payloads: PhantomData<P>,
}

impl<'a, P> Context<'a, P> {
    pub(crate) fn new(channel: &'a mut Channel, config: &'a Config, head: Head) -> Self {
        let mut id = [0; ID_TEXT_BYTES];
        // It is read by `request_id`.
        let _ = id_text(channel.id(), &mut id);
        Self {
            channel,
            config,
            id,
            deadline: Duration::from_micros(head.head.deadline_unix_us),
            traceparent: head.traceparent,
            _payloads: PhantomData,
        }
    }

    /// The invocation's id, a UUID.
    #[must_use]
    pub fn request_id(&self) -> &str {
        // Nothing but ASCII was written.
        std::str::from_utf8(&self.id).unwrap_or_default()
    }

    /// The function's name.
    #[must_use]
    pub fn function_name(&self) -> &str {
        &self.config.function
    }

    /// The function's version.
    #[must_use]
    pub fn function_version(&self) -> u32 {
        self.config.version
    }

    /// Memory of an instance in MiB.
    #[must_use]
    pub fn memory_limit_in_mb(&self) -> u32 {
        self.config.memory_mb
    }

    /// The W3C trace context, if the caller sent one.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Time until the instance is killed.
    #[must_use]
    pub fn remaining_time(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.deadline.saturating_sub(now.unwrap_or_default())
    }

    /// The chain that passed this request on.
    ///
    /// # Errors
    /// It is no request of a chain.
    pub fn chain<'c>(&'c mut self) -> Result<Chain<'c, 'a, P>, ChainError> {
        // Only a request of a chain makes it so.
        self.member()?;
        Ok(Chain::new(self))
    }

    /// The instance as a member, and the socket on which it hears of its peers.
    pub(crate) fn member(&mut self) -> Result<(&mut ChainMember, &OwnedFd), CallError> {
        self.channel.chain()
    }
}
