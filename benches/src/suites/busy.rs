//! A host where others compute: one process for each processor does nothing else. Warm calls beside well-known
//! servers, and the first file that a Node.js function reads beside a plain Node.js; both quiet and busy, in turns.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::compare::ROWS;
use super::starts::end_instances;
use crate::baselines::{Baseline, node, sources};
use crate::client::{Connection, request};
use crate::load::{Client, drive_as};
use crate::peers::spinners;
use crate::process::Program;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// Bytes of each event.
const EVENT_BYTES: usize = 1 << 10;
/// Rounds of each server, and how long each is.
const ROUNDS: usize = 8;
const TURN: Duration = Duration::from_millis(1000);
const QUICK_TURN: Duration = Duration::from_millis(20);
/// Instances whose first reads are timed.
const FIRSTS: usize = 112;
/// Reads of each instance after its first.
const NEXT: usize = 19;

/// Whether others compute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Nobody.
    Quiet,
    /// One process for each processor.
    Busy,
}

impl Host {
    const ALL: [Self; 2] = [Self::Quiet, Self::Busy];

    /// As the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet host",
            Self::Busy => "busy host, a spinning process for each processor",
        }
    }

    /// Makes it so until this is dropped.
    fn make(self) -> anyhow::Result<Vec<Program>> {
        match self {
            Self::Quiet => Ok(Vec::new()),
            Self::Busy => spinners(),
        }
    }
}

/// What a handler does.
#[derive(Clone, Copy)]
pub enum Work {
    /// It sends back what it gets.
    Echo,
    /// It reads a file, off its thread.
    Read,
}

impl Work {
    const ALL: [Self; 2] = [Self::Echo, Self::Read];

    fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Read => "reads a file",
        }
    }

    fn code(self, runtime: Runtime) -> &'static str {
        match self {
            Self::Echo => runtime.echo(),
            Self::Read => runtime.reader(),
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Echo => "/",
            Self::Read => "/read",
        }
    }

    /// What the function is called.
    fn function(self, runtime: Runtime) -> String {
        match self {
            Self::Echo => format!("echo-{}", runtime.name()),
            Self::Read => format!("read-{}", runtime.name()),
        }
    }
}

/// The category of warm calls.
pub fn warm(work: Work, host: Host, client: Client) -> String {
    let client = match client {
        Client::Ordinary => "",
        Client::RealTime => ", a client that never waits for a processor",
    };
    format!(
        "warm, {}, 1 connection, {}{client}",
        work.name(),
        host.name()
    )
}

/// Whom the warm calls are made by: on a busy host also by a client that the others do not delay.
fn clients(host: Host) -> &'static [Client] {
    match host {
        Host::Quiet => &[Client::Ordinary],
        Host::Busy => &[Client::Ordinary, Client::RealTime],
    }
}

/// The category of reads.
pub fn reads(host: Host) -> String {
    format!("handler that reads a file, Node, {}", host.name())
}

/// What the report calls a plain Node.js.
pub const PLAIN: &str = "plain Node: first";
/// What it calls an instance's first and later reads.
pub const FIRST: &str = "Hearth: first in an instance";
/// The slowest of each instance's next ones.
pub const LATER: &str = "Hearth: slowest of the next 19";

/// What the report calls Hearth with a language.
pub fn hearth(runtime: Runtime) -> String {
    format!("Hearth, {}", runtime.name())
}

/// Measures both; with [`ROWS`], only categories that have its text in their name.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    let mut runtimes = Vec::new();
    for runtime in Runtime::ALL {
        match server.runtime(runtime)? {
            Ok(()) => runtimes.push(runtime),
            Err(reason) => document.skip(&hearth(runtime), reason),
        }
    }
    for runtime in &runtimes {
        for work in Work::ALL {
            let name = work.function(*runtime);
            server.deploy(&name, *runtime, work.code(*runtime), &json!({}))?;
        }
    }
    calls(&server, &runtimes, scale, document)?;
    if runtimes.contains(&Runtime::Node) {
        first_reads(&server, scale, document)?;
    }
    Ok(())
}

