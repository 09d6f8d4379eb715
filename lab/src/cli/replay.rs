//! `hearth lab replay`.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;

use super::duet::{finish, tell};
use super::run::{Server, block_on, writable};
use crate::duet::report::Stage;
use crate::duet::{Subject, render};
use crate::job::replay::seconds;
use crate::platform::client::Client;
use crate::replay::azure::{self, Part};
use crate::replay::{self, Changes, Network, Settings, Traffic, Variant, recorded};
use crate::statistics::Bootstrap;

/// Replays what came to a function in a time, or a trace of Azure's, to two versions in shadow, or to one with other settings: copies,
/// which are removed, and reach nothing without --allow.
/// Exit status 1 if an A/A experiment, or the control, finds a change.
#[derive(Args)]
pub(super) struct Replay {
    /// The first version, whose function's history is replayed: hello, or hello@2
    first: Subject,
    /// The second version; without it and --set the first one is compared with itself (A/A)
    second: Option<Subject>,
    /// A setting of the second that differs from its version's, by its name in the API: memory_mb=256, env.MODE=fast
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// What all copies may reach, such as a read-only replica, as in a function's network policy; nothing without one
    #[arg(long, value_name = "HOST[:PORT]")]
    allow: Vec<String>,
    #[command(flatten)]
    server: Server,
    /// Seconds of the history, up to its end
    #[arg(long, default_value_t = 3600)]
    last: u64,
    /// Begin of the window, such as 2026-01-02T03:04:05Z, in place of --last
    #[arg(long)]
    from: Option<Timestamp>,
    /// End of the window [default: now]
    #[arg(long)]
    to: Option<Timestamp>,
    /// A file of Azure's traces of 2019 (invocations per minute) or 2021 (invocations), in place of the history
    #[arg(long, conflicts_with_all = ["from", "to", "last"])]
    trace: Option<PathBuf>,
    /// The trace's function, by its id [default: all]
    #[arg(long, requires = "trace")]
    function: Option<String>,
    /// Seconds from the trace's begin
    #[arg(long, requires = "trace", default_value_t = 0.0)]
    from_s: f64,
    /// Seconds of the trace from there on [default: all]
    #[arg(long, requires = "trace")]
    for_s: Option<f64>,
    /// Factor by which time is scaled, 1 to 100
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// What is measured: the handler alone, or from admission to the end of the answer
    #[arg(long, value_enum, default_value_t = Stage::Run)]
    stage: Stage,
    /// Confidence of the intervals
    #[arg(long, default_value_t = 0.99)]
    confidence: f64,
    /// Seed of the order, the bootstrap, and the times within a minute of the trace of 2019
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory that the run's directory is created in
    #[arg(long, default_value = "replays")]
    out: PathBuf,
}

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let client = self.server.client()?;
        let mut changes = Changes::default();
        for text in &self.set {
            changes
                .set(text)
                .map_err(|rule| anyhow::anyhow!("set: {rule}"))?;
        }
        let settings = Settings {
            first: Variant::from(self.first.clone()),
            second: Variant {
                subject: self.second.clone().unwrap_or_else(|| self.first.clone()),
                changes,
            },
            network: Network::allowing(self.allow.clone()),
            speed: self.speed,
            stage: self.stage,
            seed: self.seed,
            bootstrap: Bootstrap {
                confidence: self.confidence,
                seed: self.seed,
                ..Bootstrap::default()
            },
            prefix: format!("lab-{:x}", Timestamp::now().as_millisecond()),
        };
        writable(&self.out)?;
        let mut report = block_on(async |cancelled| {
            let traffic = self.traffic(&client).await?;
            let last = std::cell::Cell::new(Instant::now());
            let tell = |progress| tell(&last, progress, "arrivals");
            Ok(replay::run(&client, &settings, &traffic, cancelled, tell).await?)
        })?;
        let directory = report.create(&self.out);
        print!("{}", render::text(&report));
        // What was measured is shown even if it cannot be written.
        println!("{}", directory?.display());
        Ok(finish(&report))
    }

    async fn traffic(&self, client: &Client) -> anyhow::Result<Traffic> {
        if let Some(path) = &self.trace {
            let shown = path.display().to_string();
            let file = BufReader::new(File::open(path).with_context(|| shown.clone())?);
            let part = Part {
                function: self.function.clone(),
                seconds: seconds(self.from_s, self.for_s)
                    .map_err(|rule| anyhow::anyhow!("from-s, for-s: {rule}"))?,
                seed: self.seed,
            };
            return azure::read(file, &part).context(shown);
        }
        let to = self.to.unwrap_or_else(Timestamp::now);
        let from = match self.from {
            Some(from) => from,
            None => to.checked_sub(Duration::from_secs(self.last))?,
        };
        anyhow::ensure!(from < to, "from: must be before the end of the window");
        Ok(recorded::read(client, &self.first.function, from, to).await?)
    }
}
