//! The tail table: STeLLAR's Table I for one host. [`factors`] are what is measured, as an experiment in STeLLAR's format; [`rows`] make a
//! table of what came of it; [`render`] writes it.

pub mod factors;
pub mod render;
pub mod rows;

pub use factors::Factor;
pub use rows::{Row, Table};
