//! What a request costs beside time, as SPRIGHT's Table II has it: copies, context switches, interrupts, passes through protocol code,
//! and (de)serialisations, counted by programs in the kernel while requests go one by one. The client is not on the path: its own
//! switches, copies and parsing are not counted, and so neither are those of a front end that calls functions one after the other.

mod probes;
mod rows;

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use hearth_ebpf::audit::{Audit, Counts, Kind, Part};
use serde_json::{Value, json};

use probes::{IN_MEMBERS, IN_SERVER, Wanted};
use rows::{COPIES, LARGE, SMALL};
pub use rows::{ROWS, is_within};

use super::{BY_HTTP, RING, has_sk_msg, members, put};
use crate::client::{Connection, request};
use crate::processes::{Workers, family, servers};
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Server, event};

/// Requests of each size that are counted.
const REQUESTS: u64 = 2000;
const QUICK_REQUESTS: u64 = 50;
/// Requests before: then all instances and pools are there.
const WARM_UP: u64 = 100;
const QUICK_WARM_UP: u64 = 10;

const SK_MSG: &str = "chain, sk_msg";
/// The ways that are audited: the table's columns.
pub const WAYS: [&str; 3] = [RING, SK_MSG, BY_HTTP];

/// The functions of the chain.
const FUNCTIONS: [&str; 2] = ["first", "second"];

/// Figures of one request.
pub fn audit(way: &str) -> String {
    format!("one request through two native functions, 1 KB, 1 connection: {way}")
}

pub(super) fn run(relay: &[u8], scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    for function in FUNCTIONS {
        server.deploy_program(function, relay, &[])?;
    }
    let has_sk_msg = has_sk_msg(&server)?;
    for way in WAYS {
        let transport = match way {
            SK_MSG if !has_sk_msg => continue,
            SK_MSG => "sk_msg",
            _ => "ring",
        };
        let paths: Vec<String> = if way == BY_HTTP {
            FUNCTIONS.map(|function| format!("/fn/{function}")).into()
        } else {
            let mut settings = members(FUNCTIONS.map(|function| (function, json!({}))));
            settings["transport"] = transport.into();
            put(&server, "audited", &settings)?;
            vec!["/chain/audited/r".to_owned()]
        };
        let audit = match Audit::load() {
            Ok(audit) => audit,
            Err(error) => {
                document.skip("the audit", error.to_string());
                return Ok(());
            }
        };
        let turn = Turn {
            server: &server,
            requests: scale.pick(REQUESTS, QUICK_REQUESTS),
            warm_up: scale.pick(WARM_UP, QUICK_WARM_UP),
            sizes: [SMALL, LARGE].map(|bytes| paths.iter().map(|path| post(path, bytes)).collect()),
        };
        let seen = turn.take(audit).with_context(|| way.to_owned())?;
        seen.conclude(way, document);
        if way != BY_HTTP {
            server.call("DELETE", "/chains/audited", &Value::Null)?;
        }
    }
    Ok(())
}

fn post(path: &str, bytes: usize) -> Vec<u8> {
    request("POST", path, &event(bytes))
}

/// Requests to be counted.
struct Turn<'a> {
    server: &'a Server,
    requests: u64,
    warm_up: u64,
    /// What a client sends one after the other, with small and with large payloads.
    sizes: [Vec<Vec<u8>>; 2],
}

/// What cannot be counted, of one part or of all, and why.
type Missing = (Kind, Option<Part>, String);

/// What was counted: with small and large payloads, without probes in user space and with them. Those slow down what they count.
struct Seen {
    requests: u64,
    in_kernel: [Counts; 2],
    in_user_space: [Counts; 2],
    missing: Vec<Missing>,
}

impl Turn<'_> {
    fn take(&self, mut audit: Audit) -> anyhow::Result<Seen> {
        let mut connection = Connection::open(self.server.address)?;
        for steps in &self.sizes {
            send(&mut connection, steps, self.warm_up)?;
        }
        audit.payload(COPIES)?;
        let instances = self.instances();
        for process in family(self.server.pid()) {
            let part = if instances.contains(&process.pid) {
                Part::Members
            } else {
                Part::Server
            };
            audit.follow(process.pid, part)?;
        }
        let missing = audit.missing().iter();
        let mut missing: Vec<_> = missing
            .map(|(kind, why)| (*kind, None, why.clone()))
            .collect();
        let in_kernel = self.count(&audit, &mut connection)?;
        let servers: BTreeSet<u32> = servers(self.server.pid())
            .into_iter()
            .map(|process| process.pid)
            .collect();
        probe(&mut audit, &servers, Part::Server, &IN_SERVER, &mut missing);
        probe(
            &mut audit,
            &instances,
            Part::Members,
            &IN_MEMBERS,
            &mut missing,
        );
        let in_user_space = self.count(&audit, &mut connection)?;
        ensure!(
            self.instances() == instances,
            "instances came or went while requests were counted"
        );
        Ok(Seen {
            requests: self.requests,
            in_kernel,
            in_user_space,
            missing,
        })
    }

    fn instances(&self) -> BTreeSet<u32> {
        let instances = Workers::of(self.server.pid()).instances;
        instances.into_iter().map(|process| process.pid).collect()
    }

    fn count(&self, audit: &Audit, connection: &mut Connection) -> anyhow::Result<[Counts; 2]> {
        let mut count = |steps| {
            let before = audit.counts()?;
            send(connection, steps, self.requests)?;
            anyhow::Ok(audit.counts()?.since(&before))
        };
        let [small, large] = &self.sizes;
        Ok([count(small)?, count(large)?])
    }
}

fn send(connection: &mut Connection, steps: &[Vec<u8>], times: u64) -> anyhow::Result<()> {
    for _ in 0..times {
        for step in steps {
            connection.exchange(step)?.good()?;
        }
    }
    Ok(())
}

/// Puts probes into processes. What cannot be probed is noted as missing.
fn probe(
    audit: &mut Audit,
    processes: &BTreeSet<u32>,
    part: Part,
    wanted: &[Wanted],
    missing: &mut Vec<Missing>,
) {
    let mut found = vec![0; wanted.len()];
    for process in processes {
        if let Err(error) = audit.probe_copies(*process) {
            missing.push((Kind::PayloadsCopied, Some(part), error.to_string()));
        }
        match audit.probe_calls(*process, wanted) {
            Ok(counts) => found
                .iter_mut()
                .zip(counts)
                .for_each(|(all, one)| *all += one),
            Err(error) => {
                let all = wanted.iter();
                missing.extend(all.map(|(_, kind)| (*kind, Some(part), error.to_string())));
            }
        }
    }
    for ((names, kind), found) in wanted.iter().zip(found) {
        if found == 0 {
            let why = format!("no function's symbol has {}", names.join(" and "));
            missing.push((*kind, Some(part), why));
        }
    }
}

impl Seen {
    fn conclude(&self, way: &str, document: &mut Document) {
        for row in &ROWS {
            let is_missing = |(kind, part, _): &&Missing| row.needs(*kind, *part);
            if let Some((_, _, why)) = self.missing.iter().find(is_missing) {
                document.skip(&format!("{}: {}", audit(way), row.name), why.clone());
                continue;
            }
            let [small, large] = if row.needs_probes() {
                &self.in_user_space
            } else {
                &self.in_kernel
            };
            let value = row.value(small, large, self.requests);
            document.figure(&audit(way), row.name, value, "");
        }
    }
}
