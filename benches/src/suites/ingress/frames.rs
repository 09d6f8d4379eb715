//! Packets for test runs, where nothing checks their checksums, and for the flood.

use std::net::{IpAddr, Ipv4Addr};

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// Who sends.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Who sends and is on the deny list.
pub const DENIED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 66);
const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Bytes of a frame on the wire, at least.
const SHORTEST: usize = 60;

/// A prefix for the lists, another for each number: networks of different lengths, none with [`SENDER`] in it.
pub fn listed(number: usize) -> (IpAddr, u8) {
    let length = [16, 20, 24, 28, 32][number % 5];
    let address = 0x0a00_0000_u32 | (number as u32).wrapping_mul(0x9e37_79b1) >> 8;
    (Ipv4Addr::from(address).into(), length)
}

fn ethernet(kind: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    bytes.extend(kind.to_be_bytes());
    bytes
}

/// ARP.
pub fn not_ip() -> Vec<u8> {
    let mut bytes = ethernet(0x0806);
    bytes.resize(SHORTEST, 0);
    bytes
}

fn ipv4(protocol: u8, from: Ipv4Addr, length: usize) -> Vec<u8> {
    let mut bytes = ethernet(0x0800);
    bytes.extend([0x45, 0]);
    bytes.extend((20 + length as u16).to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend(from.octets());
    bytes.extend(HOST.octets());
    bytes
}

/// A TCP packet without payload.
pub fn tcp(from: Ipv4Addr, port: u16, flags: u8) -> Vec<u8> {
    let mut bytes = ipv4(6, from, 20);
    bytes.extend(5_000_u16.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.resize(SHORTEST, 0);
    bytes
}

/// A datagram of 18 bytes.
pub fn udp(from: Ipv4Addr, port: u16) -> Vec<u8> {
    let mut bytes = ipv4(17, from, 26);
    bytes.extend(5_000_u16.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend(26_u16.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.resize(SHORTEST, 0);
    bytes
}

/// Gives an IPv4 frame its header's checksum. A datagram needs none of its own.
pub fn finish(frame: &mut [u8]) {
    let header = &mut frame[14..34];
    header[10..12].fill(0);
    let words = header
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !(sum + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}
