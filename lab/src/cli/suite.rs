//! `hearth lab suite`.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;

use super::duet::{Intervals, earlier, finish, tell};
use super::run::{Server, block_on, writable};
use crate::duet::render;
use crate::suite::{self, Method, Settings, Tool};

/// Compares two source trees by their microbenchmarks, both versions of each in the same instance of a function, in randomised interleaved
/// trials. Exit status 1 if an A/A experiment, or the control, finds a change.
#[derive(Args)]
pub(super) struct Suite {
    #[command(flatten)]
    server: Server,
    /// What the benchmarks are written for
    #[arg(long, value_enum)]
    tool: Tool,
    /// Directory of the first version
    #[arg(long, value_name = "DIR")]
    v1: PathBuf,
    /// Directory of the second version
    #[arg(long, value_name = "DIR", required_unless_present = "aa")]
    v2: Option<PathBuf>,
    /// Compare the first version with itself
    #[arg(long, conflicts_with = "v2")]
    aa: bool,
    /// Where benchmarks are in the trees: a package pattern of Go, a file or directory of Python, a file of JavaScript; may be repeated
    #[arg(long)]
    path: Vec<String>,
    /// Only benchmarks with this text in their name
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Calls of each benchmark
    #[arg(long, default_value_t = 15)]
    calls: usize,
    /// Repeats of each call
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Calls at a time, each with a processor to itself [default: as many as half of the server's processors]
    #[arg(long)]
    parallel: Option<usize>,
    /// Seconds that the tool measures for in each execution
    #[arg(long, default_value_t = 1.0)]
    time: f64,
    /// Seconds after which an execution is interrupted
    #[arg(long, default_value_t = 20.0)]
    limit: f64,
    /// Memory of an instance in MB
    #[arg(long, default_value_t = 2048)]
    memory_mb: u32,
    /// Compile Go's packages that need a C compiler, with the one that is here
    #[arg(long)]
    cgo: bool,
    /// Go, or the Python whose pip installs, where it is not in its usual place
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Do not run the first version once more in each repeat: with it there is no verdict if it differs from itself
    #[arg(long)]
    no_control: bool,
    /// result.json of an earlier run, for agreement and coverage
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    #[command(flatten)]
    intervals: Intervals,
    /// Directory that the run's directory is created in
    #[arg(long, default_value = "suites")]
    out: PathBuf,
}

impl Suite {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let client = self.server.client()?;
        let earlier = self.against.as_deref().map(earlier).transpose()?;
        let is_aa = self.v2.is_none();
        let settings = Settings {
            tool: self.tool,
            first: self.v1,
            second: self.v2,
            paths: self.path,
            only: self.only,
            method: Method {
                calls: self.calls,
                repeats: self.repeats,
                // An A/A experiment is its own.
                with_control: !is_aa && !self.no_control,
                seed: self.intervals.seed,
                bootstrap: self.intervals.bootstrap(),
                width: self.intervals.width,
            },
            parallel: self.parallel,
            limit: Duration::try_from_secs_f64(self.limit).unwrap_or_default(),
            time_s: self.time,
            memory_mb: self.memory_mb,
            cgo: self.cgo,
            program: self.program,
            function: format!("lab-{:x}", Timestamp::now().as_millisecond()),
        };
        writable(&self.out)?;
        let mut report = block_on(async |cancelled| {
            let last = Cell::new(Instant::now());
            let tell = |what: &str, progress| tell(&last, progress, what);
            Ok(suite::run(&client, &settings, cancelled, tell).await?)
        })?;
        if let Some(earlier) = &earlier {
            report.set_against(earlier);
        }
        let directory = report.create(&self.out);
        print!("{}", render::text(&report));
        // What was measured is shown even if it cannot be written.
        println!("{}", directory?.display());
        Ok(finish(&report))
    }
}
