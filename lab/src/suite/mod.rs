//! Duets of two source trees with a suite of microbenchmarks, by the method of ElastiBench (Schirmer, Pfandzelter, Bermbach).
//!
//! Both trees, their tools and a runner become one function, which is removed afterwards. A call is one microbenchmark, some repeats of it,
//! and in each repeat both versions next to each other in the same instance, in random order. What is computed of the trials is
//! [`crate::duet`]'s.
//!
//! - [`tool`]: the tools that suites are written for. [`output`]: what they print.
//! - [`find`]: files with benchmarks. [`stage`]: trees are copied and programs run. [`go`], [`python`], [`javascript`]: what each tool needs beside its tree.
//! - [`archive`]: what is staged as a zip.
//! - [`calls`]: carries out the order, with calls next to each other.
//! - [`settings`]: what is compared, and how. [`run`]: all of it, against a Hearth server. [`report`]: what it says beside a duet's report.

pub mod archive;
pub mod calls;
pub mod find;
pub mod go;
pub mod javascript;
pub mod output;
pub mod python;
pub mod report;
pub mod run;
pub mod settings;
pub mod stage;
pub mod tool;

pub use report::Suite;
pub use run::run;
pub use settings::{Method, Settings, SuiteError};
pub use tool::{TOOLS, Tool};
