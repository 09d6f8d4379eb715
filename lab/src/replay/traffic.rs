//! Arrivals: when requests came, and with what.

use std::time::Duration;

use crate::duet::events::Event;

/// Most arrivals of a replay: each is a trial, and a report draws samples of all of them.
pub const ARRIVALS_MAX: usize = 50_000;

/// Longest replay, after scaling.
pub const DURATION_MAX: Duration = Duration::from_hours(6);

/// Largest factor by which time is scaled.
pub const SPEED_MAX: f64 = 100.0;

/// A request that came once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// When, from the begin of the window.
    pub at: Duration,
    /// Which of the events it is sent with.
    pub event: usize,
    /// How long the handler took then, in ns, where that is known and it succeeded.
    pub recorded_run_ns: Option<f64>,
    /// The same from admission to the end of the answer.
    pub recorded_total_ns: Option<f64>,
}

/// What is replayed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traffic {
    /// Where it is from, for people.
    pub source: String,
    /// In the order of their times.
    pub arrivals: Vec<Arrival>,
    /// What they are sent with, one at least.
    pub events: Vec<Event>,
    /// Arrivals whose own event was kept.
    pub own_events: usize,
}

impl Traffic {
    /// From the first arrival to the last.
    pub fn span(&self) -> Duration {
        let last = self.arrivals.last().map_or(Duration::ZERO, |last| last.at);
        let first = self.arrivals.first().map_or(last, |first| first.at);
        last - first
    }

    /// Sorts the arrivals and lets the first come at once.
    pub(super) fn settle(&mut self) {
        self.arrivals.sort_by_key(|arrival| arrival.at);
        if let Some(first) = self.arrivals.first().map(|first| first.at) {
            for arrival in &mut self.arrivals {
                arrival.at -= first;
            }
        }
    }
}
