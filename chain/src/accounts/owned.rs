//! Who owns what, looked up in the whole ledger.

use core::ops::Deref;
use core::sync::atomic::Ordering;

use super::{Accounts, Entry, generation, use_of};
use crate::id::Owner;
use crate::pool::Block;

/// The blocks in use and their owners, of each run the first, for who reads the ledger in any process.
pub(crate) fn owned(entries: &[Entry]) -> impl Iterator<Item = (Block, Owner)> {
    let in_use = |(entry, index): (&Entry, u32)| {
        let generation = generation(entry.tag.load(Ordering::Relaxed));
        let owner = use_of(entry, index, generation).ok()?.owner?;
        Some((Block { index, generation }, owner))
    };
    entries.iter().zip(0..).filter_map(in_use)
}

impl<E: Deref<Target = [Entry]>> Accounts<E> {
    /// The blocks in use and their owners, of each run the first. Looks at every entry.
    pub fn owned(&self) -> impl Iterator<Item = (Block, Owner)> {
        owned(&self.entries)
    }
}
