//! Starts by start kind and runtime, beside a plain boot of the same function and the lower bound of a start.

mod alive;
mod asleep;
mod code_size;
mod deployed;
mod first;
mod fork;
mod large;
mod many;
mod pandas;
mod restarted;
mod restore;
mod threads;
mod workshop;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::baselines::{PYTHON, node};
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server};

pub use alive::run as alive;
pub use asleep::fall_asleep;
pub use deployed::run as deployed;
pub use deployed::{AT_ONCE, CATEGORY as AFTER_DEPLOY, HALF_A_MINUTE, p90_of};
pub use first::requests as first_requests;
pub use first::{end_instances, kill_instances, request_one};
pub use large::run as large;
pub use pandas::run as pandas;
pub use pandas::{BOOT as PANDAS_BOOT, CATEGORY as PANDAS};
pub use restarted::run as restarted;
pub use restarted::{AFTER as AFTER_RESTART, ASLEEP as BEFORE_RESTART, CATEGORY as RESTART, READY};
pub use threads::CATEGORY as WITH_THREADS;
pub use threads::restored as restored_with_threads;
pub use threads::run as with_threads;

/// The category of starts of a prepared function.
pub const STARTS: &str = "start of an instance";
/// The category of requests that meet none.
pub const FIRST: &str = "first HTTP request without an instance, 1 KB";

/// The category of restores.
pub const RESTORES: &str = "restore of a template, sandbox included";
/// Name of the row of a whole restore that uses a pre-warmed sandbox.
pub const RESTORE_TO_READY: &str =
    "python3: CRIU restore to READY of an instance, pre-warmed sandbox";
/// The same without a pre-warmed sandbox.
pub const RESTORE_ANEW: &str =
    "python3: CRIU restore to READY of an instance, no pre-warmed sandbox";

/// What the report calls a start by fork.
pub fn fork_to_ready(runtime: Runtime) -> String {
    format!("{}: fork() to READY", runtime.name())
}

/// What the report calls its floor.
pub fn fork_floor(runtime: Runtime) -> String {
    format!("{}: floor, C fork() of the same process", runtime.name())
}

/// What the report calls a first request.
pub fn first(runtime: Runtime) -> String {
    format!("{}: fork", runtime.name())
}

/// What the report calls a plain boot.
pub fn plain_boot_name(runtime: Runtime) -> String {
    format!("{}: plain boot and import", runtime.name())
}

/// Measures starts, from the engine's inside to the user's outside.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    on_a_task(document, |mut document| async move {
        fork::run(scale, &mut document).await?;
        restore::run(scale, &mut document).await?;
        Ok(document)
    })?;
    let server = Server::start(&[])?;
    for runtime in Runtime::ALL {
        match server.runtime(runtime)? {
            Ok(()) => first::run(&server, runtime, scale, document)?,
            Err(reason) => document.skip(&format!("starts of {}", runtime.name()), reason),
        }
    }
    code_size::run(&server, scale, document)?;
    drop(server);
    asleep::run(scale, document)?;
    threads::run(scale, document)?;
    many::run(scale, document)?;
    alive::run(scale, document)?;
    deployed::run(scale, document)?;
    large::run(scale, document)?;
    pandas::run(scale, document)?;
    restarted::run(scale, document)
}

/// The part about forks alone.
pub fn forks(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    on_a_task(document, |mut document| async move {
        fork::run(scale, &mut document).await?;
        Ok(document)
    })
}

/// The part about CRIU alone.
pub fn restores(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    on_a_task(document, |mut document| async move {
        restore::run(scale, &mut document).await?;
        Ok(document)
    })
}

/// Measures on a task, as the server starts instances: what happens comes to a task without a hop to another thread.
fn on_a_task<F>(document: &mut Document, measure: impl FnOnce(Document) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<Document>> + Send + 'static,
{
    let engine = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let measured = measure(document.clone());
    *document = engine.block_on(engine.spawn(measured))??;
    Ok(())
}

/// From `exec` to the first byte that the booted interpreter writes, with the usual imports and nothing of Hearth's.
fn plain_boot(runtime: Runtime) -> anyhow::Result<Duration> {
    let mut command = match runtime {
        Runtime::Python => {
            let mut command = Command::new(PYTHON);
            let script = format!("{}print('R', flush=True)", runtime.usual());
            command.args(["-I", "-c", &script]);
            command
        }
        Runtime::Node => {
            let mut command = Command::new(node());
            let script = format!("{}process.stdout.write('R');", runtime.usual());
            command.args(["--input-type=module", "-e", &script]);
            command
        }
    };
    let begun = Instant::now();
    let mut process = command
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()?;
    process
        .stdout
        .take()
        .context("its stdout")?
        .read_exact(&mut [0])?;
    let elapsed = begun.elapsed();
    process.wait()?;
    Ok(elapsed)
}
