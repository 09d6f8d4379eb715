//! AF_XDP sockets. [`open`] needs root (CAP_NET_RAW); what it returns is three things that can be sent to a process without
//! privileges, which makes a [`Socket`] of them and receives and sends frames with it.
//!
//! Of the crates for AF_XDP, none can take over a socket that another process made, which the split needs; the rings are
//! small enough to be kept here. They and the frames lie in memory that the kernel also writes: [`ring`] is where that is.

mod memory;
mod ring;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
    XdpOptionsFlags, XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};

use crate::records::{STAMP_MAGIC, Stamp};
use memory::Memory;
use ring::Ring;

/// Where a received packet begins in its frame: the kernel leaves room in front.
const HEADROOM: usize = 256;

/// The sizes of a socket's memory and rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a frame: 2,048 or 4,096.
    pub frame_size: u32,
    /// Frames for packets that are received, and entries of those rings: a power of two.
    pub receive: u32,
    /// Frames for packets that are sent, and entries of those rings: a power of two.
    pub send: u32,
}

impl Default for Layout {
    /// 4 MiB: 1,024 packets of up to 1,792 bytes each way.
    fn default() -> Self {
        Self {
            frame_size: 2_048,
            receive: 1_024,
            send: 1_024,
        }
    }
}

impl Layout {
    /// The largest packet that fits a frame.
    #[must_use]
    pub fn largest_packet(&self) -> u32 {
        self.frame_size - HEADROOM as u32
    }

    fn bytes(self) -> usize {
        self.frame_size as usize * (self.receive as usize + self.send as usize)
    }

    fn check(self) -> Result<(), XskError> {
        let is_ring = |size: u32| size.is_power_of_two() && size <= 1 << 16;
        if matches!(self.frame_size, 2_048 | 4_096) && is_ring(self.receive) && is_ring(self.send) {
            return Ok(());
        }
        Err(XskError::Layout(self))
    }
}

/// Why a socket could not be made or taken over.
#[derive(Debug, thiserror::Error)]
pub enum XskError {
    /// Sizes that the kernel or this module does not take.
    #[error("an AF_XDP socket cannot have {0:?}")]
    Layout(Layout),
    /// The kernel refused a step.
    #[error("cannot {step}: {source}")]
    Refused {
        /// What was to be done.
        step: &'static str,
        /// What the kernel said.
        source: Errno,
    },
}

fn refused(step: &'static str) -> impl Fn(Errno) -> XskError {
    move |source| XskError::Refused { step, source }
}

/// A socket that is bound, for whoever is to use it.
#[derive(Debug)]
pub struct Opened {
    /// The socket.
    pub socket: OwnedFd,
    /// The memory that its frames are in. Sealed against shrinking.
    pub memory: OwnedFd,
    /// Its sizes.
    pub layout: Layout,
    /// Whether the driver reads and writes the frames itself.
    pub zero_copy: bool,
}

/// Makes a socket and binds it to a receive queue of an interface: zero-copy where the driver can, unless `copy`.
///
/// # Errors
/// [`XskError`].
pub fn open(interface: u32, queue: u32, layout: Layout, copy: bool) -> Result<Opened, XskError> {
    layout.check()?;
    let memory = memfd_create(
        "hearth-xsk",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )
    .map_err(refused("make its memory"))?;
    ftruncate(&memory, layout.bytes() as u64).map_err(refused("make its memory"))?;
    // Whoever gets the descriptor could take the pages away from the others that map them.
    fcntl_add_seals(
        &memory,
        SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )
    .map_err(refused("seal its memory"))?;
    let mapped =
        Memory::shared(memory.as_fd(), layout.bytes()).map_err(refused("map its memory"))?;
    let socket = socket_with(
        AddressFamily::XDP,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(refused("make an AF_XDP socket"))?;
    let region = XdpUmemReg {
        addr: mapped.address(),
        len: layout.bytes() as u64,
        chunk_size: layout.frame_size,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    // From here on the kernel holds the pages itself, and this process need not map them.
    sockopt::set_xdp_umem_reg(&socket, region).map_err(refused("register its memory"))?;
    sockopt::set_xdp_umem_fill_ring_size(&socket, layout.receive)
        .map_err(refused("make a ring"))?;
    sockopt::set_xdp_umem_completion_ring_size(&socket, layout.send)
        .map_err(refused("make a ring"))?;
    sockopt::set_xdp_rx_ring_size(&socket, layout.receive).map_err(refused("make a ring"))?;
    sockopt::set_xdp_tx_ring_size(&socket, layout.send).map_err(refused("make a ring"))?;
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    flags.set(SocketAddrXdpFlags::XDP_COPY, copy);
    bind(&socket, &SocketAddrXdp::new(flags, interface, queue)).map_err(refused("bind it"))?;
    let options = sockopt::xdp_options(&socket).map_err(refused("ask for its mode"))?;
    let zero_copy = options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
    Ok(Opened {
        socket,
        memory,
        layout,
        zero_copy,
    })
}

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
            zero_copy: _,
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
