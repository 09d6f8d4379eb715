//! The cost of idle functions: memory of a template and of each further instance, images on disk, and processor time.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use hearth_testkit::figures::{cpu_time, pss_kib};
use hearth_testkit::processes::{Process, gateways, serving};
use hearth_testkit::wait::poll;
use serde_json::json;

use crate::processes::{Workers, servers, sum};
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// How long a new version may take to replace the one before.
const REPLACING: Duration = Duration::from_secs(60);
/// What a deploy has left to be done is done after this long.
const SETTLING: Duration = Duration::from_secs(10);
/// How often to look meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// What the report calls the growth with each instance.
pub const EXTRA: &str = "PSS of each further idle instance";
/// What the report calls the processor time of instances.
pub const CPU: &str = "CPU time of the idle instances over the time observed";

/// What the report calls that time.
pub const OBSERVED: &str = "time observed";

/// What the report calls the memory of one of Hearth's own processes.
pub fn pss_of(process: &str) -> String {
    format!("PSS of the idle {process}")
}

/// What the report calls its processor time.
pub fn cpu_of(process: &str) -> String {
    format!("CPU time of the idle {process} over the time observed")
}

/// The category of both.
pub const PROCESSES: &str = "processes";
/// Processes of Hearth's that have privileges.
pub const PRIVILEGED: [&str; 2] = ["host process", "gateway"];

/// A server with many idle instances of one function.
struct Idle {
    runtime: Runtime,
    server: Server,
    instances: Vec<Process>,
}

/// Measures each runtime; then all idle instances are watched at the same time.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    processes(scale, document)?;
    let mut idle = Vec::new();
    for runtime in Runtime::ALL {
        let server = Server::start(&[])?;
        match server.runtime(runtime)? {
            Ok(()) => idle.push(measure(server, runtime, scale, document)?),
            Err(reason) => document.skip(&format!("memory of {}", runtime.name()), reason),
        }
    }
    let observed = Duration::from_secs(scale.pick(60, 1));
    let before = cpu(&idle)?;
    std::thread::sleep(observed);
    let after = cpu(&idle)?;
    for (idle, (before, after)) in idle.iter().zip(before.into_iter().zip(after)) {
        let category = idle.runtime.name();
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        document.figure(category, OBSERVED, observed.as_secs_f64(), "s");
        document.figure(category, CPU, millis(after.0 - before.0), "ms");
        let name = "CPU time of the server meanwhile";
        document.figure(category, name, millis(after.1 - before.1), "ms");
    }
    Ok(())
}

/// Measures Hearth's own processes while nothing happens, with a function that has a network.
fn processes(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    let runtime = Runtime::Python;
    if let Err(reason) = server.runtime(runtime)? {
        document.skip("memory of Hearth's processes", reason);
        return Ok(());
    }
    let settings = json!({ "network": "internet" });
    server.deploy("idle", runtime, runtime.usual(), &settings)?;
    std::thread::sleep(SETTLING);
    let [host, gateway] = PRIVILEGED;
    let gateways = gateways(server.pid());
    let all = [
        (host, server.pid()),
        (gateway, *gateways.first().context("no gateway")?),
        (
            "server process",
            serving(server.pid()).context("no server")?,
        ),
    ];
    let observed = Duration::from_secs(scale.pick(30, 1));
    let before = all.map(|(_, pid)| cpu_time(pid));
    std::thread::sleep(observed);
    document.figure(PROCESSES, OBSERVED, observed.as_secs_f64(), "s");
    for ((name, pid), before) in all.into_iter().zip(before) {
        let spent = cpu_time(pid)?.saturating_sub(before?);
        let mib = pss_kib(pid)? as f64 / 1024.0;
        document.figure(PROCESSES, &pss_of(name), mib, "MiB");
        let millis = spent.as_secs_f64() * 1e3;
        document.figure(PROCESSES, &cpu_of(name), millis, "ms");
    }
    Ok(())
}

