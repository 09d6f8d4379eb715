//! Connections as the kernel tracks them, reported when they are over (`ctnetlink`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hearth_gateway::protocol::Protocol;

use super::{Connection, attributes};
use crate::sandbox::network::OutboundId;

/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE`.
pub(super) const OVER: u16 = 0x0102;
/// Attributes (`linux/netfilter/nfnetlink_conntrack.h`): the way there, and what was counted there and back.
const THERE: u16 = 1;
const COUNTED_THERE: u16 = 9;
const COUNTED_BACK: u16 = 10;
/// Within the way: addresses, and what is above them.
const ADDRESSES: u16 = 1;
const ABOVE: u16 = 2;
/// Within what was counted.
const BYTES: u16 = 2;
/// The last bits of a sandbox's addresses are the number of its slot, to which this is added for the number of its interface
/// (`gateway/src/address.rs`).
const SLOT_BITS: u32 = 0xfff;
const INTERFACE: u32 = 1000;

/// Reads what is told of one that is over.
pub(super) fn over(all: &[u8]) -> Option<Connection> {
    let (mut way, mut out, mut back) = (None, None, None);
    for (kind, value) in attributes(all) {
        match kind {
            THERE => way = way_of(value),
            COUNTED_THERE => out = bytes(value),
            COUNTED_BACK => back = bytes(value),
            _ => {}
        }
    }
    let (outbound, address, protocol, port) = way?;
    Some(Connection {
        outbound,
        address,
        protocol,
        port,
        bytes: Some((out.unwrap_or(0), back.unwrap_or(0))),
    })
}

fn way_of(way: &[u8]) -> Option<(OutboundId, IpAddr, Protocol, u16)> {
    let (mut source, mut destination, mut protocol, mut port) = (None, None, None, None);
    for (kind, value) in attributes(way) {
        match kind {
            ADDRESSES => {
                for (kind, value) in attributes(value) {
                    match kind {
                        1 | 3 => source = address(value),
                        2 | 4 => destination = address(value),
                        _ => {}
                    }
                }
            }
            ABOVE => {
                for (kind, value) in attributes(value) {
                    match kind {
                        1 => protocol = Protocol::of_number(*value.first()?),
                        3 => port = Some(u16::from_be_bytes(value.try_into().ok()?)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let last = match source? {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    };
    let outbound = OutboundId(INTERFACE + (last & SLOT_BITS));
    Some((outbound, destination?, protocol?, port?))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    let six = <[u8; 16]>::try_from(bytes).ok()?;
    Some(Ipv6Addr::from(six).into())
}

fn bytes(counted: &[u8]) -> Option<u64> {
    let (_, value) = attributes(counted).find(|(kind, _)| *kind == BYTES)?;
    Some(u64::from_be_bytes(value.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::{Report, parse};
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = (value.len() as u16 + 4).to_ne_bytes();
        let mut bytes = [&length[..], &kind.to_ne_bytes(), value].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn nest(kind: u16, inner: &[Vec<u8>]) -> Vec<u8> {
        attribute(kind | 0x8000, &inner.concat())
    }

    fn message(kind: u16) -> Vec<u8> {
        let addresses = [
            attribute(1, &[198, 19, 16, 9]),
            attribute(2, &[192, 0, 2, 1]),
        ];
        let above = [
            attribute(1, &[6]),
            attribute(2, &40_000_u16.to_be_bytes()),
            attribute(3, &443_u16.to_be_bytes()),
        ];
        let counted = |kind, bytes: u64| {
            nest(
                kind,
                &[attribute(1, &[0; 8]), attribute(2, &bytes.to_be_bytes())],
            )
        };
        let body = [
            vec![2, 0, 0, 0],
            nest(1, &[nest(1, &addresses), nest(2, &above)]),
            counted(9, 70),
            counted(10, 80),
        ]
        .concat();
        let mut bytes = (body.len() as u32 + 16).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.resize(16, 0);
        bytes.extend_from_slice(&body);
        bytes
    }

    fn parsed(bytes: &[u8]) -> Vec<Report> {
        let mut all = Vec::new();
        parse(bytes, |report| all.push(report));
        all
    }

    #[test]
    fn a_connection_is_told_with_its_bytes_when_it_is_over() {
        let over = Connection {
            outbound: OutboundId(1009),
            address: Ipv4Addr::new(192, 0, 2, 1).into(),
            protocol: Protocol::Tcp,
            port: 443,
            bytes: Some((70, 80)),
        };
        // What else is told of connections is passed over.
        const BEGUN: u16 = 0x0100;
        let all = parsed(&[message(BEGUN), message(OVER)].concat());
        assert_eq!(all, [Report::Connection(over)]);
    }

    #[test]
    fn whatever_comes_is_survived() {
        let good = message(OVER);
        for length in 0..good.len() {
            parsed(&good[..length]);
        }
        for at in 0..good.len() {
            for value in [0, 1, 3, 0x7f, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                parsed(&bytes);
            }
        }
    }
}
