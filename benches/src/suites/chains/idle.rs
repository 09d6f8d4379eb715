//! A chain of ten members: from its deploy to its first answer, and what it takes while nothing happens.

use std::time::{Duration, Instant};

use hearth_testkit::figures::{cpu_time, pss_kib};
use serde_json::{Value, json};

use super::{members, put};
use crate::processes::{Workers, sum};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::Server;

/// Members, each of a function of its own.
const MEMBERS: usize = 10;

/// The category of the start.
pub const START: &str = "chain of ten native members";
/// What is timed of it.
pub const FIRST: &str = "from deploy to first answer";

/// The category of the idle chain.
pub const IDLE: &str = "idle chain of ten native members";
/// Processor time of its members.
pub const CPU: &str = "CPU time of the members over the time observed";
/// How long they were watched.
pub const OBSERVED: &str = "time observed";
/// Memory of a member.
pub const PSS: &str = "PSS of each member";

/// What a start has left to be done is done after this long.
const SETTLING: Duration = Duration::from_secs(3);

pub(super) fn run(relay: &[u8], scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    let functions: Vec<String> = (0..MEMBERS)
        .map(|number| format!("relay-{number}"))
        .collect();
    for function in &functions {
        server.deploy_program(function, relay, &[])?;
    }
    let settings = members(
        functions
            .iter()
            .map(|function| (function.as_str(), json!({}))),
    );
    let mut samples = Samples::default();
    for round in 0..scale.pick(20, 2) {
        if round > 0 {
            server.call("DELETE", "/chains/ten", &Value::Null)?;
        }
        let begun = Instant::now();
        put(&server, "ten", &settings)?;
        server.call("POST", "/chains/ten/routes/r/invoke", &json!("pass"))?;
        samples.push(begun.elapsed());
    }
    document.add(START, FIRST, samples);

    std::thread::sleep(scale.pick(SETTLING, Duration::ZERO));
    let observed = Duration::from_secs(scale.pick(30, 1));
    // The functions themselves have had no request: what there is are the members.
    let instances = Workers::of(server.pid()).instances;
    anyhow::ensure!(
        instances.len() == MEMBERS,
        "{} instances instead of {MEMBERS}",
        instances.len()
    );
    let before = sum(&instances, cpu_time)?;
    std::thread::sleep(observed);
    let spent = sum(&instances, cpu_time)?.saturating_sub(before);
    let kib = sum(&instances, pss_kib)?;
    document.figure(IDLE, OBSERVED, observed.as_secs_f64(), "s");
    document.figure(IDLE, CPU, spent.as_secs_f64() * 1e3, "ms");
    document.figure(IDLE, PSS, kib as f64 / 1024.0 / MEMBERS as f64, "MiB");
    Ok(())
}
