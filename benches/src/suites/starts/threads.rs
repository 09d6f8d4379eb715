//! Functions whose import starts threads, so that each instance is restored with them: first requests, with and without
//! an instance restored in advance; and many requests that each need a new instance, of which none may hang.

use std::time::Duration;

use serde_json::json;

use super::first::{kill_instances, request_one};
use crate::burst::burst;
use crate::client::Connection;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{NO_PREFORK, Runtime, Server, event, invocation};

/// The category of first requests.
pub const CATEGORY: &str =
    "first HTTP request without an instance, import with threads running, 1 KB";
/// The category of requests to ever new instances.
pub const CROWD: &str = "HTTP requests, import with threads running, 64 at once to no instance";
/// What switches images off, so that each instance is booted.
const NO_IMAGES: (&str, &str) = ("HEARTH_CRIU", "off");
/// Requests at once.
const AT_ONCE: usize = 64;
/// Longest run of a handler: one that waits for a thread that is not there would wait for ever.
const TIMEOUT_MS: u32 = 10_000;
/// Requests that may find another start kind, for each that finds the one that is measured.
const OTHERS: usize = 3;

/// What is there when a request comes that finds no instance.
#[derive(Clone, Copy)]
enum Ahead {
    /// The next instance, restored already.
    Instance,
    /// A sandbox, into which it is restored.
    Sandbox,
    /// Nothing, not even an image.
    Nothing,
}

impl Ahead {
    const ALL: [Self; 3] = [Self::Instance, Self::Sandbox, Self::Nothing];

    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Instance => &[],
            Self::Sandbox => &[NO_PREFORK],
            Self::Nothing => &[NO_PREFORK, NO_IMAGES],
        }
    }

    fn start_kind(self) -> &'static str {
        match self {
            Self::Instance | Self::Sandbox => "restore",
            Self::Nothing => "boot",
        }
    }

    fn title(self, runtime: Runtime) -> String {
        let what = match self {
            Self::Instance => "restored in advance",
            Self::Sandbox => "restore, pre-warmed sandbox",
            Self::Nothing => "boot",
        };
        format!("{}: {what}", runtime.name())
    }
}

/// What the report calls the start kind that a caller waits for when nothing but a sandbox is there.
pub fn restored(runtime: Runtime) -> String {
    Ahead::Sandbox.title(runtime)
}

/// A function that has threads before its handler is first called, and that waits for one of them in each call.
fn code(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Python => {
            "from concurrent.futures import ThreadPoolExecutor\n\
             pool = ThreadPoolExecutor(2)\npool.submit(int).result()\n\
             def handler(event, context):\n    return pool.submit(lambda: event).result()\n"
        }
        Runtime::Node => {
            "import { Worker } from 'node:worker_threads';\n\
             const worker = new Worker(`const { parentPort } = require('node:worker_threads');\n\
             parentPort.on('message', (message) => parentPort.postMessage(message));`, { eval: true });\n\
             const open = new Map();\nlet next = 0;\n\
             worker.on('message', ([id, value]) => { open.get(id)(value); open.delete(id); });\n\
             const ask = (value) => new Promise((done) => { open.set(next, done); worker.postMessage([next++, value]); });\n\
             await ask(0);\n\
             export const handler = (event) => ask(event);\n"
        }
    }
}

/// Measures all.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    for runtime in Runtime::ALL {
        for ahead in Ahead::ALL {
            let server = Server::start(ahead.settings())?;
            if let Err(reason) = server.runtime(runtime)? {
                document.skip(&ahead.title(runtime), reason);
                continue;
            }
            if ahead.start_kind() == "restore"
                && let Err(reason) = server.capability("criu")?
            {
                document.skip(&ahead.title(runtime), reason);
                continue;
            }
            deploy(&server, runtime, ahead)?;
            let count = match ahead {
                Ahead::Nothing => scale.pick(40, 2),
                // A used pre-forked instance is replaced half a second later.
                Ahead::Instance | Ahead::Sandbox => scale.pick(100, 3),
            };
            let samples = first_requests(&server, ahead, count)?;
            document.add(CATEGORY, &ahead.title(runtime), samples);
            if matches!(ahead, Ahead::Instance) {
                crowd(&server, runtime, scale.pick(10_000, AT_ONCE), document)?;
            }
        }
    }
    Ok(())
}

const NAME: &str = "threads";

fn deploy(server: &Server, runtime: Runtime, ahead: Ahead) -> anyhow::Result<()> {
    let settings = json!({ "timeout_ms": TIMEOUT_MS, "max_concurrency": 16 });
    server.deploy(NAME, runtime, code(runtime), &settings)?;
    let function = server.function(NAME)?;
    let by = &function["starts_by"];
    anyhow::ensure!(by == ahead.start_kind(), "it starts by {by}");
    if ahead.start_kind() == "restore" {
        // The first one was booted by the deploy.
        let call = invocation(NAME, &event(1024));
        Connection::open(server.address)?.exchange(&call)?.good()?;
        server.wait(NAME, |function| function["image"]["bytes"].is_u64())?;
    }
    Ok(())
}

fn first_requests(server: &Server, ahead: Ahead, count: usize) -> anyhow::Result<Samples> {
    let call = invocation(NAME, &event(1024));
    let mut connection = Connection::open(server.address)?;
    let (mut samples, mut others) = (Samples::default(), 0);
    while samples.len() < count {
        kill_instances(server, NAME)?;
        match ahead {
            Ahead::Instance => drop(server.wait(NAME, |function| function["template"] == true)?),
            Ahead::Sandbox => server.wait_for_prewarmed(NAME)?,
            Ahead::Nothing => {}
        }
        match request_one(&mut connection, &call)? {
            Some(first) if first.start_kind == ahead.start_kind() => samples.push(first.took),
            _ => others += 1,
        }
        anyhow::ensure!(
            others <= OTHERS * count,
            "requests do not take the start kind {}",
            ahead.start_kind()
        );
    }
    Ok(samples)
}

/// So many requests, 64 at once, each time after all instances were ended. One that is not answered, or late, is an error.
fn crowd(
    server: &Server,
    runtime: Runtime,
    count: usize,
    document: &mut Document,
) -> anyhow::Result<()> {
    let call = invocation(NAME, &event(1024));
    let started = |function: &serde_json::Value| {
        let decisions = &function["decisions"];
        decisions["restored"].as_u64().unwrap_or(0) + decisions["booted"].as_u64().unwrap_or(0)
    };
    let before = started(&server.function(NAME)?);
    let mut samples = Samples::default();
    while samples.len() < count {
        kill_instances(server, NAME)?;
        let at_once = AT_ONCE.min(count - samples.len());
        samples.extend(&burst(server.address, &call, at_once)?.samples);
    }
    let instances = started(&server.function(NAME)?) - before;
    let answered = samples.len();
    let longest = samples.longest().unwrap_or(Duration::ZERO);
    document.add(CROWD, runtime.name(), samples);
    let mut figure = |what: &str, value: f64, unit: &str| {
        document.figure(CROWD, &format!("{}: {what}", runtime.name()), value, unit);
    };
    figure("requests, all answered", answered as f64, "requests");
    figure("instances that were started", instances as f64, "instances");
    figure("the slowest", longest.as_secs_f64() * 1e3, "ms");
    Ok(())
}
