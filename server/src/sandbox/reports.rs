//! What the kernel reports of sandboxes by netlink: packets that it refused or that begin a connection (`NFLOG`), whose first
//! bytes a function has chosen, and connections that are over. Parsed without trust and without allocation.

mod connection;
mod report;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use hearth_gateway::protocol::{Protocol, TOLD_BYTES, ToldConnection};
use hearth_init::fields::Fields as _;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::Interest;

use super::network::OutboundId;
use crate::watched::Watched;

pub use report::{Connection, Refusal, RefusalReason, Report};

/// More than any datagram has that the gateway has set up: 128 bytes of a packet and some attributes, several at a time.
const DATAGRAM: usize = 16 << 10;
/// How long nobody waits at the socket after all was read. The kernel reports a connection while it sets it up, and waking
/// the server each time doubles what that takes; a thousand connections fit the socket's buffer.
const PAUSE: Duration = Duration::from_millis(50);

/// The reports of all sandboxes. Of refused packets the kernel tells some fifty a second of each sandbox, and counts all. What
/// does not fit the socket's buffer in a flood is lost.
pub struct Reports {
    socket: OwnedFd,
    /// Where the gateway tells of connections that the kernel does not report; none when it is closed.
    told: Option<OwnedFd>,
    received: Vec<Report>,
    /// Whether a pause has passed since the last report.
    has_paused: bool,
}

impl Reports {
    /// Over sockets that the gateway has set up. Needs a runtime.
    pub(super) fn new([socket, told]: [OwnedFd; 2]) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        rustix::io::ioctl_fionbio(&told, true)?;
        Ok(Self {
            socket,
            told: Some(told),
            received: Vec::new(),
            has_paused: true,
        })
    }

    /// The next one. None when there will be none any more. Cancel-safe.
    pub async fn next(&mut self) -> Option<Report> {
        while self.received.is_empty() {
            let step = match self.receive() {
                Ok(0) => return None,
                Ok(_) => Ok(()),
                Err(Errno::AGAIN) if self.receive_told() => Ok(()),
                Err(Errno::AGAIN) => self.wait().await,
                // Some did not fit the socket's buffer; they were counted.
                Err(Errno::NOBUFS | Errno::INTR) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = step {
                tracing::warn!(%error, "packets and connections are not reported any more");
                return None;
            }
        }
        self.received.pop()
    }

    /// Takes a datagram's reports. Its length.
    fn receive(&mut self) -> rustix::io::Result<usize> {
        let mut bytes = [0; DATAGRAM];
        let (length, _) = rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::TRUNC)?;
        let datagram = &bytes[..length.min(DATAGRAM)];
        parse(datagram, |report| self.received.push(report));
        // Taken from the back.
        self.received.reverse();
        self.has_paused = false;
        Ok(length)
    }

    /// Takes a datagram of the gateway's. Whether there was one.
    fn receive_told(&mut self) -> bool {
        let Some(told) = &self.told else {
            return false;
        };
        let mut bytes = [0; TOLD_BYTES];
        let connections = match rustix::net::recv(told, &mut bytes[..], RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => Vec::from_bytes(&bytes[..length.min(TOLD_BYTES)]),
            Err(Errno::AGAIN | Errno::INTR) => return false,
            Ok(_) | Err(_) => {
                self.told = None;
                return false;
            }
        };
        // One that cannot be read is none of this gateway's.
        let connections = connections.unwrap_or_default().into_iter();
        let reports = connections.map(|told: ToldConnection| {
            Report::Connection(Connection {
                outbound: OutboundId(told.interface),
                address: told.address,
                protocol: told.protocol,
                port: told.port,
                bytes: told.bytes,
            })
        });
        self.received.extend(reports.rev());
        self.has_paused = false;
        true
    }

    /// Until there may be more: a pause, and then the socket's word. It is watched only as long as that takes, because the
    /// kernel wakes who watches a socket with every report.
    async fn wait(&mut self) -> io::Result<()> {
        if !self.has_paused {
            tokio::time::sleep(PAUSE).await;
            self.has_paused = true;
            return Ok(());
        }
        let watch = |socket: &OwnedFd| Watched::new(socket.try_clone()?, Interest::READABLE);
        let watched = watch(&self.socket)?;
        let told = self.told.as_ref().map(watch).transpose()?;
        let is_told = async {
            match &told {
                Some(told) => told.readable().await.map(drop),
                None => std::future::pending().await,
            }
        };
        // Readiness ends with the registration.
        tokio::select! {
            ready = watched.readable() => ready.map(drop),
            ready = is_told => ready,
        }
    }
}

