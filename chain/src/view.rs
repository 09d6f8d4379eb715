//! A member's side of a pool.

use core::ops::Range;
use std::sync::Arc;

use crate::accounts::{Entry, owned, use_of};
use crate::descriptor::{Descriptor, Kind};
use crate::envelope::Envelope;
use crate::error::{ChainError, Refused};
use crate::file::File;
use crate::id::{Instance, Owner};
use crate::mapping::Mapping;
use crate::memory::{LINE, Ledger, Memory, ReadOnly, Writable};
use crate::notes::{self, Note};
use crate::pool::{Block, MAGIC, PoolFiles, VERSION};
use crate::shape::{ENTRIES_AT, Shape};
use crate::trace::Stay;

/// The pool, as a member has it: it reads the ledger, and reads and writes the blocks that it was sent.
#[derive(Debug, Clone)]
pub struct PoolView {
    shape: Shape,
    ledger: Arc<Ledger<ReadOnly>>,
    /// What the blocks are mapped from.
    file: Arc<File>,
    memory: Arc<Memory<Writable>>,
}

/// A private copy of a block's bytes, at the address where the block was. Unmapped when this is dropped.
#[derive(Debug)]
pub struct LeftCopy {
    _mapping: Mapping,
}

impl PoolView {
    /// Maps a pool. The shape comes from the ledger, which no member can have written.
    ///
    /// # Errors
    /// The files are not a pool's, or not sealed, or mapping them fails.
    pub fn attach(files: PoolFiles) -> Result<Self, ChainError> {
        let ledger = File::passed("ledger", files.ledger, None)?.written_by_the_server_alone()?;
        let lines = ledger.map_read_only()?;
        if lines.len() < ENTRIES_AT {
            return Err(ChainError::NotA("ledger"));
        }
        let [magic, version, blocks, block_bytes, payload_bytes] =
            [0, 8, 16, 24, 32].map(|at| lines.load(at));
        if magic != MAGIC || version != VERSION {
            return Err(ChainError::NotA("ledger"));
        }
        let word = |size| u32::try_from(size).unwrap_or(u32::MAX);
        let shape = Shape::new(word(blocks), word(block_bytes))?;
        let shape = shape.with_payload_bytes(word(payload_bytes))?;
        if lines.len() as u64 != shape.ledger_bytes() {
            return Err(ChainError::FileSize {
                what: "ledger",
                expected: shape.ledger_bytes(),
                found: lines.len() as u64,
            });
        }
        let blocks = File::passed("pool", files.blocks, Some(shape.blocks_bytes()))?;
        Ok(Self {
            shape,
            ledger: Arc::new(lines.ledger(ENTRIES_AT, shape.blocks())),
            memory: blocks.map()?,
            file: Arc::new(blocks),
        })
    }

    /// Maps all blocks anew, at other addresses, and leaves private copies of these and their runs where they were: somebody in this process
    /// still has their addresses, and must neither read nor write them once they are passed on. In the order of the blocks, each
    /// once.
    ///
    /// # Errors
    /// There is no memory. Then all addresses are still mapped, and some lead to the blocks, which must not be passed on.
    pub fn leave_copies(&mut self, blocks: &mut Vec<u32>) -> Result<Vec<LeftCopy>, ChainError> {
        let failed = |errno| ChainError::os("mremap", errno);
        blocks.sort_unstable();
        blocks.dedup();
        let ranges: Vec<_> = blocks.iter().map(|&block| self.all_of(block)).collect();
        let before = core::mem::replace(&mut self.memory, self.file.map()?);
        // Views are not cloned once handlers have addresses.
        let mapping = before
            .into_mapping()
            .ok_or_else(|| failed(rustix::io::Errno::BUSY))?;
        let left = mapping.leave_copies(&ranges).map_err(failed)?;
        Ok(left
            .into_iter()
            .map(|mapping| LeftCopy { _mapping: mapping })
            .collect())
    }

    /// A descriptor of this block has come. The lines that its receiver reads one after the other, and mostly writes later, are in
    /// another processor's cache: fetches them all at once, up to the payload's first.
    #[inline]
    pub fn expect(&self, block: u32) {
        if block < self.shape.blocks() {
            let note = self.shape.note_of(block);
            let payload = self.shape.bytes_of(block, 1).start;
            for at in [note, note + LINE / 2, payload] {
                self.memory.claim(at);
            }
        }
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Checks a descriptor that came from `source`: its block is in the pool, its length in the block or its run, and the block
    /// in use, of its generation, and of the descriptor's request on its route; or, for a call, the grant of an instance, which may pass
    /// it through several hands; from the gateway, also its own.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, descriptor: &Descriptor, source: Instance) -> Result<Payload<'_>, Refused> {
        self.shape.check(descriptor)?;
        let (block, generation) = (descriptor.block, descriptor.generation);
        let used = use_of(&self.ledger[block as usize], block, generation)?;
        let owner = used.owner;
        let is_allowed = match owner {
            Some(owner @ Owner::Request { .. }) => owner == descriptor.owner(),
            Some(Owner::Instance { .. } | Owner::Call { .. }) => descriptor.kind != Kind::Pass,
            Some(Owner::Gateway) => source == Instance::GATEWAY,
            None => false,
        };
        if !is_allowed {
            return Err(Refused::ForeignBlock { block, owner });
        }
        let room = self.shape.bytes_in(block, used.blocks);
        Shape::fits(descriptor.len, room)?;
        Ok(Payload {
            view: self,
            block,
            len: descriptor.len,
            room,
        })
    }

