//! HTTP requests to a function without an instance: each instance is killed from outside after its response.

use std::time::{Duration, Instant};

use anyhow::bail;
use hearth_testkit::wait::poll;
use serde_json::json;

use super::{FIRST, STARTS, first, fork_floor, plain_boot, plain_boot_name};
use crate::client::Connection;
use crate::floor;
use crate::processes::Workers;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{NO_PREFORK, Runtime, Server, event, invocation};

/// Requests of each kind that are sent in turn, so that all see the same machine.
const PER_ROUND: usize = 5;
/// Rounds of them between two plain boots.
const ROUNDS_PER_BOOT: usize = 4;
/// Requests that may find an instance all the same, for each that finds none.
const WARM_ONES: usize = 2;

/// How long a pre-forked instance may take to come.
const PREFORK_COMES: Duration = Duration::from_millis(200);

/// One request that met no instance, and the start kind that the server says it took.
pub struct First {
    /// The request's own latency.
    pub took: std::time::Duration,
    /// `fork`, `restore` or `boot`.
    pub start_kind: String,
}

/// Sends one request to a function that has no instance; none when it had one.
pub fn request_one(connection: &mut Connection, call: &[u8]) -> anyhow::Result<Option<First>> {
    let begun = Instant::now();
    let answer = connection.exchange(call)?;
    let took = begun.elapsed();
    answer.good()?;
    let start_kind = answer.header("x-hearth-start").unwrap_or_default();
    Ok((start_kind != "warm").then(|| First {
        took,
        start_kind: start_kind.to_owned(),
    }))
}

/// Ends the instances of the function, and waits until the server knows: also those whose start was under way, which a
/// burst that was served by others leaves behind.
pub fn end_instances(server: &Server, name: &str) -> anyhow::Result<()> {
    kill_instances(server, name)?;
    if server.has_preforked {
        wait_for_preforked(server);
    }
    Ok(())
}

/// The same, without waiting for pre-forked instances.
pub fn kill_instances(server: &Server, name: &str) -> anyhow::Result<()> {
    server.wait(name, |function| {
        let instances = &function["instances"];
        if instances["starting"] != 0 {
            return false;
        }
        let none = instances["idle"] == 0 && instances["busy"] == 0;
        if !none {
            Workers::kill_instances(server.pid());
        }
        none
    })?;
    Ok(())
}

/// Waits until each template has its pre-forked instance, as one that nobody has called for a moment has; but not for ever,
/// because a pre-forked instance is not made while memory is short.
fn wait_for_preforked(server: &Server) {
    let _ = poll(PREFORK_COMES, PREFORK_COMES / 100, || {
        let workers = Workers::of(server.pid());
        (workers.preforked.len() >= workers.templates.len()).then_some(())
    });
}

/// As many first requests, all by the start kind `fork`.
pub fn requests(server: &Server, name: &str, count: usize) -> anyhow::Result<Samples> {
    let call = invocation(name, &event(1024));
    let mut connection = Connection::open(server.address)?;
    let (mut samples, mut others) = (Samples::default(), 0);
    end_instances(server, name)?;
    while samples.len() < count {
        match request_one(&mut connection, &call)? {
            Some(first) if first.start_kind == "fork" => samples.push(first.took),
            _ => others += 1,
        }
        if others > WARM_ONES * count + 10 {
            bail!("{name}: requests find instances that were killed, or no template");
        }
        end_instances(server, name)?;
    }
    Ok(samples)
}

/// First requests, plain boots in between, and the floor.
pub fn run(
    server: &Server,
    runtime: Runtime,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let name = format!("first-{}", runtime.name());
    let without = Server::start(&[NO_PREFORK])?;
    for server in [server, &without] {
        server.deploy(&name, runtime, runtime.usual(), &json!({}))?;
    }
    let rounds = scale.pick(200, 1);
    let (mut found, mut forked) = (Samples::default(), Samples::default());
    let mut boots = Samples::default();
    for round in 0..rounds {
        found.extend(&requests(server, &name, PER_ROUND)?);
        forked.extend(&requests(&without, &name, PER_ROUND)?);
        if round % ROUNDS_PER_BOOT == 0 {
            boots.push(plain_boot(runtime)?);
        }
    }
    document.add(FIRST, &first(runtime), found);
    let title = format!("{}: fork, no pre-forked instance", runtime.name());
    document.add(FIRST, &title, forked);
    document.add(STARTS, &plain_boot_name(runtime), boots);
    match floor::forks(runtime, scale.pick(1000, 10)) {
        Ok(samples) => drop(document.add(STARTS, &fork_floor(runtime), samples)),
        Err(error) => document.skip(&fork_floor(runtime), format!("{error:#}")),
    }
    Ok(())
}
