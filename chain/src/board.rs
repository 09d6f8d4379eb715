//! An instance's board: the memory in which it, and nobody else, writes what its peers read.
//!
//! ```text
//! 0                      state      whether it sleeps; set to ended by the server
//! 64                     load       how many requests it has in hand
//! 128 (1 + i)            tail       of its input i: descriptors taken
//! 128 (1 + inputs + o)   head       of its output o: descriptors published
//! … + 16                 latest     the last of them
//! after them             slots      of output 0, of output 1, …
//! ```
//!
//! An edge from X to Y is an output of X's board and an input of Y's. X maps its own board to write and Y's to read; Y the
//! other way round. So a ring's policy holds by construction: what Y reads from X's board can only be X's, and from whom Y reads
//! at all is what the server told Y. A process without an edge to Y has no memory that Y looks at. The source of a
//! descriptor is the board that it lies on.
//!
//! The board holds no sizes. Its [`Shape`] comes from the server, beside the descriptor, and is checked against the file's
//! sealed size: there is nothing for an instance to rewrite that moves its peers' accesses.
//!
//! The words of an input or output without a peer are zero. Each side sees to its own when an edge is closed, so an edge
//! that is opened begins at zero on both sides. The server closes the consumer's side first and the producer's next, and
//! opens either only after that.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::ChainError;
use crate::file::File;
use crate::futex;
use crate::memory::{LINE, Memory, Own, ReadOnly, Seen, Writable};
use crate::ring::{CLOSED, MAX_SLOTS};
use crate::sleeper::ENDED;
use crate::slots::{SLOT, Slots};
use crate::sync::PeerWord;

/// Most inputs of a board that sleeps on a futex for each: the kernel takes 128, and one is the board's own.
pub const MAX_INPUTS: u16 = 127;
/// Most outputs of a board.
pub const MAX_OUTPUTS: u16 = 1024;
/// Largest board, in bytes: bounds what an instance can make its peers map.
const MAX_BYTES: u64 = 1 << 30;

/// Where the load is: on the line of the state, which senders load anyway.
const LOAD: usize = 64;

/// Where the copy of the newest descriptor is: on the line of the head.
const LATEST: usize = 16;

/// How many edges an instance may have, and how many descriptors wait on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    inputs: u16,
    outputs: u16,
    slots: u32,
}

impl Shape {
    /// Checks the sizes. With as many slots as the pool has blocks, the next power of two, a ring is never full unless its
    /// producer sends a block twice.
    ///
    /// # Errors
    /// There are more than [`MAX_INPUTS`] inputs or [`MAX_OUTPUTS`] outputs, or none at all; or the slots of an output are no power of
    /// two up to 524,288; or they make more than 1 GiB.
    pub fn new(inputs: u16, outputs: u16, slots: u32) -> Result<Self, ChainError> {
        let wrong = |what, found, rule| Err(ChainError::Size { what, found, rule });
        if inputs > MAX_INPUTS {
            return wrong("a number of inputs", inputs.into(), "127 or fewer");
        }
        if outputs > MAX_OUTPUTS {
            return wrong("a number of outputs", outputs.into(), "1,024 or fewer");
        }
        if !slots.is_power_of_two() || slots > MAX_SLOTS {
            let rule = "a power of two up to 524,288";
            return wrong("a number of slots", slots.into(), rule);
        }
        let shape = Self {
            inputs,
            outputs,
            slots,
        };
        if shape.bytes() > MAX_BYTES {
            return wrong("a board's size", shape.bytes(), "1 GiB or less");
        }
        Ok(shape)
    }

    /// Inputs, numbered from 0.
    #[must_use]
    pub const fn inputs(self) -> u16 {
        self.inputs
    }

    /// Outputs, numbered from 0.
    #[must_use]
    pub const fn outputs(self) -> u16 {
        self.outputs
    }

    /// Descriptors that an output holds.
    #[must_use]
    pub const fn slots(self) -> u32 {
        self.slots
    }

    fn tail(self, input: u16) -> Result<usize, ChainError> {
        let there = input < self.inputs;
        there
            .then_some(LINE * (1 + usize::from(input)))
            .ok_or(ChainError::Taken {
                what: "input",
                number: input,
            })
    }

    fn head(self, output: u16) -> Result<usize, ChainError> {
        let there = output < self.outputs;
        there
            .then_some(LINE * (1 + usize::from(self.inputs) + usize::from(output)))
            .ok_or(ChainError::Taken {
                what: "output",
                number: output,
            })
    }

