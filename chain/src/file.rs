//! Sealed memory files: who may write what, enforced by the kernel.
//!
//! | file | written by | seals | how the others get it |
//! | --- | --- | --- | --- |
//! | a pool's blocks | all of the chain | size | read and write |
//! | a pool's ledger, the route table | the gateway | size, future writes | read-only by the seal |
//! | an instance's board | that instance | size | read-only by the descriptor |
//!
//! **Size** (`F_SEAL_SHRINK`, `F_SEAL_GROW`): no access can fault because a peer has truncated the file. **`F_SEAL_SEAL`**: no peer can
//! add a seal; one that sealed the blocks against future writes would keep later instances from starting. **Future writes**
//! (`F_SEAL_FUTURE_WRITE`): the gateway maps the file, seals it, and only then passes it on: no process can map it
//! writable any more, write to it or punch holes into it. `F_SEAL_WRITE` would refuse the gateway's own mapping. A board cannot be sealed so, as
//! its owner is yet to map it: its peers get descriptors opened read-only, and the file's mode (0400) keeps them from opening
//! it anew through `/proc`, as they run under other users than the server.
//!
//! A file of the blocks can be punched by a member (`MADV_REMOVE`): it then reads as zeros, and takes memory again when
//! touched. That is why no pool lies in hugetlbfs: there the page would go back to the host's reserve, and the gateway's next
//! access would be a SIGBUS if somebody else took it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create, open,
};
use rustix::io::Errno;
use rustix::mm::ProtFlags;

use crate::error::ChainError;
use crate::mapping::Mapping;
use crate::memory::{Memory, ReadOnly, Writable};

/// What keeps every access inside the file.
const SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A file in memory whose size is final.
#[derive(Debug)]
pub(crate) struct File {
    what: &'static str,
    fd: OwnedFd,
    bytes: usize,
}

impl File {
    /// A new one, full of zeros, that nobody else can open.
    pub(crate) fn create(what: &'static str, bytes: u64) -> Result<Self, ChainError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Not executable where the kernel knows the flag (6.3 and later).
        let fd = match memfd_create("hearth-chain", flags | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create("hearth-chain", flags),
            made => made,
        };
        let fd = fd.map_err(|errno| ChainError::os("memfd_create", errno))?;
        ftruncate(&fd, bytes).map_err(|errno| ChainError::os("ftruncate", errno))?;
        fchmod(&fd, Mode::RUSR).map_err(|errno| ChainError::os("fchmod", errno))?;
        let file = Self {
            what,
            fd,
            bytes: usize::try_from(bytes).map_err(|_| ChainError::os("mmap", Errno::NOMEM))?,
        };
        file.seal(SIZE)?;
        Ok(file)
    }

    /// One that was passed on by the server.
    pub(crate) fn passed(
        what: &'static str,
        fd: OwnedFd,
        expected: Option<u64>,
    ) -> Result<Self, ChainError> {
        let seals = fcntl_get_seals(&fd).map_err(|_| ChainError::NotA(what))?;
        if !seals.contains(SIZE | SealFlags::SEAL) {
            return Err(ChainError::NotSealed(what));
        }
        let stat = fstat(&fd).map_err(|errno| ChainError::os("fstat", errno))?;
        let found = u64::try_from(stat.st_size).unwrap_or_default();
        let expected = expected.unwrap_or(found);
        if found != expected || found == 0 {
            return Err(ChainError::FileSize {
                what,
                expected,
                found,
            });
        }
        let bytes = usize::try_from(found).map_err(|_| ChainError::os("mmap", Errno::NOMEM))?;
        Ok(Self { what, fd, bytes })
    }

    /// Refuses a file that somebody else than the server could write.
    pub(crate) fn written_by_the_server_alone(self) -> Result<Self, ChainError> {
        let seals = fcntl_get_seals(&self.fd).map_err(|_| ChainError::NotA(self.what))?;
        if seals.contains(SealFlags::FUTURE_WRITE) {
            Ok(self)
        } else {
            Err(ChainError::NotSealed(self.what))
        }
    }

    fn seal(&self, seals: SealFlags) -> Result<(), ChainError> {
        fcntl_add_seals(&self.fd, seals)
            .map_err(|errno| ChainError::os("fcntl(F_ADD_SEALS)", errno))
    }

    /// Lets nobody add a seal. What is mapped writable later still is.
    pub(crate) fn seal_size(&self) -> Result<(), ChainError> {
        self.seal(SealFlags::SEAL)
    }

    /// Lets nobody write from now on but through mappings that exist.
    pub(crate) fn seal_future_writes(&self) -> Result<(), ChainError> {
        self.seal(SealFlags::FUTURE_WRITE | SealFlags::SEAL)
    }

    /// Maps it to write.
    pub(crate) fn map(&self) -> Result<Arc<Memory<Writable>>, ChainError> {
        self.mapped(ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps it to read.
    pub(crate) fn map_read_only(&self) -> Result<Arc<Memory<ReadOnly>>, ChainError> {
        self.mapped(ProtFlags::READ)
    }

    fn mapped<A>(&self, protection: ProtFlags) -> Result<Arc<Memory<A>>, ChainError> {
        let map = Mapping::new(self.fd.as_fd(), self.bytes, protection);
        let map = map.map_err(|errno| ChainError::os("mmap", errno))?;
        Ok(Arc::new(Memory::new(map)))
    }

    /// A descriptor of the same open file.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd, ChainError> {
        self.fd
            .try_clone()
            .map_err(|source| ChainError::os("fcntl(F_DUPFD_CLOEXEC)", source))
    }

    /// A descriptor by which the file can only be read.
    pub(crate) fn read_only_descriptor(&self) -> Result<OwnedFd, ChainError> {
        let path = format!("/proc/self/fd/{}", self.fd.as_fd().as_raw_fd());
        open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| ChainError::os("open a memory file read-only", errno))
    }
}
