//! What a run yields: samples, and the file that keeps what is said of them.

mod document;
mod samples;
mod system;
#[cfg(test)]
mod tests;

pub use document::{Document, Measurement, Metrics};
pub use samples::Samples;
