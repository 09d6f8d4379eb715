//! Concurrent requests to a function without an instance (cold) and to one with an idle instance for each (warm), with
//! handlers that take no time and one second.

use serde_json::json;

use super::starts::end_instances;
use crate::burst::{Burst, burst};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, invocation};

/// Requests at once.
const SIZES: [usize; 4] = [1, 100, 300, 500];
const QUICK_SIZES: [usize; 4] = [1, 2, 3, 4];
/// Share of the memory that functions may take, in percent.
const BUDGET_PERCENT: u64 = 75;
/// Memory of an instance in MiB, so that the host has room for all.
const MEMORY_MB: u32 = 64;

/// The category of a kind of burst.
pub fn category(runtime: Runtime, cold: bool, seconds: u32) -> String {
    let kind = if cold { "cold" } else { "warm" };
    format!("{}, {kind}, run time {seconds} s", runtime.name())
}

/// What the report calls a burst of this size.
pub fn title(size: usize) -> String {
    format!("{size} at once")
}

/// The figures of how much longer the last ones take: p99 over median.
pub const TAIL: &str = "tail-to-median ratio";

/// Measures each size, cold and warm.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let budget = document.system_info.memory_bytes / 100 * BUDGET_PERCENT / (1 << 20);
    for runtime in Runtime::ALL {
        let server = Server::start(&[("HEARTH_MEMORY_BUDGET_MB", &budget.to_string())])?;
        if let Err(reason) = server.runtime(runtime)? {
            document.skip(&format!("bursts of {}", runtime.name()), reason);
            continue;
        }
        let settings =
            json!({ "max_concurrency": 1000, "memory_mb": MEMORY_MB, "idle_timeout_s": 3600 });
        server.deploy("cold", runtime, runtime.sleeper(), &settings)?;
        for size in scale.pick(SIZES, QUICK_SIZES) {
            cold(&server, runtime, size, scale, document)?;
        }
        server.delete("cold")?;
        for size in scale.pick(SIZES, QUICK_SIZES) {
            warm(&server, runtime, size, scale, document)?;
        }
    }
    Ok(())
}

/// How often a burst of this size is repeated: until there are enough samples for a p99 worth the name, within a time.
fn rounds(size: usize, seconds: u32, runtime: Runtime, scale: Scale) -> usize {
    if scale.quick {
        return if seconds == 0 { 2 } else { 0 };
    }
    match (size, seconds, runtime) {
        (1, 0, _) => 100,
        (1, ..) => 5,
        (_, 0, Runtime::Python) => 10,
        (_, 0, Runtime::Node) => 5,
        (..) => 3,
    }
}

fn cold(
    server: &Server,
    runtime: Runtime,
    size: usize,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    for seconds in [0, 1] {
        let call = invocation("cold", json!({ "s": seconds }).to_string().as_bytes());
        let mut bursts = Vec::new();
        for _ in 0..rounds(size, seconds, runtime, scale) {
            end_instances(server, "cold")?;
            bursts.push(burst(server.address, &call, size)?);
        }
        report(&category(runtime, true, seconds), size, &bursts, document);
    }
    end_instances(server, "cold")
}

fn warm(
    server: &Server,
    runtime: Runtime,
    size: usize,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let name = format!("warm-{size}");
    let settings = json!({
        "max_concurrency": 1000, "min_instances": size, "memory_mb": MEMORY_MB, "idle_timeout_s": 3600,
    });
    server.deploy(&name, runtime, runtime.sleeper(), &settings)?;
    for seconds in [0, 1] {
        let call = invocation(&name, json!({ "s": seconds }).to_string().as_bytes());
        let mut bursts = Vec::new();
        for _ in 0..rounds(size, seconds, runtime, scale) {
            server.wait(&name, |function| {
                function["instances"]["idle"].as_u64() >= Some(size as u64)
            })?;
            bursts.push(burst(server.address, &call, size)?);
        }
        report(&category(runtime, false, seconds), size, &bursts, document);
    }
    server.delete(&name)
}

fn report(category: &str, size: usize, bursts: &[Burst], document: &mut Document) {
    if bursts.is_empty() {
        return;
    }
    let (mut samples, mut warm) = (Samples::default(), 0);
    for burst in bursts {
        samples.extend(&burst.samples);
        warm += burst.warm;
    }
    let found_one = 100.0 * warm as f64 / samples.len() as f64;
    let mut took: Vec<f64> = bursts
        .iter()
        .map(|burst| burst.took.as_secs_f64())
        .collect();
    took.sort_by(f64::total_cmp);
    let title = title(size);
    document.add(category, &title, samples);
    let metrics = document.timed(category, &title).copied();
    let mut figure = |name: &str, value: f64, unit: &str| {
        document.figure(category, &format!("{title}: {name}"), value, unit);
    };
    if let Some((metrics, p99)) =
        metrics.and_then(|metrics| metrics.p99_ns.map(|p99| (metrics, p99)))
    {
        figure(TAIL, p99 / metrics.median_ns, "×");
    }
    figure(
        "median time until the last answer",
        took[took.len() / 2] * 1e3,
        "ms",
    );
    figure("requests that needed no start of their own", found_one, "%");
}
