//! What is counted of the whole node, and of sources.

use std::net::IpAddr;
use std::time::Duration;

use hearth_ebpf::clock;
use hearth_ebpf::packet::Outcome;
use hearth_ebpf::records::{Node, Source};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::datagrams::Lost;
use super::{Dropped, Ingress, IngressMap, PortTraffic};
use crate::model::PortOwner;

/// Sources that are shown.
const SHOWN: usize = 50;
/// A source is limited now if it was within this time.
const NOW: Duration = Duration::from_secs(10);
/// The shortest time over which a rate is told: below, one packet more or less is seen as many.
const LEAST_TIME: Duration = Duration::from_secs(1);
/// The longest: older counters say nothing of now.
const MOST_TIME: Duration = Duration::from_secs(30);

/// All packets at the node's interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeTraffic {
    /// All packets.
    pub packets: u64,
    /// Bytes of the frames.
    pub bytes: u64,
    /// Packets for functions and chains, dropped ones included.
    pub for_functions: u64,
    /// TCP and UDP packets for others, passed.
    pub for_others: u64,
    /// Neither IPv4 nor IPv6, passed.
    pub not_ip: u64,
    /// IP, but neither TCP nor UDP, passed.
    pub not_tcp_udp: u64,
    /// Later fragments, which have no ports, passed.
    pub fragments: u64,
    /// Malformed: cut off, contradicting themselves, with too many extension headers, or with headers in several buffers;
    /// passed to the kernel's stack, which judges them.
    pub malformed: u64,
    /// Datagrams for AF_XDP whose queue has no socket, or that are larger than its frames: the port's socket got them.
    pub not_by_af_xdp: u64,
    /// Packets whose source had no room in the map of sources: not limited by source.
    pub untracked: u64,
    /// Datagrams that AF_XDP took and that were lost because their function did not keep up.
    pub lost_waiting: u64,
    /// The same because their checksum is wrong.
    pub lost_checksum: u64,
    /// The same because the socket was full.
    pub lost_socket: u64,
}

impl NodeTraffic {
    fn new(node: &Node, lost: Lost) -> Self {
        let outcome = |outcome: Outcome| node.outcomes[outcome as usize];
        Self {
            packets: node.packets(),
            bytes: node.bytes,
            for_functions: node.ours,
            for_others: node.not_ours(),
            not_ip: outcome(Outcome::NotIp),
            not_tcp_udp: outcome(Outcome::NotTcpUdp),
            fragments: outcome(Outcome::Fragment),
            malformed: outcome(Outcome::Truncated)
                + outcome(Outcome::BadHeader)
                + outcome(Outcome::TooDeep)
                + outcome(Outcome::Split),
            not_by_af_xdp: node.no_socket,
            untracked: node.untracked,
            lost_waiting: lost.waiting,
            lost_checksum: lost.checksum,
            lost_socket: lost.socket,
        }
    }
}

/// What a source sent to the ports of a function or chain that starts work: TCP connections and datagrams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IngressSource {
    /// An IPv4 address, or the first of an IPv6 network of 64 bits.
    #[schema(value_type = String, example = "192.0.2.7")]
    pub source: IpAddr,
    /// The function; null if it is a chain.
    pub function: Option<String>,
    /// The chain; null if it is a function.
    pub chain: Option<String>,
    /// Let through since the source is known.
    pub admitted: u64,
    /// Dropped by the limit of each source since then.
    pub refused: u64,
    /// Both in a second, lately.
    pub per_second: f64,
    /// Whether some was dropped in the last 10 s.
    pub limited: bool,
}

/// Counters of sources at a time, for rates.
#[derive(Default)]
pub(super) struct Samples(Mutex<(Sample, Sample)>);

#[derive(Default, Clone)]
struct Sample {
    /// On the kernel's clock; 0 is never.
    at: u64,
    sources: std::sync::Arc<[(u32, IpAddr, Source)]>,
}

impl Samples {
    /// The last sample, and one before it that is old enough to tell rates from; takes what is needed with `take`. Where
    /// nothing was asked for a while, there is none before it, and rates are 0.
    fn both(&self, take: impl FnOnce() -> Vec<(u32, IpAddr, Source)>) -> (Sample, Option<Sample>) {
        let mut both = self.0.lock();
        let now = clock::now();
        let age = |sample: &Sample| Duration::from_nanos(now.saturating_sub(sample.at));
        if age(&both.1) >= LEAST_TIME {
            let new = Sample {
                at: now,
                sources: take().into(),
            };
            both.0 = std::mem::replace(&mut both.1, new);
        }
        let (before, last) = &*both;
        let is_recent = before.at != 0 && age(before) <= MOST_TIME;
        (last.clone(), is_recent.then(|| before.clone()))
    }
}

impl Ingress {
    /// All packets at the node's interfaces; none where the ingress is attached to none.
    pub fn node_traffic(&self) -> Option<NodeTraffic> {
        if self.0.report.interfaces.is_empty() {
            return None;
        }
        let node = self.0.kernel.as_ref()?.lock().maps.node().ok()?;
        let lost = self.0.datagrams.as_ref().map(|all| all.lost());
        Some(NodeTraffic::new(&node, lost.unwrap_or_default()))
    }

