//! What an idle instance costs: memory beyond what it shares, and CPU time.

use std::time::Duration;

use anyhow::bail;
use serde_json::json;

use crate::Scale;
use crate::http::{Connection, ServerProcess, deploy, request};
use crate::processes::{Process, tree};
use crate::report::Report;

const CODE: &str = "import json, asyncio, http.client, http.server\ndef handler(event, context):\n    return event\n";

pub fn run(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let server = ServerProcess::hearth()?;
    let settings =
        json!({ "max_concurrency": scale.instances, "min_instances": 1, "idle_timeout_s": 3600 });
    deploy(server.address, "idle", CODE, &settings)?;
    wait_for(&server, 1)?;
    let one = workers(server.pid())?;
    let pss_with_one: u64 = one
        .iter()
        .map(Process::pss_kb)
        .sum::<anyhow::Result<u64>>()?;

    let mut connection = Connection::open(server.address)?;
    let more = json!({ "min_instances": scale.instances }).to_string();
    let answer =
        connection.exchange(&request("PATCH", "/api/v1/functions/idle", more.as_bytes()))?;
    if answer.status != 200 {
        bail!("{}", String::from_utf8_lossy(answer.body));
    }
    wait_for(&server, scale.instances)?;
    // The version before is gone once its template is.
    let all = loop {
        let all = workers(server.pid())?;
        if all.len() < scale.instances as usize + one.len() {
            break all;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let pss: u64 = all
        .iter()
        .map(Process::pss_kb)
        .sum::<anyhow::Result<u64>>()?;
    let growth = (pss as f64 - pss_with_one as f64) / f64::from(scale.instances - 1);
    report.figure(
        "memory",
        &format!(
            "PSS growth per idle instance, {} instances",
            scale.instances
        ),
        growth / 1024.0,
        "MiB",
    );
    report.figure(
        "memory",
        "PSS of sandbox with template and one instance",
        pss_with_one as f64 / 1024.0,
        "MiB",
    );

    let before: u64 = all
        .iter()
        .map(Process::cpu_ticks)
        .sum::<anyhow::Result<u64>>()?;
    std::thread::sleep(Duration::from_secs(scale.idle_s));
    let after: u64 = all
        .iter()
        .map(Process::cpu_ticks)
        .sum::<anyhow::Result<u64>>()?;
    let name = format!(
        "CPU time of {} idle instances over {} s",
        scale.instances, scale.idle_s
    );
    report.figure("memory", &name, (after - before) as f64 * 10.0, "ms");
    Ok(())
}

fn wait_for(server: &ServerProcess, instances: u32) -> anyhow::Result<()> {
    for _ in 0..600 {
        let mut connection = Connection::open(server.address)?;
        let answer = connection.exchange(&request("GET", "/api/v1/functions/idle", b""))?;
        let function: serde_json::Value = serde_json::from_slice(answer.body)?;
        if function["instances"]["idle"] == instances {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("{instances} instances did not come up")
}

/// The processes of all sandboxes below the server that run Python.
fn workers(server: u32) -> anyhow::Result<Vec<Process>> {
    Ok(tree(server)?
        .into_iter()
        .filter(|process| process.name.starts_with("python"))
        .collect())
}
