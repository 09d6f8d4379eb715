//! Pauses that grow: of connections to a broker, and of a message whose function or chain takes no more.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Pauses that double, each shortened by up to a half at random, so that many who wait do not come at once.
#[derive(Debug, Clone)]
pub(super) struct Pauses {
    next: Duration,
    first: Duration,
    longest: Duration,
}

impl Pauses {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            next: first,
            first,
            longest,
        }
    }

    /// The next pause.
    pub(super) fn next(&mut self) -> Duration {
        let mut byte = [0; 1];
        // Without random numbers, the whole pause.
        let share = match getrandom::fill(&mut byte) {
            Ok(()) => 1.0 - f64::from(byte[0]) / 512.0,
            Err(_) => 1.0,
        };
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause.mul_f64(share)
    }

    /// Short pauses again.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// How a message waits for its turn.
pub(super) struct Patience {
    pauses: Pauses,
    is_first: bool,
    ended: CancellationToken,
}

impl Patience {
    /// Until this is cancelled.
    pub(super) fn new(pauses: Pauses, ended: CancellationToken) -> Self {
        Self {
            pauses,
            is_first: true,
            ended,
        }
    }

    /// Whether it has not waited yet.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Waits a while. False if it is in vain.
    pub(super) async fn wait(&mut self) -> bool {
        self.is_first = false;
        let pause = tokio::time::sleep(self.pauses.next());
        self.ended.run_until_cancelled(pause).await.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        let mut pauses = Pauses::new(first, longest);
        for _ in 0..2 {
            for whole in [1, 2, 4, 8, 16, 32, 60, 60] {
                let whole = Duration::from_secs(whole);
                let pause = pauses.next();
                assert!(
                    pause <= whole && pause >= whole / 2,
                    "{pause:?} of {whole:?}"
                );
            }
            pauses.reset();
        }
    }

    #[tokio::test]
    async fn patience_ends() {
        let pauses = Pauses::new(Duration::from_millis(1), Duration::from_secs(600));
        let ended = CancellationToken::new();
        let mut patience = Patience::new(pauses, ended.clone());
        assert!(patience.is_first() && patience.wait().await);
        assert!(!patience.is_first());
        ended.cancel();
        assert!(!patience.wait().await);
    }
}
