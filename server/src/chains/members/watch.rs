//! Watches an instance, and replaces it when it has ended.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Members, One};
use crate::chains::path::Seat;
use crate::instance::{Death, Vitals};

/// Pauses before an instance is replaced: doubled as long as its successors end at once, so that a function that crashes when it
/// starts does not keep the host busy.
const REPLACE_AFTER: Duration = Duration::from_millis(20);
const REPLACE_AFTER_MAX: Duration = Duration::from_secs(10);
/// One that lived this long did not end at once.
const SETTLED: Duration = Duration::from_secs(10);

/// The watch over one instance, and over its replacement.
pub(super) struct Watch {
    pub(super) members: Weak<Members>,
    pub(super) one: Arc<One>,
    pub(super) seat: Arc<Seat>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) ending: CancellationToken,
}

impl Watch {
    /// Not a future of its own: it would be a part of itself, as it starts others.
    pub(super) fn begin(self) {
        tokio::spawn(self.run());
    }

    async fn run(self) {
        let started = Instant::now();
        let reason = tokio::select! {
            biased;
            () = self.ending.cancelled() => return,
            death = self.vitals.died() => reason(death),
            () = self.seat.hung.cancelled() => self.seat.fault().to_owned(),
        };
        self.one.running.fetch_sub(1, Ordering::Relaxed);
        let Some(members) = self.members.upgrade() else {
            return;
        };
        members.end(&self.seat, &reason).await;
        drop(members);
        self.one.restarts.fetch_add(1, Ordering::Relaxed);
        self.replace(started.elapsed()).await;
    }

    /// Starts another one in the place of one that has lived so long.
    async fn replace(&self, lived: Duration) {
        let mut pause = match lived < SETTLED {
            true => REPLACE_AFTER * 8,
            false => REPLACE_AFTER,
        };
        loop {
            let pausing = tokio::time::sleep(pause);
            if self.ending.run_until_cancelled(pausing).await.is_none() {
                return;
            }
            let Some(members) = self.members.upgrade() else {
                return;
            };
            let Err(error) = members.start_one(&self.one, &self.ending).await else {
                return;
            };
            tracing::warn!(member = %self.one.name, %error, "an instance of a chain was not replaced");
            pause = (pause * 2).min(REPLACE_AFTER_MAX);
        }
    }
}

fn reason(death: &Death) -> String {
    match death {
        Death::OutOfMemory => "it used more than its memory and was killed".into(),
        Death::Crashed(how) => how.clone(),
        Death::Unlimited(error) => error.to_string(),
    }
}