/// CPU time so far of the instances and of the server.
fn cpu(idle: &[Idle]) -> io::Result<Vec<(Duration, Duration)>> {
    idle.iter()
        .map(|idle| {
            Ok((
                sum(&idle.instances, cpu_time)?,
                sum(&servers(idle.server.pid()), cpu_time)?,
            ))
        })
        .collect()
}

fn measure(
    server: Server,
    runtime: Runtime,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<Idle> {
    let category = runtime.name();
    let many: usize = scale.pick(100, 4);
    let settings = json!({ "max_concurrency": many, "idle_timeout_s": 3600 });
    server.deploy("idle", runtime, runtime.usual(), &settings)?;
    let alone = with_instances(&server, 0)?;
    let template = sum(&alone.templates, pss_kib)?;
    let preforked = sum(&alone.preforked, pss_kib)?;
    let sandbox = sum(&alone.all(), pss_kib)?;
    let one = with_instances(&server, 1)?.all();
    let one = sum(&one, pss_kib)?;
    let workers = with_instances(&server, many)?;
    let instances = workers.instances.clone();
    let all = sum(&workers.all(), pss_kib)?;

    let mib = |kib: u64| kib as f64 / 1024.0;
    document.figure(category, "PSS of a template", mib(template), "MiB");
    document.figure(
        category,
        "PSS of its pre-forked instance",
        mib(preforked),
        "MiB",
    );
    document.figure(
        category,
        "PSS of its sandbox, init and pre-forked instance included",
        mib(sandbox),
        "MiB",
    );
    document.figure(
        category,
        "PSS of the sandbox with one instance",
        mib(one),
        "MiB",
    );
    document.figure(category, "idle instances", many as f64, "");
    let extra = mib(all.saturating_sub(one)) / (many - 1) as f64;
    document.figure(category, EXTRA, extra, "MiB");
    images(&server, runtime, document)?;
    Ok(Idle {
        runtime,
        server,
        instances,
    })
}

/// Sets the function's minimum number of instances, and waits until it has exactly these.
fn with_instances(server: &Server, count: usize) -> anyhow::Result<Workers> {
    if count > 0 {
        let settings = json!({ "min_instances": count });
        server.call("PATCH", "/functions/idle", &settings)?;
    }
    server.wait("idle", |function| function["instances"]["idle"] == count)?;
    // The version before is gone once its template is; an image may be in the making, too.
    let settled = poll(REPLACING, LOOK, || {
        let workers = Workers::of(server.pid());
        let is_settled = workers.templates.len() == 1 && workers.preforked.len() == 1;
        (is_settled && workers.instances.len() == count).then_some(workers)
    });
    settled.with_context(|| {
        let workers = Workers::of(server.pid());
        format!(
            "{} templates, {} pre-forked instances and {} instances instead of 1, 1 and {count}",
            workers.templates.len(),
            workers.preforked.len(),
            workers.instances.len()
        )
    })
}

/// Size of the image that the server keeps of the function, where it does.
fn images(server: &Server, runtime: Runtime, document: &mut Document) -> anyhow::Result<()> {
    let name = format!("image of {}", runtime.name());
    if let Err(reason) = server.capability("criu")? {
        document.skip(&name, reason);
        return Ok(());
    }
    let dir = server.data().join("images");
    let made = poll(REPLACING, LOOK, || {
        (complete_images(&dir) > 0).then_some(())
    });
    if made.is_none() {
        document.skip(&name, "the server made none");
        return Ok(());
    }
    let bytes = size(&dir)? as f64 / complete_images(&dir) as f64;
    let mib = bytes / f64::from(1 << 20);
    document.figure(runtime.name(), "size of an image", mib, "MiB");
    Ok(())
}

/// An image is complete when it has its name.
fn complete_images(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .filter(|entry| entry.path().join("criu").is_dir())
        .count()
}

fn size(dir: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}
