//! The gateway's side of a pool.
//!
//! A pool is two memory files. The **blocks** hold payloads, and every process of the chain maps them to read and write. The
//! **ledger** holds the shape and each block's owner and generation; the gateway writes it, and members map it
//! read-only. The free list is in no file.
//!
//! So a member can spoil payloads, which its chain trusts it with, and nothing that decides where an access goes or who gets
//! a block: it cannot free another's block, take one twice, loop the list, or make the pool look empty. The price is that
//! members do not allocate. They do not need to on the way of a request, whose block passes from hand to hand; for calls
//! with a payload of their own, the gateway grants an instance some blocks ahead ([`Owner::Instance`]), which it uses again and
//! again. A member that hoards keeps its own grant, and no more.
//!
//! A payload that is larger than a block has a **run** of consecutive blocks, if the pool's shape allows that
//! ([`Shape::with_payload_bytes`]). It has the number and the generation of its first block, and all that is said here of a block holds for
//! it. How long it is stands in the ledger, too, so that a descriptor's length is compared with what the gateway has written. Upper
//! half and lower half of such a pool are given out by different means: see [`crate::runs`].
//!
//! A block's **owner** is who gives it back, not who has it in hand: descriptors pass between members without the
//! gateway. For the case that a member dies with blocks in hand, senders note in the block's [`Note`](crate::notes::Note) to
//! whom they pass it on. Notes are claims, in memory that members write. The gateway takes from them which requests to fail
//! early; if they are wrong, it fails another request of the same chain, or the deadline does. Nothing is freed by a note.

mod noted;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::accounts::Accounts;
use crate::descriptor::Descriptor;
use crate::error::{ChainError, Exhausted, Refused};
use crate::file::File;
use crate::id::{Instance, Owner};
use crate::memory::{Ledger, Memory, Writable};
use crate::runs::Run;
use crate::shape::{ENTRIES_AT, Shape};

/// First word of a ledger: `HEARTHLG` as bytes.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"HEARTHLG");
/// Version of the pool's layout.
pub(crate) const VERSION: u64 = 3;

/// A block in use: its number and the generation that descriptors of it carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    /// Its number.
    pub index: u32,
    /// The lower half of its generation.
    pub generation: u16,
}

impl Block {
    /// The block that a descriptor names.
    #[must_use]
    pub const fn of(descriptor: &Descriptor) -> Self {
        Self {
            index: descriptor.block,
            generation: descriptor.generation,
        }
    }
}

/// What a process that joins the chain is given.
#[derive(Debug)]
pub struct PoolFiles {
    /// The blocks, to read and write.
    pub blocks: OwnedFd,
    /// The ledger, which its seal makes read-only.
    pub ledger: OwnedFd,
}

/// The pool, as the gateway has it. All methods may be called from any thread at any time.
#[derive(Debug)]
pub struct Pool {
    shape: Shape,
    accounts: Accounts<Ledger<Writable>>,
    memory: Arc<Memory<Writable>>,
    ledger: File,
    blocks: File,
    huge: bool,
}

impl Pool {
    /// Makes a pool. With `huge`, takes all of its memory at once, in huge pages where the kernel has them
    /// ([`Self::is_huge`]); else page by page as blocks are first used.
    ///
    /// # Errors
    /// The system refuses the memory or the descriptors.
    pub fn create(shape: Shape, huge: bool) -> Result<Self, ChainError> {
        let ledger = File::create("ledger", shape.ledger_bytes())?;
        let lines = ledger.map()?;
        ledger.seal_future_writes()?;
        for (index, word) in [
            MAGIC,
            VERSION,
            shape.blocks().into(),
            shape.block_bytes().into(),
            shape.payload_bytes().into(),
        ]
        .into_iter()
        .enumerate()
        {
            lines.store(index * 8, word);
        }
        let blocks = File::create("pool", shape.blocks_bytes())?;
        blocks.seal_size()?;
        let memory = blocks.map()?;
        let huge = huge && memory.collapse()?;
        Ok(Self {
            shape,
            accounts: Accounts::with_runs(
                lines.ledger(ENTRIES_AT, shape.blocks()),
                shape.runs_from(),
            ),
            memory,
            ledger,
            blocks,
            huge,
        })
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether it lies in huge pages.
    #[must_use]
    pub fn is_huge(&self) -> bool {
        self.huge
    }

    /// Blocks that are not free.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.accounts.in_use()
    }

    /// The files for a process that joins the chain.
    ///
    /// # Errors
    /// The system refuses the descriptors.
    pub fn files(&self) -> Result<PoolFiles, ChainError> {
        Ok(PoolFiles {
            blocks: self.blocks.descriptor()?,
            ledger: self.ledger.descriptor()?,
        })
    }

    /// Takes a free block, all of whose bytes are zero unless a member writes to blocks that it does not have.
    ///
    /// # Errors
    /// There is none: at once, without waiting.
    pub fn allocate(&self, owner: Owner) -> Result<Block, Exhausted> {
        Ok(self.begun(self.accounts.allocate(owner)?))
    }

