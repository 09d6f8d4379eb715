//! Which index a filter's rows are found by, and the filter as the columns hold it.

use crate::model::{InvocationFilter, StartKind, Status};
use crate::store::codes::{StoredCode, signed};

/// From here on an invocation is in the index of slow ones, µs. The same number is in the migration and in the queries.
const SLOW_US: u64 = 1_000_000;

/// A filter as the columns hold it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    pub status: Option<i64>,
    pub start: Option<i64>,
    pub version: Option<i64>,
    pub trigger: Option<i64>,
    pub min_us: Option<i64>,
    pub max_us: Option<i64>,
}

impl Columns {
    pub(super) fn of(filter: &InvocationFilter) -> Self {
        Self {
            status: filter.status.map(StoredCode::code),
            start: filter.start.map(StoredCode::code),
            version: filter.version.map(i64::from),
            trigger: filter.trigger.map(StoredCode::code),
            min_us: filter.min_us.map(signed),
            max_us: filter.max_us.map(signed),
        }
    }
}

/// Some of a function's rows.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub function: i64,
    pub filter: Columns,
    /// Ids less than this one …
    pub before: Vec<u8>,
    /// … and not less than this one.
    pub from: Vec<u8>,
    pub limit: u32,
}

/// What rows are found by, rarest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Unsuccessful,
    Slow,
    Cold,
    Version,
    Time,
}

impl By {
    /// The index for a filter, and whether it answers all of it.
    pub(super) fn best(filter: &InvocationFilter) -> (Self, bool) {
        let by = if filter
            .status
            .is_some_and(|status| status != Status::Succeeded)
        {
            Self::Unsuccessful
        } else if filter.min_us.is_some_and(|least| least >= SLOW_US) {
            Self::Slow
        } else if filter.start.is_some_and(|start| start != StartKind::Warm) {
            Self::Cold
        } else if filter.version.is_some() {
            Self::Version
        } else {
            Self::Time
        };
        let mut rest = filter.clone();
        match by {
            Self::Unsuccessful => rest.status = None,
            Self::Slow => rest.min_us = rest.min_us.filter(|least| *least != SLOW_US),
            Self::Cold => rest.start = None,
            Self::Version => rest.version = None,
            Self::Time => {}
        }
        (by, rest == InvocationFilter::default())
    }
}
