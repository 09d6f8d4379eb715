//! A restart of the server with many functions, all asleep: how soon it is ready, and what first requests take then.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use hearth_testkit::wait::poll;
use serde_json::{Value, json};

use super::first::request_one;
use crate::client::{Connection, request};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// Functions deployed.
const FUNCTIONS: usize = 300;
/// Functions called before the restart, and others after it.
const CALLED: usize = 40;
/// How long the images of all may take. Some a second are made.
const IMAGES: Duration = Duration::from_secs(400);
/// How long the server may take until it says that it is ready.
const START: Duration = Duration::from_secs(60);

/// What the report calls the time until `readyz` is 200.
pub const READY: &str = "from the server's start to `readyz`";
/// First requests before the restart and after it.
pub const ASLEEP: &str = "first request to a function asleep, before";
/// See [`ASLEEP`].
pub const AFTER: &str = "first request to each, after";

/// The category of all that is measured here.
pub const CATEGORY: &str = "restart with 300 functions asleep";

/// Measures one restart.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
    let start = || Server::start_in(dir.path().join("data"), &[]);
    let server = start()?;
    if let Err(reason) = server.capability("criu")? {
        document.skip(CATEGORY, reason);
        return Ok(());
    }
    let settings = json!({ "idle_timeout_s": 1, "template_idle_timeout_s": 1 });
    let names: Vec<String> = (0..scale.pick(FUNCTIONS, 4))
        .map(|number| format!("restarted-{number}"))
        .collect();
    for name in &names {
        server.deploy(name, Runtime::Python, Runtime::Python.usual(), &settings)?;
    }
    let called = scale.pick(CALLED, 2);
    all_asleep(&server)?;
    let before = first_requests(&server, &names[..called])?;
    all_asleep(&server)?;
    server.stop();

    let begun = Instant::now();
    let server = start()?;
    let ready = poll(START, Duration::from_millis(2), || {
        is_ready(&server).then(|| begun.elapsed())
    });
    let ready = ready.context("the server is not ready")?;
    let after = first_requests(&server, &names[called..2 * called])?;
    document.figure(CATEGORY, READY, ready.as_secs_f64() * 1e3, "ms");
    document.add(CATEGORY, ASLEEP, before);
    document.add(CATEGORY, AFTER, after);
    Ok(())
}

/// Waits until all functions sleep, each with its image.
fn all_asleep(server: &Server) -> anyhow::Result<()> {
    let is_asleep =
        |function: &Value| function["state"] == "asleep" && function["image"]["bytes"].is_u64();
    let are_asleep = || -> anyhow::Result<bool> {
        let functions = server.call("GET", "/functions", &Value::Null)?;
        let functions = functions["items"].as_array().context("items")?;
        Ok(functions.iter().all(is_asleep))
    };
    let asleep = poll(IMAGES, Duration::from_millis(100), || {
        are_asleep().map(|asleep| asleep.then_some(())).transpose()
    });
    asleep.context("they do not all fall asleep with an image")?
}

/// One request to each, all by a restore.
fn first_requests(server: &Server, names: &[String]) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    let mut others = HashSet::new();
    for name in names {
        server.wait_for_prewarmed(name)?;
        let mut connection = Connection::open(server.address)?;
        match request_one(&mut connection, &invocation(name, &event(1024)))? {
            Some(first) if first.start_kind == "restore" => samples.push(first.took),
            Some(first) => drop(others.insert(first.start_kind)),
            None => drop(others.insert("warm".to_owned())),
        }
    }
    anyhow::ensure!(samples.len() > 0, "no request was restored, but {others:?}");
    Ok(samples)
}

fn is_ready(server: &Server) -> bool {
    let call = request("GET", "/readyz", b"");
    let ready = Connection::open(server.address)
        .and_then(|mut connection| connection.exchange(&call)?.good());
    ready.is_ok()
}
