//! Looking for an answer before sleeping, as a function's channel does: to be woken on an idle processor takes longer than a
//! short chain.
//!
//! Whoever waits for an answer looks at the gateway's rings in the receiving task's stead, one at a time. Meanwhile members need not
//! ring; the announcement that the task sleeps is renewed afterwards, and the task woken where that comes too late.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_abi::spin::{AdaptiveSpin, look};
use hearth_chain::Looks;
use parking_lot::Mutex;
use tokio::sync::oneshot::Receiver;

use super::Path;
use super::pending::Back;
use crate::engine::Admitted;

/// Descriptors that are taken between two looks at the answer.
const AT_ONCE: usize = 16;

/// Whether it pays, and who is at it.
#[derive(Debug)]
pub(super) struct Looking {
    spin: Mutex<AdaptiveSpin>,
    cores: u32,
}

impl Looking {
    /// Looks for so long at most; never, if that is zero. The host has so many processors.
    pub(super) fn new(busy_poll: Duration, cores: u32) -> Self {
        Self {
            spin: Mutex::new(AdaptiveSpin::new(busy_poll)),
            cores,
        }
    }
}

impl Path {
    /// Which instances may look for what comes next before they sleep.
    pub(super) fn looks(&self, admitted: &Admitted) -> Looks {
        // A processor for one instance of each member, and one for this server: a request alone finds the same ones each time.
        let parties = self.spec.members.len() + 1;
        if !admitted.has_free_core() {
            Looks::Nobody
        } else if parties > self.looking.cores as usize {
            Looks::InTurn
        } else {
            Looks::Everybody
        }
    }

    /// Looks for an answer for as long as that is worth a processor; none if it has not come by then.
    pub(super) fn look_for(self: &Arc<Self>, came: &mut Receiver<Back>) -> Option<Back> {
        let mut spin = self.looking.spin.try_lock()?;
        let inbox = self.carry.inbox()?;
        let budget = spin.budget(Instant::now)?;
        inbox.lock().retract();
        let mut found = None;
        let looked = look(budget, || {
            // Who is at it may be copying a large result; this thread has others to serve.
            if !self.receiving.is_locked() && inbox.lock().is_ready() {
                self.take_arrivals(AT_ONCE);
            }
            found = came.try_recv().ok();
            found.is_some()
        });
        spin.learn(looked);
        if !matches!(inbox.lock().announce(), Ok(true)) {
            self.bells.wake();
        }
        found
    }
}
