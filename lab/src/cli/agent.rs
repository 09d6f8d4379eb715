//! `hearth lab agent`.

use std::path::PathBuf;

use clap::Args;

use super::run::{Server, block_on};
use crate::job::agent::Agent;
use crate::load::process::Generator;

/// Runs the experiments that were created in the console or by the API, one after the other, and reports to the server.
#[derive(Args)]
pub(super) struct Run {
    #[command(flatten)]
    server: Server,
    /// Run the next experiment only
    #[arg(long)]
    once: bool,
    /// Directory for files until they are sent
    #[arg(long, default_value_os_t = std::env::temp_dir().join(format!("hearth-lab-{}", std::process::id())))]
    out: PathBuf,
}

impl Run {
    pub(super) fn run(self, generator: Generator) -> anyhow::Result<()> {
        let agent = Agent {
            client: self.server.client()?,
            generator,
            out: self.out,
        };
        block_on(async |cancelled| {
            let tell = |line: &str| eprintln!("{line}");
            Ok(agent.serve(self.once, cancelled, &tell).await?)
        })
    }
}
