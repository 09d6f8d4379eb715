//! How a chain gets its processors: as its functions do, in proportion to its requests, or on a core of its own (SPRIGHT's control).

use std::time::Duration;

use serde_json::{Value, json};

use super::rates::{INSTANCES, NATIVE, QUICK_TURN, function, no_chain, through};
use super::targets::Target;
use super::{members, put};
use crate::results::Document;
use crate::scale::Scale;
use crate::server::Server;

/// The category.
const CATEGORY: &str = "processors of a chain of two native functions, 1 KB, 32 connections";
const CONNECTIONS: usize = 32;
const SHARED: &str = "shared";
const PROPORTIONAL: &str = "in proportion to requests";
const DEDICATED: &str = "one dedicated core";

/// Turns of each, and how long one is.
const ROUNDS: usize = 3;
const TURN: Duration = Duration::from_secs(1);
/// Load before each turn: the smoothed rate gets to nine tenths of a new one in eleven seconds.
const SETTLING: Duration = Duration::from_secs(12);

pub(super) fn run(server: &Server, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let node = server.call("GET", "/node", &Value::Null)?;
    let cpuset = &node["capabilities"]["cpuset"];
    let cores = cpuset["version"]
        .as_str()
        .and_then(hearth_host::cores::parse);
    let core = match cores.unwrap_or_default() {
        cores if cores.len() > 1 => cores.last().copied(),
        _ => None,
    };
    let Some(core) = core else {
        let reason = cpuset["reason"]
            .as_str()
            .unwrap_or("there is one core only");
        document.skip(CATEGORY, reason);
        return Ok(());
    };
    let mut targets = [SHARED, PROPORTIONAL, DEDICATED].map(|name| Target::new(name, through()));
    let mut constants = json!({});
    for _ in 0..scale.pick(ROUNDS, 1) {
        for target in &mut targets {
            let settings = match target.name {
                PROPORTIONAL => json!({"cpu": "proportional", "cpu_us": constants}),
                DEDICATED => json!({"cpu": "dedicated", "cpu_cores": [core]}),
                _ => json!({"cpu": "shared"}),
            };
            chain(server, &settings)?;
            let mut before = Target::new(target.name, through());
            before.take_turn(server, CONNECTIONS, scale.pick(SETTLING, QUICK_TURN))?;
            if target.name == SHARED {
                constants = taken(server, before.requests())?;
            }
            target.take_turn(server, CONNECTIONS, scale.pick(TURN, QUICK_TURN))?;
        }
    }
    for target in targets {
        target.conclude(CATEGORY, document);
    }
    no_chain(server);
    Ok(())
}

fn chain(server: &Server, cpu: &Value) -> anyhow::Result<()> {
    let functions: Vec<String> = (0..2).map(|number| function(NATIVE, number)).collect();
    let each = functions
        .iter()
        .map(|function| (function.as_str(), json!({"concurrency": INSTANCES})));
    let mut settings = members(each);
    settings["transport"] = "ring".into();
    for (field, value) in cpu.as_object().into_iter().flatten() {
        settings[field] = value.clone();
    }
    put(server, "measured", &settings)
}

/// What each member has taken for a request, µs.
fn taken(server: &Server, requests: u64) -> anyhow::Result<Value> {
    let chain = server.call("GET", "/chains/measured", &Value::Null)?;
    let members = chain["live"]["members"].as_object();
    let each = members.into_iter().flatten().map(|(name, member)| {
        let us = member["cpu_us"].as_u64().unwrap_or_default();
        (name.clone(), json!((us / requests.max(1)).max(1)))
    });
    Ok(Value::Object(each.collect()))
}
