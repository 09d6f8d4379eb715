//! Datagrams that AF_XDP takes past the kernel's stack: read from the sockets of all receive queues, handed to whoever serves
//! the port, answered by the way they came.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hearth_ebpf::clock;
use hearth_ebpf::datagram::{Checksum, Datagram};
use hearth_ebpf::xsk::{Received, Socket, XskError};
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::sync::mpsc;

use super::handover::QueueSocket;
use crate::watched::Watched;

/// Frames that are taken from a socket before another has its turn.
const AT_ONCE: usize = 64;
/// Datagrams of a port that wait; what comes beyond is dropped, as by a socket whose buffer is full.
const WAITING_MAX: usize = 1024;
/// Bytes of an Ethernet header with two VLAN tags, which no MTU counts.
const LINK_HEADERS: usize = 14 + 2 * 4;

/// The sockets of all receive queues.
pub(super) struct Datagrams {
    queues: Vec<Arc<Queue>>,
    ports: Mutex<HashMap<u16, mpsc::Sender<XdpDatagram>>>,
    /// What functions sent, by their number in the maps: packets and bytes. No program sees these frames leave.
    sent: Vec<[AtomicU64; 2]>,
    dropped: AtomicU64,
    wrong: AtomicU64,
}

struct Queue {
    /// Bytes of the largest IP packet that its interface sends.
    mtu: usize,
    socket: Mutex<Socket>,
    watched: Watched,
}

/// What became of frames after they were received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// The function did not keep up.
    pub(super) waiting: u64,
    /// Their checksum is wrong.
    pub(super) checksum: u64,
    /// The socket had no free frames.
    pub(super) socket: u64,
}

/// A datagram that came by AF_XDP.
pub struct XdpDatagram {
    /// The whole frame; a reply needs its headers.
    frame: Bytes,
    /// What it carries.
    pub payload: Bytes,
    /// Who sent it.
    pub source: SocketAddr,
    /// To which address of this host.
    pub destination: IpAddr,
    /// How long ago the kernel saw it; none where the driver has no room for a time stamp.
    seen: Option<u64>,
    function: u32,
    queue: Arc<Queue>,
    of: Arc<Datagrams>,
}

/// The datagrams of a port, until it is dropped.
pub struct PortDatagrams {
    port: u16,
    receiver: mpsc::Receiver<XdpDatagram>,
    sender: mpsc::Sender<XdpDatagram>,
    of: Arc<Datagrams>,
}

