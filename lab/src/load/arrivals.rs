//! The times of an open loop, made one at a time.

use super::plan::Arrivals;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// Gives the time of each request, in ns from the run's begin.
pub(super) struct Times {
    arrivals: Arrivals,
    random: fastrand::Rng,
    count: u64,
    last: f64,
}

impl Times {
    pub(super) fn new(arrivals: Arrivals) -> Self {
        let seed = match arrivals {
            Arrivals::Exponential { seed, .. } => seed,
            _ => 0,
        };
        Self {
            arrivals,
            random: fastrand::Rng::with_seed(seed),
            count: 0,
            last: 0.0,
        }
    }

    /// The next one's. The first is sent at 0, except that a Poisson process begins with a wait.
    pub(super) fn next(&mut self) -> u64 {
        let number = self.count;
        self.count += 1;
        self.last = match self.arrivals {
            // From the number, so that rounding errors do not add up.
            Arrivals::Fixed { rate } => number as f64 / rate * SECOND,
            Arrivals::Exponential { rate, .. } => {
                // Of (0, 1], whose logarithm is finite.
                let uniform = 1.0 - self.random.f64();
                self.last - uniform.ln() / rate * SECOND
            }
            Arrivals::Step { .. } if number == 0 => 0.0,
            Arrivals::Step {
                from,
                by,
                to,
                every_ms,
            } => {
                let step = (self.last / (every_ms as f64 * 1e6)).floor();
                self.last + SECOND / (from + by * step).min(to)
            }
        };
        self.last as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, count: usize) -> Vec<u64> {
        let mut times = Times::new(arrivals);
        (0..count).map(|_| times.next()).collect()
    }

    #[test]
    fn fixed_times_do_not_drift() {
        let times = times(Arrivals::Fixed { rate: 3_000.0 }, 9_001);
        assert_eq!(times[..3], [0, 333_333, 666_666]);
        assert_eq!(times[9_000], 3_000_000_000);
    }

    #[test]
    fn exponential_times_have_the_mean_and_the_spread_of_a_poisson_process() {
        let arrivals = Arrivals::Exponential {
            rate: 1_000.0,
            seed: 4,
        };
        let times = times(arrivals, 100_001);
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = crate::statistics::quantile::mean(&gaps);
        let deviation = crate::statistics::quantile::standard_deviation(&gaps);
        // The standard error of both is about 1/316 of 1 ms.
        assert!((mean / 1e6 - 1.0).abs() < 0.015, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.015, "{deviation}");
        assert_eq!(super::tests::times(arrivals, 5), times[..5]);
    }

    #[test]
    fn steps_grow_to_the_highest_rate() {
        let arrivals = Arrivals::Step {
            from: 100.0,
            by: 50.0,
            to: 180.0,
            every_ms: 1_000,
        };
        let times = times(arrivals, 700);
        let within = |second: u64| {
            let range = second * 1_000_000_000..(second + 1) * 1_000_000_000;
            times.iter().filter(|time| range.contains(time)).count()
        };
        assert!((99..=101).contains(&within(0)), "{}", within(0));
        assert!((149..=151).contains(&within(1)), "{}", within(1));
        assert!((179..=181).contains(&within(2)), "{}", within(2));
        assert!((179..=181).contains(&within(3)), "{}", within(3));
    }
}
