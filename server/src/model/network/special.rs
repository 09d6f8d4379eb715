//! Addresses that no function reaches unless the administrator opens them: the host's, those of private networks, of cloud
//! metadata services, and all that lead to such ones in another notation.
//!
//! From IANA's special-purpose address registries (RFC 6890). The ranges for documentation are public to Hearth: they lead
//! nowhere, and examples and tests use them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length))
}

const fn v6(first: u16, second: u16, length: u8) -> IpNet {
    let address = Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0);
    IpNet::V6(Ipv6Net::new_assert(address, length))
}

const fn v6_low(last: u16, length: u8) -> IpNet {
    let address = Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, last);
    IpNet::V6(Ipv6Net::new_assert(address, length))
}

/// The more telling come first.
const SPECIAL: &[(IpNet, &str)] = &[
    (v4(127, 0, 0, 0, 8), "loopback"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(100, 64, 0, 0, 10), "shared by carriers"),
    (v4(169, 254, 0, 0, 16), "link-local, cloud metadata"),
    (v4(168, 63, 129, 16, 32), "cloud metadata"),
    (v4(0, 0, 0, 0, 8), "this network"),
    (v4(192, 0, 0, 0, 24), "reserved"),
    (v4(192, 88, 99, 0, 24), "reserved"),
    (v4(198, 18, 0, 0, 15), "reserved for benchmarks"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
    (v6_low(1, 128), "loopback"),
    (v6_low(0, 128), "unspecified"),
    (v6(0xfc00, 0, 7), "private"),
    (v6(0xfe80, 0, 10), "link-local"),
    (v6(0xff00, 0, 8), "multicast"),
    (v6(0x64, 0xff9b, 32), "IPv4 through NAT64"),
    (v6(0x2002, 0, 16), "IPv4 through 6to4"),
    (v6(0x2001, 0, 32), "IPv4 through Teredo"),
    // All that is not global unicast (2000::/3).
    (v6(0, 0, 3), "reserved"),
    (v6(0x4000, 0, 2), "reserved"),
    (v6(0x8000, 0, 1), "reserved"),
];

/// The special range that an address is in, and what it is. An IPv4 address in the notation of IPv6 is what it stands for.
pub fn special_range(address: IpAddr) -> Option<(IpNet, &'static str)> {
    let address = address.to_canonical();
    SPECIAL
        .iter()
        .find(|(range, _)| range.contains(&address))
        .copied()
}

/// The special range that all of a network is in.
pub(super) fn within_special(network: &IpNet) -> Option<(IpNet, &'static str)> {
    SPECIAL
        .iter()
        .find(|(range, _)| range.contains(network))
        .copied()
}
