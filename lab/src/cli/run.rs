//! `hearth lab run`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::job;
use super::keep::keep;
use super::load::Certificates;
use super::store::Stored;
use crate::duet::render::machine;
use crate::load::process::Generator;
use crate::platform::client::Client;
use crate::platform::hearth::Hearth;
use crate::run::{Done, Event, Settings, Target, run};
use crate::stellar::Experiment;
use crate::stellar::experiment::TEXT_MAX;
use crate::store::Program;

/// Between two lines of progress.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(5);

/// Where the functions are.
#[derive(Args)]
pub(super) struct Server {
    /// Hearth server that has the functions, or that they are deployed to
    #[arg(long, env = "HEARTH_URL", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// API token that may deploy; better given by the variable than on the command line, where others can read it
    #[arg(long, env = "HEARTH_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Server {
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let token = self
            .token
            .as_ref()
            .context("a token is needed: HEARTH_TOKEN or --token")?;
        Ok(Client::new(&self.server, token)?)
    }
}

#[derive(Args)]
pub(super) struct Run {
    /// STeLLAR experiment, or one with a "kind" (JSON)
    experiment: PathBuf,
    #[command(flatten)]
    server: Server,
    /// Measure this address, beginning with http:// or https://, instead; nothing is deployed
    #[arg(long)]
    endpoint: Option<String>,
    #[command(flatten)]
    trust: Certificates,
    #[command(flatten)]
    store: Stored,
    /// Directory that the run's directory is created in
    #[arg(long, default_value = "latency-samples")]
    out: PathBuf,
    /// Keep the experiment, its result and its files on the server, as if it had been created in the console, and none here
    #[arg(long, conflicts_with_all = ["out", "only", "seed", "ca", "insecure"])]
    keep: bool,
    /// Run only the sub-experiment of this number, counted from 0
    #[arg(long)]
    only: Option<usize>,
    /// Seed of the stochastic pauses [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Processor for the load generator
    #[arg(long)]
    processor: Option<usize>,
}

impl Run {
    pub(super) fn run(self, generator: Generator, store: &Program) -> anyhow::Result<u8> {
        let name = self.experiment.display().to_string();
        let mut text = Vec::new();
        let file = File::open(&self.experiment).with_context(|| name.clone())?;
        file.take(TEXT_MAX as u64 + 1)
            .read_to_end(&mut text)
            .with_context(|| name.clone())?;
        anyhow::ensure!(
            text.len() <= TEXT_MAX,
            "{name}: larger than {TEXT_MAX} bytes"
        );
        if self.keep {
            let mut config: serde_json::Value =
                serde_json::from_slice(&text).context(name.clone())?;
            if let Some(url) = self.endpoint {
                anyhow::ensure!(
                    !job::has_kind(&text),
                    "endpoint: for STeLLAR's experiments; this one has a kind"
                );
                let config = config.as_object_mut();
                let config = config.context("not an experiment: it must be an object")?;
                config.insert("Endpoint".to_owned(), url.into());
            }
            let (client, store) = (self.server.client()?, self.store.source(store)?);
            return keep(&config, client, generator, store, self.processor).context(name);
        }
        if job::has_kind(&text) {
            let is_stellars = [
                ("endpoint", self.endpoint.is_some()),
                ("only", self.only.is_some()),
                ("seed", self.seed.is_some()),
                ("ca, insecure", self.trust != Certificates::default()),
            ];
            if let Some((flags, _)) = is_stellars.iter().find(|(_, is_given)| *is_given) {
                anyhow::bail!(
                    "{flags}: for STeLLAR's experiments; this one has a kind, and fields of its own"
                );
            }
            let (client, store) = (self.server.client()?, self.store.source(store)?);
            return job::run_file(&text, client, generator, store, self.out, self.processor)
                .context(name);
        }
        let experiment = Experiment::read(&text, self.endpoint.is_some()).context(name)?;
        let target = match self.endpoint.or_else(|| experiment.endpoint.clone()) {
            Some(url) => Target::Endpoint(url),
            None => Target::Hearth(Hearth::new(self.server.client()?)),
        };
        let settings = Settings {
            target,
            generator,
            out: self.out,
            only: self.only,
            seed: self.seed.unwrap_or(1),
            processor: self.processor,
            prefix: None,
            trust: self.trust.read()?,
            store: self.store.source(store)?,
        };
        let done = measure(&experiment, &settings)?;
        if let Some(error) = done.error {
            return Err(error.into());
        }
        // Programs read the directory's name.
        eprintln!("{}", machine(&done.noise));
        println!("{}", done.directory.display());
        Ok(0)
    }
}

/// Runs an experiment, and tells on stderr how far it is.
pub(super) fn measure(experiment: &Experiment, settings: &Settings) -> anyhow::Result<Done> {
    block_on(async |cancelled| {
        let last = Mutex::new(None);
        let tell = |event: Event<'_>| tell(&last, &event);
        Ok(run(experiment, settings, cancelled, &tell).await?)
    })
}

/// Runs something that SIGINT and SIGTERM cancel.
pub(super) fn block_on<T>(
    work: impl AsyncFnOnce(watch::Receiver<bool>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { work(cancelled()?).await })
}

/// Whether a run's directory can be created there, asked before hours of measuring.
pub(super) fn writable(out: &Path) -> anyhow::Result<()> {
    let shown = || format!("out: {}", out.display());
    fs::create_dir_all(out).with_context(shown)?;
    tempfile::tempdir_in(out).map(drop).with_context(shown)
}

/// Becomes true with SIGINT or SIGTERM. A second one ends the process at once.
fn cancelled() -> anyhow::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if *sender.borrow() {
                eprintln!("stopped; functions may be left behind");
                std::process::exit(i32::from(super::COULD_NOT_RUN));
            }
            eprintln!("cancelled; removing what was deployed (once more to stop at once)");
            sender.send_replace(true);
        }
    });
    Ok(receiver)
}

/// A line for each event, but not too many for progress.
fn tell(last: &Mutex<Option<Instant>>, event: &Event<'_>) {
    let mut last = last
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let is_early = last.is_some_and(|last| last.elapsed() < TELL_EVERY);
    match event {
        Event::Deployed { done, total, .. } if is_early && done < total => return,
        Event::Progress { .. } if is_early => return,
        Event::Deployed {
            number,
            done,
            total,
        } => {
            eprintln!("[{number}] {done} of {total} functions deployed");
        }
        Event::Progress {
            number,
            done,
            total,
            faults,
            left,
            ..
        } => {
            let left = left.as_secs();
            eprintln!(
                "[{number}] {done} of {total} requests, {faults} failed, about {left} s left"
            );
        }
        Event::Measured {
            number,
            title,
            report,
            directory,
        } => {
            eprintln!(
                "[{number}] {title}: {} of {} answered; {}",
                report.good,
                report.sent,
                directory.display()
            );
            if let Some(tail) = &report.to_first_byte.uncorrected_ns {
                let ms = |ns: f64| ns / 1e6;
                eprintln!(
                    "[{number}] ms to the first byte: p50 {:.3}, p99 {:.3}, p99.9 {:.3}, max {:.3}; TMR {:.2}",
                    ms(tail.median),
                    ms(tail.p99),
                    ms(tail.p999),
                    ms(tail.max),
                    tail.tmr
                );
            }
        }
        Event::Removing => eprintln!("removing functions"),
    }
    *last = Some(Instant::now());
}
