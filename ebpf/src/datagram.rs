//! UDP in a frame: takes it apart, and writes the reply. The stack has checked nothing of what AF_XDP receives, so that the
//! checksums are checked here.

use std::net::SocketAddr;
use std::ops::Range;

use crate::packet::{self, Packet, UDP};

/// Bytes of a UDP header.
const HEADER: usize = 8;
/// Hop limit of replies, as Linux sends them.
const HOPS: u8 = 64;

/// What a datagram's checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It is right.
    Valid,
    /// The sender made none (IPv4 only).
    Absent,
    /// Left to the network card by a sender on this host: over a veth, no card ever computes it.
    Partial,
    /// It is wrong, or the IP header's is.
    Wrong,
}

/// A datagram in a frame.
#[derive(Clone, Debug)]
pub struct Datagram<'a> {
    frame: &'a [u8],
    packet: Packet,
    payload: Range<usize>,
}

impl<'a> Datagram<'a> {
    /// The datagram in `frame`, if there is a whole one.
    #[must_use]
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        let packet = packet::parse(frame, frame.len());
        if !packet.has_ports()
            || packet.protocol != UDP
            || packet.malformed != 0
            || packet.first_fragment != 0
        {
            return None;
        }
        let start = usize::from(packet.transport);
        let length = usize::from(u16::from_be_bytes([frame[start + 4], frame[start + 5]]));
        let payload = start + HEADER..start + length;
        frame.get(payload.clone())?;
        Some(Self {
            frame,
            packet,
            payload,
        })
    }

    /// Who sent it.
    #[must_use]
    pub fn source(&self) -> SocketAddr {
        SocketAddr::new(self.packet.source_address(), self.packet.source_port)
    }

    /// To whom.
    #[must_use]
    pub fn destination(&self) -> SocketAddr {
        SocketAddr::new(
            self.packet.destination_address(),
            self.packet.destination_port,
        )
    }

    /// What it carries.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.frame[self.payload.clone()]
    }

    /// Bytes of the headers in front of IP's.
    #[must_use]
    pub fn link_header(&self) -> usize {
        usize::from(self.packet.network)
    }

    /// What its checksum says.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        let network = usize::from(self.packet.network);
        let transport = usize::from(self.packet.transport);
        if self.packet.family == 4 {
            let header = usize::from(self.frame[network] & 0x0f) * 4;
            if fold(add(0, &self.frame[network..network + header])) != 0xffff {
                return Checksum::Wrong;
            }
        }
        let datagram = &self.frame[transport..self.payload.end];
        let pseudo = self.pseudo_header(
            &self.packet.source,
            &self.packet.destination,
            datagram.len(),
        );
        let stated = u16::from_be_bytes([datagram[6], datagram[7]]);
        if stated == 0 && self.packet.family == 4 {
            Checksum::Absent
        } else if stated != 0 && fold(add(pseudo, datagram)) == 0xffff {
            Checksum::Valid
        } else if stated == fold(pseudo) {
            Checksum::Partial
        } else {
            Checksum::Wrong
        }
    }

    /// The sum over the pseudo header. Mapped IPv4 addresses differ from the real ones by ffff, which adds nothing.
    fn pseudo_header(&self, source: &[u8; 16], destination: &[u8; 16], length: usize) -> u32 {
        let ip = if self.packet.family == 4 { 12 } else { 0 };
        let sum = add(add(0, &source[ip..]), &destination[ip..]);
        sum + u32::from(UDP) + u32::try_from(length).unwrap_or_default()
    }

    /// Writes a frame that carries `payload` back to the sender into `buffer`: the same tags, addresses and ports the other
    /// way round. Says how long it is, or `None` if there is no room.
    #[must_use]
    pub fn reply(&self, payload: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let network = usize::from(self.packet.network);
        let ip_header = if self.packet.family == 4 { 20 } else { 40 };
        let transport = network + ip_header;
        let datagram = u16::try_from(HEADER + payload.len()).ok()?;
        let in_ip = u16::try_from(ip_header).ok()?.checked_add(datagram)?;
        let end = transport + usize::from(datagram);
        let out = buffer.get_mut(..end)?;
        out[..6].copy_from_slice(&self.frame[6..12]);
        out[6..12].copy_from_slice(&self.frame[..6]);
        out[12..network].copy_from_slice(&self.frame[12..network]);
        let ip = &mut out[network..transport];
        ip.fill(0);
        if self.packet.family == 4 {
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&in_ip.to_be_bytes());
            // Do not fragment; then the id needs no value (RFC 6864).
            ip[6] = 0x40;
            ip[8] = HOPS;
            ip[9] = UDP;
            ip[12..16].copy_from_slice(&self.packet.destination[12..]);
            ip[16..20].copy_from_slice(&self.packet.source[12..]);
            let check = !fold(add(0, ip));
            ip[10..12].copy_from_slice(&check.to_be_bytes());
        } else {
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&datagram.to_be_bytes());
            ip[6] = UDP;
            ip[7] = HOPS;
            ip[8..24].copy_from_slice(&self.packet.destination);
            ip[24..40].copy_from_slice(&self.packet.source);
        }
        let udp = &mut out[transport..];
        udp[..2].copy_from_slice(&self.packet.destination_port.to_be_bytes());
        udp[2..4].copy_from_slice(&self.packet.source_port.to_be_bytes());
        udp[4..6].copy_from_slice(&datagram.to_be_bytes());
        udp[6..8].fill(0);
        udp[HEADER..].copy_from_slice(payload);
        let pseudo = self.pseudo_header(&self.packet.destination, &self.packet.source, udp.len());
        // A sum of 0 is sent as its other form, because 0 stands for none.
        let check = match !fold(add(pseudo, udp)) {
            0 => 0xffff,
            check => check,
        };
        udp[6..8].copy_from_slice(&check.to_be_bytes());
        Some(end)
    }
}

/// Adds 16-bit words; an odd last byte is the upper half of one. At most 64 KiB, which 32 bits hold.
fn add(sum: u32, bytes: &[u8]) -> u32 {
    let (words, last) = bytes.as_chunks::<2>();
    let words: u32 = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)))
        .sum();
    sum + words + last.first().map_or(0, |byte| u32::from(*byte) << 8)
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
