//! Requests through chains, and the same functions called by a front end, one after the other: over HTTP, each by its URL, with the
//! same body; and programs that do the same over gRPC.

use std::time::Duration;

use serde_json::{Value, json};

use super::by_grpc::ByGrpc;
use super::targets::{By, Target};
use super::{has_sk_msg, members, put};
use crate::client::request;
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server, event};

/// Connections to a chain of two.
const CONNECTIONS: [usize; 4] = [1, 8, 32, 128];
/// Members of the longest chain; there is one of each length up to this.
pub const LONGEST: usize = 8;
/// Lengths that have a goal, and are compared with programs over gRPC, too.
pub const LENGTHS: [usize; 3] = [2, 4, 8];
/// Connections to chains of each length.
pub const BUSIEST: usize = 32;
/// The same of a client that is by itself.
pub const ALONE: usize = 1;

/// Requests that may wait for a function's instances: with more connections, functions get more instances than they usually have.
const QUEUED: usize = 100;
const USUAL_INSTANCES: usize = 8;
const MANY_INSTANCES: usize = 32;

/// Bytes of a request's body.
const BODY_BYTES: usize = 1 << 10;
/// Turns of each, and how long one is.
const ROUNDS: usize = 6;
const TURN: Duration = Duration::from_millis(500);
pub(super) const QUICK_TURN: Duration = Duration::from_millis(30);
/// Instances of each member: the API's default. Two members keep two processors busy; with more instances than that, requests wait for
/// each other's time slices.
pub(super) const INSTANCES: usize = 1;

/// What the report calls a chain.
pub const RING: &str = "chain, ring";
const SK_MSG: &str = "chain, sk_msg";
const POLL: &str = "chain, poll";
/// What it calls the functions over HTTP.
pub const BY_HTTP: &str = "hop by hop over HTTP";
/// What it calls programs over gRPC.
const BY_GRPC: &str = "hop by hop over gRPC, no sandboxes";
/// What it calls one of them alone.
pub const ONE: &str = "one function, warm";
/// Unit of the processor's time that a request takes.
pub const CPU_TIME: &str = "µs of CPU/request";

/// What the functions are written in.
pub(super) const NATIVE: &str = "native";
const PYTHON: &str = "Python";
const NODE: &str = "Node";
const PYTHON_CODE: &str = "def handler(event, context):\n    return event\n";
const NODE_CODE: &str = "exports.handler = async (event) => event;\n";

/// The category of a chain of two native functions at this many connections.
pub fn two(connections: usize) -> String {
    two_of(NATIVE, connections)
}

fn two_of(language: &str, connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("two {language} functions, 1 KB, {connections} connection{plural}")
}

/// The category of chains of each length at this many connections.
pub fn lengths(connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("one to {LONGEST} native functions, 1 KB, {connections} connection{plural}")
}

/// The row of so many functions that are reached in this way.
pub fn of_length(way: &str, length: usize) -> String {
    let plural = if length == 1 { "" } else { "s" };
    format!("{way}: {length} function{plural}")
}

/// What a function of this language is called.
pub(super) fn function(language: &str, number: usize) -> String {
    format!("{}-{number}", language.to_lowercase())
}

fn by_url(path: &str) -> Vec<u8> {
    request("POST", path, &event(BODY_BYTES))
}

/// Requests to the chain that is measured.
pub(super) fn through() -> By {
    By::Http(vec![by_url("/chain/measured/r")])
}

/// A request to each of so many functions.
fn one_by_one(language: &str, length: usize) -> By {
    let path = |number| format!("/fn/{}", function(language, number));
    By::Http((0..length).map(|number| by_url(&path(number))).collect())
}

/// Puts the chain that is measured in service.
fn chain(server: &Server, language: &str, length: usize, transport: &str) -> anyhow::Result<()> {
    let functions: Vec<String> = (0..length)
        .map(|number| function(language, number))
        .collect();
    let each = functions
        .iter()
        .map(|function| (function.as_str(), json!({"concurrency": INSTANCES})));
    let mut settings = members(each);
    settings["transport"] = transport.into();
    put(server, "measured", &settings)
}

pub(super) fn no_chain(server: &Server) {
    // There may be none.
    let _ = server.call("DELETE", "/chains/measured", &Value::Null);
}

