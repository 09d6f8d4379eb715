//! Translates a policy for the kernel: addresses, ports, limits.

use ipnet::IpNet;

use crate::model::{NetworkPolicy, Ports, Protocol, special_range};
use crate::sandbox::{self, KernelPolicy, NetworkLimits, Prefix, Prefixed, Resolved};

/// Converts the protocol.
pub(super) fn protocol(protocol: Protocol) -> sandbox::Protocol {
    match protocol {
        Protocol::Tcp => sandbox::Protocol::Tcp,
        Protocol::Udp => sandbox::Protocol::Udp,
    }
}

/// The kernel's protocol as policies have it.
pub(super) fn of_kernel(protocol: sandbox::Protocol) -> Protocol {
    match protocol {
        sandbox::Protocol::Tcp => Protocol::Tcp,
        sandbox::Protocol::Udp => Protocol::Udp,
    }
}

/// Ports as the kernel has them.
pub(super) fn ranges(ports: Ports) -> impl Iterator<Item = std::ops::RangeInclusive<u16>> {
    ports.ranges().map(|(first, last)| first..=last)
}

/// Whether an address may be reached at all: it is public, or the administrator has opened it.
pub(super) fn is_reachable(address: std::net::IpAddr, open: &[IpNet]) -> bool {
    let address = address.to_canonical();
    special_range(address).is_none() || open.iter().any(|network| network.contains(&address))
}

/// The policy for the kernel, in no group. `open` are the private networks that the administrator has opened, `resolved` the
/// addresses of names.
pub(super) fn policy(
    policy: &NetworkPolicy,
    open: &[IpNet],
    resolved: Vec<Resolved>,
) -> KernelPolicy {
    let allowed = policy.networks().filter(|(network, ..)| {
        // The administrator may have closed it since the policy was written.
        let (first, last) = (network.network(), network.broadcast());
        let same_range =
            special_range(first).is_some() && special_range(first) == special_range(last);
        !same_range || open.iter().any(|open| open.contains(network))
    });
    let allow = allowed
        .flat_map(|(network, ports, of)| {
            let prefix = Prefix::new(network.addr(), network.prefix_len());
            prefix.into_iter().flat_map(move |prefix| {
                ranges(ports).map(move |ports| Prefixed {
                    prefix,
                    protocol: protocol(of),
                    ports,
                })
            })
        })
        .collect();
    KernelPolicy {
        internet: policy.is_internet(),
        allow,
        dry_run: policy.dry_run,
        limits: NetworkLimits {
            connections: policy.limits.connections,
            new_per_second: policy.limits.connections_per_second,
            bytes_per_second: policy.limits.bytes_per_second,
        },
        resolved,
        ..KernelPolicy::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_told_by_address_and_port() {
        let rules = [
            "internet",
            "198.51.100.0/24",
            "[2001:db8::]/32:53/udp",
            "a.example",
            "10.0.0.0/8:1",
        ];
        let parsed = NetworkPolicy::parse(rules).unwrap();
        let translated = policy(&parsed, &[], Vec::new());
        assert!(translated.internet && !translated.dry_run);
        let summary = |translated: &KernelPolicy| -> Vec<String> {
            let of = |allowed: &Prefixed| {
                let Prefixed {
                    prefix,
                    protocol,
                    ports,
                } = allowed;
                format!(
                    "{}/{} {protocol:?} {ports:?}",
                    prefix.address(),
                    prefix.length()
                )
            };
            translated.allow.iter().map(of).collect()
        };
        let public = [
            "198.51.100.0/24 Tcp 443..=443",
            "198.51.100.0/24 Tcp 80..=80",
            "2001:db8::/32 Udp 53..=53",
        ];
        assert_eq!(summary(&translated), public);
        let open = ["10.0.0.0/8".parse().unwrap()];
        let translated = policy(&parsed, &open, Vec::new());
        assert_eq!(summary(&translated)[3], "10.0.0.0/8 Tcp 1..=1");
        assert!(is_reachable("10.1.2.3".parse().unwrap(), &open));
        assert!(is_reachable("::ffff:10.1.2.3".parse().unwrap(), &open));
        assert!(!is_reachable("10.1.2.3".parse().unwrap(), &[]));
        assert!(is_reachable("8.8.8.8".parse().unwrap(), &[]));
    }
}
