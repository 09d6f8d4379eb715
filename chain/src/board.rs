//! An instance's board: the memory in which it, and nobody else, writes what its peers read.
//!
//! ```text
//! 0                      state      whether it sleeps; set to ended by the server
//! 64                     load       how many requests it has in hand
//! 68                     current    which request it handles
//! 72                     refused    how many descriptors it has refused
//! 76                     begun      which request it began last
//! 80                     wake-up    when and where it woke a peer last ([`crate::near`])
//! 96                     notices    how often the server has told it to look at its control socket
//! 100                    turn       of the gateway's board: always 0; the first members of routes wait for their turn on it ([`crate::turn`])
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

mod peer;
mod shape;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use self::peer::PeerBoard;
pub use self::shape::{MAX_INPUTS, MAX_OPEN_INPUTS, MAX_OUTPUTS, Shape};
use crate::error::ChainError;
use crate::file::File;
use crate::futex;
use crate::memory::{Memory, Own, Writable};
use crate::ring::CLOSED;
use crate::sleeper::ENDED;
use crate::slots::Slots;

/// Where the load is: on the line of the state, which senders load anyway.
const LOAD: usize = 64;
/// The request that is handled now; 0 if none is.
const CURRENT: usize = 68;
/// Descriptors that were refused.
const REFUSED: usize = 72;
/// The request that was begun last.
const BEGUN: usize = 76;
/// When and where a peer was woken last.
const WAKE_UP: usize = 80;
/// Written by the server, on a line that the instance does not write.
const NOTICES: usize = 96;
/// Written by nobody.
const TURN: usize = 100;

/// Where the copy of the newest descriptor is: on the line of the head.
const LATEST: usize = 16;

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
        for output in 0..self.shape.outputs() {
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

    /// Says which request is handled now; 0 if none is. The gateway reads it to find the instance that a request hangs in.
    pub fn report_current(&self, request: u32) {
        let current = self.memory.own_word(CURRENT);
        current.store(request, Ordering::Relaxed);
        if request != 0 {
            self.memory
                .own_word(BEGUN)
                .store(request, Ordering::Relaxed);
        }
    }

    /// Counts a descriptor that was refused.
    pub fn count_refused(&self) {
        let refused = self.memory.own_word(REFUSED);
        refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells the instance to look at its control socket, in which the message lies by now: [`RecvError::Interrupted`]. For the
    /// server. One that is awake notices before it sleeps.
    ///
    /// [`RecvError::Interrupted`]: crate::RecvError::Interrupted
    pub fn notify(&self) {
        let notices = self.memory.own_word(NOTICES);
        notices.fetch_add(1, Ordering::Release);
        // It fails for bad addresses only.
        let _ = futex::wake(&notices);
    }

    /// How many descriptors the instance has sent on an output, modulo 2^31: a claim. For figures.
    ///
    /// # Errors
    /// There is no such output.
    pub fn sent(&self, output: u16) -> Result<u32, ChainError> {
        Ok(self.head(output)?.load(Ordering::Relaxed) & !CLOSED)
    }

    pub(crate) fn notices(&self) -> Own {
        self.memory.own_word(NOTICES)
    }

    pub(crate) fn wake_up(&self) -> Own {
        self.memory.own_word(WAKE_UP)
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
