//! The host's DNS servers, from `/etc/resolv.conf`.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::path::Path;

/// As many as resolv.conf(5) allows: C libraries read no more.
const SERVERS_MAX: usize = 3;
const PORT: u16 = 53;

/// Reads the servers. Empty if the file cannot be read or lists none.
pub fn of_host(path: &Path) -> Vec<SocketAddr> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the host's DNS servers");
            Vec::new()
        }
    }
}

fn parse(text: &str) -> Vec<SocketAddr> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = words.next().filter(|word| *word == "nameserver");
            address.and_then(|_| words.next()).and_then(server)
        })
        .take(SERVERS_MAX)
        .collect()
}

/// A link-local address names its interface by number here: interface names are not looked up.
fn server(text: &str) -> Option<SocketAddr> {
    match text.split_once('%') {
        None => Some((text.parse::<IpAddr>().ok()?, PORT).into()),
        Some((address, scope)) => {
            let scope = scope.parse().ok()?;
            Some(SocketAddrV6::new(address.parse().ok()?, PORT, 0, scope).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_as_a_c_library_reads_them() {
        let text = "# comment\nsearch example.com\nnameserver 192.0.2.53\n nameserver\t2001:db8::53 # one\n\
                    ;nameserver 192.0.2.1\nnameserver fe80::1%2\noptions edns0\nnameserver lan\nnameserver 192.0.2.54\n";
        let servers: Vec<_> = parse(text).iter().map(ToString::to_string).collect();
        assert_eq!(
            servers,
            ["192.0.2.53:53", "[2001:db8::53]:53", "[fe80::1%2]:53"]
        );
        assert!(parse("").is_empty());
    }
}
