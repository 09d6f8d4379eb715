//! How many requests follow each of the two route tables: the part of the table that loom models.

use crate::descriptor::Table;
use crate::sync::{AtomicU32, Ordering};
use hearth_abi::full_fence;

/// Which table new requests follow, and how many follow each.
#[derive(Debug, Default)]
pub struct Pins {
    active: AtomicU32,
    counts: [AtomicU32; 2],
}

const fn table(active: u32) -> Table {
    if active == 0 { Table::A } else { Table::B }
}

impl Pins {
    /// The table that new requests follow.
    pub fn active(&self) -> Table {
        table(self.active.load(Ordering::Acquire))
    }

    /// Counts a request that begins; the table it follows until [`Self::unpin`].
    pub fn pin(&self) -> Table {
        loop {
            let found = self.active();
            self.counts[found as usize].fetch_add(1, Ordering::Relaxed);
            // SYNC POINT: pinned. Either this side sees that another table was activated, or `retired` sees the count.
            full_fence();
            if self.active() == found {
                return found;
            }
            self.unpin(found);
        }
    }

    /// Counts a request that ends.
    pub fn unpin(&self, table: Table) {
        // SYNC POINT: unpinned. What the request read of the table happens before it is written again.
        self.counts[table as usize].fetch_sub(1, Ordering::Release);
    }

    /// The table that is not active, if no request follows it. For the one writer.
    pub fn retired(&self) -> Option<Table> {
        let other = self.active().other();
        // SYNC POINT: pinned
        full_fence();
        // SYNC POINT: unpinned
        let followers = self.counts[other as usize].load(Ordering::Acquire);
        (followers == 0).then_some(other)
    }

    /// Lets new requests follow the other table, which has been written. For the one writer.
    pub fn activate(&self, table: Table) {
        self.active.store(table as u32, Ordering::Release);
    }

    /// Requests that follow a table now.
    pub fn followers(&self, table: Table) -> u32 {
        self.counts[table as usize].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_retired_when_nobody_follows_it() {
        let pins = Pins::default();
        assert_eq!((pins.pin(), pins.retired()), (Table::A, Some(Table::B)));
        pins.activate(Table::B);
        assert_eq!((pins.pin(), pins.retired()), (Table::B, None));
        pins.unpin(Table::A);
        assert_eq!(pins.retired(), Some(Table::A));
        assert_eq!((pins.followers(Table::A), pins.followers(Table::B)), (0, 1));
    }
}
