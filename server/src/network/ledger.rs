//! What was observed of a function's network since the server started.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::kernel;
use super::labels::Labels;
use super::reached::Reached;
use crate::model::{NamePattern, NetworkPolicy, Ports, Protocol, Rule, Target};
use crate::sandbox::{Connection, Counters};

/// Destinations kept. The one observed least recently makes room.
const DESTINATIONS_MAX: usize = 256;

/// The outcome of a connection or a DNS query.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Refused: no rule allows it.
    Refused,
    /// Refused: a private, local or reserved address, or a protocol other than TCP and UDP.
    Forbidden,
    /// Refused: a limit was reached.
    Limited,
    /// Allowed only because of the dry run: no rule allows it.
    DryRun,
}

/// A destination of a function that was not simply allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestinationView {
    /// The name that was resolved; null if no name resolved to the address.
    #[schema(value_type = Option<String>)]
    pub name: Option<Arc<str>>,
    /// The latest address; null if only the name was looked up.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// The port; null if only the name was looked up.
    pub port: Option<u16>,
    /// The protocol; null if only the name was looked up, or it is neither TCP nor UDP.
    pub protocol: Option<Protocol>,
    /// What happened to it.
    pub outcome: Outcome,
    /// How often. The kernel reports up to fifty packets a second for each sandbox.
    pub count: u64,
    /// When it was last observed.
    #[schema(value_type = String, format = DateTime)]
    pub last_seen: Timestamp,
    /// The entry of `allow` that would allow it; null if none can.
    pub rule: Option<String>,
}

/// Traffic of a function's sandboxes, as the kernel counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkTotals {
    /// Bytes from the function.
    pub bytes_out: u64,
    /// Bytes to the function.
    pub bytes_in: u64,
    /// Connections started, UDP exchanges included.
    pub connections: u64,
    /// Packets refused.
    pub refused_packets: u64,
    /// Names looked up.
    pub names_asked: u64,
    /// Names refused.
    pub names_refused: u64,
}

impl NetworkTotals {
    fn add(&mut self, counters: &Counters) {
        self.bytes_out += counters.bytes_out;
        self.bytes_in += counters.bytes_in;
        self.connections += counters.connections;
        self.refused_packets += counters.refused;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Name(Arc<str>),
    Address(IpAddr),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    place: Place,
    port: Option<u16>,
    protocol: Option<Protocol>,
    outcome: Outcome,
}

#[derive(Debug)]
struct Seen {
    address: Option<IpAddr>,
    count: u64,
    last: Timestamp,
}

/// What was observed; see the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    destinations: HashMap<Key, Seen>,
    pub(super) reached: Reached,
    pub(super) labels: Labels,
    /// Of sandboxes that have ended, and of names.
    totals: NetworkTotals,
    /// Totals of live sandboxes, by their number.
    live: HashMap<u64, Counters>,
}

impl Ledger {
    /// Counts a name that was looked up.
    pub(super) fn asked(&mut self) {
        self.totals.names_asked += 1;
    }

    /// Records a name that was refused.
    pub(super) fn name_refused(&mut self, name: Arc<str>, outcome: Outcome, now: Timestamp) {
        self.totals.names_refused += 1;
        self.labels.refused(&name, None);
        let key = Key {
            place: Place::Name(name),
            port: None,
            protocol: None,
            outcome,
        };
        self.see(key, None, now);
    }

    /// Records a packet that the kernel reported.
    pub(super) fn packet(
        &mut self,
        name: Option<Arc<str>>,
        (address, port, protocol): (IpAddr, u16, Option<Protocol>),
        outcome: Outcome,
        now: Timestamp,
    ) {
        if outcome != Outcome::DryRun {
            let text = address.to_string();
            let place = name.as_deref().unwrap_or(&text);
            self.labels.refused(place, (port != 0).then_some(port));
        }
        let key = Key {
            place: name.map_or(Place::Address(address), Place::Name),
            port: (port != 0).then_some(port),
            protocol,
            outcome,
        };
        self.see(key, Some(address), now);
    }

