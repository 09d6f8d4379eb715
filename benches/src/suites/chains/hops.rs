//! What a hop costs: between two native members, measured by one of them; of each further Python member with its payload in place;
//! and with a payload that is a thousand times larger.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::{NO_BUSY_POLL, has_sk_msg, members, put};
use crate::client::{Connection, request};
use crate::load::drive;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// The category of a hop between two native members.
pub const HOP: &str = "one hop between two native members, gateway not counted";
/// The members sleep before each.
pub const RING_ASLEEP: &str = "ring, asleep";
/// They spin, each on a processor of its own: else both may share one, and the figure is that of a switch.
pub const RING_SPINNING: &str = "ring, spinning";
/// They sleep, and the kernel sees to each descriptor.
pub const SK_MSG: &str = "sk_msg, asleep";
/// They always spin, as far apart.
const POLL: &str = "poll";
/// Calls in one request: their times fit into its block.
const CALLS: usize = 1000;

/// The category of Python members.
pub const FURTHER: &str = "two Python members in turns, payloads in place, 1 KB, 1 connection";
/// What each further place in the route adds.
pub const PYTHON_ASLEEP: &str = "each further member on p50, asleep";
/// The same where all spin.
pub const PYTHON_SPINNING: &str = "each further member on p50, spinning";
/// Places of the two routes that are compared. The members are two, so that both can have a processor while they spin.
const PLACES: [usize; 2] = [2, 34];
const IN_PLACE: &str = "def handler(event, context):\n    pass\n";

/// The category of payloads of two sizes.
pub const THROUGH: &str = "through four native members, gateway's copies not counted";
/// A payload of 1 KB.
pub const SMALL: &str = "1 KB";
/// A payload of 1 MB.
pub const LARGE: &str = "1 MB";

/// Turns of what is measured over HTTP.
const ROUNDS: usize = 6;
const TURN: Duration = Duration::from_millis(500);
const QUICK_TURN: Duration = Duration::from_millis(30);

pub(super) fn run(
    spinning: &Server,
    relay: &[u8],
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let asleep = Server::start(&[NO_BUSY_POLL])?;
    for server in [spinning, &asleep] {
        for name in ["caller", "peer"] {
            server.deploy_program(name, relay, &[])?;
        }
    }
    between_native(&asleep, spinning, scale, document)?;
    larger(spinning, scale, document)?;
    match spinning.runtime(Runtime::Python)? {
        Ok(()) => python(&asleep, spinning, scale, document),
        Err(reason) => {
            document.skip(FURTHER, reason);
            Ok(())
        }
    }
}

/// A call is two hops: there and back.
fn between_native(
    asleep: &Server,
    spinning: &Server,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let has_sk_msg = has_sk_msg(asleep)?;
    let ways = [
        (RING_ASLEEP, asleep, "ring", "time"),
        (RING_SPINNING, spinning, "ring", "time-apart"),
        (SK_MSG, asleep, "sk_msg", "time"),
    ];
    let mut all = ways.map(|_| Samples::default());
    for _ in 0..scale.pick(ROUNDS, 1) {
        for ((name, server, transport, order), samples) in ways.iter().zip(&mut all) {
            if *name != SK_MSG || has_sk_msg {
                hop(server, transport, order, scale, samples)?;
            }
        }
    }
    for ((name, ..), samples) in ways.into_iter().zip(all) {
        if name != SK_MSG || has_sk_msg {
            document.add(HOP, name, samples);
        }
    }
    Ok(())
}

/// The same where members always spin, after all else.
pub(super) fn polling(
    server: &Server,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let mut samples = Samples::default();
    for _ in 0..scale.pick(ROUNDS, 1) {
        hop(server, "poll", "time-apart", scale, &mut samples)?;
    }
    document.add(HOP, POLL, samples);
    Ok(())
}

