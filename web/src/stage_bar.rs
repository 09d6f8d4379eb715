//! The stage bar: where an invocation's time went, as widths of an SVG.
//!
//! Widths are attributes and not styles, so that a strict content security policy lets them pass.

use crate::format;

/// Units the whole bar is wide in its own coordinates.
pub const BAR_WIDTH: u64 = 1_000;

/// A stage that took any time is at least this wide, so that it can be seen.
const MIN_WIDTH: u64 = 4;

/// Stage times of an invocation in µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Waiting for an instance to be free.
    pub queue: u64,
    /// Starting an instance.
    pub start: u64,
    /// Writing the request.
    pub send: u64,
    /// The handler.
    pub run: u64,
    /// Reading the response.
    pub recv: u64,
    /// From admission to the end of the response.
    pub total: u64,
}

/// One stage as it is drawn and explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// `queue`, `start`, `send`, `run`, `recv`, or `other` for what lies between them.
    pub name: &'static str,
    /// What happens in it, for the tooltip.
    pub meaning: &'static str,
    /// Duration, formatted.
    pub duration: String,
    /// Share of the total in percent, formatted.
    pub share: String,
    /// Left edge in bar units.
    pub x: u64,
    /// Width in bar units; 0 when the stage took no time.
    pub width: u64,
}

/// A drawn bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageBar {
    /// In the order of time. Widths add up to [`BAR_WIDTH`], or to 0 when nothing was measured.
    pub segments: Vec<Segment>,
    /// Total, formatted.
    pub total: String,
}

impl StageBar {
    /// Lays out the stages in proportion to their time.
    pub fn new(times: StageTimes) -> Self {
        let named = [
            ("queue", "waiting for a free instance", times.queue),
            ("start", "starting an instance", times.start),
            ("send", "delivering the request", times.send),
            ("run", "the handler", times.run),
            ("recv", "delivering the response", times.recv),
        ];
        let sum = named
            .iter()
            .fold(0u64, |sum, &(_, _, us)| sum.saturating_add(us));
        let other = times.total.saturating_sub(sum);
        let mut stages = named.to_vec();
        if other > 0 {
            stages.push(("other", "between the stages", other));
        }
        let whole = sum.saturating_add(other);
        let durations: Vec<u64> = stages.iter().map(|&(_, _, us)| us).collect();
        let widths = widths(&durations);
        let mut x = 0;
        let segments = stages
            .into_iter()
            .zip(widths)
            .map(|((name, meaning, us), width)| {
                let left = x;
                x += width;
                Segment {
                    name,
                    meaning,
                    duration: format::duration_us(us),
                    share: share(us, whole),
                    x: left,
                    width,
                }
            })
            .collect();
        Self {
            segments,
            total: format::duration_us(times.total.max(whole)),
        }
    }

    /// The bar in words, for screen readers.
    pub fn description(&self) -> String {
        let parts: Vec<String> = self
            .segments
            .iter()
            .map(|segment| format!("{} {}", segment.name, segment.duration))
            .collect();
        format!("total {}: {}", self.total, parts.join(", "))
    }
}

/// Splits the bar: every non-zero duration gets [`MIN_WIDTH`], the rest goes by proportion, what rounding leaves over
/// goes to the longest.
fn widths(durations: &[u64]) -> Vec<u64> {
    let sum: u128 = durations.iter().map(|&us| u128::from(us)).sum();
    if sum == 0 {
        return vec![0; durations.len()];
    }
    let present = durations.iter().filter(|&&us| us > 0).count() as u64;
    let free = BAR_WIDTH - present * MIN_WIDTH;
    let mut widths: Vec<u64> = durations
        .iter()
        .map(|&us| match us {
            0 => 0,
            // At most `free`, which fits.
            us => MIN_WIDTH + (u128::from(us) * u128::from(free) / sum) as u64,
        })
        .collect();
    let missing = BAR_WIDTH - widths.iter().sum::<u64>();
    if let Some(longest) = (0..durations.len()).max_by_key(|&index| durations[index]) {
        widths[longest] += missing;
    }
    widths
}

fn share(us: u64, whole: u64) -> String {
    if us == 0 || whole == 0 {
        return "0%".to_owned();
    }
    match us as f64 * 100.0 / whole as f64 {
        percent if percent < 1.0 => "< 1%".to_owned(),
        percent => format!("{percent:.0}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_fill_the_bar_and_follow_the_times() {
        let bar = StageBar::new(StageTimes {
            queue: 0,
            start: 800,
            send: 5,
            run: 3_000,
            recv: 10,
            total: 3_900,
        });
        let by_name = |name: &str| {
            bar.segments
                .iter()
                .find(|segment| segment.name == name)
                .expect("segment")
        };
        assert_eq!(bar.segments.iter().map(|s| s.width).sum::<u64>(), BAR_WIDTH);
        assert_eq!(by_name("queue").width, 0);
        assert!(by_name("send").width >= MIN_WIDTH);
        assert!(by_name("run").width > by_name("start").width * 3);
        assert_eq!(by_name("other").duration, "85 µs");
        assert_eq!(by_name("send").share, "< 1%");
        assert_eq!(bar.total, "3.90 ms");
        let mut x = 0;
        for segment in &bar.segments {
            assert_eq!(segment.x, x);
            x += segment.width;
        }
        assert!(
            bar.description()
                .starts_with("total 3.90 ms: queue 0 µs, start 800 µs")
        );
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        let bar = StageBar::new(StageTimes::default());
        assert!(bar.segments.iter().all(|segment| segment.width == 0));
        assert_eq!(bar.total, "0 µs");
    }

    #[test]
    fn absurd_times_neither_overflow_nor_overfill() {
        let bar = StageBar::new(StageTimes {
            queue: u64::MAX,
            start: u64::MAX,
            send: 1,
            run: u64::MAX,
            recv: 1,
            total: 1,
        });
        assert_eq!(bar.segments.iter().map(|s| s.width).sum::<u64>(), BAR_WIDTH);
    }
}
