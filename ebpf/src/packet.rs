//! The twin of `bpf/parse.h`: what the programs in the kernel find in a frame, found again in user space. Tests compare
//! the two; AF_XDP's receiver uses it to take a datagram apart.

use std::net::{IpAddr, Ipv6Addr};

/// How far a packet could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// TCP or UDP with ports.
    Ports = 0,
    /// Neither IPv4 nor IPv6, or a third VLAN tag.
    NotIp = 1,
    /// IP, but neither TCP nor UDP.
    NotTcpUdp = 2,
    /// A later fragment, which carries no ports.
    Fragment = 3,
    /// Ends before its headers do, or before the length that a header states.
    Truncated = 4,
    /// A header contradicts itself.
    BadHeader = 5,
    /// More IPv6 extension headers than are followed.
    TooDeep = 6,
    /// The headers continue in a buffer that the program cannot read directly.
    Split = 7,
}

/// How many VLAN tags are followed.
pub const VLAN_TAGS: usize = 2;
/// How many IPv6 extension headers are followed.
pub const EXTENSION_HEADERS: usize = 6;
/// `IPPROTO_TCP`
pub const TCP: u8 = 6;
/// `IPPROTO_UDP`
pub const UDP: u8 = 17;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const FRAGMENT_HEADER: u8 = 44;
const AUTHENTICATION_HEADER: u8 = 51;
/// Hop-by-hop, routing, fragment, authentication, destination options, mobility.
const EXTENSIONS: [u8; 6] = [0, 43, FRAGMENT_HEADER, AUTHENTICATION_HEADER, 60, 135];

/// What the parser found: `struct packet` of `bpf/shared.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Source address, IPv4 as `::ffff:a.b.c.d`.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Offset of the IP header.
    pub network: u16,
    /// Offset of the TCP or UDP header.
    pub transport: u16,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// An [`Outcome`] as a number.
    pub outcome: u8,
    /// [`TCP`], [`UDP`] or another.
    pub protocol: u8,
    /// 4 or 6.
    pub family: u8,
    /// VLAN tags.
    pub tags: u8,
    /// 1 if more fragments follow.
    pub first_fragment: u8,
    /// TCP's flags.
    pub tcp_flags: u8,
    /// 1 if the TCP or UDP header contradicts itself.
    pub malformed: u8,
    /// Padding.
    pub unused: u8,
}

impl Packet {
    /// The source's address.
    #[must_use]
    pub fn source_address(&self) -> IpAddr {
        Ipv6Addr::from(self.source).to_canonical()
    }

    /// The destination's address.
    #[must_use]
    pub fn destination_address(&self) -> IpAddr {
        Ipv6Addr::from(self.destination).to_canonical()
    }

    /// Whether ports were found.
    #[must_use]
    pub fn has_ports(&self) -> bool {
        self.outcome == Outcome::Ports as u8
    }
}

/// Reads a frame of `total` bytes, of which `readable` are the first (all of them in AF_XDP).
#[must_use]
pub fn parse(readable: &[u8], total: usize) -> Packet {
    let mut packet = Packet::default();
    packet.outcome = Reader { readable, total }.frame(&mut packet) as u8;
    packet
}

struct Reader<'a> {
    readable: &'a [u8],
    total: usize,
}

