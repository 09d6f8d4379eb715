//! Chains of functions: requests that pass from member to member through shared memory, beside the same functions reached one
//! after the other over HTTP and programs over gRPC, in turns; what a hop costs; what a request costs beside time; a shop under the
//! load that the reference gives it; and what a chain costs that has nothing to do.

mod audit;
mod boutique;
mod by_grpc;
mod hops;
mod idle;
mod mix;
mod processors;
mod rates;
mod targets;

use serde_json::{Value, json};

use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Server, program};

pub use audit::{ROWS, WAYS, audit, is_within};
pub use hops::{
    FURTHER, HOP, LARGE, PYTHON_ASLEEP, PYTHON_SPINNING, RING_ASLEEP, RING_SPINNING, SK_MSG, SMALL,
    THROUGH,
};
pub use idle::{CPU, FIRST, IDLE, OBSERVED, PSS, START};
pub use rates::{
    ALONE, BUSIEST, BY_HTTP, CPU_TIME, LENGTHS, LONGEST, ONE, RING, lengths, of_length, two,
};

/// What switches spinning off.
const NO_BUSY_POLL: (&str, &str) = ("HEARTH_BUSY_POLL_US", "0");

/// Measures all of it.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let Some((server, relay)) = start(document)? else {
        return Ok(());
    };
    rates::run(&server, &relay, scale, document)?;
    processors::run(&server, scale, document)?;
    hops::run(&server, &relay, scale, document)?;
    audit::run(&relay, scale, document)?;
    boutique::run(scale, document)?;
    idle::run(&relay, scale, document)?;
    rates::polling(&server, scale, document)?;
    hops::polling(&server, scale, document)
}

/// The lengths that have a goal alone.
pub fn with_goals(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let Some((server, relay)) = start(document)? else {
        return Ok(());
    };
    rates::deploy(&server, &relay)?;
    rates::each_length(&server, &LENGTHS, scale, document)
}

/// What a hop costs, alone.
pub fn of_hops(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let Some((server, relay)) = start(document)? else {
        return Ok(());
    };
    hops::run(&server, &relay, scale, document)
}

/// A server, and a program that passes on what it gets, in place.
fn start(document: &mut Document) -> anyhow::Result<Option<(Server, Vec<u8>)>> {
    let server = Server::start(&[])?;
    if let Err(reason) = server.has_runtime("native")? {
        document.skip("chains", reason);
        return Ok(None);
    }
    Ok(Some((server, program("native_relay")?)))
}

/// Members of one function each, in this order on the only route, `r`.
fn members<'a>(functions: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let mut settings = json!({"members": {}, "routes": {"r": []}});
    for (number, (function, member)) in functions.into_iter().enumerate() {
        let name = format!("m{number:02}");
        let mut with_function = member;
        with_function["function"] = function.into();
        settings["members"][&name] = with_function;
        if let Some(route) = settings["routes"]["r"].as_array_mut() {
            route.push(name.into());
        }
    }
    settings
}

/// Whether the kernel carries descriptors on this host.
fn has_sk_msg(server: &Server) -> anyhow::Result<bool> {
    let node = server.call("GET", "/node", &Value::Null)?;
    Ok(node["capabilities"]["sk_msg"]["available"] == true)
}

/// Puts a chain in service.
fn put(server: &Server, name: &str, settings: &Value) -> anyhow::Result<()> {
    server.call("PUT", &format!("/chains/{name}"), settings)?;
    Ok(())
}