    /// The kernel reported a connection. `name` is the one that its address was resolved from, if the sandbox is still there.
    pub(super) fn connection(&mut self, name: Option<Arc<str>>, told: &Connection, now: Timestamp) {
        let protocol = kernel::of_kernel(told.protocol);
        let to = (told.address.to_canonical(), told.port, protocol);
        let place = match told.bytes {
            None => self.reached.begun(name, to, now),
            Some(bytes) => self.reached.over(name, to, bytes, now),
        };
        self.labels.connection(&place, told.port, told.bytes);
    }

    fn see(&mut self, key: Key, address: Option<IpAddr>, now: Timestamp) {
        if self.destinations.len() >= DESTINATIONS_MAX && !self.destinations.contains_key(&key) {
            let oldest = self.destinations.iter().min_by_key(|(_, seen)| seen.last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.destinations.remove(&oldest);
            }
        }
        let seen = self.destinations.entry(key).or_insert(Seen {
            address,
            count: 0,
            last: now,
        });
        seen.count += 1;
        seen.last = now;
        seen.address = address;
    }

    /// Takes over a sandbox's counters. Returns whether they have changed.
    pub(super) fn count(&mut self, sandbox: u64, counters: Counters) -> bool {
        self.live.insert(sandbox, counters) != Some(counters)
    }

    /// Adds an ended sandbox's counters to the totals.
    pub(super) fn ended(&mut self, sandbox: u64) {
        if let Some(counters) = self.live.remove(&sandbox) {
            self.totals.add(&counters);
        }
    }

    /// All traffic.
    pub(super) fn totals(&self) -> NetworkTotals {
        let mut totals = self.totals;
        self.live.values().for_each(|counters| totals.add(counters));
        totals
    }

    /// What was not simply allowed, latest first.
    pub(super) fn destinations(&self) -> Vec<DestinationView> {
        let mut all: Vec<_> = self
            .destinations
            .iter()
            .map(|(key, seen)| DestinationView {
                name: key.name(),
                address: seen.address,
                port: key.port,
                protocol: key.protocol,
                outcome: key.outcome,
                count: seen.count,
                last_seen: seen.last,
                rule: key.rule(seen.address).map(|rule| rule.to_string()),
            })
            .collect();
        all.sort_by(|a, b| {
            b.last_seen
                .cmp(&a.last_seen)
                .then_with(|| a.rule.cmp(&b.rule))
        });
        all
    }

    /// Forgets a destination that the policy allows now.
    pub(super) fn forget_allowed(&mut self, policy: &NetworkPolicy) {
        self.destinations.retain(|key, seen| {
            let Some(rule) = key.rule(seen.address) else {
                return true;
            };
            !policy.rules.contains(&rule)
        });
    }

