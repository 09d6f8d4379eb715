//! The names that a sandbox resolved, by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::kernel;
use crate::model::NetworkPolicy;
use crate::sandbox::Resolved;

/// Pairs of an address and a name that are kept. Expired ones are dropped first; connections to them are closed at the
/// policy's next change.
const PERMITS_MAX: usize = 1024;
/// Most addresses that the kernel gets with a policy.
const RESOLVED_MAX: usize = 4096;

/// See the module. The caller provides the time.
#[derive(Debug, Default)]
pub(super) struct Permits(HashMap<(IpAddr, Arc<str>), Instant>);

impl Permits {
    /// Records that the name resolves to this address until then.
    pub(super) fn note(&mut self, address: IpAddr, name: &Arc<str>, until: Instant) {
        let key = (address, name.clone());
        if self.0.len() >= PERMITS_MAX && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, until)| **until);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.0.remove(&oldest);
            }
        }
        let known = self.0.entry(key).or_insert(until);
        *known = (*known).max(until);
    }

    /// The name that last resolved to this address.
    pub(super) fn name_of(&self, address: IpAddr) -> Option<Arc<str>> {
        self.0
            .iter()
            .filter(|((of, _), _)| *of == address)
            .max_by_key(|(_, until)| **until)
            .map(|((_, name), _)| name.clone())
    }

    /// Addresses that a policy allows by name, expired ones included, so that connections to them survive.
    pub(super) fn resolved(&self, policy: &NetworkPolicy, now: Instant) -> Vec<Resolved> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, until)| std::cmp::Reverse(**until));
        all.into_iter()
            .flat_map(|((address, name), until)| {
                let ttl = until.saturating_duration_since(now);
                policy.of_name(name).flat_map(move |(ports, protocol)| {
                    kernel::ranges(ports).map(move |ports| Resolved {
                        address: *address,
                        protocol: kernel::protocol(protocol),
                        ports,
                        ttl: ttl.max(Duration::ZERO),
                    })
                })
            })
            .take(RESOLVED_MAX)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_takes_over_the_addresses_of_its_names() {
        let now = Instant::now();
        let mut permits = Permits::default();
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let soon = now + Duration::from_secs(30);
        permits.note(address(1), &"a.example".into(), soon);
        permits.note(address(1), &"a.example".into(), now);
        permits.note(address(2), &"b.example".into(), soon);
        permits.note(
            address(3),
            &"a.example".into(),
            now - Duration::from_secs(1),
        );
        let policy = NetworkPolicy::parse(["a.example:443", "b.example:53/udp"]).unwrap();
        let of = |policy: &NetworkPolicy| -> Vec<(IpAddr, u16, u64)> {
            let mut all: Vec<_> = permits
                .resolved(policy, now)
                .iter()
                .map(|one| (one.address, *one.ports.start(), one.ttl.as_secs()))
                .collect();
            all.sort();
            all
        };
        assert_eq!(
            of(&policy),
            [
                (address(1), 443, 30),
                (address(2), 53, 30),
                (address(3), 443, 0)
            ]
        );
        let narrower = NetworkPolicy::parse(["b.example"]).unwrap();
        assert_eq!(of(&narrower), [(address(2), 80, 30), (address(2), 443, 30)]);
        assert_eq!(permits.name_of(address(2)).as_deref(), Some("b.example"));
        assert_eq!(permits.name_of(address(9)), None);
    }

    #[test]
    fn it_has_a_bounded_size() {
        let now = Instant::now();
        let mut permits = Permits::default();
        for number in 0..2 * PERMITS_MAX as u32 {
            let until = now + Duration::from_secs(number.into());
            permits.note(
                IpAddr::from(number.to_be_bytes()),
                &"a.example".into(),
                until,
            );
        }
        assert_eq!(permits.0.len(), PERMITS_MAX);
        assert_eq!(permits.name_of([0, 0, 0, 0].into()), None);
        assert!(permits.name_of([0, 0, 7, 255].into()).is_some());
    }
}
