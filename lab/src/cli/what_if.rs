//! `hearth lab what-if`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use hyper::Method;
use serde_json::Value;

use super::run::{Server, block_on};
use crate::plot::curve::{self, name_of};
use crate::plot::format::number;
use crate::table::render::columns;

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
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

impl WhatIf {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let client = self.server.client()?;
        let mut path = format!(
            "/api/v1/functions/{}/what-if?window={}",
            self.function, self.window
        );
        for (name, list) in [
            ("idle_timeout_s", &self.idle_timeout),
            ("min_instances", &self.min_instances),
            ("max_concurrency", &self.max_concurrency),
            ("memory_mib", &self.memory),
        ] {
            let list: Vec<String> = list.iter().map(u32::to_string).collect();
            if !list.is_empty() {
                path += &format!("&{name}={}", list.join(","));
            }
        }
        let found = block_on(async |_| Ok(client.send(Method::GET, &path, None).await?.json()))?;
        if self.json {
            println!("{found}");
        } else {
            print!("{}", text(&found));
        }
        if let Some(path) = &self.svg {
            fs::write(path, curve::what_if(&found)).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// For a terminal: a line for each setting, the present ones first.
fn text(found: &Value) -> String {
    let header = [
        "settings",
        "idle timeout",
        "cold",
        "share",
        "queued",
        "refused",
        "MiB",
        "instances",
    ];
    let mut lines = vec![header.map(str::to_owned)];
    let mut add = |name: &str, curve: &Value| {
        for point in curve["points"].as_array().into_iter().flatten() {
            let figure = |name: &str| point[name].as_f64().map_or_else(String::new, number);
            let share = point["cold_share"].as_f64().unwrap_or_default();
            lines.push([
                name.to_owned(),
                format!("{} s", point["idle_timeout_s"]),
                figure("cold"),
                format!("{} %", number(share * 100.0)),
                figure("queued"),
                figure("refused"),
                figure("memory_mib"),
                figure("most_instances"),
            ]);
        }
    };
    add(
        &format!("today: {}", name_of(&found["today"])),
        &found["today"],
    );
    for curve in found["curves"].as_array().into_iter().flatten() {
        add(&name_of(curve), curve);
    }
    let mut text = columns(&lines);
    let figure = |name: &str| found[name].as_f64().map_or_else(String::new, number);
    text += &format!(
        "{} calls, {} of them cold when they came; a start takes {} ms, an instance {} MiB\n",
        figure("calls"),
        figure("recorded_cold"),
        figure("start_ms"),
        figure("instance_mib"),
    );
    text
}
