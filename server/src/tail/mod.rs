//! Explains single slow invocations, from counters that are always on.
//!
//! - Each invocation's own: what its instance has counted, which its record keeps (`hearth_abi::counters`).
//! - The host's and the sandboxes': a task samples them ([`sample`]) four times a second while functions are called, else once, and keeps
//!   those of the last quarter of an hour or more ([`ring`]). A sample takes some 0.1 ms.
//! - What else ran: by the history ([`crate::store`]).
//!
//! [`causes`] makes an answer of them.

mod causes;
mod explain;
mod ring;
mod sample;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

use self::ring::Ring;
use self::sample::Files;
use crate::engine::Engine;
use crate::history::History;
use crate::store::Store;

pub use causes::name;

/// Between two samples while functions are called.
const PERIOD: Duration = Duration::from_millis(250);
/// Between two samples while none is.
const IDLE_PERIOD: Duration = Duration::from_secs(1);

/// Keeps the counters. Cheap to clone.
#[derive(Clone)]
pub struct Tail(Arc<Inner>);

struct Inner {
    engine: Engine,
    history: History,
    store: Store,
    files: Files,
    ring: Mutex<Ring>,
}

impl Tail {
    /// Starts to sample on the current tokio runtime, for as long as one of its clones lives.
    pub fn start(engine: Engine, history: History, store: Store) -> Self {
        let inner = Arc::new(Inner {
            engine,
            history,
            store,
            files: Files::open(),
            ring: Mutex::default(),
        });
        tokio::spawn(run(Arc::downgrade(&inner)));
        Self(inner)
    }
}

impl Inner {
    fn sample(&self) {
        let throttling = self.engine.throttling();
        let now = Timestamp::now().as_microsecond();
        let sample = self.files.read(now, throttling);
        self.ring.lock().push(sample);
    }
}

async fn run(tail: Weak<Inner>) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Option<(Instant, (u64, u64))> = None;
    loop {
        ticks.tick().await;
        let Some(tail) = tail.upgrade() else {
            return;
        };
        let (now, finished) = (Instant::now(), tail.history.lifetime());
        let is_idle = last.is_some_and(|(at, before)| {
            before == finished && now.saturating_duration_since(at) < IDLE_PERIOD
        });
        if !is_idle {
            // With many sandboxes it takes milliseconds, which no request is to wait for.
            let sampled = tokio::task::spawn_blocking(move || tail.sample()).await;
            if sampled.is_err() {
                // The server ends.
                return;
            }
            last = Some((now, finished));
        }
    }
}
