//! The gate of starts: limits concurrent starts over all functions. [`policy::starts`] decides.
//!
//! [`policy::starts`]: super::policy::starts

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::policy::starts::{STARTS_PER_CORE, StartQueue};
use crate::system::cores;

type Queue = StartQueue<u64, oneshot::Sender<Place>>;

/// A gate. Cheap to clone.
#[derive(Clone)]
pub struct StartGate(Arc<Mutex<Queue>>);

/// A place for one start. Dropping it anywhere passes it on.
#[derive(Debug)]
pub struct Place {
    gate: StartGate,
    /// The deployment it belongs to; `None` once it was passed on.
    key: Option<u64>,
}

impl Default for StartGate {
    /// A gate sized for this host's cores.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(StartQueue::new(
            cores() as usize * STARTS_PER_CORE,
        ))))
    }
}

impl std::fmt::Debug for StartGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartGate").finish_non_exhaustive()
    }
}

impl StartGate {
    /// Waits for a place for a start of the deployment `key`; calls `deferred` if it has to queue. Dropping the future
    /// leaves the queue.
    pub async fn enter(&self, key: u64, deferred: impl FnOnce()) -> Place {
        let turn = {
            let mut queue = self.0.lock();
            if queue.try_begin(key) {
                return self.place(key);
            }
            let (sender, receiver) = oneshot::channel();
            queue.enqueue(key, sender);
            receiver
        };
        deferred();
        match turn.await {
            Ok(place) => place,
            // Tickets stay in the queue until they are sent, and the queue lives as long as this gate.
            Err(_) => Place {
                gate: self.clone(),
                key: None,
            },
        }
    }

    fn place(&self, key: u64) -> Place {
        Place {
            gate: self.clone(),
            key: Some(key),
        }
    }

    fn pass_on(&self, key: u64) {
        let mut ended = key;
        loop {
            let next = self.0.lock().end(ended);
            let Some((key, ticket)) = next else {
                return;
            };
            match ticket.send(self.place(key)) {
                Ok(()) => return,
                // Its requester has gone: pass the place on.
                Err(mut place) => ended = place.key.take().unwrap_or(key),
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.gate.pass_on(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn narrow() -> StartGate {
        StartGate(Arc::new(Mutex::new(StartQueue::new(1))))
    }

    #[tokio::test]
    async fn a_place_passes_by_those_who_went_away() {
        let gate = narrow();
        let first = gate.enter(1, || panic!("it is free")).await;
        let mut deferred = 0;
        let mut gone = Box::pin(gate.enter(2, || deferred += 1));
        assert!(gone.as_mut().now_or_never().is_none());
        let mut waiting = Box::pin(gate.enter(3, || {}));
        assert!(waiting.as_mut().now_or_never().is_none());
        let mut last = Box::pin(gate.enter(4, || {}));
        assert!(last.as_mut().now_or_never().is_none());
        drop(gone);
        assert_eq!(deferred, 1);
        drop(first);
        // The place was sent to the third, which has gone.
        drop(waiting);
        let place = last.now_or_never().expect("its turn has come");
        drop(place);
        assert_eq!(gate.0.lock().running(), 0);
    }
}
