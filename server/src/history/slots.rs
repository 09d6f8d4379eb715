//! The last minutes in slots of a few seconds, for heat maps of windows that need a finer resolution than minutes.

use std::collections::VecDeque;

use super::buckets::Buckets;

/// Length of a slot in seconds.
pub(super) const SLOT_S: i64 = 5;

/// Slots that are kept: the longest window they are shown for, five minutes, and the minute it begins in. What this
/// bounds is memory: 600 bytes a slot in which the function was called.
const KEPT: i64 = 6 * 60 / SLOT_S;

/// Buckets by slot, oldest first; none for slots in which nothing finished.
#[derive(Debug, Default)]
pub(super) struct Slots(VecDeque<(i64, Buckets)>);

impl Slots {
    /// Counts an invocation by finish time (µs since 1970) and duration (µs). Entries older than the slots are ignored.
    pub(super) fn record(&mut self, at: i64, duration: u64) {
        let slot = at.div_euclid(SLOT_S * 1_000_000);
        let newest = self.0.back().map_or(slot, |(newest, _)| slot.max(*newest));
        if slot <= newest - KEPT {
            return;
        }
        while self
            .0
            .front()
            .is_some_and(|(oldest, _)| *oldest <= newest - KEPT)
        {
            self.0.pop_front();
        }
        // Nearly always the newest.
        let index = match self.0.iter().rposition(|(known, _)| *known <= slot) {
            Some(index) if self.0[index].0 == slot => index,
            before => {
                let index = before.map_or(0, |before| before + 1);
                self.0.insert(index, (slot, Buckets::default()));
                index
            }
        };
        self.0[index].1.record(duration);
    }

    /// The slots of a minute (since 1970) and later: first second since 1970, and buckets.
    pub(super) fn since(&self, minute: i64) -> impl Iterator<Item = (i64, &Buckets)> {
        self.0
            .iter()
            .map(|(slot, buckets)| (slot * SLOT_S, buckets))
            .filter(move |(second, _)| *second >= minute * 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn counts(slots: &Slots, minute: i64) -> Vec<(i64, u64)> {
        slots
            .since(minute)
            .map(|(second, buckets)| (second, buckets.filled().iter().map(|(_, n)| n).sum()))
            .collect()
    }

    #[test]
    fn slots_are_in_order_whatever_the_order_of_the_records() {
        let mut slots = Slots::default();
        for second in [62, 60, 0, 70, 64, 3] {
            slots.record(second * SECOND, 100);
        }
        assert_eq!(counts(&slots, 0), [(0, 2), (60, 3), (70, 1)]);
        assert_eq!(counts(&slots, 1), [(60, 3), (70, 1)]);
    }

    #[test]
    fn what_is_old_makes_room() {
        let mut slots = Slots::default();
        for second in 0..1_000 {
            slots.record(second * SECOND, 1);
        }
        assert_eq!(slots.0.len() as i64, KEPT);
        slots.record(0, 1);
        assert_eq!(counts(&slots, 0)[0], (640, 5));
    }
}
