//! Makes a socket: the part that needs root.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpUmemReg, XdpUmemRegFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use super::memory::Memory;

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

    pub(super) fn bytes(self) -> usize {
        self.frame_size as usize * (self.receive as usize + self.send as usize)
    }

    pub(super) fn check(self) -> Result<(), XskError> {
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

pub(super) fn refused(step: &'static str) -> impl Fn(Errno) -> XskError {
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
}

/// Makes a socket and binds it to a receive queue of an interface. Frames are copied: with zero-copy the driver would receive
/// all of the queue's packets into this memory, so that one who does not read his datagrams stops everybody's.
///
/// # Errors
/// [`XskError`].
pub fn open(interface: u32, queue: u32, layout: Layout) -> Result<Opened, XskError> {
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
    let flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP | SocketAddrXdpFlags::XDP_COPY;
    bind(&socket, &SocketAddrXdp::new(flags, interface, queue)).map_err(refused("bind it"))?;
    Ok(Opened {
        socket,
        memory,
        layout,
    })
}