    /// Entries that would allow what the dry run has recorded.
    pub(super) fn suggestions(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = self
            .destinations
            .iter()
            .filter(|(key, _)| key.outcome == Outcome::DryRun && key.port.is_some())
            .filter_map(|(key, seen)| key.rule(seen.address))
            .collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

impl Key {
    fn name(&self) -> Option<Arc<str>> {
        match &self.place {
            Place::Name(name) => Some(name.clone()),
            Place::Address(_) => None,
        }
    }

    fn rule(&self, address: Option<IpAddr>) -> Option<Rule> {
        if matches!(self.outcome, Outcome::Forbidden | Outcome::Limited) {
            return None;
        }
        let name = self.name();
        match (self.port, self.protocol) {
            (Some(port), Some(protocol)) => {
                Rule::for_destination(name.as_deref(), address?, port, protocol)
            }
            // Only the name is known.
            (None, None) => {
                let pattern: Rule = name?.parse().ok()?;
                let is_name = |pattern: &NamePattern| pattern.as_str() == name_of(self);
                match &pattern {
                    Rule::Allow {
                        target: Target::Name(name),
                        ports: Ports::Web,
                        ..
                    } if is_name(name) => Some(pattern),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn name_of(key: &Key) -> &str {
    match &key.place {
        Place::Name(name) => name,
        Place::Address(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn rules(ledger: &Ledger) -> Vec<Option<String>> {
        let mut all: Vec<_> = ledger
            .destinations()
            .into_iter()
            .map(|seen| seen.rule)
            .collect();
        all.sort();
        all
    }

    #[test]
    fn each_destination_has_the_rule_that_would_allow_it() {
        let address: IpAddr = "203.0.113.9".parse().unwrap();
        let mut ledger = Ledger::default();
        ledger.name_refused("api.example.com".into(), Outcome::Refused, NOW);
        let tcp = Some(Protocol::Tcp);
        ledger.packet(
            Some("db.example.com".into()),
            (address, 5432, tcp),
            Outcome::Refused,
            NOW,
        );
        ledger.packet(
            None,
            (address, 53, Some(Protocol::Udp)),
            Outcome::Refused,
            NOW,
        );
        ledger.packet(
            None,
            (address, 53, Some(Protocol::Udp)),
            Outcome::Refused,
            NOW,
        );
        ledger.packet(
            None,
            ([10, 0, 0, 1].into(), 22, tcp),
            Outcome::Forbidden,
            NOW,
        );
        ledger.packet(None, (address, 0, None), Outcome::Forbidden, NOW);
        let expected = [
            "203.0.113.9:53/udp",
            "api.example.com",
            "db.example.com:5432",
        ];
        let expected = [None, None]
            .into_iter()
            .chain(expected.map(|rule| Some(rule.to_owned())));
        assert_eq!(rules(&ledger), expected.collect::<Vec<_>>());
        let twice = ledger
            .destinations()
            .into_iter()
            .find(|seen| seen.count == 2);
        assert_eq!(twice.and_then(|seen| seen.port), Some(53));
        let policy = NetworkPolicy::parse(["api.example.com"]).unwrap();
        ledger.forget_allowed(&policy);
        assert!(!rules(&ledger).contains(&Some("api.example.com".into())));
    }

    #[test]
    fn a_dry_run_writes_the_policy() {
        let address: IpAddr = "2001:db8::9".parse().unwrap();
        let mut ledger = Ledger::default();
        let at = |port| (address, port, Some(Protocol::Tcp));
        ledger.packet(Some("b.example".into()), at(443), Outcome::DryRun, NOW);
        ledger.packet(Some("a.example".into()), at(443), Outcome::DryRun, NOW);
        ledger.packet(Some("c.example".into()), at(443), Outcome::Refused, NOW);
        ledger.packet(None, at(25), Outcome::DryRun, NOW);
        let written: Vec<_> = ledger
            .suggestions()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            written,
            ["a.example:443", "b.example:443", "[2001:db8::9]:25"]
        );
    }

    #[test]
    fn traffic_of_ended_sandboxes_still_counts() {
        let mut ledger = Ledger::default();
        let counters = |bytes| Counters {
            bytes_out: bytes,
            connections: 1,
            ..Counters::default()
        };
        assert!(ledger.count(1, counters(5)));
        assert!(!ledger.count(1, counters(5)));
        assert!(ledger.count(1, counters(7)));
        ledger.count(2, counters(10));
        ledger.ended(1);
        ledger.ended(3);
        let totals = ledger.totals();
        assert_eq!((totals.bytes_out, totals.connections), (17, 2));
    }

    #[test]
    fn it_has_a_bounded_size() {
        let mut ledger = Ledger::default();
        for number in 0..2 * DESTINATIONS_MAX as i64 {
            let now = Timestamp::from_second(number).unwrap();
            ledger.name_refused(format!("n{number}.example").into(), Outcome::Refused, now);
        }
        let all = ledger.destinations();
        assert_eq!(all.len(), DESTINATIONS_MAX);
        assert_eq!(all[0].name.as_deref(), Some("n511.example"));
        assert_eq!(ledger.totals().names_refused, 512);
    }
}
