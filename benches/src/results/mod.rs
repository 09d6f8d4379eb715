//! Results of a run: samples, and the file with their statistics.

mod document;
mod samples;
mod system;
#[cfg(test)]
mod tests;

pub use document::{Document, Measurement, Metrics};
pub use samples::Samples;
