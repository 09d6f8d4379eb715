//! The tools that suites are written for.

use serde::{Deserialize, Serialize};

/// A tool that runs microbenchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `go test -bench`.
    Go,
    /// Python's pytest-benchmark.
    PytestBenchmark,
    /// JavaScript's tinybench.
    Tinybench,
}

impl Tool {
    /// Its name, as its authors and the command line have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::PytestBenchmark => "pytest-benchmark",
            Self::Tinybench => "tinybench",
        }
    }

    /// The runtime of the function that runs it, and that function's files.
    pub(super) fn runner(self) -> (&'static str, &'static [(&'static str, &'static str)]) {
        match self {
            Self::Go => (
                "python3",
                &[
                    ("suite.py", include_str!("runner/suite.py")),
                    ("hearth/cacheprog.py", include_str!("runner/cacheprog.py")),
                ],
            ),
            Self::PytestBenchmark => (
                "python3",
                &[
                    ("suite.py", include_str!("runner/suite.py")),
                    (
                        "hearth/hearth_suite_plugin.py",
                        include_str!("runner/hearth_suite_plugin.py"),
                    ),
                ],
            ),
            Self::Tinybench => (
                "node",
                &[
                    ("suite.mjs", include_str!("runner/suite.mjs")),
                    ("hearth/benchmark.mjs", include_str!("runner/benchmark.mjs")),
                    ("hearth/hooks.mjs", include_str!("runner/hooks.mjs")),
                    ("hearth/register.mjs", include_str!("runner/register.mjs")),
                    ("hearth/wrap.mjs", include_str!("runner/wrap.mjs")),
                ],
            ),
        }
    }
}

/// One microbenchmark; a sub-configuration is one of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Microbenchmark {
    /// What it is called in results, unique in its suite.
    pub name: String,
    /// Where it is: a package's directory, a file.
    pub unit: String,
    /// How its tool is told to run just this one.
    pub select: String,
}
