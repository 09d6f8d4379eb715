//! What is said of a block beside its payload: notes, envelopes and stays in shared memory, for both sides of a pool. A block that the pool does not have has neither.

use crate::envelope::{self, Envelope};
use crate::id::Instance;
use crate::memory::{Memory, Writable};
use crate::shape::{NOTE_BYTES, Shape};
use crate::trace::{COUNT_AT, MAX_ENTRIES, Stay, entry_at};

/// Where the envelope is, from the note on.
const ENVELOPE_AT: usize = 8;

/// To whom a block was passed on last, and how far its request had come: a claim of the member that passed it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// Who was sent the descriptor.
    pub holder: Instance,
    /// Which of the processes that had this number.
    pub epoch: u16,
    /// The position in the route.
    pub hop: u8,
}

impl Note {
    pub(crate) const fn pack(self) -> u64 {
        self.holder.0 as u64 | (self.epoch as u64) << 16 | (self.hop as u64) << 32
    }

    pub(crate) const fn unpack(word: u64) -> Self {
        Self {
            holder: Instance(word as u16),
            epoch: (word >> 16) as u16,
            hop: (word >> 32) as u8,
        }
    }
}

fn note_of(shape: Shape, block: u32) -> Option<usize> {
    (block < shape.blocks()).then(|| shape.note_of(block))
}

pub(crate) fn describe(memory: &Memory<Writable>, shape: Shape, block: u32, envelope: &Envelope) {
    let Some(note) = note_of(shape, block) else {
        return;
    };
    for (word, at) in envelope.to_words().into_iter().zip((0..).step_by(8)) {
        memory.store(note + ENVELOPE_AT + at, word);
    }
    memory.store(note + COUNT_AT, 0);
}

/// Copies all that is said of a block.
pub(crate) fn copy(memory: &Memory<Writable>, shape: Shape, from: u32, to: u32) {
    let (Some(from), Some(to)) = (note_of(shape, from), note_of(shape, to)) else {
        return;
    };
    for at in (0..NOTE_BYTES).step_by(8) {
        memory.store(to + at, memory.load(from + at));
    }
}

pub(crate) fn envelope(memory: &Memory<Writable>, shape: Shape, block: u32) -> Envelope {
    let mut words = [0; envelope::WORDS];
    if let Some(note) = note_of(shape, block) {
        for (word, at) in words.iter_mut().zip((0..).step_by(8)) {
            *word = memory.load(note + ENVELOPE_AT + at);
        }
    }
    Envelope::from_words(words)
}

pub(crate) fn note_stay(memory: &Memory<Writable>, shape: Shape, block: u32, stay: Stay) {
    let Some(note) = note_of(shape, block) else {
        return;
    };
    let count = memory.load(note + COUNT_AT);
    let entry = usize::try_from(count).ok().and_then(entry_at);
    if let Some(entry) = entry {
        let [first, second] = stay.to_words();
        memory.store(note + entry, first);
        memory.store(note + entry + 8, second);
    }
    memory.store(note + COUNT_AT, count.saturating_add(1));
}

pub(crate) fn stays(memory: &Memory<Writable>, shape: Shape, block: u32) -> Vec<Stay> {
    let Some(note) = note_of(shape, block) else {
        return Vec::new();
    };
    // Whatever a member has written there.
    let count = usize::try_from(memory.load(note + COUNT_AT)).unwrap_or(usize::MAX);
    (0..count.min(MAX_ENTRIES))
        .filter_map(entry_at)
        .map(|entry| Stay::from_words([memory.load(note + entry), memory.load(note + entry + 8)]))
        .collect()
}
