//! Warm invocations over HTTP, beside well-known servers, interleaved. Those echo bytes; Hearth passes the event as an
//! object to a handler in another process, takes its result, and writes the history.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use hearth_testkit::wait::poll;
use serde_json::{Value, json};

use crate::baselines::Baseline;
use crate::client::request;
use crate::load::{Observed, drive};
use crate::peers::{Peer, parse};
use crate::process::Program;
use crate::processes::family_cpu_time;
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// Connections, each with one request under way.
const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// Payloads in bytes, and how they are called.
const SIZES: [(usize, &str); 4] = [
    (0, "0 B"),
    (1 << 10, "1 KB"),
    (64 << 10, "64 KB"),
    (1 << 20, "1 MB"),
];
/// Rounds of each server, and how long each is, in ms.
const ROUNDS: usize = 4;
const TURN_MS: u64 = 250;
/// The same where a goal is set: 1 KB at 1 and 16 connections.
const LONG_TURNS: usize = 8;
const LONG_TURN_MS: u64 = 500;
/// How long the history may take to be written after the last answer.
const HISTORY: Duration = Duration::from_secs(30);

/// What the report calls Hearth with Python.
pub const HEARTH: &str = "Hearth, Python";
/// Hearth's functions by language: what the report calls them as the server starts by default, and without busy polling.
const FUNCTIONS: [(&str, &str, &str); 2] = [
    (HEARTH, "Hearth, Python, no busy polling", "echo-python3"),
    ("Hearth, Node", "Hearth, Node, no busy polling", "echo-node"),
];
/// What switches busy polling off.
const NO_BUSY_POLL: (&str, &str) = ("HEARTH_BUSY_POLL_US", "0");
/// Unit of the processor's time that a request takes.
pub const CPU: &str = "µs of CPU/request";
/// What the report calls axum.
pub const AXUM: &str = "bare axum";
/// What the report calls the least server.
pub const FLOOR: &str = "floor: least blocking HTTP echo";
/// The figures on the history.
pub const HISTORY_ROWS: &str = "history";

/// The category of a size at this many connections.
pub fn category(size: &str, connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("{size}, {connections} connection{plural}")
}

/// Somebody who answers.
struct Target<'a> {
    name: &'static str,
    address: SocketAddr,
    /// The first of its processes.
    pid: u32,
    /// The server and the function, if it is Hearth.
    function: Option<(&'a Server, &'static str)>,
    sent: u64,
    _program: Option<Program>,
}

/// What the rounds of a target have shown of one category.
#[derive(Default)]
struct Found {
    observed: Observed,
    cpu_time: Duration,
    /// What that time was spent on: those count as well that opened the connections.
    requests: u64,
}

impl Found {
    fn cpu_us(&self) -> f64 {
        self.cpu_time.as_secs_f64() * 1e6 / self.requests.max(1) as f64
    }
}

impl Target<'_> {
    /// Drives it for a turn.
    fn take_turn(
        &mut self,
        found: &mut Found,
        payload: usize,
        connections: usize,
        turn: Duration,
    ) -> anyhow::Result<()> {
        let request = self.request(payload);
        let before = family_cpu_time(self.pid)?;
        let observed = drive(self.address, &request, connections, turn)?;
        found.cpu_time += family_cpu_time(self.pid)?.saturating_sub(before);
        // One request at each connection went before.
        let requests = (observed.samples.len() + connections) as u64;
        self.sent += requests;
        found.requests += requests;
        found.observed.extend(&observed);
        Ok(())
    }

    fn request(&self, payload: usize) -> Vec<u8> {
        match self.function {
            Some((_, function)) => invocation(function, &event(payload)),
            None => request("POST", "/", &event(payload)),
        }
    }
}

/// Measures each payload at each number of connections.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let servers = [Server::start(&[])?, Server::start(&[NO_BUSY_POLL])?];
    let mut targets = targets(&servers, document)?;
    for connections in CONNECTIONS {
        for (payload, size) in SIZES {
            let long = payload == 1 << 10 && connections < 64;
            let (rounds, round) = match (scale.quick, long) {
                (true, _) => (1, 20),
                (false, true) => (LONG_TURNS, LONG_TURN_MS),
                (false, false) => (ROUNDS, TURN_MS),
            };
            let round = Duration::from_millis(round);
            let mut found: Vec<Found> = targets.iter().map(|_| Found::default()).collect();
            for _ in 0..rounds {
                for (target, found) in targets.iter_mut().zip(&mut found) {
                    let name = target.name;
                    target
                        .take_turn(found, payload, connections, round)
                        .with_context(|| format!("{name}, {}", category(size, connections)))?;
                }
            }
            for (target, found) in targets.iter().zip(found) {
                let category = category(size, connections);
                let rate = found.observed.rate();
                document.figure(&category, target.name, rate, "requests/s");
                document.figure(&category, target.name, found.cpu_us(), CPU);
                document.add(&category, target.name, found.observed.samples);
            }
        }
    }
    history(&targets, document)
}

fn targets<'a>(
    servers: &'a [Server; 2],
    document: &mut Document,
) -> anyhow::Result<Vec<Target<'a>>> {
    let mut targets = Vec::new();
    for (runtime, (default, without, function)) in Runtime::ALL.into_iter().zip(FUNCTIONS) {
        for (server, name) in servers.iter().zip([default, without]) {
            if let Err(reason) = server.runtime(runtime)? {
                document.skip(name, reason);
                continue;
            }
            server.deploy(function, runtime, runtime.echo(), &json!({}))?;
            targets.push(Target {
                name,
                address: server.address,
                pid: server.pid(),
                function: Some((server, function)),
                sent: 0,
                _program: None,
            });
        }
    }
    for (name, peer) in [(AXUM, Peer::Axum), (FLOOR, Peer::Minimal)] {
        let (program, address) = peer.start()?;
        targets.push(Target {
            name,
            address: parse(&address)?,
            pid: program.pid(),
            function: None,
            sent: 0,
            _program: Some(program),
        });
    }
    for baseline in Baseline::ALL {
        match baseline.start() {
            Ok((program, address)) => targets.push(Target {
                name: baseline.name(),
                address,
                pid: program.pid(),
                function: None,
                sent: 0,
                _program: Some(program),
            }),
            Err(error) => document.skip(baseline.name(), format!("{error:#}")),
        }
    }
    Ok(targets)
}

/// Every request that was answered is in the history, soon.
fn history(targets: &[Target<'_>], document: &mut Document) -> anyhow::Result<()> {
    for target in targets {
        let Some((server, function)) = target.function else {
            continue;
        };
        let path = format!("/functions/{function}/stats?window=1h");
        let count = || -> anyhow::Result<u64> {
            let stats = server.call("GET", &path, &Value::Null)?;
            stats["count"].as_u64().context("stats without a count")
        };
        let all = poll(HISTORY, Duration::from_millis(50), || {
            let count = count().map(|count| (count >= target.sent).then_some(count));
            count.transpose()
        });
        let recorded = all.unwrap_or_else(|| {
            bail!(
                "the history has {} of {} invocations",
                count()?,
                target.sent
            )
        })?;
        let name = format!("{}: invocations in the history", target.name);
        document.figure(
            HISTORY_ROWS,
            &name,
            100.0 * recorded as f64 / target.sent as f64,
            "% of what was sent",
        );
    }
    Ok(())
}