impl Datagrams {
    /// Reads from these sockets until the server ends. Functions have numbers up to `last`. Needs a runtime.
    ///
    /// # Errors
    /// [`XskError`]; the runtime's are of its kind, too.
    pub(super) fn start(sockets: Vec<QueueSocket>, last: u32) -> Result<Arc<Self>, XskError> {
        let mut queues = Vec::new();
        for QueueSocket { mtu, opened, .. } in sockets {
            let watch = |error: std::io::Error| XskError::Refused {
                step: "wait for its datagrams",
                source: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO),
            };
            let descriptor = opened.socket.try_clone().map_err(watch)?;
            let watched = Watched::new(descriptor, Interest::READABLE).map_err(watch)?;
            queues.push(Arc::new(Queue {
                mtu: mtu as usize,
                socket: Mutex::new(Socket::new(opened)?),
                watched,
            }));
        }
        let datagrams = Arc::new(Self {
            queues,
            ports: Mutex::default(),
            sent: (0..=last).map(|_| Default::default()).collect(),
            dropped: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
        });
        for queue in &datagrams.queues {
            tokio::spawn(datagrams.clone().read(queue.clone()));
        }
        Ok(datagrams)
    }

    async fn read(self: Arc<Self>, queue: Arc<Queue>) {
        // An error says that the runtime ends.
        while let Ok(mut ready) = queue.watched.readable().await {
            let hand_on = |received: Received<'_>| self.hand_on(&queue, &received);
            let received = queue.socket.lock().receive(AT_ONCE, hand_on);
            if received < AT_ONCE {
                ready.clear_ready();
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    fn hand_on(self: &Arc<Self>, queue: &Arc<Queue>, received: &Received<'_>) {
        let Some(datagram) = Datagram::parse(received.frame) else {
            return;
        };
        let destination = datagram.destination();
        let Some(port) = self.ports.lock().get(&destination.port()).cloned() else {
            return;
        };
        if datagram.checksum() == Checksum::Wrong {
            self.wrong.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let frame = Bytes::copy_from_slice(received.frame);
        let start = datagram.payload().as_ptr().addr() - received.frame.as_ptr().addr();
        let payload = frame.slice(start..start + datagram.payload().len());
        let datagram = XdpDatagram {
            payload,
            source: datagram.source(),
            destination: destination.ip(),
            seen: received.stamp.map(|stamp| stamp.time),
            function: received.stamp.map_or(0, |stamp| stamp.function),
            frame,
            queue: queue.clone(),
            of: self.clone(),
        };
        if port.try_send(datagram).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The datagrams of a port from now on.
    pub(super) fn of_port(self: &Arc<Self>, port: u16) -> PortDatagrams {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.ports.lock().insert(port, sender.clone());
        PortDatagrams {
            port,
            receiver,
            sender,
            of: self.clone(),
        }
    }

    /// Begins to count anew what a function sends.
    pub(super) fn reset(&self, function: u32) {
        for counter in self.sent.get(function as usize).into_iter().flatten() {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Packets and bytes that a function has sent.
    pub(super) fn sent(&self, function: u32) -> [u64; 2] {
        let counters = self.sent.get(function as usize);
        counters.map_or([0; 2], |counters| {
            counters
                .each_ref()
                .map(|counter| counter.load(Ordering::Relaxed))
        })
    }

    /// What was lost on the way.
    pub(super) fn lost(&self) -> Lost {
        let statistics = self.queues.iter().filter_map(|queue| {
            let socket = queue.socket.lock();
            socket.statistics().ok()
        });
        Lost {
            waiting: self.dropped.load(Ordering::Relaxed),
            checksum: self.wrong.load(Ordering::Relaxed),
            socket: statistics
                .map(|one| one.rx_dropped + one.rx_ring_full.unwrap_or_default())
                .sum(),
        }
    }
}

impl XdpDatagram {
    /// How long ago the kernel saw it, where it says so.
    pub fn age(&self) -> Option<Duration> {
        let seen = self.seen?;
        Some(Duration::from_nanos(clock::now().saturating_sub(seen)))
    }

    /// Sends a reply by the way that it came. Says whether it could: not if it is too large, or too much is on its way.
    pub fn reply(&self, payload: &[u8]) -> bool {
        let Some(datagram) = Datagram::parse(&self.frame) else {
            return false;
        };
        let mut length = None;
        let mut socket = self.queue.socket.lock();
        let queued = socket.send(|frame| {
            let most = frame.len().min(self.queue.mtu + LINK_HEADERS);
            length = datagram
                .reply(payload, &mut frame[..most])
                .filter(|length| length - datagram.link_header() <= self.queue.mtu);
            length
        });
        if !queued || socket.kick().is_err() {
            return false;
        }
        drop(socket);
        if let Some([packets, bytes]) = self.of.sent.get(self.function as usize) {
            packets.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(length.unwrap_or_default() as u64, Ordering::Relaxed);
        }
        true
    }
}

impl PortDatagrams {
    /// The next one. May be cancelled.
    pub async fn receive(&mut self) -> XdpDatagram {
        match self.receiver.recv().await {
            Some(datagram) => datagram,
            // It has a sender of its own.
            None => std::future::pending().await,
        }
    }

    /// The next one, if there is one.
    pub fn try_receive(&mut self) -> Option<XdpDatagram> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for PortDatagrams {
    fn drop(&mut self) {
        let mut ports = self.of.ports.lock();
        // Another may have been given the port meanwhile.
        if ports
            .get(&self.port)
            .is_some_and(|current| current.same_channel(&self.sender))
        {
            ports.remove(&self.port);
        }
    }
}
