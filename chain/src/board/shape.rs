//! The sizes of a board, and where its words lie.

use crate::error::ChainError;
use crate::memory::LINE;
use crate::ring::MAX_SLOTS;
use crate::slots::SLOT;

/// Most inputs of a board. Fewer are open at a time: [`MAX_OPEN_INPUTS`].
pub const MAX_INPUTS: u16 = 1024;
/// Most inputs that are open at a time. An instance sleeps on a futex for each: the kernel takes 128, and two are the board's
/// own.
pub const MAX_OPEN_INPUTS: usize = 126;
/// Most outputs of a board.
pub const MAX_OUTPUTS: u16 = 1024;
/// Largest board, in bytes: bounds what an instance can make its peers map.
const MAX_BYTES: u64 = 1 << 30;

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
            return wrong("a number of inputs", inputs.into(), "1,024 or fewer");
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

    pub(super) fn tail(self, input: u16) -> Result<usize, ChainError> {
        let there = input < self.inputs;
        there
            .then_some(LINE * (1 + usize::from(input)))
            .ok_or(ChainError::Taken {
                what: "input",
                number: input,
            })
    }

    pub(super) fn head(self, output: u16) -> Result<usize, ChainError> {
        let there = output < self.outputs;
        there
            .then_some(LINE * (1 + usize::from(self.inputs) + usize::from(output)))
            .ok_or(ChainError::Taken {
                what: "output",
                number: output,
            })
    }

    pub(super) fn slots_at(self, output: u16) -> usize {
        let words = LINE * (1 + usize::from(self.inputs) + usize::from(self.outputs));
        words + usize::from(output) * self.slots as usize * SLOT
    }

    pub(super) fn bytes(self) -> u64 {
        (self.slots_at(self.outputs) as u64).next_multiple_of(4 << 10)
    }
}
