//! The suites, one result file each.

pub mod ring;
pub mod transports;

use crate::results::Document;
use crate::scale::Scale;

/// Measures and adds to the document.
pub type Suite = fn(Scale, &mut Document) -> anyhow::Result<()>;

/// All of them by name, in the order in which they run and stand in the report.
pub const ALL: [(&str, Suite); 1] = [("ring", ring::run)];
