//! A consumer's state, by which it tells its producers whether they must wake it: the other half of the sync point `wake-up`
//! of [`crate::ring`].

use core::ops::Deref;

use hearth_abi::full_fence;

use crate::sync::{AtomicU32, Ordering};

/// A consumer's state: it looks by itself.
pub const AWAKE: u32 = 0;
/// A consumer's state: it sleeps, or is about to.
pub const ASLEEP: u32 = 1;
/// A consumer's state: its process has ended. Set by the server, and never unset.
pub const ENDED: u32 = 2;

/// A consumer's own state: whether its producers must wake it.
#[derive(Debug)]
pub struct Sleeper<W> {
    state: W,
}

impl<W: Deref<Target = AtomicU32>> Sleeper<W> {
    /// Of one consumer, whatever the number of its rings.
    pub fn new(state: W) -> Self {
        Self { state }
    }

    /// Announces that this side is about to sleep. Afterwards look at all rings again, then sleep on their heads and on
    /// the state, and [`Self::retract`] in any case. `false`: the server has closed this side.
    pub fn announce(&self) -> bool {
        let set = self
            .state
            .compare_exchange(AWAKE, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
        // SYNC POINT: wake-up
        full_fence();
        set != Err(ENDED)
    }

    /// Takes the announcement back. `false`: somebody else has, to end the wait.
    pub fn retract(&self) -> bool {
        self.state
            .compare_exchange(ASLEEP, AWAKE, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// The word, to sleep on while it is [`ASLEEP`].
    pub fn state(&self) -> &AtomicU32 {
        &self.state
    }
}
