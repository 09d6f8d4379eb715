//! Connections that the gateway tells of.

use std::net::IpAddr;

use hearth_init::fields_of;

use super::Protocol;

/// Most of them in one datagram, and more bytes than it has.
pub const TOLD_AT_ONCE: usize = 256;
/// See [`TOLD_AT_ONCE`].
pub const TOLD_BYTES: usize = 16 << 10;

/// One that has begun or is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldConnection {
    /// The sandbox's interface in the gateway.
    pub interface: u32,
    /// Destination.
    pub address: IpAddr,
    /// Protocol.
    pub protocol: Protocol,
    /// Destination port.
    pub port: u16,
    /// Bytes from the sandbox and to it, IP headers included, when it is over; none when it begins.
    pub bytes: Option<(u64, u64)>,
}

fields_of!(ToldConnection {
    interface,
    address,
    protocol,
    port,
    bytes,
});

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use hearth_init::fields::Fields as _;

    use super::*;

    #[test]
    fn as_many_as_there_may_be_fit_a_datagram() {
        let told = ToldConnection {
            interface: u32::MAX,
            address: Ipv6Addr::LOCALHOST.into(),
            protocol: Protocol::Udp,
            port: 1,
            bytes: Some((u64::MAX, 0)),
        };
        let all = vec![told; TOLD_AT_ONCE];
        let bytes = all.to_bytes();
        assert!(bytes.len() <= TOLD_BYTES, "{}", bytes.len());
        assert_eq!(Vec::from_bytes(&bytes), Ok(all));
    }
}
