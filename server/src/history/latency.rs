//! Latency over a window: percentiles, distributions and heat map, from the database and from memory.

use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hdrhistogram::Histogram;
use jiff::Timestamp;

use super::buckets::Buckets;
use super::counters::{Counters, minute_at};
use super::heat::{Heat, column_seconds};
use super::merge::KEPT_MINUTES;
use super::slice::{Decoded, Slice, percentiles};
use super::slots::SLOT_S;
use super::{History, unreadable};
use crate::model::{Bar, Distribution, Latency};
use crate::store::StoreError;

/// Bars a decade of the histograms.
const BARS_A_DECADE: i32 = 16;

/// Upper bounds of the bars in µs, ten to the power of k/16, each once: beyond the longest the histograms tell apart.
static BAR_BOUNDS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut bounds: Vec<u64> = (0..=9 * BARS_A_DECADE)
        .map(|k| 10_f64.powf(f64::from(k) / f64::from(BARS_A_DECADE)).round() as u64)
        .collect();
    bounds.dedup();
    bounds
});

/// Reads the same window of one function repeatedly. Stored data is summed again only when it changes, once a minute;
/// the rest is in memory.
pub struct LatencyReader {
    history: History,
    function: i64,
    window: Duration,
    stored: Option<Stored>,
}

/// The sum of the stored rollups.
struct Stored {
    changes: u64,
    first: i64,
    sum: Slice,
    heat: Heat,
}

impl History {
    /// Latency over the last `window` (1 min to 7 days), of which a week of a busy function is some hundred rows.
    pub fn latency(&self, function: i64, window: Duration) -> LatencyReader {
        LatencyReader {
            history: self.clone(),
            function,
            window,
            stored: None,
        }
    }
}

impl LatencyReader {
    /// The window as it is now.
    pub async fn read(&mut self) -> Result<Latency, StoreError> {
        let inner = self.history.inner.clone();
        let window_s = self.window.as_secs();
        let column = column_seconds(window_s);
        let first = first_minute(Timestamp::now().as_microsecond(), window_s, column);
        // Guards against minutes moving from memory into the database in between.
        let _moving = inner.moving.read().await;
        let changes = inner.changes.load(Ordering::SeqCst);
        let stored = match self.stored.take() {
            Some(stored) if stored.changes == changes && stored.first == first => stored,
            _ => self.add_up(changes, first, column).await?,
        };
        let (mut sum, mut heat) = (stored.sum.clone(), stored.heat.clone());
        self.stored = Some(stored);
        if let Some(function) = inner.functions.load().get(&self.function) {
            let counters = function.counters.lock();
            counters.add_to(&mut sum, first).map_err(unreadable)?;
            add_memory(&counters, &mut heat, first, column, inner.started);
        }
        Ok(latency(&sum, &heat, window_s, first))
    }

    async fn add_up(&self, changes: u64, first: i64, column: i64) -> Result<Stored, StoreError> {
        let inner = &self.history.inner;
        let started = inner.started;
        let (mut sum, mut heat) = (Slice::new(), Heat::default());
        let function = self.function;
        inner
            .store
            .each_rollup(function, first, |row| {
                let read = match Decoded::of(&row) {
                    Ok(read) => read,
                    Err(error) => {
                        tracing::warn!(%error, function, minute = row.minute, "skipping a rollup");
                        return;
                    }
                };
                sum.add_read(&read);
                if let Some((from, seconds)) = column_of(row.minute, column, started) {
                    let mut buckets = Buckets::default();
                    buckets.add_counts(read.total());
                    heat.add(from, seconds, &buckets);
                }
            })
            .await?;
        Ok(Stored {
            changes,
            first,
            sum,
            heat,
        })
    }
}

/// The column a minute belongs to: its first second and its width; none when slots show the minute instead.
fn column_of(minute: i64, column: i64, started: i64) -> Option<(i64, i64)> {
    match column {
        // The minute the server started in is in the slots only in part.
        SLOT_S if minute > started => None,
        SLOT_S => Some((minute * 60, 60)),
        _ => Some(((minute * 60).div_euclid(column) * column, column)),
    }
}

fn add_memory(counters: &Counters, heat: &mut Heat, first: i64, column: i64, started: i64) {
    for (minute, finished) in counters.minutes.iter().filter(|(m, _)| *m >= first) {
        if let Some((from, seconds)) = column_of(*minute, column, started) {
            let mut buckets = Buckets::default();
            buckets.add_counts(&finished.totals());
            heat.add(from, seconds, &buckets);
        }
    }
    if column == SLOT_S {
        for (second, buckets) in counters.slots.since(first.max(started + 1)) {
            heat.add(second, SLOT_S, buckets);
        }
    }
}

/// The first minute of a window that ends at `now` (µs since 1970). Beyond the minutes that are kept as such, it is the
/// first of a column, so that no column is there in part.
fn first_minute(now: i64, window_s: u64, column: i64) -> i64 {
    let window_us = i64::try_from(window_s).unwrap_or(i64::MAX / 1_000_000) * 1_000_000;
    let first = minute_at(now.saturating_sub(window_us));
    if window_s > KEPT_MINUTES.unsigned_abs() * 60 {
        let minutes = column / 60;
        first.div_euclid(minutes) * minutes
    } else {
        first
    }
}

fn latency(sum: &Slice, heat: &Heat, window_s: u64, first: i64) -> Latency {
    let total = sum.total();
    let longest = sum.counts().max[5];
    let warm = sum.parts().warm(total);
    Latency {
        stats: sum.stats(window_s),
        from: Timestamp::from_second(first * 60).unwrap_or_default(),
        histogram: bars(total),
        warm: distribution(&warm, longest),
        cold: sum
            .parts()
            .cold()
            .map(|cold| distribution(cold, longest))
            .unwrap_or_default(),
        undivided: sum.parts().undivided(),
        heat_map: heat.map(),
    }
}

fn distribution(histogram: &Histogram<u64>, longest: u64) -> Distribution {
    Distribution {
        count: histogram.len(),
        total_us: percentiles(histogram, longest.min(histogram.max())),
        histogram: bars(histogram),
    }
}

/// The bars of a histogram that hold something.
fn bars(histogram: &Histogram<u64>) -> Vec<Bar> {
    let bounds = &*BAR_BOUNDS;
    let mut bars: Vec<Bar> = Vec::new();
    for value in histogram.iter_recorded() {
        let middle = histogram.median_equivalent(value.value_iterated_to());
        let index = bounds
            .partition_point(|bound| *bound < middle)
            .min(bounds.len() - 1);
        let upper = bounds[index];
        match bars.last_mut() {
            Some(last) if last.1 == upper => last.2 += value.count_at_value(),
            _ => {
                let lower = if index == 0 { 0 } else { bounds[index - 1] };
                bars.push((lower, upper, value.count_at_value()));
            }
        }
    }
    bars
}
