//! From the program that prepares, as root, to the server: a socket in which everything waits that the server needs of the
//! ingress. The host process passes it on unread.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hearth_ebpf::xsk::{Layout, Opened, XskError};
use hearth_ebpf::{Descriptors, MapError, sproxy};
use hearth_init::wire;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::{Deserialize, Serialize};

use super::report::IngressReport;

/// Descriptors in one message; [`wire`] takes as many.
const AT_ONCE: usize = 8;
/// Longest first message: a report with the verifier's logs of all programs.
const FIRST_MAX: usize = 128 << 10;
const MORE: &[u8] = b"M";

/// Why the server cannot take the ingress over.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The socket.
    #[error("cannot take the ingress over: {0}")]
    Io(#[from] io::Error),
    /// The report.
    #[error("the report of the ingress is malformed: {0}")]
    Report(#[from] serde_json::Error),
    /// The maps.
    #[error("cannot take the maps of the ingress over: {0}")]
    Maps(#[from] MapError),
    /// The AF_XDP sockets.
    #[error("cannot take an AF_XDP socket of the ingress over: {0}")]
    Socket(#[from] XskError),
    /// There are fewer descriptors than were announced.
    #[error("descriptors of the ingress are missing")]
    Missing,
}

#[derive(Serialize, Deserialize)]
struct First {
    report: IngressReport,
    listeners: usize,
    maps: usize,
    sproxy: usize,
    sockets: Vec<Handed>,
}

/// An AF_XDP socket without its two descriptors.
#[derive(Serialize, Deserialize)]
struct Handed {
    mtu: u32,
    frame_size: u32,
    receive: u32,
    send: u32,
}

/// An AF_XDP socket at a receive queue of an interface.
#[derive(Debug)]
pub struct QueueSocket {
    /// Bytes of the largest IP packet that the interface sends.
    pub mtu: u32,
    /// The socket.
    pub opened: Opened,
}

impl QueueSocket {
    fn taken_apart(self) -> (Handed, [OwnedFd; 2]) {
        let Opened {
            socket,
            memory,
            layout,
        } = self.opened;
        let handed = Handed {
            mtu: self.mtu,
            frame_size: layout.frame_size,
            receive: layout.receive,
            send: layout.send,
        };
        (handed, [socket, memory])
    }

    fn put_together(handed: &Handed, fds: &mut impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self {
            mtu: handed.mtu,
            opened: Opened {
                socket: fds.next()?,
                memory: fds.next()?,
                layout: Layout {
                    frame_size: handed.frame_size,
                    receive: handed.receive,
                    send: handed.send,
                },
            },
        })
    }
}

/// What the server gets.
#[derive(Debug)]
pub struct Handover {
    /// What is loaded and attached.
    pub report: IngressReport,
    /// Listens for connections to functions' ports: of IPv4, and of IPv6 if the host has it.
    pub listeners: Vec<OwnedFd>,
    /// The maps; none where nothing is loaded.
    pub maps: Option<Descriptors>,
    /// The maps of the program that carries chains' descriptors; none where it is not loaded.
    pub sproxy: Option<sproxy::Descriptors>,
    /// AF_XDP sockets, which are in the maps already.
    pub sockets: Vec<QueueSocket>,
}

impl Handover {
    /// A socket in which all of it waits.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn pass_on(self) -> io::Result<OwnedFd> {
        let maps = self.maps.map(Descriptors::into_inner).unwrap_or_default();
        let sproxy = self.sproxy.map(sproxy::Descriptors::into_inner);
        let sproxy = sproxy.unwrap_or_default();
        let sockets = self.sockets.into_iter().map(QueueSocket::taken_apart);
        let (sockets, of_sockets): (Vec<_>, Vec<_>) = sockets.unzip();
        let first = First {
            report: self.report,
            listeners: self.listeners.len(),
            maps: maps.len(),
            sproxy: sproxy.len(),
            sockets,
        };
        let first = serde_json::to_vec(&first)?;
        let fds = self.listeners.into_iter().chain(maps).chain(sproxy);
        let fds: Vec<OwnedFd> = fds.chain(of_sockets.into_iter().flatten()).collect();
        queued(&first, &fds)
    }

    /// Takes it from there.
    ///
    /// # Errors
    /// [`HandoverError`].
    pub fn receive(socket: &OwnedFd) -> Result<Self, HandoverError> {
        let mut bytes = vec![0; FIRST_MAX];
        let (length, mut fds) = wire::receive(socket, &mut bytes)?;
        let first: First = serde_json::from_slice(&bytes[..length])?;
        let before_sockets = first.listeners + first.maps + first.sproxy;
        while fds.len() < before_sockets + 2 * first.sockets.len() {
            let (_, more) = wire::receive(socket, &mut [0; MORE.len()])?;
            if more.is_empty() {
                return Err(HandoverError::Missing);
            }
            fds.extend(more);
        }
        let mut of_sockets = fds.split_off(before_sockets).into_iter();
        let sockets = first.sockets.iter();
        let sockets: Option<Vec<_>> = sockets
            .map(|handed| QueueSocket::put_together(handed, &mut of_sockets))
            .collect();
        let sproxy = fds.split_off(first.listeners + first.maps);
        let sproxy = match sproxy.len() {
            0 => None,
            _ => Some(sproxy::Descriptors::new(sproxy)?),
        };
        let maps = fds.split_off(first.listeners);
        let maps = match maps.len() {
            0 => None,
            _ => Some(Descriptors::new(maps)?),
        };
        Ok(Self {
            report: first.report,
            listeners: fds,
            maps,
            sproxy,
            sockets: sockets.ok_or(HandoverError::Missing)?,
        })
    }
}

/// A socket in which descriptors wait: they stay open as long as it is.
///
/// # Errors
/// No descriptors left.
pub fn hold(fds: &[OwnedFd]) -> io::Result<OwnedFd> {
    queued(MORE, fds)
}

fn queued(first: &[u8], fds: &[OwnedFd]) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let fds: Vec<BorrowedFd<'_>> = fds.iter().map(|fd| fd.as_fd()).collect();
    let (head, rest) = fds.split_at(fds.len().min(AT_ONCE));
    wire::send(&ours, first, head)?;
    for some in rest.chunks(AT_ONCE) {
        wire::send(&ours, MORE, some)?;
    }
    Ok(theirs)
}