    /// Whose a block is, or the run that it begins; none if it is free, or of another generation.
    #[must_use]
    pub fn owner(&self, block: Block) -> Option<Owner> {
        let entry = self.ledger.get(block.index as usize)?;
        let used = use_of(entry, block.index, block.generation);
        used.ok()?.owner
    }

    /// A block as it is used now, and whose it is, or the run that it begins; none if it is free.
    #[must_use]
    pub fn in_use(&self, index: u32) -> Option<(Block, Owner)> {
        let entry = self.ledger.get(index as usize)?;
        let mut all = owned(core::slice::from_ref(entry));
        all.next()
            .map(|(block, owner)| (Block { index, ..block }, owner))
    }

    /// The runs that an instance's calls were lent for their results, with the numbers of these calls. Looks at every entry.
    #[must_use]
    pub fn results_of(&self, caller: Instance) -> Vec<(Block, u32)> {
        let of_caller = |(block, owner): (Block, Owner)| match owner {
            Owner::Call {
                instance,
                call,
                is_result: true,
            } if instance == caller => Some((block, call.into())),
            _ => None,
        };
        owned(&self.ledger).filter_map(of_caller).collect()
    }

    /// Bytes of a block that this member has in hand, or of its run.
    #[must_use]
    pub fn room(&self, block: u32) -> u32 {
        let blocks = self.ledger.get(block as usize).map_or(0, Entry::blocks);
        self.shape.bytes_in(block, blocks)
    }

    fn all_of(&self, block: u32) -> Range<usize> {
        self.shape.bytes_of(block, self.room(block))
    }

    /// The first byte of a block that this member has in hand, for who reads and writes it in place; see
    /// [`Payload::as_ptr`].
    ///
    /// # Panics
    /// The pool has no such block.
    #[must_use]
    pub fn address(&self, block: u32) -> *mut u8 {
        self.memory.address(self.all_of(block))
    }

    /// Fills a block that this member has in hand, and its run, with zeros.
    ///
    /// # Panics
    /// The pool has no such block.
    pub fn clear(&self, block: u32) {
        self.memory.clear(self.all_of(block));
    }

    /// What the gateway, or who calls this member, has said of a request.
    #[must_use]
    pub fn envelope(&self, block: u32) -> Envelope {
        notes::envelope(&self.memory, self.shape, block)
    }

    /// Says of a block for a call what its receiver has to know.
    pub fn describe(&self, block: u32, envelope: &Envelope) {
        notes::describe(&self.memory, self.shape, block, envelope);
    }

    /// Notes a stay, for the gateway.
    pub fn note_stay(&self, block: u32, stay: Stay) {
        notes::note_stay(&self.memory, self.shape, block, stay);
    }

    /// Notes the stays of a call's block with those of the request that the call was made for.
    pub fn adopt_stays(&self, from: u32, to: u32) {
        for stay in notes::stays(&self.memory, self.shape, from) {
            notes::note_stay(&self.memory, self.shape, to, stay);
        }
    }

    /// Notes to whom a block is passed on, before its descriptor is sent: the gateway reads it if the receiver dies.
    pub fn note(&self, block: u32, note: Note) {
        if block < self.shape.blocks() {
            self.memory.store(self.shape.note_of(block), note.pack());
        }
    }
}

/// A block that this member was sent, with the payload in it. It stays this member's until it sends the descriptor on.
#[derive(Debug)]
pub struct Payload<'a> {
    view: &'a PoolView,
    block: u32,
    len: u32,
    /// Bytes of the block, or of its run.
    room: u32,
}

impl Payload<'_> {
    /// The payload's length, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the block, or of its run: as long as the payload may become in place.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.room as usize
    }

    /// The block's first byte. Within [`Self::capacity`] it may be read and written as long as `self` lives. Another
    /// member may write there too if it breaks the rules: language runtimes hand it to handlers as raw bytes.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.view.address(self.block)
    }

    /// Copies the payload out, to the end of `into`.
    pub fn read(&self, into: &mut Vec<u8>) {
        let range = self.view.shape.bytes_of(self.block, self.len);
        self.view.memory.append_to(range, into);
    }

    /// Replaces the payload; its new length, for the descriptor that is sent on.
    ///
    /// # Errors
    /// It is longer than [`Self::capacity`]; the old one is still there.
    pub fn write(&mut self, payload: &[u8]) -> Result<u32, Refused> {
        let len = self.resize(payload.len())?;
        let at = self.view.shape.bytes_of(self.block, len);
        self.view.memory.write(at.start, payload);
        Ok(len)
    }

    /// Makes the block's first bytes the payload, as they were written in place; its new length, for the descriptor that is
    /// sent on.
    ///
    /// # Errors
    /// The block has fewer.
    pub fn resize(&mut self, len: usize) -> Result<u32, Refused> {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Shape::fits(len, self.room)?;
        self.len = len;
        Ok(len)
    }
}
