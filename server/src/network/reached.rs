//! What a function has reached: connections and their bytes by destination, as the kernel tells of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Protocol;

/// Destinations that are kept: the one that was seen least recently makes room.
const REACHED_MAX: usize = 256;

/// A destination that a function has reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReachedView {
    /// The name that was asked for; null where the address was never told for a name.
    #[schema(value_type = Option<String>)]
    pub name: Option<Arc<str>>,
    /// The address seen last.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// Connections, and UDP exchanges.
    pub connections: u64,
    /// Bytes from the function, by connections that are over.
    pub bytes_out: u64,
    /// Bytes to the function, by connections that are over.
    pub bytes_in: u64,
    /// When a connection began or ended last.
    #[schema(value_type = String, format = DateTime)]
    pub last_seen: Timestamp,
}

/// Where a connection goes.
type To = (IpAddr, u16, Protocol);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The name, or the address where there is none.
    place: Arc<str>,
    port: u16,
    protocol: Protocol,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reached {
    all: HashMap<Key, ReachedView>,
    /// The name, or the address, by which a destination was kept last.
    places: HashMap<To, Arc<str>>,
}

impl Reached {
    /// A connection has begun. Returns the name, or the address, by which it is kept.
    pub(super) fn begun(&mut self, name: Option<Arc<str>>, to: To, now: Timestamp) -> Arc<str> {
        let place = name.clone().unwrap_or_else(|| to.0.to_string().into());
        self.see(place.clone(), name, to, now).connections += 1;
        place
    }

    /// One is over. It is kept by the name by which one to the same address has begun, if any has.
    pub(super) fn over(
        &mut self,
        name: Option<Arc<str>>,
        to: To,
        (out, back): (u64, u64),
        now: Timestamp,
    ) -> Arc<str> {
        let known = self.places.get(&to).cloned();
        let address = || to.0.to_string().into();
        let place = known.or_else(|| name.clone()).unwrap_or_else(address);
        let seen = self.see(place.clone(), name, to, now);
        seen.bytes_out += out;
        seen.bytes_in += back;
        place
    }

    fn see(
        &mut self,
        place: Arc<str>,
        name: Option<Arc<str>>,
        to: To,
        now: Timestamp,
    ) -> &mut ReachedView {
        let (address, port, protocol) = to;
        let key = Key {
            place: place.clone(),
            port,
            protocol,
        };
        if self.all.len() >= REACHED_MAX && !self.all.contains_key(&key) {
            let oldest = self.all.iter().min_by_key(|(_, seen)| seen.last_seen);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.all.remove(&oldest);
                self.places.retain(|(_, port, protocol), place| {
                    (&*place, *port, *protocol) != (&oldest.place, oldest.port, oldest.protocol)
                });
            }
        }
        // A name may have very many addresses.
        if self.places.len() >= 4 * REACHED_MAX {
            self.places.clear();
        }
        self.places.insert(to, place);
        let seen = self.all.entry(key).or_insert(ReachedView {
            name,
            address,
            port,
            protocol,
            connections: 0,
            bytes_out: 0,
            bytes_in: 0,
            last_seen: now,
        });
        (seen.address, seen.last_seen) = (address, now);
        seen
    }

    /// All of them, the latest first.
    pub(super) fn views(&self) -> Vec<ReachedView> {
        let mut all: Vec<_> = self.all.values().cloned().collect();
        all.sort_by(|a, b| {
            let by_place = || (&a.name, a.address, a.port).cmp(&(&b.name, b.address, b.port));
            b.last_seen.cmp(&a.last_seen).then_with(by_place)
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn to(last: u8) -> To {
        ([192, 0, 2, last].into(), 443, Protocol::Tcp)
    }

    #[test]
    fn connections_and_bytes_are_those_of_the_name() {
        let mut reached = Reached::default();
        let name = || Some(Arc::<str>::from("api.example.com"));
        reached.begun(name(), to(1), NOW);
        reached.begun(name(), to(2), NOW);
        reached.begun(None, to(3), NOW);
        // The sandbox is gone by now, and nobody knows its names.
        assert_eq!(
            &*reached.over(None, to(1), (10, 20), NOW),
            "api.example.com"
        );
        reached.over(name(), to(2), (1, 2), NOW);
        reached.over(None, to(3), (5, 6), NOW);
        let all: Vec<_> = reached
            .views()
            .into_iter()
            .map(|one| (one.name, one.connections, one.bytes_out, one.bytes_in))
            .collect();
        assert_eq!(all, [(None, 1, 5, 6), (name(), 2, 11, 22)]);
    }

    #[test]
    fn it_has_a_bounded_size() {
        let mut reached = Reached::default();
        for number in 0..3000_u32 {
            let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into();
            let at = NOW + std::time::Duration::from_secs(number.into());
            reached.begun(None, (address, 443, Protocol::Tcp), at);
        }
        assert_eq!(reached.all.len(), REACHED_MAX);
        assert!(reached.places.len() <= 4 * REACHED_MAX);
        assert_eq!(reached.views()[0].address.to_string(), "10.0.11.183");
    }
}
