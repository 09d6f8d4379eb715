//! What a policy costs a function that reaches for nothing: its first request, its warm ones, its restore, each beside the same
//! without a network.

use std::time::Duration;

use serde_json::{Value, json};

use super::with_policy;
use crate::client::Connection;
use crate::load::drive;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};
use crate::suites::pair::Pair;
use crate::suites::starts::{first_requests, request_one};

/// What is measured.
pub const FIRST: &str = "first HTTP request without an instance, by fork";
pub const WARM: &str = "warm HTTP request, 1 connection";
pub const RESTORED: &str = "first HTTP request to a function asleep, by restore";
/// Of which functions.
pub const NONE: &str = "no network";
pub const WITH: &str = "a policy";

const BYTES: usize = 1 << 10;
const ROUNDS: usize = 24;
const FIRSTS: usize = 10;
const TURN: Duration = Duration::from_millis(300);
const QUICK_TURN: Duration = Duration::from_millis(20);
/// Functions of each kind that fall asleep together, and how often.
const SLEEPERS: usize = 10;
const NIGHTS: usize = 10;

/// Measures each in turns.
pub(super) fn run(server: &Server, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let names = ["without", "with"];
    let python = Runtime::Python;
    let settings = || [json!({}), with_policy()];
    for (name, settings) in names.into_iter().zip(settings()) {
        server.deploy(name, python, python.usual(), &settings)?;
    }
    let (mut first, mut warm) = (Pair::default(), Pair::default());
    for number in 0..scale.pick(ROUNDS, 1) {
        first.add(&in_turns(number, |which| {
            first_requests(server, names[which], scale.pick(FIRSTS, 1))
        })?);
        warm.add(&in_turns(number, |which| {
            let call = invocation(names[which], &event(BYTES));
            let turn = scale.pick(TURN, QUICK_TURN);
            Ok(drive(server.address, &call, 1, turn)?.samples)
        })?);
    }
    first.conclude(FIRST, [NONE, WITH], document);
    warm.conclude(WARM, [NONE, WITH], document);
    for name in names {
        server.delete(name)?;
    }
    match server.capability("criu")? {
        Ok(()) => asleep(server, scale, document),
        Err(reason) => {
            document.skip(RESTORED, reason);
            Ok(())
        }
    }
}

/// Measures both; in every second round the other comes first.
fn in_turns(
    number: usize,
    mut measure: impl FnMut(usize) -> anyhow::Result<Samples>,
) -> anyhow::Result<[Samples; 2]> {
    let mut round = [Samples::default(), Samples::default()];
    for turn in 0..2 {
        let which = (number + turn) % 2;
        round[which] = measure(which)?;
    }
    Ok(round)
}

/// First requests to functions that sleep, several of each kind in turns.
fn asleep(server: &Server, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let sleepers = scale.pick(SLEEPERS, 1);
    let name = |which: usize, number: usize| format!("asleep-{which}-{number}");
    for (which, mut settings) in [json!({}), with_policy()].into_iter().enumerate() {
        settings["idle_timeout_s"] = json!(1);
        settings["template_idle_timeout_s"] = json!(1);
        for number in 0..sleepers {
            let usual = Runtime::Python.usual();
            server.deploy(&name(which, number), Runtime::Python, usual, &settings)?;
        }
    }
    let mut pair = Pair::default();
    for _ in 0..scale.pick(NIGHTS, 1) {
        let mut round = [Samples::default(), Samples::default()];
        for number in 0..sleepers {
            for which in 0..2 {
                let is_asleep = |function: &Value| {
                    function["state"] == "asleep" && function["image"]["bytes"].is_u64()
                };
                server.wait(&name(which, number), is_asleep)?;
            }
        }
        for number in 0..sleepers {
            for turn in 0..2 {
                let which = (number + turn) % 2;
                let name = name(which, number);
                server.wait_for_prewarmed(&name)?;
                let call = invocation(&name, &event(BYTES));
                let mut connection = Connection::open(server.address)?;
                let first = request_one(&mut connection, &call)?;
                if let Some(first) = first.filter(|first| first.start_kind == "restore") {
                    round[which].push(first.took);
                }
            }
        }
        // None where an image was made too late for all of a kind.
        if round.iter().all(|samples| samples.len() > 0) {
            pair.add(&round);
        }
    }
    match pair.is_empty() {
        true => document.skip(RESTORED, "no request met a function whose image was ready"),
        false => pair.conclude(RESTORED, [NONE, WITH], document),
    }
    Ok(())
}
