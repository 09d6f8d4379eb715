//! Payloads in place.
//!
//! A block of a chain's pool is memory that the whole chain can write to. That a member leaves a block alone which it has passed
//! on is a rule that all keep who use this crate: its types see to it. One that breaks it can change what another one reads
//! at that moment: trust ends at the chain, and a handler that must not rely on the others copies what it is about to check.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::slice;

use hearth_worker::chain::Area;

use crate::Error;

/// A payload in place, and the room around it. It cannot be kept longer than its request.
#[derive(Debug)]
pub struct Block<'a> {
    area: Area,
    /// The most bytes that the payload has had, for who has to know.
    most: Option<&'a Cell<usize>>,
    _request: PhantomData<&'a mut [u8]>,
}

impl<'a> Block<'a> {
    /// A block that is this handler's for as long as `'a`: of a request in hand, or one held for calls.
    pub(crate) fn new(area: Area) -> Self {
        debug_assert!(area.len <= area.capacity);
        Self {
            area,
            most: None,
            _request: PhantomData,
        }
    }

    /// Private memory, the payload at its beginning. `most` is raised to the payload's length whenever that grows.
    pub(crate) fn of(memory: &'a mut [u8], len: usize, most: &'a Cell<usize>) -> Self {
        let len = len.min(memory.len());
        most.set(most.get().max(len));
        Self {
            area: Area {
                at: memory.as_mut_ptr(),
                len,
                capacity: memory.len(),
            },
            most: Some(most),
            _request: PhantomData,
        }
    }

    /// Bytes of the payload.
    #[must_use]
    pub fn len(&self) -> usize {
        self.area.len
    }

    /// Whether the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.area.len == 0
    }

    /// Bytes that the payload may have at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.area.capacity
    }

    /// The payload.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block is mapped for as long as the channel, which outlives `'a`; its bytes are initialised, as shared memory
        // is; and this process makes no other reference to it, since it has the block in hand. What other processes may do to it
        // is said at the module.
        unsafe { slice::from_raw_parts(self.area.at, self.area.len) }
    }

    /// The payload, to be changed.
    #[must_use]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.area.at, self.area.len) }
    }

    /// Makes the payload this long. Bytes that come to it are what was there.
    ///
    /// # Errors
    /// There is not so much room.
    pub(crate) fn resize(&mut self, len: usize) -> Result<(), Error> {
        if len > self.area.capacity {
            let limit = self.area.capacity;
            let message = format!("{len} bytes do not fit into a block of {limit}");
            return Err(Error::new("Runtime.ResultTooLarge", message));
        }
        self.area.len = len;
        if let Some(most) = self.most {
            most.set(most.get().max(len));
        }
        Ok(())
    }

    /// Replaces the payload with a copy of these bytes.
    ///
    /// # Errors
    /// There is not so much room; the payload is what it was.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.resize(bytes.len())?;
        self.bytes_mut().copy_from_slice(bytes);
        Ok(())
    }

    /// Empties the payload and writes it anew, piece by piece: for `serde_json::to_writer` and its like.
    pub(crate) fn rewrite(&mut self) -> Writer<'_, 'a> {
        self.area.len = 0;
        Writer { block: self }
    }
}

/// Appends to a payload in place.
#[derive(Debug)]
pub struct Writer<'b, 'a> {
    block: &'b mut Block<'a>,
}

impl io::Write for Writer<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.block.len();
        self.block
            .resize(at + bytes.len())
            .map_err(|error| io::Error::other(error.to_string()))?;
        self.block.bytes_mut()[at..].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What changes a block, for what has one in hand. None gives its block away as `&mut Block`: two could be swapped then, and one of
/// them kept when it is passed on.
macro_rules! in_hand {
    ($holder:ident) => {
        impl<'a> $holder<'a> {
            /// The payload, to be changed.
            #[must_use]
            pub fn bytes_mut(&mut self) -> &mut [u8] {
                self.block.bytes_mut()
            }

            /// Makes the payload this long. Bytes that come to it are what was there.
            ///
            /// # Errors
            /// There is not so much room.
            pub fn resize(&mut self, len: usize) -> Result<(), $crate::Error> {
                self.block.resize(len)
            }

            /// Replaces the payload with a copy of these bytes.
            ///
            /// # Errors
            /// There is not so much room; the payload is what it was.
            pub fn write(&mut self, bytes: &[u8]) -> Result<(), $crate::Error> {
                self.block.write(bytes)
            }

            /// Empties the payload and writes it anew, piece by piece: for `serde_json::to_writer` and its like.
            pub fn rewrite(&mut self) -> $crate::Writer<'_, 'a> {
                self.block.rewrite()
            }
        }
    };
}
pub(crate) use in_hand;

/// A request in the handler's hand, its payload in place.
#[derive(Debug)]
pub struct Request<'a> {
    block: Block<'a>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(block: Block<'a>) -> Self {
        Self { block }
    }

    /// Passes it on once the handler returns this: what is in the block then is the result, which the next member of the route gets,
    /// or who called.
    pub fn pass(self) -> Passed<'a> {
        Passed {
            len: Some(self.block.len()),
            _request: PhantomData,
        }
    }
}

impl<'a> Deref for Request<'a> {
    type Target = Block<'a>;

    fn deref(&self) -> &Block<'a> {
        &self.block
    }
}

in_hand!(Request);

/// What a block handler returns: that its request is out of its hand.
#[derive(Debug)]
#[must_use = "the handler returns it"]
pub struct Passed<'a> {
    /// Length of the result, unless the block has gone already.
    pub(crate) len: Option<usize>,
    _request: PhantomData<&'a mut ()>,
}

impl Passed<'_> {
    pub(crate) fn already() -> Self {
        Self {
            len: None,
            _request: PhantomData,
        }
    }
}
