//! `hearth lab stellar`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use super::run::{Server, block_on, measure};
use super::store::Stored;
use crate::duet::render::machine;
use crate::job::spec::{chosen, measurable};
use crate::load::Trust;
use crate::load::process::Generator;
use crate::platform::hearth::Hearth;
use crate::run::{Settings, Target};
use crate::stellar::schedule;
use crate::store::Program;
use crate::table::factors::{self, PAPER_SAMPLES, SAMPLES_MIN};
use crate::table::{Table, render};

/// Deploys functions, asks them under STeLLAR's load patterns, and removes them.
#[derive(Args)]
pub(super) struct Stellar {
    #[command(flatten)]
    server: Server,
    /// Samples of each factor without bursts; the paper has 3000
    #[arg(long, default_value_t = 200)]
    samples: usize,
    /// Measure only these factors, by their names, and always warm
    #[arg(long, value_delimiter = ',', conflicts_with = "all")]
    only: Vec<String>,
    /// Measure bursts of 300 and 500, large payloads and the scheduling policy, too
    #[arg(long)]
    all: bool,
    /// Directory that the run's directory is created in
    #[arg(long, default_value = "latency-samples")]
    out: PathBuf,
    /// Seed of the stochastic pauses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Processor for the load generator
    #[arg(long)]
    processor: Option<usize>,
    #[command(flatten)]
    store: Stored,
}

impl Stellar {
    pub(super) fn run(self, generator: Generator, store: &Program) -> anyhow::Result<()> {
        ensure!(
            (SAMPLES_MIN..=PAPER_SAMPLES).contains(&self.samples),
            "samples: {SAMPLES_MIN} to {PAPER_SAMPLES}"
        );
        let factors =
            chosen(&self.only, self.all).map_err(|rule| anyhow::anyhow!("only: {rule}"))?;
        let client = self.server.client()?;
        let store = self.store.source(store)?;
        let (factors, left_out) = match self.only.is_empty() {
            // Whoever names storage transfers is told as an error that there are none.
            false => (factors, None),
            true => block_on(async |cancelled| {
                let prefix = format!("lab-{:x}", jiff::Timestamp::now().as_millisecond());
                let found = measurable(factors, &client, &store, &prefix).await;
                anyhow::ensure!(!*cancelled.borrow(), "cancelled");
                Ok(found)
            })?,
        };
        if let Some(left_out) = &left_out {
            eprintln!("left out: {left_out}");
        }
        let experiment = factors::experiment(&factors, self.samples)?;
        let minutes = experiment
            .sub_experiments
            .iter()
            .map(schedule::seconds)
            .sum::<f64>()
            / 60.0;
        eprintln!("{} factors, about {minutes:.0} min", factors.len());
        let settings = Settings {
            target: Target::Hearth(Hearth::new(client)),
            generator,
            out: self.out,
            only: None,
            seed: self.seed,
            processor: self.processor,
            prefix: None,
            trust: Trust::default(),
            store,
        };
        let done = measure(&experiment, &settings)?;
        // What was measured before an error is a table, too.
        let table = Table::of(&done.sub_experiments, self.samples).without(left_out);
        table.write(&done.directory)?;
        print!("{}", render::text(&table));
        println!("{}", machine(&done.noise));
        println!("{}", done.directory.display());
        done.error.map_or(Ok(()), |error| Err(error.into()))
    }
}
