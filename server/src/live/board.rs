//! The functions with their figures.

use std::collections::HashMap;

use jiff::Timestamp;

use super::Rate;
use crate::engine::{Engine, Summary};
use crate::history::{History, RECENT_MINUTES, Recent};

/// A function with its numbers.
#[derive(Debug, Clone)]
pub struct Row {
    /// State and instances.
    pub summary: Summary,
    /// Requests now.
    pub rate: Rate,
    /// The last five minutes.
    pub recent: Recent,
}

/// All functions, by name.
#[derive(Debug, Clone, Default)]
pub struct Board {
    /// The functions.
    pub rows: Vec<Row>,
}

impl Board {
    /// As it is now. Asks the database nothing: some microseconds a function.
    pub(super) fn new(engine: &Engine, history: &History, rates: &HashMap<i64, Rate>) -> Self {
        let minute = Timestamp::now().as_second().div_euclid(60);
        let recent: HashMap<i64, Recent> = history
            .recent(minute - RECENT_MINUTES)
            .into_iter()
            .collect();
        let rows = engine
            .summaries()
            .into_iter()
            .map(|summary| Row {
                rate: rates.get(&summary.id).copied().unwrap_or_default(),
                recent: recent.get(&summary.id).copied().unwrap_or_default(),
                summary,
            })
            .collect();
        Self { rows }
    }
}