    fn slots_at(self, output: u16) -> usize {
        let words = LINE * (1 + usize::from(self.inputs) + usize::from(self.outputs));
        words + usize::from(output) * self.slots as usize * SLOT
    }

    fn bytes(self) -> u64 {
        (self.slots_at(self.outputs) as u64).next_multiple_of(4 << 10)
    }
}

/// A board to write: its owner's, or the server's until it is handed over.
#[derive(Debug)]
pub struct Board {
    shape: Shape,
    memory: Arc<Memory<Writable>>,
    file: File,
}

impl Board {
    /// Makes a board, in the server.
    ///
    /// # Errors
    /// The system refuses the memory or the descriptor.
    pub fn create(shape: Shape) -> Result<Self, ChainError> {
        let file = File::create("board", shape.bytes())?;
        file.seal_size()?;
        Ok(Self {
            shape,
            memory: file.map()?,
            file,
        })
    }

    /// Maps this process's own board.
    ///
    /// # Errors
    /// The file is no board of this shape, or mapping it fails.
    pub fn attach(fd: OwnedFd, shape: Shape) -> Result<Self, ChainError> {
        let file = File::passed("board", fd, Some(shape.bytes()))?;
        Ok(Self {
            shape,
            memory: file.map()?,
            file,
        })
    }

    /// A descriptor for the instance whose board it is, and for no other process.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn for_owner(&self) -> Result<OwnedFd, ChainError> {
        self.file.descriptor()
    }

    /// A descriptor for a peer, which can only read. Its process must run under another user than this one.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn for_peer(&self) -> Result<OwnedFd, ChainError> {
        self.file.read_only_descriptor()
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Tells all peers that the instance has ended, and wakes them: they read its outputs to their ends, and their sends to
    /// it fail. For the server, once the process is gone. One that lives on can undo this only for itself.
    pub fn end(&self) {
        let state = self.memory.own_word(0);
        state.store(ENDED, Ordering::Release);
        let _ = futex::wake(&state);
        for output in 0..self.shape.outputs {
            // Checked by the loop's bound.
            let Ok(at) = self.shape.head(output) else {
                return;
            };
            let head = self.memory.own_word(at);
            head.fetch_or(CLOSED, Ordering::Release);
            let _ = futex::wake(&head);
        }
    }

    /// Says how many requests this instance has in hand, by which its peers choose among a member's instances.
    pub fn report_load(&self, in_hand: u32) {
        let load = self.memory.own_word(LOAD);
        load.store(in_hand, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> Own {
        self.memory.own_word(0)
    }

    pub(crate) fn tail(&self, input: u16) -> Result<Own, ChainError> {
        Ok(self.memory.own_word(self.shape.tail(input)?))
    }

    pub(crate) fn head(&self, output: u16) -> Result<Own, ChainError> {
        Ok(self.memory.own_word(self.shape.head(output)?))
    }

    pub(crate) fn slots(&self, output: u16) -> Result<Slots<Writable>, ChainError> {
        Ok(Slots::new(
            &self.memory,
            self.shape.slots_at(output),
            self.shape.head(output)? + LATEST,
        ))
    }
}

/// A peer's board, to read.
#[derive(Debug)]
pub struct PeerBoard {
    shape: Shape,
    memory: Arc<Memory<ReadOnly>>,
}

impl PeerBoard {
    /// Maps a peer's board.
    ///
    /// # Errors
    /// The file is no board of this shape, or mapping it fails.
    pub fn attach(fd: OwnedFd, shape: Shape) -> Result<Self, ChainError> {
        let file = File::passed("board", fd, Some(shape.bytes()))?;
        Ok(Self {
            shape,
            memory: file.map_read_only()?,
        })
    }

    /// How many requests the instance says it has in hand: a claim, which sends it more or less of its chain's requests and
    /// nothing else.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.memory.peer_word(LOAD).load()
    }

    pub(crate) fn slots_per_output(&self) -> u32 {
        self.shape.slots
    }

    pub(crate) fn state(&self) -> Seen<ReadOnly> {
        self.memory.peer_word(0)
    }

    pub(crate) fn tail(&self, input: u16) -> Result<Seen<ReadOnly>, ChainError> {
        Ok(self.memory.peer_word(self.shape.tail(input)?))
    }

    pub(crate) fn head(&self, output: u16) -> Result<Seen<ReadOnly>, ChainError> {
        Ok(self.memory.peer_word(self.shape.head(output)?))
    }

    pub(crate) fn slots(&self, output: u16) -> Result<Slots<ReadOnly>, ChainError> {
        Ok(Slots::new(
            &self.memory,
            self.shape.slots_at(output),
            self.shape.head(output)? + LATEST,
        ))
    }
}
