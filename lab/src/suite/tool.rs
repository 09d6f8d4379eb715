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
    /// Python's pyperf.
    Pyperf,
    /// JavaScript's tinybench.
    Tinybench,
    /// JavaScript's mitata.
    Mitata,
}

/// All tools.
pub const TOOLS: [Tool; 5] = [
    Tool::Go,
    Tool::PytestBenchmark,
    Tool::Pyperf,
    Tool::Tinybench,
    Tool::Mitata,
];

/// What both tools of JavaScript have.
const JAVASCRIPT: [(&str, &str); 4] = [
    ("suite.mjs", include_str!("runner/suite.mjs")),
    ("hearth/benchmark.mjs", include_str!("runner/benchmark.mjs")),
    ("hearth/hooks.mjs", include_str!("runner/hooks.mjs")),
    ("hearth/register.mjs", include_str!("runner/register.mjs")),
];

impl Tool {
    /// Its name, as its authors and the command line have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::PytestBenchmark => "pytest-benchmark",
            Self::Pyperf => "pyperf",
            Self::Tinybench => "tinybench",
            Self::Mitata => "mitata",
        }
    }

    /// What it is, in a few words.
    pub fn means(self) -> &'static str {
        match self {
            Self::Go => "go test -bench",
            Self::PytestBenchmark | Self::Pyperf => "Python",
            Self::Tinybench | Self::Mitata => "JavaScript",
        }
    }

    /// The runtime of the function that runs it, and that function's files.
    pub(super) fn runner(self) -> (&'static str, Vec<(&'static str, &'static str)>) {
        let python = |name, module| {
            let suite = ("suite.py", include_str!("runner/suite.py"));
            ("python3", vec![suite, (name, module)])
        };
        let javascript = |wrap| {
            let mut files = JAVASCRIPT.to_vec();
            files.push(("hearth/wrap.mjs", wrap));
            ("node", files)
        };
        match self {
            Self::Go => python("hearth/cacheprog.py", include_str!("runner/cacheprog.py")),
            Self::PytestBenchmark => python(
                "hearth/hearth_suite_plugin.py",
                include_str!("runner/hearth_suite_plugin.py"),
            ),
            Self::Pyperf => python(
                "hearth/hearth_pyperf.py",
                include_str!("runner/hearth_pyperf.py"),
            ),
            Self::Tinybench => javascript(include_str!("runner/tinybench.mjs")),
            Self::Mitata => javascript(include_str!("runner/mitata.mjs")),
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
