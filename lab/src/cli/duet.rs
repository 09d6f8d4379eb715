//! `hearth lab duet`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;

use super::run::{Server, block_on, writable};
use super::{COULD_NOT_RUN, FELL_SHORT};
use crate::duet::against::Earlier;
use crate::duet::events::{self, Event};
use crate::duet::report::Stage;
use crate::duet::run::{Progress, WIDTH};
use crate::duet::{self, Report, Settings, Subject, render};
use crate::platform::client::Client;
use crate::run::RunError;
use crate::statistics::Bootstrap;

/// Between two lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Largest report of an earlier experiment.
const EARLIER_MAX: u64 = 1 << 30;

/// How intervals are made, and how narrow they are to be.
#[derive(Args)]
pub(super) struct Intervals {
    /// Confidence of the intervals
    #[arg(long, default_value_t = 0.99)]
    confidence: f64,
    /// Resamples of the bootstrap
    #[arg(long, default_value_t = 10_000)]
    resamples: usize,
    /// Seed of the order and of the bootstrap
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Say after how many trials the interval was no wider than this share
    #[arg(long, default_value_t = WIDTH)]
    pub(super) width: f64,
}

impl Intervals {
    pub(super) fn bootstrap(&self) -> Bootstrap {
        Bootstrap {
            resamples: self.resamples,
            confidence: self.confidence,
            seed: self.seed,
        }
    }
}

/// What duets and gates have in common.
#[derive(Args)]
pub(super) struct Method {
    #[command(flatten)]
    pub(super) server: Server,
    /// File with an event (JSON) for both versions, a benchmark of its own; may be repeated [default: the event {}]
    #[arg(long)]
    event: Vec<PathBuf>,
    /// Name of a saved event of the first version's function; may be repeated
    #[arg(long)]
    saved: Vec<String>,
    /// Replay so many of the newest different events that the history has kept of the first version's function
    #[arg(long)]
    recorded: Option<usize>,
    /// Calls of each benchmark
    #[arg(long, default_value_t = 15)]
    calls: usize,
    /// Repeats of each call
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Invocations of each repeat and version, whose mean counts
    #[arg(long, default_value_t = 10)]
    invocations: usize,
    /// What is measured: the handler alone, or from admission to the end of the answer
    #[arg(long, value_enum, default_value_t = Stage::Run)]
    stage: Stage,
    #[command(flatten)]
    intervals: Intervals,
    /// Directory that the run's directory is created in
    #[arg(long, default_value = "duets")]
    out: PathBuf,
}

/// Compares two functions, or two versions of one (hello@2), in randomised interleaved trials. Exit status 1 if an A/A experiment, or the
/// control, finds a change.
#[derive(Args)]
pub(super) struct Duet {
    /// The first version: a function, or one of its versions
    first: Subject,
    /// The second version; without it the first one is compared with itself (A/A)
    second: Option<Subject>,
    /// Do not run the first version once more in each repeat: with it there is no verdict if it differs from itself
    #[arg(long)]
    no_control: bool,
    /// result.json of an earlier duet, for agreement and coverage
    #[arg(long)]
    against: Option<PathBuf>,
    #[command(flatten)]
    method: Method,
}

impl Duet {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let client = self.method.server.client()?;
        let earlier = self.against.as_deref().map(earlier).transpose()?;
        // An A/A experiment is its own.
        let with_control = self.second.is_some() && !self.no_control;
        let second = self.second.unwrap_or_else(|| self.first.clone());
        let (report, directory) =
            self.method
                .compare(&client, self.first, second, with_control, |report| {
                    if let Some(earlier) = &earlier {
                        report.set_against(earlier);
                    }
                })?;
        print!("{}", render::text(&report));
        println!("{}", directory?.display());
        Ok(finish(&report))
    }
}

/// The exit status.
pub(super) fn finish(report: &Report) -> u8 {
    if report.compared() == 0 {
        COULD_NOT_RUN
    } else if report.is_noisy() {
        FELL_SHORT
    } else {
        0
    }
}

impl Method {
    /// Compares and writes the files. Returns where they are, too: what was measured is shown even if it cannot be written.
    pub(super) fn compare(
        &self,
        client: &Client,
        first: Subject,
        second: Subject,
        with_control: bool,
        complete: impl FnOnce(&mut Report),
    ) -> anyhow::Result<(Report, Result<PathBuf, RunError>)> {
        writable(&self.out)?;
        let mut report = block_on(async |cancelled| {
            let mut settings = Settings {
                events: self.events(client, &first.function).await?,
                first,
                second,
                calls: self.calls,
                repeats: self.repeats,
                invocations: self.invocations,
                stage: self.stage,
                with_control,
                seed: self.intervals.seed,
                bootstrap: self.intervals.bootstrap(),
                width: self.intervals.width,
            };
            events::distinguish(&mut settings.events);
            let last = std::cell::Cell::new(Instant::now());
            let tell = |progress| tell(&last, progress, "trials");
            Ok(duet::run(client, &settings, cancelled, tell).await?)
        })?;
        complete(&mut report);
        let directory = report.create(&self.out);
        Ok((report, directory))
    }

    async fn events(&self, client: &Client, function: &str) -> anyhow::Result<Vec<Event>> {
        let mut all = Vec::new();
        for path in &self.event {
            all.push(Event::read(path)?);
        }
        all.extend(events::saved(client, function, &self.saved).await?);
        if let Some(count) = self.recorded {
            all.extend(events::recorded(client, function, count).await?);
        }
        if all.is_empty() && self.recorded.is_some() {
            return Err(events::EventError::None(function.to_owned()).into());
        }
        if all.is_empty() {
            all.push(Event::empty());
        }
        Ok(all)
    }
}

pub(super) fn earlier(path: &Path) -> anyhow::Result<Earlier> {
    let shown = path.display().to_string();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(EARLIER_MAX).read_to_end(&mut text))
        .with_context(|| shown.clone())?;
    serde_json::from_slice(&text).with_context(|| format!("{shown}: not a duet's result.json"))
}

/// A line for people, but not too many.
pub(super) fn tell(last: &std::cell::Cell<Instant>, progress: Progress, what: &str) {
    if last.get().elapsed() < TELL_EVERY {
        return;
    }
    last.set(Instant::now());
    let (done, total) = (progress.done, progress.total);
    match progress.left {
        Some(left) => eprintln!("{done} of {total} {what}, about {} s left", left.as_secs()),
        None => eprintln!("{done} of {total} {what}"),
    }
}
