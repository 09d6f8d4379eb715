//! `hearth lab agent`.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::run::{Server, block_on};
use super::store::Stored;
use crate::job::agent::Agent;
use crate::job::endpoints::Allowed;
use crate::load::process::Generator;
use crate::store::Program;

/// Runs the experiments that were created in the console or by the API, one after the other, and reports to the server.
#[derive(Args)]
pub(super) struct Run {
    #[command(flatten)]
    server: Server,
    /// Run the next experiment only
    #[arg(long)]
    once: bool,
    /// Directory for files until they are sent [default: a temporary one]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Directory with source trees that experiments of the kind suite may name; their packages are installed, and their tests compiled, here
    #[arg(long, value_name = "DIR")]
    trees: Option<PathBuf>,
    /// Address whose scheme, host and port experiments may send requests to, or "any"; may be repeated
    #[arg(long, value_name = "URL")]
    endpoint: Vec<Allowed>,
    /// Processor for the load generator
    #[arg(long)]
    processor: Option<usize>,
    #[command(flatten)]
    store: Stored,
}

impl Run {
    pub(super) fn run(self, generator: Generator, store: &Program) -> anyhow::Result<()> {
        let client = self.server.client()?;
        let store = self.store.source(store)?;
        let made = match self.out {
            Some(_) => None,
            None => Some(temporary().context("a temporary directory")?),
        };
        let agent = Agent {
            client,
            generator,
            out: self.out.or_else(|| made.clone()).unwrap_or_default(),
            trees: self.trees,
            endpoints: self.endpoint.into_iter().collect(),
            processor: self.processor,
            store,
        };
        let done = block_on(async |cancelled| {
            let tell = |line: &str| eprintln!("{line}");
            Ok(agent.serve(self.once, cancelled, &tell).await?)
        });
        // Each experiment has removed its own.
        if let Some(made) = made {
            let _ = fs::remove_dir(made);
        }
        done
    }
}

/// A directory that nobody else has made, or can write to.
pub(super) fn temporary() -> io::Result<PathBuf> {
    let name = format!("hearth-lab-{}-{:x}", std::process::id(), fastrand::u64(..));
    let path = std::env::temp_dir().join(name);
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}