    /// What was dropped for all functions and chains, those included that have no ports any more; none where nothing is
    /// counted.
    pub fn all_dropped(&self) -> Option<Dropped> {
        if self.0.report.interfaces.is_empty() {
            return None;
        }
        let kernel = self.0.kernel.as_ref()?.lock();
        let numbers = kernel.numbers.all().map(|(_, number)| number);
        let mut all = kernel.dropped_before;
        for number in numbers.chain(kernel.numbers.left()) {
            if let Ok([received, _]) = kernel.maps.functions.traffic(number) {
                all += Dropped::from(&received);
            }
        }
        Some(all)
    }

    /// What each function and chain with ports received, what of it was dropped, and what it sent; empty where nothing is
    /// counted.
    pub fn all_traffic(&self) -> Vec<(PortOwner, PortTraffic, Dropped, PortTraffic)> {
        let Some(kernel) = &self.0.kernel else {
            return Vec::new();
        };
        let owners: Vec<PortOwner> = kernel
            .lock()
            .numbers
            .all()
            .map(|(owner, _)| owner.clone())
            .collect();
        let with_traffic = |owner: PortOwner| {
            let (received, dropped, sent) = self.traffic(&owner)?;
            Some((owner, received, dropped, sent))
        };
        owners.into_iter().filter_map(with_traffic).collect()
    }

    /// Sources that send most, to all or to this owner, with those first that are limited now. Reads all of them, 65,536 at
    /// most, if nobody has in the last second.
    pub fn sources(&self, of: Option<&PortOwner>) -> Vec<IngressSource> {
        if self.0.report.interfaces.is_empty() {
            return Vec::new();
        }
        let Some(kernel) = &self.0.kernel else {
            return Vec::new();
        };
        let (sources, owners) = {
            let kernel = kernel.lock();
            let owners = kernel.numbers.all();
            let owners: std::collections::HashMap<u32, PortOwner> = owners
                .map(|(owner, number)| (number, owner.clone()))
                .collect();
            (kernel.maps.sources.clone(), owners)
        };
        // Not under the lock of the maps, which a change of ports waits for.
        let (last, before) = self.0.samples.both(|| sources.all());
        let seconds = before.as_ref().map_or(0.0, |before| {
            Duration::from_nanos(last.at.saturating_sub(before.at)).as_secs_f64()
        });
        let earlier: std::collections::HashMap<(u32, IpAddr), u64> = before
            .iter()
            .flat_map(|before| before.sources.iter())
            .map(|(number, source, bucket)| ((*number, *source), bucket.admitted + bucket.refused))
            .collect();
        let now = clock::now();
        let mut shown: Vec<IngressSource> = last
            .sources
            .iter()
            .filter_map(|(number, source, bucket)| {
                let owner = owners.get(number)?;
                if of.is_some_and(|of| of != owner) {
                    return None;
                }
                let all = bucket.admitted + bucket.refused;
                let before = earlier
                    .get(&(*number, *source))
                    .copied()
                    .unwrap_or_default();
                let per_second = match seconds > 0.0 {
                    // Fewer than before: it was forgotten meanwhile.
                    true => all.checked_sub(before).unwrap_or(all) as f64 / seconds,
                    false => 0.0,
                };
                let age = Duration::from_nanos(now.saturating_sub(bucket.refused_at));
                let (function, chain) = match owner {
                    PortOwner::Function(name) => (Some(name.to_string()), None),
                    PortOwner::Chain(name) => (None, Some(name.to_string())),
                };
                Some(IngressSource {
                    source: *source,
                    function,
                    chain,
                    admitted: bucket.admitted,
                    refused: bucket.refused,
                    per_second,
                    limited: bucket.refused_at != 0 && age <= NOW,
                })
            })
            .collect();
        shown.sort_by(|one, other| {
            (other.limited, other.per_second, other.admitted)
                .partial_cmp(&(one.limited, one.per_second, one.admitted))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        shown.truncate(SHOWN);
        shown
    }

    /// The maps, and how many of their entries are in use where that says something.
    pub fn maps(&self) -> Vec<IngressMap> {
        let mut maps = self.0.report.maps.clone();
        let Some(kernel) = &self.0.kernel else {
            return maps;
        };
        let (sources, functions, ports, addresses, lists) = {
            let kernel = kernel.lock();
            let ports: usize = kernel.numbers.ports();
            let functions = kernel.numbers.all().count();
            let lists = kernel.maps.lists.all();
            (
                kernel.maps.sources.clone(),
                functions,
                ports,
                kernel.addresses.len(),
                lists,
            )
        };
        let of_family = |ipv4: bool| {
            let lists = lists.iter();
            lists
                .filter(|(address, ..)| address.is_ipv4() == ipv4)
                .count()
        };
        let of_sources = sources.count();
        for map in &mut maps {
            let used = match map.name.as_str() {
                "ports" => ports,
                "functions" | "totals" => functions,
                "traffic" => 2 * functions,
                "sources" => of_sources,
                "listed4" => of_family(true),
                "listed6" => of_family(false),
                "addresses" => addresses,
                _ => continue,
            };
            map.used = u32::try_from(used).ok();
        }
        maps
    }
}