fn is_wanted(category: &str) -> bool {
    std::env::var(ROWS).map_or(true, |rows| category.contains(&rows))
}

/// Somebody who answers.
struct Target {
    name: String,
    address: SocketAddr,
    request: Box<dyn Fn(Work) -> Vec<u8>>,
    _program: Option<Program>,
}

fn calls(
    server: &Server,
    runtimes: &[Runtime],
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let mut targets = Vec::new();
    for runtime in runtimes.iter().copied() {
        targets.push(Target {
            name: hearth(runtime),
            address: server.address,
            request: Box::new(move |work| invocation(&work.function(runtime), &event(EVENT_BYTES))),
            _program: None,
        });
    }
    for baseline in [Baseline::Uvicorn, Baseline::Node] {
        match baseline.start() {
            Ok((program, address)) => targets.push(Target {
                name: baseline.name().to_owned(),
                address,
                request: Box::new(|work| request("POST", work.path(), &event(EVENT_BYTES))),
                _program: Some(program),
            }),
            Err(error) => document.skip(baseline.name(), format!("{error:#}")),
        }
    }
    for work in Work::ALL {
        for host in Host::ALL {
            for client in clients(host) {
                if is_wanted(&warm(work, host, *client)) {
                    turns(&targets, work, host, *client, scale, document)?;
                }
            }
        }
    }
    Ok(())
}

/// Calls of one category, the targets in turns.
fn turns(
    targets: &[Target],
    work: Work,
    host: Host,
    client: Client,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let mut found: Vec<Samples> = targets.iter().map(|_| Samples::default()).collect();
    let _others = host.make()?;
    let turn = scale.pick(TURN, QUICK_TURN);
    for _ in 0..scale.pick(ROUNDS, 1) {
        for (target, found) in targets.iter().zip(&mut found) {
            let request = (target.request)(work);
            found.extend(&drive_as(client, target.address, &request, 1, turn)?.samples);
        }
    }
    for (target, found) in targets.iter().zip(found) {
        document.add(&warm(work, host, client), &target.name, found);
    }
    Ok(())
}

/// Times by the handlers' own clocks.
fn first_reads(server: &Server, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let name = Work::Read.function(Runtime::Node);
    let call = invocation(&name, &event(EVENT_BYTES));
    for host in Host::ALL {
        if !is_wanted(&reads(host)) {
            continue;
        }
        let (mut plain, mut first, mut later) =
            (Samples::default(), Samples::default(), Samples::default());
        let _others = host.make()?;
        for _ in 0..scale.pick(FIRSTS, 2) {
            plain.push(plain_read()?);
            end_instances(server, &name)?;
            let mut connection = Connection::open(server.address)?;
            first.push(took(&connection.exchange(&call)?.json()?)?);
            let mut slowest = Duration::ZERO;
            for _ in 0..NEXT {
                slowest = slowest.max(took(&connection.exchange(&call)?.json()?)?);
            }
            later.push(slowest);
        }
        let category = reads(host);
        document.add(&category, PLAIN, plain);
        document.add(&category, FIRST, first);
        document.add(&category, LATER, later);
    }
    Ok(())
}

fn took(answer: &Value) -> anyhow::Result<Duration> {
    let ms = answer["ms"].as_f64().context("how long it took")?;
    Ok(Duration::from_secs_f64(ms / 1e3))
}

/// What the first read of a Node.js takes that has just been started.
fn plain_read() -> anyhow::Result<Duration> {
    let script = sources().join("first_read.mjs");
    let output = Command::new(node()).arg(script).output()?;
    let ms: f64 = String::from_utf8(output.stdout)?
        .parse()
        .context("how long it took")?;
    Ok(Duration::from_secs_f64(ms / 1e3))
}
