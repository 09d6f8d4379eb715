//! The effect of slow clients on others: one client's latency alone, and beside 500 clients that are silent, drip or do
//! not read, in every phase of a request; interleaved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use crate::load::{self, Observed};
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

mod crowd;

use crowd::Crowd;

/// Slow clients at a time.
const CLIENTS: usize = 500;
const QUICK_CLIENTS: usize = 20;
/// Rounds, each alone and beside the slow ones.
const ROUNDS: usize = 8;
/// How long a turn lasts.
const TURN: Duration = Duration::from_secs(3);
const QUICK_TURN: Duration = Duration::from_millis(100);
/// Bytes of the innocent client's events.
const EVENT_BYTES: usize = 1000;
/// What a client that does not read asks for: more than every buffer on its way holds, for longer than a turn.
const STREAM: &str = "def handler(event, context):\n\
    \x20   return {'statusCode': 200, 'body': (b'x' * 65536 for _ in range(1000))}\n";

/// The category in the report.
pub const CATEGORY: &str = "An innocent client beside slow ones, 1 KB, 1 connection";
/// The innocent client by itself.
pub const ALONE: &str = "alone";
/// The same beside the slow ones.
pub const BESIDE: &str = "beside 500 slow clients";

/// Measures both in turns.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    if let Err(reason) = server.runtime(Runtime::Python)? {
        document.skip(CATEGORY, reason);
        return Ok(());
    }
    server.deploy("echo", Runtime::Python, Runtime::Python.echo(), &json!({}))?;
    let public = json!({ "public": true });
    server.deploy("open", Runtime::Python, Runtime::Python.echo(), &public)?;
    server.deploy("stream", Runtime::Python, STREAM, &public)?;
    let call = invocation("echo", &event(EVENT_BYTES));
    let turn = scale.pick(TURN, QUICK_TURN);
    let clients = scale.pick(CLIENTS, QUICK_CLIENTS);
    let (mut alone, mut beside) = (Observed::default(), Observed::default());
    let (mut fewest, mut reopened) = (usize::MAX, 0);
    for _ in 0..scale.pick(ROUNDS, 1) {
        alone.extend(&load::drive(server.address, &call, 1, turn)?);

        let mut crowd = Crowd::gather(server.address, clients)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let at_work = thread::spawn(move || -> anyhow::Result<Crowd> {
            while !stopped.load(Ordering::Relaxed) {
                crowd.step()?;
                thread::sleep(crowd::PAUSE);
            }
            Ok(crowd)
        });
        let observed = load::drive(server.address, &call, 1, turn);
        stop.store(true, Ordering::Relaxed);
        let crowd = at_work
            .join()
            .map_err(|_| anyhow::anyhow!("the slow clients panicked"))??;
        beside.extend(&observed.context("the innocent client beside the slow ones")?);
        fewest = fewest.min(crowd.fewest);
        reopened += crowd.reopened;
    }
    for (name, observed) in [(ALONE, &alone), (BESIDE, &beside)] {
        let rate = observed.rate();
        document.add(CATEGORY, name, observed.samples.clone());
        document.figure(CATEGORY, name, rate, "requests/s");
    }
    let mut figure = |name: &str, value: usize| {
        document.figure(
            CATEGORY,
            &format!("{BESIDE}: {name}"),
            value as f64,
            "connections",
        );
    };
    figure("fewest at a time", fewest);
    figure("closed by the server and opened again", reopened);
    Ok(())
}