impl Reader<'_> {
    fn at<const N: usize>(&self, offset: usize) -> Result<[u8; N], Outcome> {
        let short = if self.readable.len() < self.total {
            Outcome::Split
        } else {
            Outcome::Truncated
        };
        let bytes = self.readable.get(offset..offset + N).ok_or(short)?;
        Ok(bytes.try_into().expect("N bytes"))
    }

    fn frame(&self, packet: &mut Packet) -> Outcome {
        self.layers(packet).unwrap_or_else(|outcome| outcome)
    }

    fn layers(&self, packet: &mut Packet) -> Result<Outcome, Outcome> {
        let ethernet: [u8; ETHERNET] = self.at(0)?;
        let mut protocol = be16(&ethernet, 12);
        let mut at = ETHERNET;
        for _ in 0..VLAN_TAGS {
            if !ETHERTYPES_VLAN.contains(&protocol) {
                break;
            }
            let tag: [u8; 4] = self.at(at)?;
            protocol = be16(&tag, 2);
            at += 4;
            packet.tags += 1;
        }
        packet.network = at as u16;
        match protocol {
            ETHERTYPE_IPV4 => self.ipv4(at, packet),
            ETHERTYPE_IPV6 => self.ipv6(at, packet),
            _ => Ok(Outcome::NotIp),
        }
    }

    fn ipv4(&self, at: usize, packet: &mut Packet) -> Result<Outcome, Outcome> {
        let ip: [u8; IPV4_HEADER] = self.at(at)?;
        let header = usize::from(ip[0] & 0x0f) * 4;
        let total = usize::from(be16(&ip, 2));
        if ip[0] >> 4 != 4 || header < IPV4_HEADER || total < header {
            return Ok(Outcome::BadHeader);
        }
        if total > self.total - at {
            return Ok(Outcome::Truncated);
        }
        packet.family = 4;
        packet.protocol = ip[9];
        for (address, from) in [(&mut packet.source, 12), (&mut packet.destination, 16)] {
            address[10..12].fill(0xff);
            address[12..].copy_from_slice(&ip[from..from + 4]);
        }
        let fragment = be16(&ip, 6);
        if fragment & 0x1fff != 0 {
            return Ok(Outcome::Fragment);
        }
        packet.first_fragment = (fragment >> 13 & 1) as u8;
        self.transport(at + header, total - header, packet)
    }

    fn ipv6(&self, mut at: usize, packet: &mut Packet) -> Result<Outcome, Outcome> {
        let ip: [u8; IPV6_HEADER] = self.at(at)?;
        if ip[0] >> 4 != 6 {
            return Ok(Outcome::BadHeader);
        }
        let total = IPV6_HEADER + usize::from(be16(&ip, 4));
        if total > self.total - at {
            return Ok(Outcome::Truncated);
        }
        packet.family = 6;
        packet.source.copy_from_slice(&ip[8..24]);
        packet.destination.copy_from_slice(&ip[24..40]);
        let mut next = ip[6];
        let mut used = IPV6_HEADER;
        at += IPV6_HEADER;
        for followed in 0.. {
            if !EXTENSIONS.contains(&next) {
                break;
            }
            if followed == EXTENSION_HEADERS {
                return Ok(Outcome::TooDeep);
            }
            if used + 8 > total {
                return Ok(Outcome::Truncated);
            }
            let extension: [u8; 8] = self.at(at)?;
            let length = usize::from(extension[1]);
            let size = match next {
                FRAGMENT_HEADER => {
                    let offset = be16(&extension, 2);
                    if offset & 0xfff8 != 0 {
                        return Ok(Outcome::Fragment);
                    }
                    packet.first_fragment |= (offset & 1) as u8;
                    8
                }
                AUTHENTICATION_HEADER => (length + 2) * 4,
                _ => (length + 1) * 8,
            };
            next = extension[0];
            used += size;
            if used > total {
                return Ok(Outcome::Truncated);
            }
            at += size;
        }
        packet.protocol = next;
        self.transport(at, total - used, packet)
    }

    fn transport(&self, at: usize, length: usize, packet: &mut Packet) -> Result<Outcome, Outcome> {
        packet.transport = at as u16;
        if packet.protocol != TCP && packet.protocol != UDP {
            return Ok(Outcome::NotTcpUdp);
        }
        if length < UDP_HEADER {
            return Ok(Outcome::Truncated);
        }
        if packet.protocol == TCP && length < TCP_HEADER && packet.first_fragment == 0 {
            return Ok(Outcome::Truncated);
        }
        if packet.protocol == TCP && length >= TCP_HEADER {
            let tcp: [u8; TCP_HEADER] = self.at(at)?;
            let header = usize::from(tcp[12] >> 4) * 4;
            let flags = tcp[13];
            packet.tcp_flags = flags;
            packet.malformed = u8::from(
                header < TCP_HEADER
                    || header > length
                    || flags & (FIN | SYN | RST | ACK) == 0
                    || flags & SYN != 0 && flags & (FIN | RST) != 0,
            );
        }
        let head: [u8; UDP_HEADER] = self.at(at)?;
        packet.source_port = be16(&head, 0);
        packet.destination_port = be16(&head, 2);
        if packet.protocol == UDP {
            let stated = usize::from(be16(&head, 4));
            packet.malformed =
                u8::from(stated < UDP_HEADER || stated > length && packet.first_fragment == 0);
        } else if length < TCP_HEADER {
            packet.malformed = 1;
        }
        Ok(Outcome::Ports)
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
