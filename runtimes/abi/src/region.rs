//! The memfd: making it, checking it, mapping it, and handing out its two ends.

use core::ptr;
use core::time::Duration;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;

use crate::area::{Area, Control};
use crate::error::AbiError;
use crate::layout::{
    HEADER_BYTES, MAGIC, PROTOCOL_VERSION, RegionHeader, TO_HOST_CONTROL, TO_WORKER_CONTROL,
    ring_size_is_valid,
};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::stamps::StampLine;

/// What makes the mapping safe to touch: the file can never be resized, so no access can fault.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A mapped region. Unmapped when the last of region, sender and receiver goes.
#[derive(Debug)]
pub(crate) struct Mapping(MmapRaw);

impl Mapping {
    /// First byte, page-aligned.
    pub(crate) fn base(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Bytes mapped.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes the header of a region that is not shared yet.
    fn write_header(&self, header: &RegionHeader) {
        assert!(self.len() >= HEADER_BYTES);
        // SAFETY: the mapping holds at least its header page and is page-aligned, the header is plain words.
        unsafe { ptr::write(self.base().cast::<RegionHeader>(), *header) };
    }

    /// Copies the region's header out.
    fn read_header(&self) -> RegionHeader {
        assert!(self.len() >= HEADER_BYTES);
        // SAFETY: as above; every bit pattern is a valid header.
        unsafe { ptr::read_volatile(self.base().cast::<RegionHeader>()) }
    }
}

/// One side's sender and receiver.
#[derive(Debug)]
pub struct Endpoint {
    /// Sends to the peer.
    pub tx: Sender,
    /// Receives from the peer.
    pub rx: Receiver,
    /// Spin time before sleeping, as the host has set it.
    pub busy_poll: Duration,
    /// When the worker took the request and its handler ran: written by the worker, read by the host.
    pub stamps: StampLine,
}

/// A mapped channel of which neither end has been taken.
///
/// The host makes it ([`Region::create`]) and passes the descriptor on, the worker maps it ([`Region::attach`]).
#[derive(Debug)]
pub struct Region {
    mapping: Arc<Mapping>,
    header: RegionHeader,
}

impl Region {
    /// Makes a channel with rings of `ring_bytes` each way ([`crate::layout::DEFAULT_RING_BYTES`] unless there is a reason),
    /// and the descriptor by which the worker maps it. Memory is taken page by page as the rings are first used, but for the page
    /// that each begins with.
    ///
    /// # Errors
    /// `ring_bytes` is not a power of two from 4 KiB to 64 MiB, or the system refuses the memory or the descriptor.
    pub fn create(ring_bytes: u32) -> Result<(Self, OwnedFd), AbiError> {
        if !ring_size_is_valid(ring_bytes) {
            return Err(AbiError::RingSize(ring_bytes));
        }
        let header = RegionHeader::new(ring_bytes);
        let fd = sealable_memfd()?;
        ftruncate(&fd, header.region_bytes()).map_err(|errno| AbiError::os("ftruncate", errno))?;
        fcntl_add_seals(&fd, SEALS).map_err(|errno| AbiError::os("fcntl(F_ADD_SEALS)", errno))?;
        let mapping = map(&fd, header.region_bytes())?;
        mapping.write_header(&header);
        let region = Self::of(mapping, &header);
        region.populate_beginnings();
        Ok((region, fd))
    }

    /// Sets how long the worker spins for its next request before it sleeps (in whole microseconds; zero, the default,
    /// disables spinning). To be called before the descriptor is passed on: the worker reads it once.
    pub fn set_busy_poll(&mut self, busy_poll: Duration) {
        self.header.busy_poll_us = u32::try_from(busy_poll.as_micros()).unwrap_or(u32::MAX);
        self.mapping.write_header(&self.header);
    }

    /// Maps a channel that the host made. The descriptor may be closed afterwards.
    ///
    /// # Errors
    /// The descriptor is not a sealed, unused channel of this version, or mapping it fails.
    pub fn attach(fd: BorrowedFd<'_>) -> Result<Self, AbiError> {
        let seals =
            fcntl_get_seals(fd).map_err(|errno| AbiError::os("fcntl(F_GET_SEALS)", errno))?;
        if !seals.contains(SEALS) {
            return Err(AbiError::NotSealed);
        }
        // Sealed, so the size that is checked is the size that stays.
        let stat = fstat(fd).map_err(|errno| AbiError::os("fstat", errno))?;
        let found = u64::try_from(stat.st_size).unwrap_or_default();
        if found <= HEADER_BYTES as u64 {
            return Err(AbiError::FileSize {
                expected: HEADER_BYTES as u64,
                found,
            });
        }
        let largest = RegionHeader::new(crate::layout::MAX_RING_BYTES).region_bytes();
        if found > largest {
            return Err(AbiError::FileSize {
                expected: largest,
                found,
            });
        }
        let mapping = map(fd, found)?;
        let header = mapping.read_header();
        check(&header, found)?;
        let region = Self::of(mapping, &header);
        region.check_unused()?;
        region.populate_beginnings();
        Ok(region)
    }

