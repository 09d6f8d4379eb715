//! The only accesses to memory that other processes can write.
//!
//! Shared words are atomics. Payloads are copied with plain accesses, as in the channel: a racing write can only garble the
//! copied bytes, and nothing is decided by them before they are private.

use core::ops::{Deref, Range};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use crate::accounts::Entry;
use crate::error::ChainError;
use crate::latest::Latest;
use crate::mapping::Mapping;
use crate::sync::PeerWord;

/// Distance that keeps words of different writers out of each other's way: processors fetch cache lines in pairs.
pub(crate) const LINE: usize = 128;

/// Marks a mapping that this process may write to.
#[derive(Debug)]
pub(crate) enum Writable {}
/// Marks a mapping that faults when it is written to.
#[derive(Debug)]
pub(crate) enum ReadOnly {}

/// A mapped file. `A` says what this process may do with it.
#[derive(Debug)]
pub(crate) struct Memory<A> {
    map: Mapping,
    _access: core::marker::PhantomData<A>,
}

impl<A> Memory<A> {
    /// A mapping of which `A` is true.
    pub(crate) fn new(map: Mapping) -> Self {
        Self {
            map,
            _access: core::marker::PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// The address of `len` bytes at `at`, which must be there and aligned: callers compute them from shapes that were
    /// checked against the file's size.
    #[inline]
    fn at(&self, at: usize, len: usize, align: usize) -> *mut u8 {
        let inside = at.checked_add(len).is_some_and(|end| end <= self.map.len());
        assert!(inside && at.is_multiple_of(align));
        // SAFETY: just checked to lie in the mapping.
        unsafe { self.map.base().add(at) }
    }

    /// A 32-bit word that the peer writes.
    pub(crate) fn peer_word(self: &Arc<Self>, at: usize) -> Seen<A> {
        Seen {
            word: self.at(at, 4, 4).cast_const().cast(),
            _memory: Arc::clone(self),
        }
    }

    /// A 64-bit word, loaded once.
    #[inline]
    pub(crate) fn load(&self, at: usize) -> u64 {
        let word = self.at(at, 8, 8).cast_const().cast::<AtomicU64>();
        // SAFETY: `at` checked that an aligned word lies there; relaxed loads are defined on read-only memory.
        unsafe { &*word }.load(Ordering::Relaxed)
    }

    /// The ledger's lines.
    pub(crate) fn ledger(self: &Arc<Self>, at: usize, blocks: u32) -> Ledger<A> {
        let entries = self.at(
            at,
            blocks as usize * size_of::<Entry>(),
            align_of::<Entry>(),
        );
        Ledger {
            entries: entries.cast_const().cast(),
            blocks: blocks as usize,
            _memory: Arc::clone(self),
        }
    }

    /// A ring's newest descriptor.
    pub(crate) fn latest(self: &Arc<Self>, at: usize) -> Copied<A> {
        let latest = self.at(at, size_of::<Latest>(), align_of::<Latest>());
        Copied {
            latest: latest.cast_const().cast(),
            _memory: Arc::clone(self),
        }
    }

    /// Where the bytes begin, for who reads them in place.
    #[inline]
    pub(crate) fn address(&self, range: Range<usize>) -> *mut u8 {
        self.at(range.start, range.len(), 1)
    }

    /// Copies bytes out, to the end of `into`.
    pub(crate) fn append_to(&self, range: Range<usize>, into: &mut Vec<u8>) {
        let len = range.len();
        let from = self.address(range);
        into.reserve(len);
        // SAFETY: `address` checked the source; `reserve` left `len` bytes of capacity, which the copy initialises before
        // the length covers them. Private memory does not overlap with the mapping.
        unsafe {
            ptr::copy_nonoverlapping(from, into.as_mut_ptr().add(into.len()), len);
            into.set_len(into.len() + len);
        }
    }
}

impl Memory<Writable> {
    /// A 32-bit word that this side writes.
    pub(crate) fn own_word(self: &Arc<Self>, at: usize) -> Own {
        Own {
            word: self.at(at, 4, 4).cast_const().cast(),
            _memory: Arc::clone(self),
        }
    }

    /// Has the processor fetch a cache line as its own, and goes on. Elsewhere than on x86-64 lines come as they are used.
    #[inline]
    pub(crate) fn claim(&self, at: usize) {
        let line = self.at(at, 1, 1);
        // The compiler's own prefetch for writing is one for reading where it does not know that all processors have this one.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch changes nothing and does not fault; x86-64 processors that do not have it do nothing instead.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = line;
    }

    /// Stores a 64-bit word.
    #[inline]
    pub(crate) fn store(&self, at: usize, value: u64) {
        let word = self.at(at, 8, 8).cast_const().cast::<AtomicU64>();
        // SAFETY: `at` checked that an aligned word lies there, and the mapping is writable.
        unsafe { &*word }.store(value, Ordering::Relaxed);
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let to = self.address(at..at + bytes.len());
        // SAFETY: `address` checked the destination; private memory does not overlap with the mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies bytes elsewhere in this mapping.
    pub(crate) fn copy(&self, from: Range<usize>, to: usize) {
        let len = from.len();
        let (from, to) = (self.address(from), self.address(to..to + len));
        // SAFETY: `address` checked both, and the mapping is writable; they may overlap.
        unsafe { ptr::copy(from, to, len) };
    }

    /// Fills bytes with zeros.
    pub(crate) fn clear(&self, range: Range<usize>) {
        let len = range.len();
        let at = self.address(range);
        // SAFETY: `address` checked the destination, and the mapping is writable.
        unsafe { ptr::write_bytes(at, 0, len) };
    }

    /// The mapping, if nobody else refers to it.
    pub(crate) fn into_mapping(self: Arc<Self>) -> Option<Mapping> {
        Arc::into_inner(self).map(|memory| memory.map)
    }

    /// As [`Mapping::collapse`].
    pub(crate) fn collapse(&self) -> Result<bool, ChainError> {
        let collapsed = self.map.collapse();
        collapsed.map_err(|errno| ChainError::os("madvise(MADV_POPULATE_WRITE)", errno))
    }
}

/// A word that this process alone writes, or the server for it when it has ended.
#[derive(Debug)]
pub(crate) struct Own {
    word: *const AtomicU32,
    _memory: Arc<Memory<Writable>>,
}

// SAFETY: the word is an atomic in a mapping that every thread may use.
unsafe impl Send for Own {}
// SAFETY: as above.
unsafe impl Sync for Own {}

impl Deref for Own {
    type Target = AtomicU32;

    #[inline]
    fn deref(&self) -> &AtomicU32 {
        // SAFETY: `own_word` checked that an aligned word lies there, and it stays mapped while `self` lives. Any bit pattern is
        // valid, and atomics may change under a shared reference.
        unsafe { &*self.word }
    }
}

/// A word that another process writes.
#[derive(Debug)]
pub(crate) struct Seen<A> {
    word: *const AtomicU32,
    _memory: Arc<Memory<A>>,
}

// SAFETY: the word is an atomic in a mapping that every thread may use.
unsafe impl<A> Send for Seen<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Seen<A> {}

impl<A> Seen<A> {
    /// Where it lies, for the kernel to sleep on.
    pub(crate) fn address(&self) -> *const AtomicU32 {
        self.word
    }

    /// The word, for the kernel to wake who sleeps on it.
    pub(crate) fn as_atomic(&self) -> &AtomicU32 {
        // SAFETY: as for `Own`; nobody stores to it through this.
        unsafe { &*self.word }
    }
}

impl<A> PeerWord for Seen<A> {
    #[inline]
    fn load(&self) -> u32 {
        // SAFETY: as for `Own`, and relaxed loads are defined on read-only memory.
        unsafe { &*self.word }.load(Ordering::Relaxed)
    }
}

/// A ring's newest descriptor.
#[derive(Debug)]
pub(crate) struct Copied<A> {
    latest: *const Latest,
    _memory: Arc<Memory<A>>,
}

// SAFETY: all of it are atomics in a mapping that every thread may use.
unsafe impl<A> Send for Copied<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Copied<A> {}

impl<A> Copied<A> {
    /// As [`Latest::read`].
    #[inline]
    pub(crate) fn read(&self, after: u32) -> Option<[u64; 2]> {
        // SAFETY: `latest` checked that it lies there, aligned, and it stays mapped while `self` lives. Any bit pattern is
        // valid, atomics may change under a shared reference, and this only makes relaxed loads.
        unsafe { &*self.latest }.read(after)
    }
}

impl Copied<Writable> {
    /// As [`Latest::write`].
    #[inline]
    pub(crate) fn write(&self, after: u32, words: [u64; 2]) {
        // SAFETY: as above, and the mapping is writable.
        unsafe { &*self.latest }.write(after, words);
    }
}

/// A pool's ledger.
#[derive(Debug)]
pub(crate) struct Ledger<A> {
    entries: *const Entry,
    blocks: usize,
    _memory: Arc<Memory<A>>,
}

// SAFETY: the entries are atomics in a mapping that every thread may use.
unsafe impl<A> Send for Ledger<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Ledger<A> {}

impl<A> Deref for Ledger<A> {
    type Target = [Entry];

    #[inline]
    fn deref(&self) -> &[Entry] {
        // SAFETY: `ledger` checked that so many aligned entries lie there, and they stay mapped while `self` lives. All that
        // changes in them are atomics.
        unsafe { core::slice::from_raw_parts(self.entries, self.blocks) }
    }
}
