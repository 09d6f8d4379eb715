//! `hearth lab overhead`.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;

use super::run::{Server, block_on, writable};
use crate::duet::render::machine;
use crate::load::process::Generator;
use crate::overhead::settings::Progress;
use crate::overhead::workloads::{runtimes, workloads};
use crate::overhead::{self, Settings, render};

/// Between two lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Deploys small functions, invokes them one request at a time, and removes them. The table tells what each layer has of a request's time:
/// the function, the worker that runs it, the server, and the client.
#[derive(Args)]
pub(super) struct Overhead {
    #[command(flatten)]
    server: Server,
    /// Warm samples of each workload and runtime, 10 to 3000
    #[arg(long, default_value_t = 200)]
    samples: usize,
    /// Cold samples of each, up to 200; each round waits 4 s
    #[arg(long, default_value_t = 0)]
    cold: usize,
    /// Only these: empty, math, sleep, image
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// Only these: python3, node, provided
    #[arg(long, value_delimiter = ',')]
    runtimes: Vec<String>,
    /// Directory that the run's directory is created in
    #[arg(long, default_value = "overheads")]
    out: PathBuf,
    /// Processor for the load generator
    #[arg(long)]
    processor: Option<usize>,
}

impl Overhead {
    pub(super) fn run(self, generator: &Generator) -> anyhow::Result<()> {
        let refuse = |name: &'static str| move |rule| anyhow::anyhow!("{name}: {rule}");
        let settings = Settings {
            samples: self.samples,
            cold: self.cold,
            workloads: workloads(&self.workloads).map_err(refuse("workloads"))?,
            runtimes: runtimes(&self.runtimes).map_err(refuse("runtimes"))?,
            processor: self.processor,
            prefix: format!("lab-{:x}", Timestamp::now().as_millisecond()),
        };
        settings.check()?;
        let client = self.server.client()?;
        writable(&self.out)?;
        let mut report = block_on(async |cancelled| {
            let last = Mutex::new(Instant::now());
            let tell = |progress: Progress| tell(&last, &progress);
            Ok(overhead::run(&client, generator, &settings, cancelled, &tell).await?)
        })?;
        let directory = report.create(&self.out);
        print!("{}", render::text(&report));
        println!("{}", machine(&report.noise));
        // What was measured is shown even if it cannot be written.
        println!("{}", directory?.display());
        anyhow::ensure!(!report.rows.is_empty(), "no samples");
        Ok(())
    }
}

/// A line for people, but not too many.
fn tell(last: &Mutex<Instant>, progress: &Progress) {
    let mut last = last
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if last.elapsed() < TELL_EVERY {
        return;
    }
    *last = Instant::now();
    let left = progress.left.unwrap_or_default().as_secs();
    let (what, done, total) = (&progress.what, progress.done, progress.total);
    eprintln!("{what}: {done} of {total}, about {left} s left");
}