/// `NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET`.
const PACKET: u16 = 0x0400;
/// Attributes (`linux/netfilter/nfnetlink_log.h`): the mark that the rules have given it, the interface it came in by, its
/// bytes.
const MARK: u16 = 2;
const INDEV: u16 = 4;
const PAYLOAD: u16 = 9;
/// The mark of a packet that begins a connection.
const BEGUN: u32 = 5;
/// Size of a netlink message's header and netfilter's own.
const HEADER: usize = 16;
const FAMILY: usize = 4;

/// Calls `found` with each report in a datagram of the kernel's.
pub(super) fn parse(mut datagram: &[u8], mut found: impl FnMut(Report)) {
    while let Some((length, kind)) = datagram.get(..HEADER).map(|head| {
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        (length as usize, u16::from_ne_bytes([head[4], head[5]]))
    }) {
        let Some(body) = datagram.get(HEADER..length) else {
            return;
        };
        let attributes = body.get(FAMILY..).unwrap_or(&[]);
        let report = match kind {
            PACKET => packet(attributes),
            connection::OVER => connection::over(attributes).map(Report::Connection),
            _ => None,
        };
        report.into_iter().for_each(&mut found);
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
}

/// The attributes in some bytes: the kind of each, and its value.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1, ..] = *bytes else {
            return None;
        };
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        // Without the bits that say how a value is laid out.
        Some((u16::from_ne_bytes([k0, k1]) & 0x3fff, value))
    })
}

fn packet(all: &[u8]) -> Option<Report> {
    let (mut interface, mut mark, mut destination) = (None, None, None);
    for (kind, value) in attributes(all) {
        match kind {
            INDEV => interface = Some(u32::from_be_bytes(value.try_into().ok()?)),
            MARK => mark = Some(u32::from_be_bytes(value.try_into().ok()?)),
            PAYLOAD => destination = destination_of(value),
            _ => {}
        }
    }
    let (outbound, mark) = (OutboundId(interface?), mark?);
    let (address, protocol, port) = destination?;
    if mark == BEGUN {
        return Some(Report::Connection(Connection {
            outbound,
            address,
            protocol: protocol?,
            port,
            bytes: None,
        }));
    }
    Some(Report::Refused(Refusal {
        outbound,
        reason: reason_of(mark)?,
        address,
        protocol,
        port,
    }))
}

/// Marks are those of the rules that the gateway has made (`gateway/src/rules.rs`).
fn reason_of(mark: u32) -> Option<RefusalReason> {
    Some(match mark {
        1 => RefusalReason::Policy,
        2 => RefusalReason::Forbidden,
        3 => RefusalReason::Limit,
        4 => RefusalReason::DryRun,
        _ => return None,
    })
}

