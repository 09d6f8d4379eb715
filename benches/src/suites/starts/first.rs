//! Requests over HTTP to a function that has no instance: each is killed from outside when it has answered.

use std::cell::Cell;
use std::time::Instant;

use anyhow::bail;
use serde_json::json;

use super::{FIRST, STARTS, fork_floor, plain_boot, plain_boot_name};
use crate::client::Connection;
use crate::floor;
use crate::processes::Workers;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// Requests between two plain boots, so that both see the same machine.
const PER_BOOT: usize = 5;
/// Requests that may find an instance all the same, for each that finds none.
const WARM_ONES: usize = 2;

/// One request that met no instance, and the rung that the server says it took.
pub struct First {
    /// The request's own latency.
    pub took: std::time::Duration,
    /// `fork`, `restore` or `boot`.
    pub rung: String,
}

/// Sends one request to a function that has no instance; none when it had one.
pub fn request_one(connection: &mut Connection, call: &[u8]) -> anyhow::Result<Option<First>> {
    let begun = Instant::now();
    let answer = connection.exchange(call)?;
    let took = begun.elapsed();
    answer.good()?;
    let rung = answer.header("x-hearth-start").unwrap_or_default();
    Ok((rung != "warm").then(|| First {
        took,
        rung: rung.to_owned(),
    }))
}

/// Ends the instances of the function, and waits until the server knows: also those whose start was under way, which a
/// burst that was served by others leaves behind.
pub fn end_instances(server: &Server, name: &str) -> anyhow::Result<()> {
    let killed = Cell::new(Ok(()));
    server.wait(name, |function| {
        let instances = &function["instances"];
        if instances["starting"] != 0 {
            return false;
        }
        let none = instances["idle"] == 0 && instances["busy"] == 0;
        if !none {
            killed.set(Workers::kill_instances(server.pid()));
        }
        none
    })?;
    killed.into_inner()
}

/// As many first requests, all by the rung `fork`.
pub fn requests(server: &Server, name: &str, count: usize) -> anyhow::Result<Samples> {
    let call = invocation(name, &event(1024));
    let mut connection = Connection::open(server.address)?;
    let (mut samples, mut others) = (Samples::default(), 0);
    end_instances(server, name)?;
    while samples.len() < count {
        match request_one(&mut connection, &call)? {
            Some(first) if first.rung == "fork" => samples.push(first.took),
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
    server.deploy(&name, runtime, runtime.usual(), &json!({}))?;
    let (rounds, mut found, mut boots) =
        (scale.pick(60, 1), Samples::default(), Samples::default());
    for _ in 0..rounds {
        found.extend(&requests(server, &name, PER_BOOT)?);
        boots.push(plain_boot(runtime)?);
    }
    document.add(FIRST, &format!("{}: fork", runtime.name()), found);
    document.add(STARTS, &plain_boot_name(runtime), boots);
    match floor::forks(runtime, scale.pick(1000, 10)) {
        Ok(samples) => drop(document.add(STARTS, &fork_floor(runtime), samples)),
        Err(error) => document.skip(&fork_floor(runtime), format!("{error:#}")),
    }
    Ok(())
}
