//! The busy transport.

use std::time::Instant;

use super::{Edges, Transport};
use crate::descriptor::Descriptor;
use crate::error::{RecvError, SendError};
use crate::inbox::Arrival;

/// Looks of a [`Poll`] between two readings of the clock: some hundred nanoseconds.
const LOOKS: u32 = 64;

/// Busy: looks at the rings all the time, as SPRIGHT's D- variant does. Burns a core while it waits; its senders never make
/// a system call.
#[derive(Debug)]
pub struct Poll {
    /// The edges, for opening and closing some.
    pub edges: Edges,
}

impl Transport for Poll {
    #[inline]
    fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        self.edges.outbox.send(descriptor)
    }

    #[inline]
    fn try_recv(&mut self) -> Result<Option<Arrival>, RecvError> {
        self.edges.inbox.try_recv()
    }

    fn recv(&mut self, deadline: Instant) -> Result<Arrival, RecvError> {
        loop {
            for _ in 0..LOOKS {
                if self.edges.inbox.is_ready() {
                    if let Some(arrival) = self.edges.inbox.try_recv()? {
                        return Ok(arrival);
                    }
                    if self.edges.inbox.take_notice() {
                        return Err(RecvError::Interrupted);
                    }
                }
                core::hint::spin_loop();
            }
            if Instant::now() >= deadline {
                return Err(RecvError::TimedOut);
            }
        }
    }
}
