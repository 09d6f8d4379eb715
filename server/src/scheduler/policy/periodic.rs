//! Warm-ahead: when a function that is called at regular times will be called next.
//!
//! A function called every ten minutes whose instances end after five of idleness meets a start with every call. Its
//! rhythm is learned, and an instance is started shortly before the next call is expected, kept through the window in
//! which it may come, and let go when it does not.
//!
//! "Serverless in the Wild" (Shahrad et al., USENIX ATC 2020) keeps a histogram of idle times for each function and
//! pre-warms at its head when it is narrow. One host has few enough functions to keep the last gaps themselves: their
//! median, and the deviation that three quarters of them keep, stay right when one call is missed or comes out of turn,
//! and need three gaps where a histogram needs dozens. Calls that follow each other closely are one visit: a burst every ten minutes has
//! the rhythm of its first calls.

use std::time::{Duration, Instant};

/// Gaps that are remembered: enough to outvote a stray one, few enough to follow a changed schedule.
const REMEMBERED: usize = 8;
/// Gaps needed for a prediction.
const NEEDED: usize = 3;
/// Widest half of a window, as a part of the usual gap: in a wider one an instance would be idle for longer than its
/// start is worth, and the rhythm counts as irregular.
const WIDEST: f64 = 0.25;
/// The window's half-width, in deviations that three quarters of the gaps keep: 2 hold all of what is evenly spread and
/// 98 % of what is normally distributed.
const DEVIATIONS: u32 = 2;
/// Least half-width of the window, as a part of the median and in time: a schedule's own jitter, and the network's.
const LEAST_PART: u32 = 50;
const LEAST: Duration = Duration::from_millis(500);
/// Windows in a row that may pass without a call before the rhythm is forgotten.
const MISSES: u32 = 2;

/// When a call is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first time at which it may come.
    pub from: Instant,
    /// The last one.
    pub until: Instant,
}

/// What to do now, asked from time to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    None,
    /// Have one instance ready until the end of the window.
    Hold(Window),
    /// Nobody came: let it go.
    Missed,
}

/// The rhythm of one function.
#[derive(Debug, Clone)]
pub struct Rhythm {
    /// Gaps shorter than this belong to a visit.
    within: Duration,
    /// Instances end by themselves after this time without a call.
    idle_timeout: Duration,
    last: Option<Instant>,
    /// First call of the present visit.
    visit: Option<Instant>,
    gaps: [Duration; REMEMBERED],
    known: usize,
    misses: u32,
    held: Option<Window>,
}

impl Rhythm {
    /// The rhythm of a function that was never called, whose instances end after `idle_timeout` without a call.
    pub fn new(idle_timeout: Duration) -> Self {
        Self {
            within: idle_timeout / 2,
            idle_timeout,
            last: None,
            visit: None,
            gaps: [Duration::ZERO; REMEMBERED],
            known: 0,
            misses: 0,
            held: None,
        }
    }

    /// The same rhythm under another idle timeout: for the next version of the function.
    pub fn continued(&self, idle_timeout: Duration) -> Self {
        Self {
            within: idle_timeout / 2,
            idle_timeout,
            held: None,
            ..self.clone()
        }
    }

    /// A call came. True when an instance was held ready for it. On the path of every call: a subtraction and two
    /// comparisons, unless it begins a visit.
    #[inline]
    pub fn call(&mut self, at: Instant) -> bool {
        if let Some(last) = self.last
            && at.saturating_duration_since(last) < self.within
            && self.held.is_none()
        {
            self.last = Some(last.max(at));
            return false;
        }
        self.begins_visit(at)
    }

    fn begins_visit(&mut self, at: Instant) -> bool {
        let awaited = self.held.take().is_some();
        let gap = self.last.map(|last| at.saturating_duration_since(last));
        self.last = Some(at);
        if awaited {
            self.misses = 0;
        }
        match (gap, self.visit) {
            (Some(gap), Some(visit)) if gap >= self.within => {
                self.learn(at.saturating_duration_since(visit));
                self.visit = Some(at);
            }
            (None, _) | (_, None) => self.visit = Some(at),
            _ => {}
        }
        awaited
    }

    fn learn(&mut self, gap: Duration) {
        self.misses = 0;
        self.gaps.rotate_right(1);
        self.gaps[0] = gap;
        self.known = (self.known + 1).min(REMEMBERED);
    }

    /// The usual gap and how far from it a call may come; `None` while nothing regular is known.
    fn regular(&self) -> Option<(Duration, Duration)> {
        if self.known < NEEDED {
            return None;
        }
        let gaps = &self.gaps[..self.known];
        let usual = ranked(gaps.iter().copied(), self.known.div_ceil(2));
        let deviations = gaps.iter().map(|gap| gap.abs_diff(usual));
        let deviation = ranked(deviations, (self.known * 3).div_ceil(4));
        let half = (deviation * DEVIATIONS).max(usual / LEAST_PART).max(LEAST);
        (half <= usual.mul_f64(WIDEST)).then_some((usual, half))
    }

    /// When the next call is expected; `None` when nothing is known, or when an instance waits for it anyway.
    pub fn next(&self) -> Option<Window> {
        let (usual, half) = self.regular()?;
        if usual + half <= self.idle_timeout {
            return None;
        }
        let at = self.visit? + usual * (self.misses + 1);
        Some(Window {
            from: at - half,
            until: at + half,
        })
    }

    /// What to do at `now`; an instance takes `lead` to be ready.
    pub fn step(&mut self, now: Instant, lead: Duration) -> Step {
        if let Some(held) = self.held {
            if now <= held.until {
                return Step::None;
            }
            self.held = None;
            self.missed();
            return Step::Missed;
        }
        let Some(window) = self.next() else {
            return Step::None;
        };
        if now > window.until {
            // Nobody was asked in time, and nobody came either.
            self.missed();
            return Step::None;
        }
        if now + lead < window.from {
            return Step::None;
        }
        self.held = Some(window);
        Step::Hold(window)
    }

    fn missed(&mut self) {
        self.misses += 1;
        if self.misses >= MISSES {
            self.known = 0;
            self.misses = 0;
        }
    }

    /// The last call, if there was one.
    pub fn last_call(&self) -> Option<Instant> {
        self.last
    }
}

/// The `rank`-th smallest, from 1 on.
fn ranked(durations: impl Iterator<Item = Duration>, rank: usize) -> Duration {
    let mut sorted = [Duration::MAX; REMEMBERED];
    for (slot, duration) in sorted.iter_mut().zip(durations) {
        *slot = duration;
    }
    sorted.sort_unstable();
    sorted[rank.clamp(1, REMEMBERED) - 1]
}

#[cfg(test)]
#[path = "periodic_tests.rs"]
mod tests;
