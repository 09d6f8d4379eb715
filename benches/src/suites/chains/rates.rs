//! Requests through chains of native functions, and the same functions called by a front end, one after the other over HTTP: each by
//! its URL, with the same body.

use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::{members, put};
use crate::client::request;
use crate::load::{Client, Observed, drive_steps};
use crate::processes::family_cpu_time;
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Server, event};

/// Connections to a chain of two.
const CONNECTIONS: [usize; 3] = [1, 8, 32];
/// Members of the longer chains.
pub const LENGTHS: [usize; 3] = [2, 4, 8];
const LONGEST: usize = 8;

/// Connections to these.
fn busiest() -> usize {
    CONNECTIONS[2]
}

/// Bytes of a request's body.
const BODY_BYTES: usize = 1 << 10;
/// Turns of each, and how long one is.
const ROUNDS: usize = 6;
const TURN: Duration = Duration::from_millis(500);
const QUICK_TURN: Duration = Duration::from_millis(30);
/// Instances of each member: as many as processors, since one handles a request at a time.
const INSTANCES: usize = 2;

/// What the report calls a chain.
pub const RING: &str = "chain, ring";
const POLL: &str = "chain, poll";
/// What it calls the functions over HTTP.
pub const BY_HTTP: &str = "hop by hop over HTTP";
/// What it calls one of them alone.
pub const ONE: &str = "one function, warm";
/// Unit of the processor's time that a request takes.
pub const CPU_TIME: &str = "µs of CPU/request";

/// The category of a chain of two at this many connections.
pub fn two(connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("two native functions, 1 KB, {connections} connection{plural}")
}

/// The category of a chain of this length.
pub fn lengths(length: usize) -> String {
    format!("{length} native functions, 1 KB, {} connections", busiest())
}

/// Somebody who answers, and what was seen.
struct Target {
    name: &'static str,
    /// Requests that a client sends one after the other.
    steps: Vec<Vec<u8>>,
    observed: Observed,
    cpu_time: Duration,
    requests: u64,
}

impl Target {
    fn new(name: &'static str, steps: Vec<Vec<u8>>) -> Self {
        Self {
            name,
            steps,
            observed: Observed::default(),
            cpu_time: Duration::ZERO,
            requests: 0,
        }
    }

    fn take_turn(
        &mut self,
        server: &Server,
        connections: usize,
        turn: Duration,
    ) -> anyhow::Result<()> {
        let steps: Vec<&[u8]> = self.steps.iter().map(Vec::as_slice).collect();
        let before = family_cpu_time(server.pid())?;
        let observed = drive_steps(Client::Ordinary, server.address, &steps, connections, turn);
        let observed = observed.with_context(|| self.name)?;
        self.cpu_time += family_cpu_time(server.pid())?.saturating_sub(before);
        // One request at each connection went before.
        self.requests += (observed.samples.len() + connections) as u64;
        self.observed.extend(&observed);
        Ok(())
    }

    fn conclude(self, category: &str, document: &mut Document) {
        let cpu_us = self.cpu_time.as_secs_f64() * 1e6 / self.requests.max(1) as f64;
        document.figure(category, self.name, self.observed.rate(), "requests/s");
        document.figure(category, self.name, cpu_us, CPU_TIME);
        document.add(category, self.name, self.observed.samples);
    }
}

fn function(number: usize) -> String {
    format!("relay-{number}")
}

fn by_url(path: &str) -> Vec<u8> {
    request("POST", path, &event(BODY_BYTES))
}

/// A request to a chain.
fn through(chain: &str) -> Vec<Vec<u8>> {
    vec![by_url(&format!("/chain/{chain}/r"))]
}

/// A request to each of so many functions.
fn one_by_one(length: usize) -> Vec<Vec<u8>> {
    let path = |number| format!("/fn/{}", function(number));
    (0..length).map(|number| by_url(&path(number))).collect()
}

pub(super) fn run(
    server: &Server,
    relay: &[u8],
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    for number in 0..LONGEST {
        server.deploy_program(&function(number), relay, &[])?;
    }
    // Spinning members take the processors while they have nothing to do: alone, so that they take none of the others' time.
    let chain = |length, transport: &str| {
        let functions: Vec<String> = (0..length).map(function).collect();
        let member = json!({"concurrency": INSTANCES});
        let each = functions
            .iter()
            .map(|function| (function.as_str(), member.clone()));
        let mut settings = members(each);
        settings["transport"] = transport.into();
        put(server, "measured", &settings)
    };
    for connections in CONNECTIONS {
        let steps = [
            (RING, through("measured")),
            (POLL, through("measured")),
            (BY_HTTP, one_by_one(2)),
            (ONE, one_by_one(1)),
        ];
        let mut targets = steps.map(|(name, steps)| Target::new(name, steps));
        for _ in 0..scale.pick(ROUNDS, 1) {
            for target in &mut targets {
                match target.name {
                    RING => chain(2, "ring")?,
                    POLL => chain(2, "poll")?,
                    _ => {
                        // What the chain's members would take, the functions have for themselves.
                        let _ = server.call("DELETE", "/chains/measured", &serde_json::Value::Null);
                    }
                }
                target.take_turn(server, connections, scale.pick(TURN, QUICK_TURN))?;
            }
        }
        for target in targets {
            target.conclude(&two(connections), document);
        }
    }
    for length in LENGTHS {
        let mut targets = [
            Target::new(RING, through("measured")),
            Target::new(BY_HTTP, one_by_one(length)),
        ];
        chain(length, "ring")?;
        for _ in 0..scale.pick(ROUNDS, 1) {
            for target in &mut targets {
                target.take_turn(server, busiest(), scale.pick(TURN, QUICK_TURN))?;
            }
        }
        for target in targets {
            target.conclude(&lengths(length), document);
        }
    }
    Ok(())
}