pub(super) fn run(
    server: &Server,
    relay: &[u8],
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    deploy(server, relay)?;
    two_at(server, NATIVE, scale, document)?;
    for (language, runtime, code) in [
        (PYTHON, Runtime::Python, PYTHON_CODE),
        (NODE, Runtime::Node, NODE_CODE),
    ] {
        if let Err(reason) = server.runtime(runtime)? {
            document.skip(&two_of(language, 1), reason);
            continue;
        }
        for number in 0..2 {
            server.deploy(&function(language, number), runtime, code, &json!({}))?;
        }
        two_at(server, language, scale, document)?;
    }
    let all: Vec<usize> = (1..=LONGEST).collect();
    let which = if scale.quick { &LENGTHS } else { &all[..] };
    each_length(server, which, scale, document)?;
    no_chain(server);
    Ok(())
}

/// Deploys as many native functions as the longest chain has.
pub(super) fn deploy(server: &Server, relay: &[u8]) -> anyhow::Result<()> {
    for number in 0..LONGEST {
        server.deploy_program(&function(NATIVE, number), relay, &[])?;
    }
    Ok(())
}

/// Chains of these lengths, and their functions over HTTP.
pub(super) fn each_length(
    server: &Server,
    which: &[usize],
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    for connections in [BUSIEST, ALONE] {
        for &length in which {
            let mut targets = vec![
                Target::new(RING, through()),
                Target::new(BY_HTTP, one_by_one(NATIVE, length)),
            ];
            if connections == BUSIEST && LENGTHS.contains(&length) {
                let functions = ByGrpc::start(length, BODY_BYTES)?;
                targets.push(Target::new(BY_GRPC, By::Grpc(functions)));
            }
            chain(server, NATIVE, length, "ring")?;
            for _ in 0..scale.pick(ROUNDS, 1) {
                for target in &mut targets {
                    target.take_turn(server, connections, scale.pick(TURN, QUICK_TURN))?;
                }
            }
            for target in targets {
                let row = of_length(target.name, length);
                target.conclude_as(&lengths(connections), &row, document);
            }
        }
    }
    Ok(())
}

/// A chain of two over each transport, and what it is compared with.
fn two_at(
    server: &Server,
    language: &str,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let has_sk_msg = has_sk_msg(server)?;
    for connections in CONNECTIONS {
        if connections > QUEUED {
            instances(server, language, MANY_INSTANCES)?;
        }
        let mut targets = vec![
            Target::new(RING, through()),
            Target::new(BY_HTTP, one_by_one(language, 2)),
            Target::new(ONE, one_by_one(language, 1)),
        ];
        if has_sk_msg {
            targets.push(Target::new(SK_MSG, through()));
        }
        if language == NATIVE {
            let functions = ByGrpc::start(2, BODY_BYTES)?;
            targets.push(Target::new(BY_GRPC, By::Grpc(functions)));
        }
        for _ in 0..scale.pick(ROUNDS, 1) {
            for target in &mut targets {
                match target.name {
                    RING => chain(server, language, 2, "ring")?,
                    SK_MSG => chain(server, language, 2, "sk_msg")?,
                    // What the chain's members would take, the functions have for themselves.
                    _ => no_chain(server),
                }
                target.take_turn(server, connections, scale.pick(TURN, QUICK_TURN))?;
            }
        }
        for target in targets {
            target.conclude(&two_of(language, connections), document);
        }
    }
    instances(server, language, USUAL_INSTANCES)
}

/// Chains whose members always spin, after all else: while they take the processors, and for a while afterwards, servers do not look
/// before they sleep, and others would be slower for it.
pub(super) fn polling(
    server: &Server,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    for language in [NATIVE, PYTHON, NODE] {
        if server
            .call(
                "GET",
                &format!("/functions/{}", function(language, 0)),
                &Value::Null,
            )
            .is_err()
        {
            continue;
        }
        chain(server, language, 2, "poll")?;
        for connections in CONNECTIONS {
            let mut target = Target::new(POLL, through());
            for _ in 0..scale.pick(ROUNDS, 1) {
                target.take_turn(server, connections, scale.pick(TURN, QUICK_TURN))?;
            }
            target.conclude(&two_of(language, connections), document);
        }
        no_chain(server);
    }
    Ok(())
}

/// Lets both functions have so many instances.
fn instances(server: &Server, language: &str, most: usize) -> anyhow::Result<()> {
    for number in 0..2 {
        let path = format!("/functions/{}", function(language, number));
        server.call("PATCH", &path, &json!({"max_concurrency": most}))?;
    }
    Ok(())
}