/// Calls in a chain of its own.
fn hop(
    server: &Server,
    transport: &str,
    order: &str,
    scale: Scale,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    let settings = json!({
        "members": {"caller": {"function": "caller"}, "peer": {"function": "peer"}},
        "routes": {"r": ["caller"]},
        "edges": [["caller", "peer"]],
        "transport": transport,
    });
    put(server, "hop", &settings)?;
    let calls = scale.pick(CALLS, 50);
    let order = json!(format!("{order} {calls}"));
    let times = server.call("POST", "/chains/hop/routes/r/invoke", &order)?;
    for time in times.as_array().context("no times")? {
        let round_trip = Duration::from_nanos(time.as_u64().context("a time")?);
        samples.push(round_trip / 2);
    }
    server.call("DELETE", "/chains/hop", &Value::Null)?;
    Ok(())
}

/// By the stamps of the members themselves: from the first one's taking the payload to the last one's passing it on.
fn larger(server: &Server, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let functions = ["caller", "peer", "caller", "peer"];
    let mut settings = members(functions.map(|function| (function, json!({}))));
    settings["pool"] = json!({"block_kb": 2048, "blocks": 16});
    put(server, "large", &settings)?;
    let mut connection = Connection::open(server.address)?;
    let sizes = [(SMALL, 1 << 10), (LARGE, 1 << 20)];
    let mut all = sizes.map(|_| Samples::default());
    for _ in 0..scale.pick(200, 5) {
        for ((_, bytes), samples) in sizes.iter().zip(&mut all) {
            let payload = json!(format!("pass{}", "x".repeat(bytes - 6))).to_string();
            let path = "/api/v1/chains/large/routes/r/invoke";
            let call = request("POST", path, payload.as_bytes());
            let answer = connection.exchange(&call)?;
            answer.good()?;
            let id = answer.header("x-hearth-invocation-id").context("no id")?;
            let took = within(server, id)?;
            samples.push(took);
        }
    }
    for ((name, _), samples) in sizes.into_iter().zip(all) {
        document.add(THROUGH, name, samples);
    }
    server.call("DELETE", "/chains/large", &Value::Null)?;
    Ok(())
}

/// How long a request was between its first and its last member, by its record.
fn within(server: &Server, id: &str) -> anyhow::Result<Duration> {
    let record = server.call("GET", &format!("/invocations/{id}"), &Value::Null)?;
    let hops = record["chain"]["hops"].as_array().context("no hops")?;
    let entered = hops.first().and_then(|hop| hop["entered_us"].as_u64());
    let left = hops.last().and_then(|hop| hop["left_us"].as_u64());
    let (entered, left) = entered.zip(left).context("a hop without times")?;
    Ok(Duration::from_micros(left.saturating_sub(entered)))
}

/// Two routes through the same two members.
fn python(
    asleep: &Server,
    spinning: &Server,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let turn = scale.pick(TURN, QUICK_TURN);
    let payload = json!("x".repeat((1 << 10) - 2)).to_string();
    let names = ["one", "other"];
    let route = |places| names.into_iter().cycle().take(places).collect::<Vec<_>>();
    for (name, server) in [(PYTHON_ASLEEP, asleep), (PYTHON_SPINNING, spinning)] {
        server.deploy("in-place", Runtime::Python, IN_PLACE, &json!({}))?;
        let member = json!({"function": "in-place", "payload": "block"});
        let chain = json!({
            "members": {"one": member, "other": member},
            "routes": {"short": route(PLACES[0]), "long": route(PLACES[1])},
        });
        put(server, "python", &chain)?;
        let mut all = PLACES.map(|_| Samples::default());
        for _ in 0..scale.pick(ROUNDS, 1) {
            for (route, samples) in ["short", "long"].iter().zip(&mut all) {
                let path = format!("/api/v1/chains/python/routes/{route}/invoke");
                let call = request("POST", &path, payload.as_bytes());
                samples.extend(&drive(server.address, &call, 1, turn)?.samples);
            }
        }
        let way = if name == PYTHON_ASLEEP {
            "asleep"
        } else {
            "spinning"
        };
        let mut p50 = [0.0; 2];
        for ((places, samples), p50) in PLACES.iter().zip(all).zip(&mut p50) {
            *p50 = document.add(FURTHER, &format!("{places} places, {way}"), samples);
        }
        let further = (p50[1] - p50[0]) / (PLACES[1] - PLACES[0]) as f64 / 1e3;
        document.figure(FURTHER, name, further, "µs");
        server.call("DELETE", "/chains/python", &Value::Null)?;
    }
    Ok(())
}
