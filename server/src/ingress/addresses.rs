//! The host's own addresses: what goes to others is not for functions, and on a host that routes it passes the same interfaces.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// How often they are looked at. Until then, what goes to a new one takes the kernel's stack, uncounted.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// The kernel's tables of its own addresses, of the network namespace of who reads them.
const TABLE4: &str = "/proc/self/net/fib_trie";
const TABLE6: &str = "/proc/self/net/if_inet6";

/// At which of them functions' ports are: `listen` itself, or all of its family, or, for `::`, of both.
pub(super) fn of_host(listen: IpAddr) -> Vec<IpAddr> {
    if !listen.is_unspecified() {
        return vec![listen];
    }
    // A host without IPv6 has no such table.
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    let mut all: Vec<IpAddr> = ipv4(&text(TABLE4)).map(IpAddr::V4).collect();
    if listen.is_ipv6() {
        all.extend(ipv6(&text(TABLE6)).map(IpAddr::V6));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// A line `|-- 192.0.2.7` is followed by what is known of this address, `/32 host LOCAL` where it is the host's.
fn ipv4(table: &str) -> impl Iterator<Item = Ipv4Addr> {
    let mut address = None;
    table.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(text) = line.strip_prefix("|-- ") {
            address = text.trim_end().parse().ok();
            return None;
        }
        address.filter(|_| line.trim_end() == "/32 host LOCAL")
    })
}

/// A line begins with the address, in 32 hexadecimal digits.
fn ipv6(table: &str) -> impl Iterator<Item = Ipv6Addr> {
    table.lines().filter_map(|line| {
        let digits = line.split(' ').next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let table = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 192.0.2.0
        /24 link UNICAST
Local:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     |-- 192.0.2.7
        /32 host LOCAL
     |-- 192.0.2.255
        /32 link BROADCAST
";
        let found: Vec<_> = ipv4(table).map(|address| address.to_string()).collect();
        assert_eq!(found, ["127.0.0.1", "192.0.2.7"]);
        let table = "00000000000000000000000000000001 01 80 10 80       lo
20010db8000000000000000000000002 02 40 00 80       h0
none
";
        let found: Vec<_> = ipv6(table).map(|address| address.to_string()).collect();
        assert_eq!(found, ["::1", "2001:db8::2"]);
    }

    #[test]
    fn ports_are_at_the_address_that_is_listened_on() {
        let one: IpAddr = "192.0.2.7".parse().expect("an address");
        assert_eq!(of_host(one), [one]);
        let all = of_host(Ipv4Addr::UNSPECIFIED.into());
        assert!(all.contains(&Ipv4Addr::LOCALHOST.into()), "{all:?}");
        assert!(all.iter().all(IpAddr::is_ipv4), "{all:?}");
        assert!(of_host(Ipv6Addr::UNSPECIFIED.into()).len() >= all.len());
    }
}
