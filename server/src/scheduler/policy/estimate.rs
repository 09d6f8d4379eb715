//! Estimates that follow what is measured: means of durations, and a decaying frequency.

use std::time::Duration;

/// Weight of a new sample: an estimate follows a change within some ten samples and is moved little by a single one.
const WEIGHT: f64 = 1.0 / 8.0;

/// An exponentially weighted mean of durations. The mean and not a quantile: what is asked of it is the work in a queue,
/// which is the number of calls times the mean.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mean {
    nanos: Option<f64>,
}

impl Mean {
    /// Takes a sample in. The first one is the estimate.
    #[inline]
    pub fn sample(&mut self, sample: Duration) {
        let sample = sample.as_nanos() as f64;
        self.nanos = Some(match self.nanos {
            Some(mean) => mean + (sample - mean) * WEIGHT,
            None => sample,
        });
    }

    /// Takes in that something lasted at least this long, being cut short: it can only raise the estimate.
    pub fn at_least(&mut self, sample: Duration) {
        if self.get().is_none_or(|mean| sample > mean) {
            self.sample(sample);
        }
    }

    /// The estimate, once there was a sample.
    pub fn get(&self) -> Option<Duration> {
        self.nanos
            .map(|nanos| Duration::from_nanos(nanos.max(0.0) as u64))
    }
}

/// Time in which a frequency that nothing adds to halves: calls of the last minutes count, yesterday's do not.
pub const FREQUENCY_HALF_LIFE: Duration = Duration::from_secs(15 * 60);

/// How often something happens: a count in which every event loses half its weight per half-life. Shown per hour it would
/// be an hourly rate; only its proportions matter here.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Frequency {
    weight: f64,
}

impl Frequency {
    /// Lets `elapsed` pass, at whose end `events` happened.
    pub fn advance(&mut self, elapsed: Duration, events: u64) {
        let halvings = elapsed.as_secs_f64() / FREQUENCY_HALF_LIFE.as_secs_f64();
        self.weight = self.weight * (-halvings).exp2() + events as f64;
    }

    /// The decayed count.
    pub fn get(&self) -> f64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mean_follows_and_is_not_moved_far_by_one_sample() {
        let mut mean = Mean::default();
        assert_eq!(mean.get(), None);
        mean.sample(Duration::from_micros(100));
        assert_eq!(mean.get(), Some(Duration::from_micros(100)));
        mean.sample(Duration::from_micros(900));
        assert_eq!(mean.get(), Some(Duration::from_micros(200)));
        for _ in 0..50 {
            mean.sample(Duration::from_millis(1));
        }
        assert!(mean.get() > Some(Duration::from_micros(990)));
    }

    #[test]
    fn what_was_cut_short_only_raises() {
        let mut mean = Mean::default();
        mean.at_least(Duration::from_millis(8));
        mean.at_least(Duration::from_millis(1));
        assert_eq!(mean.get(), Some(Duration::from_millis(8)));
        mean.at_least(Duration::from_millis(16));
        assert_eq!(mean.get(), Some(Duration::from_millis(9)));
    }

    #[test]
    fn a_frequency_halves() {
        let mut frequency = Frequency::default();
        frequency.advance(Duration::ZERO, 8);
        frequency.advance(FREQUENCY_HALF_LIFE, 0);
        assert_eq!(frequency.get(), 4.0);
        frequency.advance(FREQUENCY_HALF_LIFE, 1);
        assert_eq!(frequency.get(), 3.0);
    }

    proptest! {
        /// A mean lies between the least and the greatest sample, give or take the nanosecond it is cut to.
        #[test]
        fn a_mean_is_between_its_samples(samples in prop::collection::vec(0_u64..1_000_000_000_000, 1..50)) {
            let mut mean = Mean::default();
            for sample in &samples {
                mean.sample(Duration::from_nanos(*sample));
            }
            let got = mean.get().unwrap().as_nanos() as u64;
            prop_assert!(got + 1 >= *samples.iter().min().unwrap());
            prop_assert!(got <= *samples.iter().max().unwrap() + 1);
        }
    }
}