/// Where an IP packet goes. Its port is 0 in all but the first of fragments, and after IPv6 extension headers.
fn destination_of(packet: &[u8]) -> Option<(IpAddr, Option<Protocol>, u16)> {
    let (address, protocol, transport) = match packet.first()? >> 4 {
        4 => {
            let head: &[u8; 20] = packet.first_chunk()?;
            let address = Ipv4Addr::new(head[16], head[17], head[18], head[19]);
            let is_first = u16::from_be_bytes([head[6], head[7]]) & 0x1fff == 0;
            let length = usize::from(head[0] & 0xf) * 4;
            let transport = packet.get(length..).filter(|_| is_first && length >= 20);
            (IpAddr::V4(address), head[9], transport)
        }
        6 => {
            let head: &[u8; 40] = packet.first_chunk()?;
            let address: [u8; 16] = head[24..].try_into().ok()?;
            let transport = packet.get(40..);
            (IpAddr::V6(Ipv6Addr::from(address)), head[6], transport)
        }
        _ => return None,
    };
    let protocol = Protocol::of_number(protocol);
    let port = match (protocol, transport) {
        (Some(_), Some([_, _, high, low, ..])) => u16::from_be_bytes([*high, *low]),
        _ => 0,
    };
    Some((address, protocol, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(packet: &[u8]) -> Vec<u8> {
        marked(packet, 1)
    }

    fn marked(packet: &[u8], mark: u32) -> Vec<u8> {
        let body = [
            vec![2, 0, 0, 1],
            attribute(INDEV, &7_u32.to_be_bytes()),
            attribute(MARK, &mark.to_be_bytes()),
            attribute(PAYLOAD, packet),
        ]
        .concat();
        let mut bytes = (body.len() as u32 + 16).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&PACKET.to_ne_bytes());
        bytes.resize(16, 0);
        bytes.extend_from_slice(&body);
        bytes
    }

    fn four() -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[9] = 17;
        packet[16..20].copy_from_slice(&[192, 0, 2, 9]);
        packet[22..24].copy_from_slice(&443_u16.to_be_bytes());
        packet
    }

    fn parsed(bytes: &[u8]) -> Vec<Refusal> {
        let mut all = Vec::new();
        parse(bytes, |report| match report {
            Report::Refused(refusal) => all.push(refusal),
            Report::Connection(connection) => panic!("{connection:?}"),
        });
        all
    }

    #[test]
    fn packets_of_both_families_are_told() {
        let mut six = vec![0; 60];
        six[0] = 0x60;
        six[6] = 6;
        six[24..40].copy_from_slice(&[0x20; 16]);
        six[42..44].copy_from_slice(&80_u16.to_be_bytes());
        let all = parsed(&[message(&four()), message(&six)].concat());
        let summary: Vec<_> = all
            .iter()
            .map(|refusal| (refusal.address.to_string(), refusal.protocol, refusal.port))
            .collect();
        assert_eq!(
            summary,
            [
                ("192.0.2.9".to_owned(), Some(Protocol::Udp), 443),
                (
                    "2020:2020:2020:2020:2020:2020:2020:2020".to_owned(),
                    Some(Protocol::Tcp),
                    80
                ),
            ]
        );
        assert_eq!(all[0].outbound, OutboundId(7));
        assert_eq!(all[0].reason, RefusalReason::Policy);
    }

    #[test]
    fn a_packet_that_begins_a_connection_is_told_as_that() {
        let mut all = Vec::new();
        let no_port = marked(&[&four()[..9], &[1], &four()[10..]].concat(), BEGUN);
        parse(&[marked(&four(), BEGUN), no_port].concat(), |report| {
            all.push(report);
        });
        let begun = Connection {
            outbound: OutboundId(7),
            address: Ipv4Addr::new(192, 0, 2, 9).into(),
            protocol: Protocol::Udp,
            port: 443,
            bytes: None,
        };
        assert_eq!(all, [Report::Connection(begun)]);
    }

    #[test]
    fn a_fragment_and_a_cut_packet_have_no_port() {
        let mut fragment = four();
        fragment[7] = 1;
        assert_eq!(parsed(&message(&fragment))[0].port, 0);
        assert_eq!(parsed(&message(&four()[..22]))[0].port, 0);
        assert!(parsed(&message(&four()[..19])).is_empty());
    }

    #[test]
    fn whatever_comes_is_survived() {
        let good = message(&four());
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
