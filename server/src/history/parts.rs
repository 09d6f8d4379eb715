//! The totals of a span of time, divided by what kind of start the invocations had.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2Serializer;

use super::bounds::empty;
use super::codec::{self, Counts};
use super::slice::{Decoded, SliceError, serialized};
use crate::model::StartKind;

/// What is not warm. Each histogram is made when something is first counted in it: most minutes have no start, and need
/// none of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// Needed a start: fork, restore, boot.
    cold: Option<Box<Histogram<u64>>>,
    /// Never got an instance.
    unserved: Option<Box<Histogram<u64>>>,
    /// Stored before warm and cold were distinguished.
    undivided: Option<Box<Histogram<u64>>>,
}

/// Serialized `cold` and `unserved`.
type Blobs = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Parts {
    /// Counts an invocation.
    pub(super) fn record(&mut self, start: Option<StartKind>, total: u64) {
        let part = match start {
            Some(StartKind::Warm) => return,
            Some(_) => &mut self.cold,
            None => &mut self.unserved,
        };
        part.get_or_insert_with(|| Box::new(empty()))
            .saturating_record(total);
    }

    /// Adds another span.
    pub(super) fn add(&mut self, other: &Self) -> Result<(), SliceError> {
        for (sum, part) in [
            (&mut self.cold, &other.cold),
            (&mut self.unserved, &other.unserved),
            (&mut self.undivided, &other.undivided),
        ] {
            if let Some(part) = part {
                sum.get_or_insert_with(|| Box::new(empty()))
                    .add(&**part)
                    .map_err(SliceError::Add)?;
            }
        }
        Ok(())
    }

    /// Adds the parts of a stored rollup. A rollup from before warm and cold were distinguished is assigned by its
    /// counts if all its invocations are of one kind.
    pub(super) fn add_read(&mut self, row: &Decoded) {
        let [warm, cold @ ..] = row.counts.starts;
        let cold: u64 = cold.iter().sum();
        let unserved = row.counts.count.saturating_sub(warm + cold);
        let known = (cold == 0 || row.cold.is_some()) && (unserved == 0 || row.unserved.is_some());
        let parts = if known {
            [
                (&mut self.cold, row.cold.as_ref()),
                (&mut self.unserved, row.unserved.as_ref()),
            ]
        } else {
            let part = if cold == row.counts.count {
                &mut self.cold
            } else if unserved == row.counts.count {
                &mut self.unserved
            } else {
                &mut self.undivided
            };
            return add(part, row.total());
        };
        for (part, counts) in parts {
            if let Some(counts) = counts {
                add(part, counts);
            }
        }
    }

    /// As they are stored. If any are undivided, all are stored undivided.
    pub(super) fn to_blobs(&self, serializer: &mut V2Serializer) -> Result<Blobs, SliceError> {
        if self.undivided.is_some() {
            return Ok((None, None));
        }
        let mut write = |part: &Option<Box<Histogram<u64>>>| {
            part.as_ref()
                .map(|part| serialized(serializer, part))
                .transpose()
        };
        Ok((write(&self.cold)?, write(&self.unserved)?))
    }

    /// Those that needed a start.
    pub(super) fn cold(&self) -> Option<&Histogram<u64>> {
        self.cold.as_deref()
    }

    /// Invocations of unknown kind.
    pub(super) fn undivided(&self) -> u64 {
        self.undivided.as_ref().map_or(0, |part| part.len())
    }

    /// Those that were served by an idle instance: what is left of `total`.
    pub(super) fn warm(&self, total: &Histogram<u64>) -> Histogram<u64> {
        let mut warm = total.clone();
        for part in [&self.cold, &self.unserved, &self.undivided] {
            // It holds what `total` was given too, and so never more; a rollup that says otherwise is left as it is.
            if let Some(part) = part
                && let Err(error) = warm.subtract(&**part)
            {
                tracing::warn!(%error, "a histogram exceeds its whole");
            }
        }
        warm
    }
}

fn add(part: &mut Option<Box<Histogram<u64>>>, counts: &Counts) {
    codec::add(counts, part.get_or_insert_with(|| Box::new(empty())));
}
