//! What the lab computes from samples, apart from how they were taken.
//!
//! - [`quantile`]: order statistics of sorted samples.
//! - [`tail`]: median, tail and their ratios as STeLLAR defines them.
//! - [`bootstrap`]: confidence intervals of the median, and of the difference of two medians.
//! - [`duet`]: whether a second version is faster or slower than the first, as ElastiBench decides it.
//! - [`family`]: the same for all benchmarks of an experiment together.
//! - [`signed_rank`]: how probable a change is by chance, by its trials' ranks.
//! - [`ranks`]: medians of long samples, with intervals that need no resampling.
//! - [`line`]: the line nearest to points.

pub mod bootstrap;
pub mod duet;
pub mod family;
pub mod line;
mod normal;
pub mod quantile;
pub mod ranks;
pub mod signed_rank;
pub mod tail;

pub use bootstrap::{Bootstrap, Interval, Intervals};
pub use duet::{Comparison, Decision, Trial};
pub use family::Verdict;
pub use tail::Tail;
