//! HTTPS requests of a function: to a host that the broker puts a secret in for, and straight to another, in turns.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::https::{BOUND, DIRECT, HTTPS, SECRET};
use super::world::World;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server};
use crate::suites::median::{interval_of_median, middle};

/// What is measured.
pub const KEPT: &str = "HTTPS request on an open connection";
pub const NEW: &str = "HTTPS request on a new connection";
/// What the report calls how much longer it takes.
pub const MORE: &str = "brokered − direct";

/// Rounds, and requests of one.
const ROUNDS: usize = 30;
const PER_ROUND: usize = 30;

/// Names are resolved before anything is timed.
const CODE: &str = r#"
import http.client, socket, ssl, time

def connect(address, event):
    stream = socket.create_connection((address, event["port"]), timeout=20)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = http.client.HTTPSConnection(event["host"], event["port"])
    connection.sock = context.wrap_socket(stream, server_hostname=event["host"])
    return connection

def request(connection):
    connection.request("GET", "/")
    answer = connection.getresponse()
    if (answer.status, answer.read()) != (200, b"ok"):
        raise Exception(f"answered with {answer.status}")

def handler(event, _):
    address, times = socket.gethostbyname(event["host"]), []
    kept = connect(address, event)
    request(kept)
    for _ in range(event["count"]):
        begun = time.perf_counter_ns()
        connection = connect(address, event) if event["new"] else kept
        request(connection)
        times.append(time.perf_counter_ns() - begun)
        if event["new"]:
            connection.close()
    kept.close()
    return times

context = ssl.create_default_context()
context.load_verify_locations(cadata=AUTHORITY)
"#;

/// Measures both.
pub(super) fn run(
    world: &World,
    server: &Server,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    server.call("PUT", "/secrets/bench", &json!({ "value": SECRET }))?;
    let code = format!("AUTHORITY = '''{}'''\n{CODE}", world.authority);
    let allow = [BOUND, DIRECT].map(|host| format!("{host}:{HTTPS}"));
    let settings = json!({
        "network": { "allow": allow },
        "secrets": [{ "secret": "bench", "host": format!("{BOUND}:{HTTPS}") }],
    });
    server.deploy("calls", Runtime::Python, &code, &settings)?;
    for (category, new) in [(KEPT, false), (NEW, true)] {
        let (mut all, mut more) = ([Samples::default(), Samples::default()], Vec::new());
        for number in 0..scale.pick(ROUNDS, 1) {
            let mut medians = [0.0; 2];
            for turn in 0..2 {
                let which = (number + turn) % 2;
                let (host, count) = ([DIRECT, BOUND][which], scale.pick(PER_ROUND, 3));
                let event = json!({ "host": host, "port": HTTPS, "count": count, "new": new });
                let samples = requests(server, &event)?;
                medians[which] = samples.metrics().median_ns;
                all[which].extend(&samples);
            }
            more.push((medians[1] - medians[0]) / 1e6);
        }
        for (name, samples) in ["direct", "brokered"].into_iter().zip(all) {
            document.add(category, name, samples);
        }
        more.sort_by(f64::total_cmp);
        document.figure(category, MORE, middle(&more), "ms");
        if let Some((low, high)) = interval_of_median(&more) {
            document.figure(category, &format!("{MORE}, from"), low, "ms");
            document.figure(category, &format!("{MORE}, to"), high, "ms");
        }
    }
    server.delete("calls")
}

fn requests(server: &Server, event: &Value) -> anyhow::Result<Samples> {
    let times = server.call("POST", "/functions/calls/invoke", event)?;
    let mut samples = Samples::default();
    for time in times.as_array().context("no times")? {
        samples.push(Duration::from_nanos(time.as_u64().context("no time")?));
    }
    Ok(samples)
}
