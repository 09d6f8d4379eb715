//! A UDP socket that says when, from whom and to which address of this host a datagram came, and replies from there.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use bytes::Bytes;
use nix::cmsg_space;
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo, ReceiveTimestampns};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use nix::sys::time::TimeSpec;
use tokio::io::Interest;

use super::datagrams::Datagram;
use crate::watched::Watched;

/// The largest datagram.
const LARGEST: usize = 65_535;

/// See the module.
pub(super) struct DatagramSocket(Watched);

impl DatagramSocket {
    /// Over this socket, which is bound.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        // One of the two does not suit the socket's family; IPv4 within IPv6 has IPv6's.
        let four = setsockopt(&socket, Ipv4PacketInfo, &true);
        let six = setsockopt(&socket, Ipv6RecvPacketInfo, &true);
        six.or(four)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        Watched::new(socket, interest).map(Self)
    }

    /// The next datagram.
    pub(super) async fn receive(&self) -> io::Result<Datagram> {
        loop {
            let received = self.0.io(Interest::READABLE, |_| self.read()).await;
            match received {
                Err(error) if is_of_a_reply(&error) => {}
                received => return received,
            }
        }
    }

    /// The next datagram, if there is one.
    pub(super) fn try_receive(&self) -> io::Result<Option<Datagram>> {
        match self.read() {
            Ok(datagram) => Ok(Some(datagram)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_of_a_reply(&error) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a reply to a datagram.
    pub(super) async fn send(&self, payload: &[u8], to: &Datagram) -> io::Result<()> {
        self.0
            .io(Interest::WRITABLE, |_| self.write(payload, to))
            .await
    }

    fn read(&self) -> io::Result<Datagram> {
        let mut payload = vec![0; LARGEST];
        let mut control = cmsg_space!(libc::timespec, libc::in6_pktinfo, libc::in_pktinfo);
        let mut parts = [IoSliceMut::new(&mut payload)];
        let message = recvmsg::<SockaddrStorage>(
            self.0.as_fd().as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let source = message.address.as_ref().and_then(address);
        let source = source.ok_or_else(|| io::Error::other("a datagram without a source"))?;
        let mut destination = None;
        let mut received_at = jiff::Timestamp::now().as_microsecond();
        for item in message.cmsgs()? {
            match item {
                ControlMessageOwned::ScmTimestampns(time) => received_at = micros(time),
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    let octets = info.ipi_addr.s_addr.to_ne_bytes();
                    destination = Some(IpAddr::from(octets));
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    destination = Some(IpAddr::from(info.ipi6_addr.s6_addr));
                }
                _ => {}
            }
        }
        let length = message.bytes;
        payload.truncate(length);
        Ok(Datagram {
            payload: Bytes::from(payload.into_boxed_slice()),
            source,
            destination,
            received_at,
            by_xdp: None,
        })
    }

    fn write(&self, payload: &[u8], to: &Datagram) -> io::Result<()> {
        let four;
        let six;
        let control = match to.destination {
            Some(IpAddr::V4(from)) => {
                four = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(from.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                Some(ControlMessage::Ipv4PacketInfo(&four))
            }
            Some(IpAddr::V6(from)) => {
                six = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr {
                        s6_addr: from.octets(),
                    },
                    ipi6_ifindex: 0,
                };
                Some(ControlMessage::Ipv6PacketInfo(&six))
            }
            None => None,
        };
        let sent = sendmsg(
            self.0.as_fd().as_raw_fd(),
            &[IoSlice::new(payload)],
            control.as_slice(),
            MsgFlags::MSG_DONTWAIT,
            Some(&SockaddrStorage::from(to.source)),
        );
        sent.map(drop).map_err(io::Error::from)
    }
}

/// Whether an error is about a reply that was sent earlier: its client is gone.
fn is_of_a_reply(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::Interrupted
    )
}

fn address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let four = address
        .as_sockaddr_in()
        .map(|four| SocketAddrV4::from(*four).into());
    four.or_else(|| {
        address
            .as_sockaddr_in6()
            .map(|six| SocketAddrV6::from(*six).into())
    })
}

fn micros(time: TimeSpec) -> i64 {
    time.tv_sec() * 1_000_000 + time.tv_nsec() / 1000
}
