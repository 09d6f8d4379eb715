//! `hearth lab what-if`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use hyper::Method;
use serde_json::Value;

use super::run::{Server, block_on};
use crate::job::what_if as job;
use crate::plot::curve;

/// Runs a function's recorded calls through other settings of the scheduler: how many would have been cold, and how much memory its
/// instances would have had. The server simulates; nothing is sent to the function.
#[derive(Args)]
pub(super) struct WhatIf {
    /// The function
    function: String,
    #[command(flatten)]
    server: Server,
    /// How far back, 60s to 7d
    #[arg(long, default_value = "1d")]
    window: String,
    /// Seconds after which an idle instance ends [default: ten from 1 to 3600]
    #[arg(long, value_delimiter = ',')]
    idle_timeout: Vec<u32>,
    /// Instances that are kept [default: 0,1,2]
    #[arg(long, value_delimiter = ',')]
    min_instances: Vec<u32>,
    /// Most instances [default: as now]
    #[arg(long, value_delimiter = ',')]
    max_concurrency: Vec<u32>,
    /// MiB of all instances together, which limit their number [default: no limit]
    #[arg(long, value_delimiter = ',')]
    memory: Vec<u32>,
    /// File for the curve
    #[arg(long)]
    svg: Option<PathBuf>,
    /// File for the points as CSV
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

impl WhatIf {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let client = self.server.client()?;
        let asked = job::WhatIf {
            function: self.function,
            window: self.window,
            idle_timeout_s: self.idle_timeout,
            min_instances: self.min_instances,
            max_concurrency: self.max_concurrency,
            memory_mib: self.memory,
            ..job::WhatIf::default()
        };
        asked.check()?;
        let path = asked.path();
        let found = block_on(async |_| Ok(client.send(Method::GET, &path, None).await?.json()))?;
        if self.json {
            println!("{found}");
        } else {
            print!("{}", job::text(&found));
        }
        for (path, text) in [
            (&self.svg, curve::what_if as fn(&Value) -> String),
            (&self.csv, job::csv),
        ] {
            if let Some(path) = path {
                fs::write(path, text(&found)).with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }
}
