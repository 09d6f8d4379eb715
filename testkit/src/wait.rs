//! Polls for a condition. For what nobody announces: a pipe, a pidfd or a response is awaited directly.

use std::time::{Duration, Instant};

/// Between two looks of [`eventually`] and [`until`].
const LOOK: Duration = Duration::from_millis(10);

/// Looks every so often until `probe` finds something; none after `limit`. Blocks the thread.
pub fn poll<T>(
    limit: Duration,
    every: Duration,
    mut probe: impl FnMut() -> Option<T>,
) -> Option<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if begun.elapsed() >= limit {
            return None;
        }
        std::thread::sleep(every);
    }
}

/// Looks until `probe` finds something, for what the server does in its own time.
///
/// # Panics
/// If that takes longer than `limit`.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> F,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Looks until something is so.
///
/// # Panics
/// If that takes longer than `limit`.
pub async fn until(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    eventually(what, limit, || async { condition().then_some(()) }).await;
}
