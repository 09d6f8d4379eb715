//! The last minutes of every function, in memory, so that a page of a thousand functions needs no database query.

use std::collections::VecDeque;

use super::counters::Counters;
use super::minute::Minute;
use super::slice::Slice;
use super::{History, Inner};
use crate::model::samples_needed;

/// Minutes that are kept of what was stored: the five that are shown, and the one they begin in.
const KEPT_MINUTES: usize = 6;

/// What a list shows of a function: the minutes that the last five minutes touch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recent {
    /// Finished invocations.
    pub count: u64,
    /// Unsuccessful invocations.
    pub errors: u64,
    /// Median of the total, µs; none with too few samples.
    pub p50_us: Option<u64>,
    /// 99th percentile of the total, µs; none with too few samples.
    pub p99_us: Option<u64>,
}

/// A minute that was stored: its totals as value and count, so that it takes some hundred bytes instead of a histogram's
/// 24 KiB.
#[derive(Debug)]
struct Stored {
    minute: i64,
    count: u64,
    errors: u64,
    longest: u64,
    totals: Vec<(u64, u64)>,
}

/// The newest stored minutes of a function, and its last summary.
#[derive(Debug, Default)]
pub(super) struct Minutes {
    stored: VecDeque<Stored>,
    /// The first minute asked for, what had been counted since the start, and the answer: nothing is added up again
    /// for a function that was not called meanwhile.
    last: Option<(i64, u64, Recent)>,
}

impl Minutes {
    /// Keeps a minute that is being stored.
    pub(super) fn keep(&mut self, minute: i64, finished: &Minute) {
        self.last = None;
        while self.stored.len() >= KEPT_MINUTES {
            self.stored.pop_front();
        }
        let counts = finished.counts();
        self.stored.push_back(Stored {
            minute,
            count: counts.count,
            errors: counts.errors,
            longest: counts.max[5],
            totals: finished.totals(),
        });
    }

    /// Lets go of a minute that could not be stored, and is counted in memory again.
    pub(super) fn drop_newest(&mut self, minute: i64) {
        self.last = None;
        if let Some(index) = self.stored.iter().rposition(|kept| kept.minute == minute) {
            self.stored.remove(index);
        }
    }
}

impl Counters {
    /// What finished in `first` (a minute) and later.
    pub(super) fn recent(&mut self, first: i64) -> Recent {
        if let Some((asked, counted, recent)) = self.recent.last
            && (asked, counted) == (first, self.count)
        {
            return recent;
        }
        let mut recent = Recent::default();
        let mut longest = 0;
        let mut all: Vec<(u64, u64)> = Vec::new();
        for kept in self.recent.stored.iter().filter(|m| m.minute >= first) {
            recent.count += kept.count;
            recent.errors += kept.errors;
            longest = longest.max(kept.longest);
            all.extend(&kept.totals);
        }
        for (_, finished) in self.minutes.iter().filter(|(minute, _)| *minute >= first) {
            let counts = finished.counts();
            recent.count += counts.count;
            recent.errors += counts.errors;
            longest = longest.max(counts.max[5]);
            all.extend(finished.totals());
        }
        all.sort_unstable();
        recent.p50_us = ranked(&all, recent.count, 500).map(|us| us.min(longest));
        recent.p99_us = ranked(&all, recent.count, 990).map(|us| us.min(longest));
        self.recent.last = Some((first, self.count, recent));
        recent
    }
}

/// Nearest rank of a sorted list, as the histograms have it; none when it is too short for this percentile.
fn ranked(sorted: &[(u64, u64)], count: u64, per_mille: u64) -> Option<u64> {
    if count < samples_needed(per_mille) {
        return None;
    }
    let rank = ((count as f64 * per_mille as f64 / 1000.0).ceil() as u64).max(1);
    let mut seen = 0;
    for (value, count) in sorted {
        seen += count;
        if seen >= rank {
            return Some(*value);
        }
    }
    None
}

impl History {
    /// What every function did in `first` (a minute since 1970) and later, by row id; those that did nothing are left
    /// out. `first` no more than five minutes ago. Asks the database nothing.
    pub fn recent(&self, first: i64) -> Vec<(i64, Recent)> {
        let functions = self.inner.functions.load();
        functions
            .iter()
            .map(|(id, function)| (*id, function.counters.lock().recent(first)))
            .filter(|(_, recent)| recent.count > 0)
            .collect()
    }
}

impl History {
    /// What one function did in `first` and later, as [`Self::recent`] has it.
    pub fn recent_of(&self, function: i64, first: i64) -> Recent {
        match self.inner.functions.load().get(&function) {
            Some(function) => function.counters.lock().recent(first),
            None => Recent::default(),
        }
    }
}

impl Inner {
    /// At start: what the minutes before it left in the database.
    pub(super) async fn load_recent(&self, first: i64) {
        let functions = match self.store.subject_ids().await {
            Ok(functions) => functions,
            Err(error) => {
                tracing::warn!(%error, "cannot load the last minutes from before the start");
                return;
            }
        };
        for function in functions {
            let mut minutes = Vec::new();
            let read = self.store.each_rollup(function, first, |row| {
                let mut slice = Slice::new();
                if row.minutes == 1 && slice.add_row(&row).is_ok() {
                    minutes.push((row.minute, Minute::from(slice)));
                }
            });
            if let Err(error) = read.await {
                tracing::warn!(%error, function, "cannot load its last minutes from before the start");
            }
            if minutes.is_empty() {
                continue;
            }
            let known = self.function(function);
            let mut counters = known.counters.lock();
            for (minute, finished) in minutes {
                counters.recent.keep(minute, &finished);
            }
        }
    }
}
