//! Who answers requests, and what was seen of it.

use std::time::Duration;

use anyhow::Context;

use super::by_grpc::ByGrpc;
use super::rates::CPU_TIME;
use crate::load::{Client, Observed, drive_steps};
use crate::processes::family_cpu_time;
use crate::results::Document;
use crate::server::Server;

/// How requests reach functions.
pub(super) enum By {
    /// Requests to Hearth that a client sends one after the other.
    Http(Vec<Vec<u8>>),
    /// Calls of other programs.
    Grpc(ByGrpc),
}

/// One of those that are compared.
pub(super) struct Target {
    /// What the report calls it.
    pub(super) name: &'static str,
    by: By,
    observed: Observed,
    cpu_time: Duration,
    requests: u64,
}

impl Target {
    pub(super) fn new(name: &'static str, by: By) -> Self {
        Self {
            name,
            by,
            observed: Observed::default(),
            cpu_time: Duration::ZERO,
            requests: 0,
        }
    }

    fn spent(&self, server: &Server) -> anyhow::Result<Duration> {
        match &self.by {
            By::Http(_) => family_cpu_time(server.pid()),
            By::Grpc(functions) => functions.cpu_time(),
        }
    }

    /// Requests of all turns.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    pub(super) fn take_turn(
        &mut self,
        server: &Server,
        connections: usize,
        turn: Duration,
    ) -> anyhow::Result<()> {
        let before = self.spent(server)?;
        let observed = match &self.by {
            By::Http(steps) => {
                let steps: Vec<&[u8]> = steps.iter().map(Vec::as_slice).collect();
                drive_steps(Client::Ordinary, server.address, &steps, connections, turn)
            }
            By::Grpc(functions) => functions.drive(connections, turn),
        };
        let observed = observed.with_context(|| self.name)?;
        self.cpu_time += self.spent(server)?.saturating_sub(before);
        // One request at each connection went before.
        self.requests += (observed.samples.len() + connections) as u64;
        self.observed.extend(&observed);
        Ok(())
    }

    pub(super) fn conclude(self, category: &str, document: &mut Document) {
        let name = self.name;
        self.conclude_as(category, name, document);
    }

    /// The same in a row of another name.
    pub(super) fn conclude_as(self, category: &str, row: &str, document: &mut Document) {
        let cpu_us = self.cpu_time.as_secs_f64() * 1e6 / self.requests.max(1) as f64;
        document.figure(category, row, self.observed.rate(), "requests/s");
        document.figure(category, row, cpu_us, CPU_TIME);
        document.add(category, row, self.observed.samples);
    }
}