    /// Takes as many blocks as a payload of so many bytes needs, side by side.
    ///
    /// # Errors
    /// There are none, or the payload is longer than [`Shape::payload_bytes`]: at once, without waiting.
    pub fn allocate_for(&self, owner: Owner, bytes: usize) -> Result<Block, Exhausted> {
        let bytes = u32::try_from(bytes).map_err(|_| Exhausted)?;
        if bytes > self.shape.payload_bytes() {
            return Err(Exhausted);
        }
        let blocks = self.shape.blocks_for(bytes);
        Ok(self.begun(self.accounts.allocate_run(owner, blocks)?))
    }

    fn begun(&self, (index, generation): (u32, u16)) -> Block {
        // Of the use before.
        self.memory.store(self.shape.note_of(index), 0);
        Block { index, generation }
    }

    /// Bytes of a block, or of its run.
    ///
    /// # Errors
    /// The block is not in use.
    pub fn room(&self, block: Block) -> Result<u32, Refused> {
        let used = self.accounts.used(block.index, block.generation)?;
        Ok(self.shape.bytes_in(block.index, used.blocks))
    }

    /// Checks a descriptor that came from `source`: its block is in the pool, its length in the block or its run, and the block
    /// in use, of its generation, and the request's or the source's own.
    ///
    /// # Errors
    /// What is wrong. Nothing is changed.
    pub fn check(&self, descriptor: &Descriptor, source: Instance) -> Result<Block, Refused> {
        self.shape.check(descriptor)?;
        let block = Block::of(descriptor);
        let used = self.accounts.used(block.index, block.generation)?;
        let owner = used.owner;
        let is_allowed = match owner {
            Some(owner @ Owner::Request { .. }) => owner == descriptor.owner(),
            Some(Owner::Instance { instance, .. } | Owner::Call { instance, .. }) => {
                instance == source
            }
            Some(Owner::Gateway) | None => false,
        };
        if !is_allowed {
            return Err(Refused::ForeignBlock {
                block: block.index,
                owner,
            });
        }
        let room = self.shape.bytes_in(block.index, used.blocks);
        Shape::fits(descriptor.len, room)?;
        Ok(block)
    }

    /// Copies a payload into a block.
    ///
    /// # Errors
    /// The payload is longer than the block or its run, or the block is not in use.
    pub fn write(&self, block: Block, payload: &[u8]) -> Result<(), Refused> {
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let at = self.range(block, len)?;
        self.memory.write(at.start, payload);
        Ok(())
    }

    /// Copies the first `len` bytes out of a block, to the end of `into`: once, so that what was checked is what is used,
    /// whatever a member writes there later.
    ///
    /// # Errors
    /// `len` is more than the block or its run has, or the block is not in use.
    pub fn read(&self, block: Block, len: u32, into: &mut Vec<u8>) -> Result<(), Refused> {
        let range = self.range(block, len)?;
        self.memory.append_to(range, into);
        Ok(())
    }

    /// Where the first `len` bytes of a block lie, for a system call that reads or fills them. Members may write there
    /// meanwhile: nothing may be decided by what is read in place.
    ///
    /// # Errors
    /// `len` is more than the block or its run has, or the block is not in use.
    pub fn address(&self, block: Block, len: u32) -> Result<*mut u8, Refused> {
        let range = self.range(block, len)?;
        Ok(self.memory.address(range))
    }

    fn range(&self, block: Block, len: u32) -> Result<core::ops::Range<usize>, Refused> {
        Shape::fits(len, self.room(block)?)?;
        Ok(self.shape.bytes_of(block.index, len))
    }

    /// Clears a block, with its run, and gives it back.
    ///
    /// # Errors
    /// The block is not in use: somebody else has given it back.
    pub fn free(&self, block: Block) -> Result<(), Refused> {
        self.accounts
            .free(block.index, block.generation, |run| self.clear(run))
    }

    /// Clears and gives back all blocks of an owner that failed or ended, and takes no more; how many there were, each run one.
    pub fn reclaim(&self, owner: Owner) -> u32 {
        self.accounts.reclaim(owner, |run| self.clear(run))
    }

    /// Whose a block is; none if it is free, or of another generation.
    #[must_use]
    pub fn owner(&self, block: Block) -> Option<Owner> {
        let owner = self.accounts.owner(block.index, block.generation);
        owner.ok().flatten()
    }

    /// The blocks that an instance has for its calls, and the runs that were lent for these: of each the first, and whose it is.
    #[must_use]
    pub fn for_calls_of(&self, caller: Instance) -> Vec<(Block, Owner)> {
        let is_theirs = |(_, owner): &(Block, Owner)| owner.caller() == Some(caller);
        self.accounts.owned().filter(is_theirs).collect()
    }

    fn clear(&self, run: Run) {
        let len = self.shape.bytes_in(run.first, run.blocks);
        self.memory.clear(self.shape.bytes_of(run.first, len));
    }
}
