//! Rates as the programs want them.

use crate::records::{FUNCTION_TRACKS_SOURCES, Function};

/// A token bucket: `burst` tokens at most, `rate` new ones a second. A burst is at least what the rate gives in [`TICK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens a second, at least 1.
    pub rate: u64,
    /// Tokens at most, at least 1.
    pub burst: u64,
}

/// What may start work at a function: a TCP SYN or a datagram takes a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For one source prefix.
    pub source: Option<Rate>,
    /// For all sources together.
    pub total: Option<Rate>,
    /// Count by source even where sources are not limited.
    pub tracks_sources: bool,
}

const SECOND: u64 = 1_000_000_000;
/// Nanoseconds between ticks, at most (HZ = 100): the programs read the time of the last one. A sender may be ahead by that
/// much, so that it gets its whole rate.
pub const TICK: u64 = SECOND / 100;

impl Rate {
    /// Nanoseconds between tokens, and how far ahead of them a sender may be. Rates that do not divide a second are
    /// rounded down, by less than 1 % up to 10 million a second.
    fn in_nanoseconds(self) -> (u64, u64) {
        let interval = SECOND.div_ceil(self.rate.clamp(1, SECOND));
        let slack = interval.saturating_mul(self.burst.max(1) - 1);
        (interval, slack.max(TICK))
    }
}

impl From<Limits> for Function {
    fn from(limits: Limits) -> Self {
        let (source_interval, source_slack) =
            limits.source.map(Rate::in_nanoseconds).unwrap_or_default();
        let (total_interval, total_slack) =
            limits.total.map(Rate::in_nanoseconds).unwrap_or_default();
        Self {
            source_interval,
            source_slack,
            total_interval,
            total_slack,
            flags: if limits.tracks_sources {
                FUNCTION_TRACKS_SOURCES
            } else {
                0
            },
            unused: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_becomes_an_interval_and_a_burst_its_multiple() {
        let limits = Limits {
            source: Some(Rate { rate: 10, burst: 5 }),
            total: Some(Rate { rate: 3, burst: 1 }),
            tracks_sources: false,
        };
        let function = Function::from(limits);
        assert_eq!(function.source_interval, 100_000_000);
        assert_eq!(function.source_slack, 400_000_000);
        assert_eq!(function.total_interval, 333_333_334);
        assert_eq!(function.total_slack, TICK);
        assert_eq!(Function::from(Limits::default()), Function::default());
    }

    #[test]
    fn no_rate_is_so_extreme_that_it_overflows_or_stops_limiting() {
        let extreme = Rate {
            rate: u64::MAX,
            burst: u64::MAX,
        };
        let function = Function::from(Limits {
            source: Some(extreme),
            ..Limits::default()
        });
        assert_eq!(
            (function.source_interval, function.source_slack),
            (1, u64::MAX - 1)
        );
        let nothing = Rate { rate: 0, burst: 0 };
        let function = Function::from(Limits {
            total: Some(nothing),
            ..Limits::default()
        });
        assert_eq!(
            (function.total_interval, function.total_slack),
            (SECOND, TICK)
        );
    }
}
