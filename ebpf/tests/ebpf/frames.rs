//! Builds frames, right and wrong ones.

use std::net::{IpAddr, SocketAddr};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// The hardware address that all frames come from, so that a receiver can tell them from the kernel's own.
pub const SENDER: [u8; 6] = [2, 0, 0, 0, 0x99, 1];

/// An IPv6 extension header's type and its content after the next header.
pub type Extension = (u8, Vec<u8>);

#[derive(Clone)]
pub struct Frame {
    pub to: [u8; 6],
    pub tags: Vec<[u8; 4]>,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub protocol: u8,
    pub flags: u8,
    pub payload: Vec<u8>,
    /// Words of 4 bytes.
    pub ipv4_options: usize,
    pub extensions: Vec<Extension>,
    /// IPv4's flags and offset.
    pub fragment: u16,
}

pub fn udp(source: &str, destination: &str) -> Frame {
    Frame {
        to: [2, 0, 0, 0, 0, 2],
        tags: Vec::new(),
        source: source.parse().expect("an address"),
        destination: destination.parse().expect("an address"),
        protocol: UDP,
        flags: 0,
        payload: b"hello".to_vec(),
        ipv4_options: 0,
        extensions: Vec::new(),
        fragment: 0,
    }
}

pub fn tcp(source: &str, destination: &str, flags: u8) -> Frame {
    Frame {
        protocol: TCP,
        flags,
        ..udp(source, destination)
    }
}

fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        sum += u64::from(*byte) << (8 * (1 - at % 2));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

impl Frame {
    /// Offset of the IP header.
    pub fn network(&self) -> usize {
        14 + 4 * self.tags.len()
    }

    /// Offset of the TCP or UDP header.
    pub fn transport(&self) -> usize {
        let ip = match self.source {
            SocketAddr::V4(_) => 20 + 4 * self.ipv4_options,
            SocketAddr::V6(_) => {
                40 + self
                    .extensions
                    .iter()
                    .map(|(_, body)| body.len() + 1)
                    .sum::<usize>()
            }
        };
        self.network() + ip
    }

    /// Offset behind the headers.
    pub fn headers(&self) -> usize {
        self.transport() + if self.protocol == TCP { 20 } else { 8 }
    }

    fn transport_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.source.port().to_be_bytes());
        bytes.extend(self.destination.port().to_be_bytes());
        let length = (8 + self.payload.len()) as u16;
        match self.protocol {
            TCP => bytes.extend([
                0, 0, 0, 1, 0, 0, 0, 0, 0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0,
            ]),
            _ => {
                bytes.extend(length.to_be_bytes());
                bytes.extend([0, 0]);
            }
        }
        bytes.extend(&self.payload);
        let mut pseudo = Vec::new();
        for address in [self.source.ip(), self.destination.ip()] {
            match address {
                IpAddr::V4(address) => pseudo.extend(address.octets()),
                IpAddr::V6(address) => pseudo.extend(address.octets()),
            }
        }
        pseudo.extend([0, self.protocol]);
        pseudo.extend((bytes.len() as u16).to_be_bytes());
        pseudo.extend(&bytes);
        let check = !sum(&pseudo);
        let at = if self.protocol == TCP { 16 } else { 6 };
        bytes[at..at + 2].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.to);
        bytes.extend(SENDER);
        for tag in &self.tags {
            bytes.extend(tag);
        }
        let transport = self.transport_bytes();
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                bytes.extend([0x08, 0x00]);
                let header = 20 + 4 * self.ipv4_options;
                let mut ip = vec![0x40 | (header / 4) as u8, 0];
                ip.extend(((header + transport.len()) as u16).to_be_bytes());
                ip.extend([0, 7]);
                ip.extend(self.fragment.to_be_bytes());
                ip.extend([64, self.protocol, 0, 0]);
                ip.extend(source.octets());
                ip.extend(destination.octets());
                // No operation.
                ip.resize(header, 1);
                let check = !sum(&ip);
                ip[10..12].copy_from_slice(&check.to_be_bytes());
                bytes.extend(ip);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                let extensions: usize =
                    self.extensions.iter().map(|(_, body)| body.len() + 1).sum();
                bytes.extend(((extensions + transport.len()) as u16).to_be_bytes());
                let mut types: Vec<u8> = self.extensions.iter().map(|(kind, _)| *kind).collect();
                types.push(self.protocol);
                bytes.extend([types[0], 64]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
                for ((_, body), next) in self.extensions.iter().zip(&types[1..]) {
                    bytes.push(*next);
                    bytes.extend(body);
                }
            }
            _ => panic!("two families"),
        }
        bytes.extend(transport);
        bytes
    }
}

/// An 802.1Q tag, and one of a provider.
pub const TAG: [u8; 4] = [0x81, 0x00, 0, 10];
pub const PROVIDER_TAG: [u8; 4] = [0x88, 0xa8, 0, 20];

/// Destination options of `units` times 8 bytes.
pub fn options(units: usize) -> Extension {
    let mut body = vec![(units - 1) as u8, 1, (units * 8 - 4) as u8];
    body.resize(units * 8 - 1, 0);
    (60, body)
}

/// A fragment header.
pub fn fragment(offset: u16, more: bool) -> Extension {
    let bits = (offset << 3 | u16::from(more)).to_be_bytes();
    (44, vec![0, bits[0], bits[1], 0, 0, 0, 9])
}
