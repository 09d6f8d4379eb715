//! Ports that are taken on the host: what `/proc/net/tcp` and `/proc/net/tcp6` say of listening sockets.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `TCP_LISTEN` of the kernel.
const LISTENS: &str = "0A";

/// Who listens on a TCP port of this network namespace, in words; none if nobody does.
pub(super) fn by_whom(port: u16) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| listener(&table, port))
        .map(|(address, uid)| {
            let user = name_of(&users, &uid).unwrap_or(uid);
            format!("a process of the user {user}, which listens on {address}")
        })
}

/// The address and the user of the first socket that listens on a port.
fn listener(table: &str, port: u16) -> Option<(SocketAddr, String)> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let address = address(fields.next()?)?;
        let state = fields.nth(1)?;
        let uid = fields.nth(3)?;
        (state == LISTENS && address.port() == port).then(|| (address, uid.to_owned()))
    })
}

/// An address as the tables have it: words of 4 bytes in the host's byte order, then the port, all in hexadecimal.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in address.as_bytes().chunks(8) {
        let word = std::str::from_utf8(word).ok()?;
        bytes.extend(u32::from_str_radix(word, 16).ok()?.to_ne_bytes());
    }
    let address = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// A user's name in the text of `/etc/passwd`.
fn name_of(passwd: &str, uid: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_with_its_address_and_user() {
        let own = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = own.local_addr().expect("its address");
        let said = by_whom(address.port()).expect("somebody");
        assert!(said.ends_with(&format!("listens on {address}")), "{said}");
        drop(own);
        assert_eq!(by_whom(address.port()), None);
    }

    #[test]
    fn only_sockets_that_listen_count() {
        // As a little-endian machine writes it.
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let line = |address: &str, state: &str| {
            format!(
                "  sl  local_address rem_address   st\n   0: {address}:0016 00000000:0000 {state} \
                 00000000:00000000 00:00000000 00000000     7        0 12 1 0 100\n"
            )
        };
        let ipv4 = word([192, 0, 2, 1]);
        assert_eq!(
            listener(&line(&ipv4, "0A"), 22),
            Some(("192.0.2.1:22".parse().expect("an address"), "7".to_owned()))
        );
        assert_eq!(listener(&line(&ipv4, "01"), 22), None);
        assert_eq!(listener(&line(&ipv4, "0A"), 23), None);
        let ipv6 = [word([0; 4]), word([0; 4]), word([0; 4]), word([0, 0, 0, 1])].concat();
        let (address, _) = listener(&line(&ipv6, "0A"), 22).expect("found");
        assert_eq!(address.to_string(), "[::1]:22");
        for broken in ["", "x", "0016", ":0016", "000:0016"] {
            assert_eq!(listener(&line(broken, "0A"), 22), None, "{broken}");
        }
        assert_eq!(
            name_of("root:x:0:0::/:/bin/sh\na:x:7:7::/:\n", "7"),
            Some("a".into())
        );
        assert_eq!(name_of("root:x:0:0::/:/bin/sh\n", "7"), None);
    }
}
