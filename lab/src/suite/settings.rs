//! What is compared, and how.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::stage::StageError;
use super::tool::Tool;
use crate::duet::run::{DuetError, check};
use crate::platform::client::ClientError;
use crate::platform::hearth::HearthError;
use crate::statistics::Bootstrap;

/// Most calls at a time, however many processors there are: the paper's.
pub const PARALLEL_MAX: usize = 150;

/// Longest call: the paper's, and the server's longest time limit. Executions that it has no time left for are interrupted.
pub(super) const CALL_MAX: Duration = Duration::from_mins(15);

/// How trees are called in the function.
pub(super) const TREES: [&str; 2] = ["v1", "v2"];

/// How often benchmarks run, and how trials are compared.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// Calls of each benchmark.
    pub calls: usize,
    /// Repeats of each call.
    pub repeats: usize,
    /// Whether the first version runs once more in each repeat.
    pub with_control: bool,
    /// Seed of the order.
    pub seed: u64,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
    /// How narrow an interval is wanted.
    pub width: f64,
}

impl Method {
    /// Whether so many benchmarks can be compared.
    pub(super) fn check(&self, benchmarks: usize) -> Result<(), DuetError> {
        check(
            self.calls,
            self.repeats,
            benchmarks,
            &self.bootstrap,
            self.width,
        )
    }
}

/// What is compared.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tool.
    pub tool: Tool,
    /// The first version's tree.
    pub first: PathBuf,
    /// The second version's tree; none for an A/A experiment.
    pub second: Option<PathBuf>,
    /// What the tool is told to look at: packages, files or directories. All without any.
    pub paths: Vec<String>,
    /// Only benchmarks whose name has this in it.
    pub only: Option<String>,
    /// Calls, repeats and how they are compared.
    pub method: Method,
    /// Calls at a time; by default as many as half of the processors.
    pub parallel: Option<usize>,
    /// Longest execution, after which it is interrupted.
    pub limit: Duration,
    /// Seconds that the tool is asked to measure for.
    pub time_s: f64,
    /// Memory of an instance in MB.
    pub memory_mb: u32,
    /// Whether packages that need a C compiler are compiled, with it: Go's alone.
    pub cgo: bool,
    /// The tool chain: Go's or Python's program, where it is not in its usual place.
    pub program: Option<PathBuf>,
    /// The function's name.
    pub function: String,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A setting makes no sense, or it was cancelled.
    #[error(transparent)]
    Duet(#[from] DuetError),
    /// A setting of a suite alone.
    #[error("{0}: {1}")]
    Setting(&'static str, String),
    /// The trees cannot be made a function.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The server refuses, or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The function cannot be deployed.
    #[error(transparent)]
    Hearth(#[from] HearthError),
    /// A tree's benchmarks cannot be listed.
    #[error("{0}: {1}")]
    List(String, String),
    /// There is nothing to compare.
    #[error("no benchmarks: {0}")]
    None(String),
    /// The function could not be removed.
    #[error("left behind: {0}")]
    LeftBehind(String),
}

impl Settings {
    /// Whether they can be carried out, whatever the trees are.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn check(&self) -> Result<(), SuiteError> {
        self.method.check(1)?;
        let limit = self.limit.as_secs_f64();
        if !(1.0..=600.0).contains(&limit) {
            let rule = format!("{limit} s is not within 1 and 600");
            return Err(SuiteError::Setting("limit", rule));
        }
        if !(0.001..=limit).contains(&self.time_s) {
            let rule = format!(
                "{} s is not within 0.001 and the limit, {limit} s",
                self.time_s
            );
            return Err(SuiteError::Setting("time", rule));
        }
        if self.cgo && self.tool != Tool::Go {
            let rule = format!("only for go, not for {}", self.tool.name());
            return Err(SuiteError::Setting("cgo", rule));
        }
        for path in &self.paths {
            let is_plain =
                |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
            let is_below = Path::new(path).components().all(is_plain);
            // It must not be taken for an option, nor lead out of the tree.
            if path.is_empty() || path.starts_with('-') || !is_below {
                let rule = format!("{path:?} does not name anything in the trees");
                return Err(SuiteError::Setting("path", rule));
            }
        }
        Ok(())
    }

    /// Whether the trees are there.
    pub(super) fn check_trees(&self) -> Result<(), StageError> {
        for tree in std::iter::once(&self.first).chain(&self.second) {
            if !tree.is_dir() {
                let reason = format!("{}: there is no such directory", tree.display());
                return Err(StageError::Tree(reason));
            }
        }
        Ok(())
    }

    /// As many calls at a time as are wanted on so many processors.
    pub(super) fn parallel(&self, processors: usize) -> Result<usize, SuiteError> {
        let most = processors.clamp(1, PARALLEL_MAX);
        match self.parallel {
            None => Ok((processors / 2).clamp(1, PARALLEL_MAX)),
            Some(wanted) if (1..=most).contains(&wanted) => Ok(wanted),
            Some(wanted) => {
                let rule = format!(
                    "{wanted} is not within 1 and {most}: each call has one of the server's {processors} processors to itself"
                );
                Err(SuiteError::Setting("parallel", rule))
            }
        }
    }

    pub(super) fn trees(&self) -> Vec<(&'static str, &Path)> {
        let trees = std::iter::once(&self.first).chain(&self.second);
        TREES.into_iter().zip(trees.map(PathBuf::as_path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            tool: Tool::Go,
            first: "/".into(),
            second: None,
            paths: vec!["./...".to_owned(), "inner".to_owned()],
            only: None,
            method: Method {
                calls: 15,
                repeats: 3,
                with_control: true,
                seed: 1,
                bootstrap: Bootstrap::default(),
                width: crate::duet::run::WIDTH,
            },
            parallel: None,
            limit: Duration::from_secs(20),
            time_s: 1.0,
            memory_mb: 2048,
            cgo: false,
            program: None,
            function: "lab-1".to_owned(),
        }
    }

    #[test]
    fn half_of_the_processors_run_calls_unless_more_are_wanted() {
        let parallel = |wanted: Option<usize>, processors: usize| {
            let settings = Settings {
                parallel: wanted,
                ..settings()
            };
            settings.parallel(processors).ok()
        };
        assert_eq!(
            [1, 2, 8, 1000].map(|all| parallel(None, all)),
            [1, 1, 4, 150].map(Some)
        );
        assert_eq!(parallel(Some(2), 2), Some(2));
        assert_eq!(parallel(Some(150), 200), Some(150));
        assert_eq!(
            [Some(0), Some(3)].map(|wanted| parallel(wanted, 2)),
            [None, None]
        );
        assert_eq!(parallel(Some(151), 200), None);
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        settings().check().expect("they do");
        for path in ["-toolexec=sh", "../other", "/etc", "a/../..", ""] {
            let settings = Settings {
                paths: vec![path.to_owned()],
                ..settings()
            };
            let error = settings.check().expect_err("no path").to_string();
            assert!(error.starts_with("path:"), "{error}");
        }
        let settings = Settings {
            cgo: true,
            tool: Tool::Pyperf,
            ..settings()
        };
        let error = settings.check().expect_err("no cgo").to_string();
        assert_eq!(error, "cgo: only for go, not for pyperf");
        let settings = Settings {
            limit: Duration::ZERO,
            first: "/nowhere".into(),
            cgo: false,
            tool: Tool::Go,
            ..settings
        };
        assert!(
            settings
                .check()
                .expect_err("no limit")
                .to_string()
                .starts_with("limit:")
        );
        assert!(
            settings
                .check_trees()
                .expect_err("no tree")
                .to_string()
                .contains("/nowhere")
        );
    }
}
