//! Addresses that no function may reach, whatever its policy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::protocol::Prefix;

const fn four(a: u8, b: u8, c: u8, d: u8, length: u8) -> (Ipv4Addr, u8) {
    (Ipv4Addr::new(a, b, c, d), length)
}

const fn six(first: u16, second: u16, length: u8) -> (Ipv6Addr, u8) {
    (Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), length)
}

/// IPv4, without the documentation ranges, where nobody is.
const FOUR: &[(Ipv4Addr, u8)] = &[
    four(0, 0, 0, 0, 8),        // this host
    four(10, 0, 0, 0, 8),       // private
    four(100, 64, 0, 0, 10),    // behind a provider's NAT; metadata in one cloud
    four(127, 0, 0, 0, 8),      // loopback
    four(168, 63, 129, 16, 32), // metadata in one cloud, although the address looks public
    four(169, 254, 0, 0, 16),   // link-local; metadata in most clouds
    four(172, 16, 0, 0, 12),    // private
    four(192, 0, 0, 0, 24),     // protocol assignments; metadata in one cloud
    four(192, 88, 99, 0, 24),   // 6to4 relays
    four(192, 168, 0, 0, 16),   // private
    four(198, 18, 0, 0, 15),    // measuring; our own by default
    four(224, 0, 0, 0, 3),      // multicast, reserved, broadcast
];

/// IPv6: all but 2000::/3, and the parts of it that lead to IPv4 addresses.
const SIX: &[(Ipv6Addr, u8)] = &[
    six(0, 0, 3),       // loopback, addresses of IPv4, NAT64
    six(0x2001, 0, 32), // Teredo
    six(0x2002, 0, 16), // 6to4
    six(0x4000, 0, 2),  // reserved
    six(0x8000, 0, 1),  // reserved, unique local, link-local, multicast
];

/// All of them.
pub(crate) fn forbidden() -> Vec<Prefix> {
    let four = FOUR.iter().map(|(ip, length)| (IpAddr::V4(*ip), *length));
    let six = SIX.iter().map(|(ip, length)| (IpAddr::V6(*ip), *length));
    four.chain(six)
        .filter_map(|(ip, length)| Prefix::new(ip, length))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_forbidden(address: &str) -> bool {
        let address = address.parse().unwrap();
        forbidden().iter().any(|prefix| prefix.contains(address))
    }

    #[test]
    fn what_is_not_public_is_forbidden() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.100.100.200",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.31.0.1",
            "192.0.0.192",
            "192.168.1.1",
            "198.19.0.2",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2002:7f00:1::",
            "2001::1",
            "::127.0.0.1",
            "4000::",
            "100::1",
        ] {
            assert!(is_forbidden(address), "{address}");
        }
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:db8::1",
            "2606:4700::1111",
            "3fff::1",
        ] {
            assert!(!is_forbidden(address), "{address}");
        }
    }
}
