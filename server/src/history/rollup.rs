//! Stores each minute's histograms when the minute is over.

use std::sync::Weak;
use std::time::Duration;

use jiff::Timestamp;

use super::counters::minute_at;
use super::{Inner, unreadable};
use crate::store::{RollupRow, StoreError};
use crate::turns::give_way;

/// How long after a minute's end it is stored: time for what finished in it to be recorded. What comes later is stored as
/// a further row of that minute.
const GRACE: Duration = Duration::from_secs(1);

/// Stores finished minutes for as long as the history lives.
pub(super) async fn run(history: Weak<Inner>) {
    let mut failing = false;
    loop {
        tokio::time::sleep(until_next(Timestamp::now().as_microsecond())).await;
        let Some(history) = history.upgrade() else {
            return;
        };
        let minute = minute_at(Timestamp::now().as_microsecond());
        match history.store_minutes_before(minute).await {
            Ok(()) if std::mem::take(&mut failing) => tracing::info!("storing rollups again"),
            Ok(()) => {}
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::error!(%error, "cannot store rollups; retrying every minute");
                }
            }
        }
    }
}

impl Inner {
    /// Moves the minutes before this one from memory into the database. What cannot be stored stays in memory.
    pub(super) async fn store_minutes_before(&self, minute: i64) -> Result<(), StoreError> {
        let _moving = self.moving.write().await;
        let functions = self.functions.load_full();
        let mut taken = Vec::new();
        let mut rows: Vec<RollupRow> = Vec::new();
        for (id, function) in functions.iter() {
            let minutes = function.counters.lock().take_before(minute);
            for (minute, finished) in &minutes {
                rows.push(finished.to_row(*id, *minute).map_err(unreadable)?);
                // Each takes about as long as a request.
                give_way();
            }
            taken.push((function, minutes));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let stored = self.store.insert_rollups(&rows).await;
        self.changed();
        if stored.is_err() {
            for (function, minutes) in taken {
                function
                    .counters
                    .lock()
                    .put_back(minutes)
                    .map_err(unreadable)?;
            }
        }
        stored
    }
}

/// Time from `now` (µs since 1970) to the next minute's beginning and the grace after it.
fn until_next(now: i64) -> Duration {
    let into_minute = now.rem_euclid(60_000_000).unsigned_abs();
    Duration::from_micros(60_000_000 - into_minute) + GRACE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_stored_a_second_after_its_end() {
        for (now, expected_s) in [(0, 61), (1_000_000, 60), (59_000_000, 2), (60_000_000, 61)] {
            assert_eq!(until_next(now), Duration::from_secs(expected_s));
        }
        assert_eq!(until_next(-1_000_000), Duration::from_secs(2));
    }
}
