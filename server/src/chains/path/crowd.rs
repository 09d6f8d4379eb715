//! Whether a chain is crowded.
//!
//! A member that is woken preempts whoever has the processor, which is usually the one that woke it and has more to send. With a few
//! requests under way that is as it should be: the one request goes on at once. With many, each member handles one request
//! between two preemptions, and a good part of the processors' time goes into context switches. Members of a crowded chain wait
//! for their turn instead (`SCHED_BATCH`, sched(7)) and then find several requests. Where other processes keep the processors
//! busy, a turn can be some milliseconds away: so that is for crowded chains only.

use std::sync::atomic::{AtomicBool, Ordering};

/// Requests under way for each processor from which a chain is crowded, and below which it is no longer.
const FROM: u32 = 8;
const UNTIL: u32 = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct Crowd {
    cores: u32,
    is_crowded: AtomicBool,
}

impl Crowd {
    /// On a host with so many processors.
    pub(super) fn new(cores: u32) -> Self {
        Self {
            cores,
            is_crowded: AtomicBool::new(false),
        }
    }

    /// Whether the chain was crowded when this was noted last.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Whether the chain is crowded, with so many requests under way.
    pub(super) fn note(&self, under_way: u32) -> bool {
        let was = self.is_crowded();
        let each = if was { UNTIL } else { FROM };
        let is = under_way >= self.cores.saturating_mul(each);
        if is != was {
            self.is_crowded.store(is, Ordering::Relaxed);
        }
        is
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_crowded_from_many_requests_on_and_until_few() {
        let crowd = Crowd::new(2);
        let said: Vec<bool> = [1, 15, 16, 15, 8, 7, 8, 15, 100]
            .map(|under_way| crowd.note(under_way))
            .into();
        let expected = [false, false, true, true, true, false, false, false, true];
        assert_eq!(said, expected);
    }
}
