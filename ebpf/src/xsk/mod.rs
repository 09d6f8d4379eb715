//! AF_XDP sockets. [`open`] needs root (CAP_NET_RAW); what it returns is three things that can be sent to a process without
//! privileges, which makes a [`Socket`] of them and receives and sends frames with it.
//!
//! Of the crates for AF_XDP, none can take over a socket that another process made, which the split needs; the rings are
//! small enough to be kept here. They and the frames lie in memory that the kernel also writes: [`ring`] is where that is.

mod memory;
mod open;
mod ring;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
    XdpDesc, XdpDescOptions, XdpStatistics,
};
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

pub use open::{Layout, Opened, XskError, open};

use crate::records::{STAMP_MAGIC, Stamp};
use memory::Memory;
use open::refused;
use ring::Ring;

/// A packet that was received.
#[derive(Debug)]
pub struct Received<'a> {
    /// The frame, from its Ethernet header on.
    pub frame: &'a [u8],
    /// When the ingress saw it, and for which function: where the driver has room for that.
    pub stamp: Option<Stamp>,
}

/// A socket in use. The memory and rings are mapped here; no call but [`kick`](Self::kick) enters the kernel.
pub struct Socket {
    // The rings first: they lie in mappings of the socket.
    receive: Ring<XdpDesc>,
    send: Ring<XdpDesc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    memory: Memory,
    socket: OwnedFd,
    layout: Layout,
    /// Addresses of frames that can be sent.
    free: Vec<u64>,
}

impl Socket {
    /// Takes over a socket that [`open`] made, here or in another process, and gives the kernel all frames to receive into.
    /// A socket is taken over once.
    ///
    /// # Errors
    /// [`XskError`].
    pub fn new(opened: Opened) -> Result<Self, XskError> {
        let Opened {
            socket,
            memory,
            layout,
        } = opened;
        layout.check()?;
        let memory =
            Memory::shared(memory.as_fd(), layout.bytes()).map_err(refused("map its memory"))?;
        let offsets = sockopt::xdp_mmap_offsets(&socket).map_err(refused("ask for its rings"))?;
        let map = refused("map a ring");
        let fd = socket.as_fd();
        let receive = Ring::map(fd, XDP_PGOFF_RX_RING, offsets.rx, layout.receive).map_err(&map)?;
        let send = Ring::map(fd, XDP_PGOFF_TX_RING, offsets.tx, layout.send).map_err(&map)?;
        let mut fill =
            Ring::map(fd, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, layout.receive).map_err(&map)?;
        let completion =
            Ring::map(fd, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, layout.send).map_err(&map)?;
        let size = u64::from(layout.frame_size);
        let (receivable, all) = (
            u64::from(layout.receive),
            u64::from(layout.receive + layout.send),
        );
        for frame in 0..receivable {
            fill.push(frame * size);
        }
        fill.submit();
        let free = (receivable..all).map(|frame| frame * size).collect();
        Ok(Self {
            receive,
            send,
            fill,
            completion,
            memory,
            socket,
            layout,
            free,
        })
    }

    /// Hands over packets that have come, `most` of them at most, and says how many. Never waits: poll the descriptor.
    pub fn receive(&mut self, most: usize, mut each: impl FnMut(Received<'_>)) -> usize {
        let mut received = 0;
        while received < most {
            let Some(descriptor) = self.receive.pop() else {
                break;
            };
            received += 1;
            let address = usize::try_from(descriptor.addr).unwrap_or(usize::MAX);
            let stamp = address
                .checked_sub(size_of::<Stamp>())
                .and_then(|at| self.take_stamp(at));
            if let Some(frame) = self.memory.bytes(address, descriptor.len as usize) {
                each(Received { frame, stamp });
            }
            self.fill
                .push(descriptor.addr & !(u64::from(self.layout.frame_size) - 1));
        }
        self.receive.release();
        self.fill.submit();
        received
    }

    /// The stamp in front of a frame. It is erased, so that it is not found again in front of a frame without one.
    fn take_stamp(&mut self, at: usize) -> Option<Stamp> {
        let bytes = self.memory.bytes_mut(at, size_of::<Stamp>())?;
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let stamp = Stamp {
            time: u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes")),
            function: number(8),
            magic: number(12),
        };
        bytes[12..].fill(0);
        (stamp.magic == STAMP_MAGIC).then_some(stamp)
    }

    /// Queues a packet that `write` puts into a frame, whose length it says, or `None` for no packet after all. Says whether
    /// it was queued: not if all frames are on their way. [`kick`](Self::kick) sends what is queued.
    pub fn send(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        self.reap();
        let Some(address) = self.free.pop() else {
            return false;
        };
        let size = self.layout.frame_size as usize;
        let frame = usize::try_from(address)
            .ok()
            .and_then(|at| self.memory.bytes_mut(at, size));
        let written = frame.and_then(write).filter(|length| *length <= size);
        let Some(length) = written else {
            self.free.push(address);
            return false;
        };
        self.send.push(XdpDesc {
            addr: address,
            len: length as u32,
            options: XdpDescOptions::empty(),
        });
        self.send.submit();
        true
    }

    /// Takes back frames that were sent.
    fn reap(&mut self) {
        while let Some(address) = self.completion.pop() {
            self.free.push(address);
        }
        self.completion.release();
    }

    /// Tells the kernel to send what is queued and to look for frames to receive into, where it wants to be told.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub fn kick(&mut self) -> Result<(), Errno> {
        let again = |error: &Errno| {
            matches!(
                *error,
                Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR
            )
        };
        if self.send.needs_wakeup() {
            send(&self.socket, &[], SendFlags::DONTWAIT)
                .map(drop)
                .or_else(|error| if again(&error) { Ok(()) } else { Err(error) })?;
        }
        if self.fill.needs_wakeup() {
            let mut nothing = [0_u8; 0];
            recv(&self.socket, &mut nothing[..], RecvFlags::DONTWAIT)
                .map(drop)
                .or_else(|error| if again(&error) { Ok(()) } else { Err(error) })?;
        }
        Ok(())
    }

    /// What the kernel could not deliver or send.
    ///
    /// # Errors
    /// What it answered.
    pub fn statistics(&self) -> Result<XdpStatistics, Errno> {
        sockopt::xdp_statistics(&self.socket)
    }

    /// Its sizes.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
