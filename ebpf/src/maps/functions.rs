//! What functions may do and did.

use aya::maps::{Array, MapData, PerCpuArray, PerCpuValues};

use super::{MapError, sum};
use crate::limits::Limits;
use crate::records::{Function, Traffic};

/// The functions' limits and counters, by an index from 1.
pub struct Functions {
    limits: Array<MapData, Function>,
    totals: Array<MapData, u64>,
    traffic: PerCpuArray<MapData, Traffic>,
}

impl Functions {
    pub(super) fn new(
        limits: Array<MapData, Function>,
        totals: Array<MapData, u64>,
        traffic: PerCpuArray<MapData, Traffic>,
    ) -> Self {
        Self {
            limits,
            totals,
            traffic,
        }
    }

    /// The largest index.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.limits.len() - 1
    }

    fn check(&self, function: u32) -> Result<(), MapError> {
        if function == 0 || function > self.last() {
            return Err(MapError::Index(function));
        }
        Ok(())
    }

    /// Prepares an index for a function: its limits, a full bucket, counters at 0. Before it gets ports.
    ///
    /// # Errors
    /// [`MapError::Index`], [`MapError::Kernel`].
    pub fn add(&mut self, function: u32, limits: Limits) -> Result<(), MapError> {
        self.check(function)?;
        let cpus = self.traffic.get(&0, 0)?.len();
        for direction in 0..2 {
            let none = PerCpuValues::try_from(vec![Traffic::default(); cpus])
                .map_err(|error| MapError::Kernel(error.to_string()))?;
            self.traffic.set(2 * function + direction, none, 0)?;
        }
        self.totals.set(function, 0, 0)?;
        self.limit(function, limits)
    }

    /// Changes a function's limits.
    ///
    /// # Errors
    /// [`MapError::Index`], [`MapError::Kernel`].
    pub fn limit(&mut self, function: u32, limits: Limits) -> Result<(), MapError> {
        self.check(function)?;
        Ok(self.limits.set(function, Function::from(limits), 0)?)
    }

    /// What a function received and sent.
    ///
    /// # Errors
    /// [`MapError::Index`], [`MapError::Kernel`].
    pub fn traffic(&self, function: u32) -> Result<[Traffic; 2], MapError> {
        self.check(function)?;
        let received = sum(&self.traffic.get(&(2 * function), 0)?);
        let sent = sum(&self.traffic.get(&(2 * function + 1), 0)?);
        Ok([received, sent])
    }
}
