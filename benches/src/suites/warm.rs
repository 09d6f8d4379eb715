//! Warm invocations over HTTP, beside servers that people know, in turns. Each of those sends back the bytes it gets;
//! Hearth hands the event to a handler in another process as an object, takes its result, and writes the history.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::baselines::Baseline;
use crate::client::request;
use crate::load::{Observed, drive};
use crate::peers::{Peer, parse};
use crate::process::Program;
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
/// Turns of each server, and how long each is, in ms.
const TURNS: usize = 4;
const TURN_MS: u64 = 250;
/// The same where a goal is set: 1 KB at 1 and 16 connections.
const LONG_TURNS: usize = 8;
const LONG_TURN_MS: u64 = 500;
/// How long the history may take to be written after the last answer.
const HISTORY: Duration = Duration::from_secs(30);

/// What the report calls Hearth with Python.
pub const HEARTH: &str = "Hearth, Python";
/// What the report calls axum.
pub const AXUM: &str = "bare axum";
/// What the report calls the least server.
pub const FLOOR: &str = "floor: least blocking HTTP echo";
/// The figures on the history.
pub const HISTORY_ROWS: &str = "history";

/// The category of a size at so many connections.
pub fn category(size: &str, connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("{size}, {connections} connection{plural}")
}

/// Somebody who answers.
struct Target {
    name: &'static str,
    address: SocketAddr,
    /// The function of Hearth, if it is Hearth.
    function: Option<&'static str>,
    sent: u64,
    _program: Option<Program>,
}

impl Target {
    fn request(&self, payload: usize) -> Vec<u8> {
        match self.function {
            Some(function) => invocation(function, &event(payload)),
            None => request("POST", "/", &event(payload)),
        }
    }
}

/// Measures each payload at each number of connections.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    let mut targets = targets(&server, document)?;
    for connections in CONNECTIONS {
        for (payload, size) in SIZES {
            let long = payload == 1 << 10 && connections < 64;
            let (turns, turn) = match (scale.quick, long) {
                (true, _) => (1, 20),
                (false, true) => (LONG_TURNS, LONG_TURN_MS),
                (false, false) => (TURNS, TURN_MS),
            };
            let turn = Duration::from_millis(turn);
            let mut found: Vec<Observed> = targets.iter().map(|_| Observed::default()).collect();
            for _ in 0..turns {
                for (target, found) in targets.iter_mut().zip(&mut found) {
                    let request = target.request(payload);
                    let observed = drive(target.address, &request, connections, turn)
                        .with_context(|| {
                            format!("{}, {}", target.name, category(size, connections))
                        })?;
                    // One request at each connection went before.
                    target.sent += (observed.samples.len() + connections) as u64;
                    found.extend(&observed);
                }
            }
            for (target, found) in targets.iter().zip(found) {
                let category = category(size, connections);
                document.figure(&category, target.name, found.rate(), "requests/s");
                document.add(&category, target.name, found.samples);
            }
        }
    }
    history(&server, &targets, document)
}

fn targets(server: &Server, document: &mut Document) -> anyhow::Result<Vec<Target>> {
    let mut targets = Vec::new();
    let names = [(HEARTH, "echo-python3"), ("Hearth, Node", "echo-node")];
    for (runtime, (name, function)) in Runtime::ALL.into_iter().zip(names) {
        if let Err(reason) = server.runtime(runtime)? {
            document.skip(name, reason);
            continue;
        }
        server.deploy(function, runtime, runtime.echo(), &json!({}))?;
        targets.push(Target {
            name,
            address: server.address,
            function: Some(function),
            sent: 0,
            _program: None,
        });
    }
    for (name, peer) in [(AXUM, Peer::Axum), (FLOOR, Peer::Minimal)] {
        let (program, address) = peer.start()?;
        targets.push(Target {
            name,
            address: parse(&address)?,
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
fn history(server: &Server, targets: &[Target], document: &mut Document) -> anyhow::Result<()> {
    for target in targets {
        let Some(function) = target.function else {
            continue;
        };
        let deadline = Instant::now() + HISTORY;
        let path = format!("/functions/{function}/stats?window=1h");
        let recorded = loop {
            let stats = server.call("GET", &path, &Value::Null)?;
            let recorded = stats["count"].as_u64().context("stats without a count")?;
            if recorded >= target.sent {
                break recorded;
            }
            if Instant::now() > deadline {
                bail!("the history has {recorded} of {} invocations", target.sent);
            }
            std::thread::sleep(Duration::from_millis(50));
        };
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