    /// The host's end: sends to the worker, and takes the worker for hostile.
    #[must_use]
    pub fn host(self) -> Endpoint {
        Endpoint {
            tx: Sender::new(self.to_worker()),
            rx: Receiver::new(self.to_host()),
            busy_poll: self.busy_poll(),
            stamps: StampLine::new(&self.mapping),
        }
    }

    /// The worker's end.
    #[must_use]
    pub fn worker(self) -> Endpoint {
        Endpoint {
            tx: Sender::new(self.to_host()),
            rx: Receiver::new(self.to_worker()),
            busy_poll: self.busy_poll(),
            stamps: StampLine::new(&self.mapping),
        }
    }

    fn busy_poll(&self) -> Duration {
        Duration::from_micros(self.header.busy_poll_us.into())
    }

    fn of(mapping: Mapping, header: &RegionHeader) -> Self {
        Self {
            mapping: Arc::new(mapping),
            header: *header,
        }
    }

    /// Maps the first page of each ring, so that a first request does not fault them in (`MADV_POPULATE_WRITE` in madvise(2)). A
    /// kernel before 5.14 leaves them to the first request.
    fn populate_beginnings(&self) {
        let to_host = HEADER_BYTES + self.header.to_worker_bytes as usize;
        for beginning in [HEADER_BYTES, to_host] {
            let _ = self
                .mapping
                .0
                .advise_range(Advice::PopulateWrite, beginning, 1);
        }
    }

    /// Refuses a region in which a worker has already moved its positions: both sides count from zero.
    fn check_unused(&self) -> Result<(), AbiError> {
        use core::sync::atomic::Ordering::Relaxed;
        let received = self.to_worker().0.tail.0.load(Relaxed);
        let sent = self.to_host().0.head.0.position.load(Relaxed);
        if received == 0 && sent == 0 {
            Ok(())
        } else {
            Err(AbiError::AlreadyUsed)
        }
    }

    fn to_worker(&self) -> (Control, Area) {
        let area = Area::new(
            Arc::clone(&self.mapping),
            HEADER_BYTES,
            self.header.to_worker_bytes,
        );
        (
            Control::new(Arc::clone(&self.mapping), TO_WORKER_CONTROL),
            area,
        )
    }

    fn to_host(&self) -> (Control, Area) {
        let at = HEADER_BYTES + self.header.to_worker_bytes as usize;
        let area = Area::new(Arc::clone(&self.mapping), at, self.header.to_host_bytes);
        (
            Control::new(Arc::clone(&self.mapping), TO_HOST_CONTROL),
            area,
        )
    }

    /// Both ends of a channel in anonymous memory: for unit tests, and for Miri, which knows no memfd.
    #[cfg(test)]
    pub(crate) fn anonymous(ring_bytes: u32) -> (Endpoint, Endpoint) {
        let header = RegionHeader::new(ring_bytes);
        let map = MmapOptions::new()
            .len(header.region_bytes() as usize)
            .map_anon()
            .expect("memory");
        let mapping = Mapping(map.into());
        mapping.write_header(&header);
        let host = Self::of(mapping, &header);
        let worker = Self {
            mapping: Arc::clone(&host.mapping),
            ..host
        };
        (host.host(), worker.worker())
    }
}

/// A sealable memfd, non-executable if the kernel supports that flag (6.3 and later).
fn sealable_memfd() -> Result<OwnedFd, AbiError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create("hearth-channel", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create("hearth-channel", flags),
        made => made,
    }
    .map_err(|errno| AbiError::os("memfd_create", errno))
}

/// Maps `len` bytes of `fd`, shared and writable.
fn map<Fd: std::os::fd::AsFd>(fd: Fd, len: u64) -> Result<Mapping, AbiError> {
    use std::os::fd::AsRawFd;
    let len = usize::try_from(len).map_err(|_| AbiError::os("mmap", Errno::NOMEM))?;
    let map = MmapOptions::new().len(len).map_raw(fd.as_fd().as_raw_fd());
    map.map(Mapping)
        .map_err(|source| AbiError::os("mmap", source))
}

/// Checks a region's header against this version and the file's size.
fn check(header: &RegionHeader, file_bytes: u64) -> Result<(), AbiError> {
    if header.magic != MAGIC {
        return Err(AbiError::Magic(header.magic));
    }
    if header.version != PROTOCOL_VERSION || header.header_bytes as usize != HEADER_BYTES {
        return Err(AbiError::Version {
            found: header.version,
        });
    }
    for ring_bytes in [header.to_worker_bytes, header.to_host_bytes] {
        if !ring_size_is_valid(ring_bytes) {
            return Err(AbiError::RingSize(ring_bytes));
        }
    }
    let expected = header.region_bytes();
    if expected == file_bytes {
        Ok(())
    } else {
        Err(AbiError::FileSize {
            expected,
            found: file_bytes,
        })
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
