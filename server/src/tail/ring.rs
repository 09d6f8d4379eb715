//! The last samples, and what happened between two of them.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::sample::Sample;
use crate::model::TailWindow;

/// Samples that are kept: a quarter of an hour of a busy host. Some 150 bytes each.
const KEPT: usize = 3_600;

/// Samples, oldest first.
#[derive(Debug, Default)]
pub(super) struct Ring(VecDeque<Sample>);

impl Ring {
    /// Adds a sample. One that is not newer than the newest is left out: the clock was set back.
    pub(super) fn push(&mut self, sample: Sample) {
        if self.0.back().is_some_and(|last| last.at >= sample.at) {
            // Its times would not be in order. Samples from before the change belong to another clock.
            self.0.clear();
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// When the newest sample was taken, in µs since 1970.
    pub(super) fn newest(&self) -> Option<i64> {
        self.0.back().map(|sample| sample.at)
    }

    /// When the oldest was.
    pub(super) fn oldest(&self) -> Option<i64> {
        self.0.front().map(|sample| sample.at)
    }

    /// What was counted of the host and of a function around a time, from the last sample before it to the first after it. None if
    /// there is no such sample.
    pub(super) fn around(&self, from: i64, to: i64, function: &str) -> Option<TailWindow> {
        let after = self.0.partition_point(|sample| sample.at < to);
        let before = self.0.partition_point(|sample| sample.at <= from);
        let (before, after) = (self.0.get(before.checked_sub(1)?)?, self.0.get(after)?);
        (before.at < after.at).then(|| between(before, after, function))
    }

    /// What was counted from the oldest sample to the newest.
    pub(super) fn whole(&self, function: &str) -> Option<TailWindow> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        (first.at < last.at).then(|| between(first, last, function))
    }
}

fn between(before: &Sample, after: &Sample, function: &str) -> TailWindow {
    let ticks = |of: fn(&Sample) -> u64| of(after).saturating_sub(of(before));
    let all = ticks(|sample| sample.ticks.all);
    // The time waited for disks may go backwards on some kernels.
    let idle = ticks(|sample| sample.ticks.idle).min(all);
    let share = |part: u64| match all {
        0 => 0.0,
        all => part as f64 / all as f64,
    };
    let length = (after.at - before.at).unsigned_abs();
    let pressure = |of: fn(&Sample) -> Option<u64>| {
        let waited = of(after)?.saturating_sub(of(before)?);
        Some((waited as f64 / length as f64).min(1.0))
    };
    let throttled = |sample: &Sample| {
        let found = sample
            .throttled
            .iter()
            .find(|one| *one.function == *function);
        found.map_or((0, 0), |one| (one.periods, one.us))
    };
    // A sandbox that ends takes its counts along.
    let (now, then) = (throttled(after), throttled(before));
    let time = |us| Timestamp::from_microsecond(us).unwrap_or_default();
    TailWindow {
        from: time(before.at),
        to: time(after.at),
        busy: share(all - idle),
        steal: share(ticks(|sample| sample.ticks.steal).min(all)),
        cpu_pressure: pressure(|sample| sample.cpu),
        memory_pressure: pressure(|sample| sample.memory),
        io_pressure: pressure(|sample| sample.io),
        throttled_periods: now.0.saturating_sub(then.0),
        throttled_us: now.1.saturating_sub(then.1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Throttled, Ticks};
    use super::*;

    /// Two processors with 100 ticks a second; everything grows in step with the time.
    fn sample(at_ms: i64) -> Sample {
        let grown = at_ms.unsigned_abs();
        Sample {
            at: at_ms * 1_000,
            ticks: Ticks {
                all: grown / 5,
                idle: grown / 10,
                steal: grown / 50,
            },
            cpu: Some(grown * 250),
            memory: None,
            io: Some(0),
            throttled: vec![Throttled {
                function: "f".into(),
                periods: grown / 20,
                us: grown * 100,
            }],
        }
    }

    fn ring(times_ms: impl IntoIterator<Item = i64>) -> Ring {
        let mut ring = Ring::default();
        for at in times_ms {
            ring.push(sample(at));
        }
        ring
    }

    #[test]
    fn the_samples_around_a_time_bound_its_window() {
        let ring = ring([1_000, 1_250, 1_500, 2_500]);
        let window = ring.around(1_300_000, 1_400_000, "f").expect("a window");
        assert_eq!(window.from.as_microsecond(), 1_250_000);
        assert_eq!(window.to.as_microsecond(), 1_500_000);
        assert_eq!((window.busy, window.steal), (0.5, 0.1));
        assert_eq!(window.cpu_pressure, Some(0.25));
        assert_eq!(window.memory_pressure, None);
        assert_eq!(window.io_pressure, Some(0.0));
        assert_eq!(
            (window.throttled_periods, window.throttled_us),
            (13, 25_000)
        );
        let other = ring.around(1_300_000, 1_400_000, "g").expect("a window");
        assert_eq!((other.throttled_periods, other.throttled_us), (0, 0));
        // It ends exactly at a sample.
        let exact = ring.around(1_250_000, 1_500_000, "f").expect("a window");
        assert_eq!((exact.from, exact.to), (window.from, window.to));
        let long = ring.around(1_100_000, 2_000_000, "f").expect("a window");
        assert_eq!(long.from.as_microsecond(), 1_000_000);
        assert_eq!(long.to.as_microsecond(), 2_500_000);
    }

    #[test]
    fn without_samples_on_both_sides_there_is_no_window() {
        let ring = ring([1_000, 2_000]);
        assert_eq!(ring.around(999_999, 1_500_000, "f"), None, "before them");
        assert_eq!(ring.around(1_500_000, 2_000_001, "f"), None, "after them");
        assert_eq!(ring.around(2_000_000, 2_000_000, "f"), None, "no time");
        assert_eq!(Ring::default().around(0, 1, "f"), None);
    }

    #[test]
    fn the_average_is_over_all_samples() {
        let ring = ring([1_000, 2_000, 5_000]);
        let whole = ring.whole("f").expect("a window");
        assert_eq!(whole.from.as_microsecond(), 1_000_000);
        assert_eq!(whole.to.as_microsecond(), 5_000_000);
        assert_eq!(whole.cpu_pressure, Some(0.25));
        assert_eq!(Ring::default().whole("f"), None);
    }

    #[test]
    fn the_oldest_samples_go_and_a_clock_that_is_set_back_starts_over() {
        let mut ring = ring(0..4_000);
        assert_eq!(ring.oldest(), Some(400_000));
        ring.push(sample(5));
        assert_eq!((ring.oldest(), ring.newest()), (Some(5_000), Some(5_000)));
    }

    #[test]
    fn counters_that_shrink_count_as_nothing() {
        let mut ring = Ring::default();
        let mut first = sample(1_000);
        first.throttled[0].us = u64::MAX;
        ring.push(first);
        ring.push(sample(2_000));
        let window = ring.around(1_000_000, 2_000_000, "f").expect("a window");
        assert_eq!(window.throttled_us, 0);
    }
}
