//! Duets: which of two versions of a function is faster, by the method of ElastiBench (Schirmer, Pfandzelter, Bermbach).
//!
//! Each event is a benchmark. A call is some repeats of it, and each repeat has both versions run it next to each other, in random order,
//! by new templates: randomised multiple interleaved trials. What disturbs one disturbs the other, and only their ratio counts.
//!
//! - [`subject`]: what is compared.
//! - [`events`]: with which events.
//! - [`order`]: in which order. [`trials`]: carries it out. `execution`: one version's part of a trial.
//! - [`unit`]: what counts as one result.
//! - [`gate`]: whether the second version may replace the first.
//! - [`report`]: what came of it, with one [`benchmark`] for each event. [`against`]: beside an earlier one. [`render`]: the same as text, CSV and SVG.
//! - [`run`]: all of it, against a Hearth server.

pub mod against;
pub mod benchmark;
pub mod events;
pub(crate) mod execution;
pub mod gate;
pub mod order;
pub mod render;
pub mod report;
pub mod run;
pub mod subject;
pub mod trials;
pub mod unit;

pub use report::Report;
pub use run::{DuetError, Settings, run};
pub use subject::Subject;
