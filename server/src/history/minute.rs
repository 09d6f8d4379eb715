//! A minute of a function in memory: its first invocations as they are, histograms from then on.
//!
//! Most functions are called a few times in a minute, and histograms take 170 KiB: the pages that they touch first cost a request more than its own work.

use super::bounds::recorded_as;
use super::codec::Counts;
use super::slice::{Slice, SliceError, count};
use crate::model::{Stages, StartKind, Status};
use crate::store::{RollupCounts, RollupRow};

/// Invocations that are kept as they are: a kilobyte of them.
const FEW: usize = 16;

/// One invocation, as far as it is counted.
#[derive(Debug, Clone, Copy)]
struct Finished {
    status: Status,
    start: Option<StartKind>,
    stages: Stages,
}

/// What finished in one minute.
#[derive(Debug, Default)]
pub(super) struct Minute {
    /// Each by itself; none once there are histograms.
    few: Vec<Finished>,
    many: Option<Box<Slice>>,
}

impl From<Slice> for Minute {
    fn from(slice: Slice) -> Self {
        Self {
            few: Vec::new(),
            many: Some(Box::new(slice)),
        }
    }
}

impl Minute {
    /// Counts a finished invocation.
    pub(super) fn record(&mut self, status: Status, start: Option<StartKind>, stages: &Stages) {
        if self.many.is_none() && self.few.len() < FEW {
            self.few.push(Finished {
                status,
                start,
                stages: *stages,
            });
        } else {
            self.many().record(status, start, stages);
        }
    }

    /// Adds what was taken out and could not be stored.
    pub(super) fn add(&mut self, other: &Self) -> Result<(), SliceError> {
        for one in &other.few {
            self.record(one.status, one.start, &one.stages);
        }
        match &other.many {
            Some(slice) => self.many().add(slice),
            None => Ok(()),
        }
    }

    /// Adds all of it to `sum`.
    pub(super) fn add_to(&self, sum: &mut Slice) -> Result<(), SliceError> {
        record_all(&self.few, sum);
        match &self.many {
            Some(slice) => sum.add(slice),
            None => Ok(()),
        }
    }

    /// Numbers without histograms.
    pub(super) fn counts(&self) -> RollupCounts {
        if let Some(slice) = &self.many {
            return *slice.counts();
        }
        let mut counts = RollupCounts::default();
        for one in &self.few {
            count(&mut counts, one.status, one.start, &one.stages);
        }
        counts
    }

    /// The totals, as values that histograms hold and how often, in no order.
    pub(super) fn totals(&self) -> Counts {
        if let Some(slice) = &self.many {
            return slice.totals();
        }
        let totals = self.few.iter().map(|one| one.stages.total);
        totals.map(|total| (recorded_as(total), 1)).collect()
    }

    /// As it is stored.
    pub(super) fn to_row(&self, function: i64, minute: i64) -> Result<RollupRow, SliceError> {
        if let Some(slice) = &self.many {
            return slice.to_row(function, minute, 1);
        }
        let mut slice = Slice::new();
        record_all(&self.few, &mut slice);
        slice.to_row(function, minute, 1)
    }

    /// The histograms, made when they are first needed.
    fn many(&mut self) -> &mut Slice {
        self.many.get_or_insert_with(|| {
            let mut slice = Box::new(Slice::new());
            record_all(&std::mem::take(&mut self.few), &mut slice);
            slice
        })
    }
}

fn record_all(few: &[Finished], sum: &mut Slice) {
    for one in few {
        sum.record(one.status, one.start, &one.stages);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Some failed, and each kind of start is there.
    fn numbered(number: usize, total: u64) -> Finished {
        let statuses = [Status::Succeeded, Status::Failed, Status::TimedOut];
        let starts = [
            Some(StartKind::Warm),
            Some(StartKind::Fork),
            Some(StartKind::Boot),
            None,
        ];
        let stages = Stages {
            run: total / 2,
            total,
            ..Stages::default()
        };
        Finished {
            status: statuses[number % statuses.len()],
            start: starts[number % starts.len()],
            stages,
        }
    }

    fn by_value(counts: Counts) -> BTreeMap<u64, u64> {
        let mut sums = BTreeMap::new();
        for (value, count) in counts {
            *sums.entry(value).or_default() += count;
        }
        sums
    }

    proptest! {
        /// Few or many, in one piece or put together from two: what is told and stored is what histograms alone would tell.
        #[test]
        fn it_is_as_if_there_were_histograms_from_the_beginning(
            totals in prop::collection::vec(0_u64..2_000_000_000, 0..3 * FEW),
            first in 0_usize..3 * FEW,
        ) {
            let (mut minute, mut more, mut slice) = (Minute::default(), Minute::default(), Slice::new());
            for (number, total) in totals.into_iter().enumerate() {
                let one = numbered(number, total);
                let part = if number < first { &mut minute } else { &mut more };
                part.record(one.status, one.start, &one.stages);
                slice.record(one.status, one.start, &one.stages);
            }
            minute.add(&more).unwrap();
            prop_assert_eq!(minute.counts(), *slice.counts());
            prop_assert_eq!(by_value(minute.totals()), by_value(slice.totals()));
            prop_assert_eq!(minute.to_row(1, 2).unwrap(), slice.to_row(1, 2, 1).unwrap());
        }
    }
}
