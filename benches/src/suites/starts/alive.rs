//! A function with a thousand instances: how long they take to start one after the other, how much memory they use, and
//! how long a warm call among them takes.

use std::time::{Duration, Instant};

use hearth_testkit::figures::pss_kib;
use serde_json::json;

use crate::load::drive;
use crate::processes::{Workers, sum};
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// Instances alive.
const ALIVE: usize = 1000;
/// Share of the memory that functions may take, in percent.
const BUDGET_PERCENT: u64 = 75;
/// Memory of an instance in MiB, so that the host has room for all.
const MEMORY_MB: u32 = 64;

/// The category of all that is measured here.
pub fn category(count: usize) -> String {
    format!("{count} instances of one function")
}

/// Measures each runtime.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let budget = document.system_info.memory_bytes / 100 * BUDGET_PERCENT / (1 << 20);
    for runtime in Runtime::ALL {
        let server = Server::start(&[("HEARTH_MEMORY_BUDGET_MB", &budget.to_string())])?;
        match server.runtime(runtime)? {
            Ok(()) => alive(&server, runtime, scale, document)?,
            Err(reason) => document.skip(&category(ALIVE), reason),
        }
    }
    Ok(())
}

fn alive(
    server: &Server,
    runtime: Runtime,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    const NAME: &str = "alive";
    let count = scale.pick(ALIVE, 4);
    let category = category(count);
    let settings =
        json!({ "max_concurrency": count, "memory_mb": MEMORY_MB, "idle_timeout_s": 3600 });
    server.deploy(NAME, runtime, runtime.echo(), &settings)?;
    let begun = Instant::now();
    let wanted = json!({ "min_instances": count });
    server.call("PATCH", &format!("/functions/{NAME}"), &wanted)?;
    server.wait(NAME, |function| function["instances"]["idle"] == count)?;
    let took = begun.elapsed().as_secs_f64();
    let workers = Workers::of(server.pid());
    let pss = sum(&workers.instances, pss_kib)? as f64 / 1024.0;
    let mut figure = |what: &str, value: f64, unit: &str| {
        document.figure(
            &category,
            &format!("{}: {what}", runtime.name()),
            value,
            unit,
        );
    };
    figure(
        "starts a second, new version included",
        count as f64 / took,
        "/s",
    );
    figure("PSS of all instances", pss, "MiB");
    let call = invocation(NAME, &event(1024));
    let turn = scale.pick(Duration::from_secs(3), Duration::from_millis(50));
    let warm = drive(server.address, &call, 1, turn)?;
    document.add(
        &category,
        &format!("{}: warm, 1 KB, 1 connection", runtime.name()),
        warm.samples,
    );
    server.delete(NAME)
}
