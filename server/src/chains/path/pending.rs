//! The requests under way: what was sent, who waits for it, and what is to be done when nobody does any more.

use std::collections::HashMap;
use std::time::Instant;

use hearth_chain::Block;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Path;
use crate::model::InvocationId;

/// What came of a request.
#[derive(Debug)]
pub(super) enum Came {
    /// A result of this many bytes, in its block.
    Answer(u32),
    /// A member's error of this many bytes, in its block.
    Failure {
        /// Name of the member.
        member: String,
        /// Bytes of the error's text.
        len: u32,
    },
    /// The instance that had it in hand has broken a rule of the chain.
    Broken {
        /// Name of the member.
        member: String,
        /// What it has done.
        reason: String,
    },
    /// The instance that had it in hand has ended.
    Ended {
        /// Name of the member.
        member: String,
        /// How it ended.
        reason: String,
    },
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its block, or the first of its run.
    pub(super) block: Block,
    /// Number of its route.
    pub(super) route: u8,
    /// When it is given up.
    pub(super) deadline: Instant,
    /// Who waits for it; whoever takes it frees the block.
    waiter: oneshot::Sender<Back>,
}

/// A request that is back.
#[derive(Debug)]
pub(super) struct Back {
    /// What came of it.
    pub(super) came: Came,
    /// The block that it has now.
    pub(super) block: Block,
}

impl Entry {
    pub(super) fn new(
        block: Block,
        route: u8,
        deadline: Instant,
        waiter: oneshot::Sender<Back>,
    ) -> Self {
        Self {
            block,
            route,
            deadline,
            waiter,
        }
    }

    /// Whether nobody waits for it any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.waiter.is_closed()
    }

    /// Hands over what came; frees the block if nobody wants it.
    pub(super) fn end(self, path: &Path, came: Came) {
        let block = self.block;
        if self.waiter.send(Back { came, block }).is_err() {
            // It was freed only if somebody else took the entry.
            let _ = path.pool.free(block);
        }
    }
}

/// Requests whose ids are kept: what a member logs is read a little later, when its request may have ended.
const RECENT: usize = 1024;

/// The ids of the latest requests.
#[derive(Debug)]
pub(super) struct Recent(Mutex<Box<[(u32, InvocationId)]>>);

impl Default for Recent {
    fn default() -> Self {
        let none = (0, InvocationId(uuid::Uuid::nil()));
        Self(Mutex::new(vec![none; RECENT].into_boxed_slice()))
    }
}

impl Recent {
    pub(super) fn add(&self, request: u32, id: InvocationId) {
        self.0.lock()[request as usize % RECENT] = (request, id);
    }

    pub(super) fn id(&self, request: u32) -> Option<InvocationId> {
        let (found, id) = self.0.lock()[request as usize % RECENT];
        (request != 0 && found == request).then_some(id)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<HashMap<u32, Entry>>);

impl Pending {
    /// The first number that no request under way has. They come round again after 2^32 requests, and by then a number's request
    /// has long ended unless a member kept it.
    pub(super) fn free_number(&self, next: impl Fn() -> u32) -> u32 {
        let all = self.0.lock();
        loop {
            let number = next();
            // 0 says on a board that nothing is handled.
            if number != 0 && !all.contains_key(&number) {
                return number;
            }
        }
    }

    /// Adds a request.
    pub(super) fn add(&self, number: u32, entry: Entry) {
        self.0.lock().insert(number, entry);
    }

    /// Looks at one.
    pub(super) fn with<T>(&self, request: u32, look: impl FnOnce(&Entry) -> T) -> Option<T> {
        self.0.lock().get(&request).map(look)
    }

    /// Moves one from its block to another; false if it is not there any more.
    pub(super) fn move_to(&self, request: u32, from: Block, to: Block) -> bool {
        let mut all = self.0.lock();
        let entry = all.get_mut(&request).filter(|entry| entry.block == from);
        entry.map(|entry| entry.block = to).is_some()
    }

    /// Takes one out.
    pub(super) fn remove(&self, request: u32) -> Option<Entry> {
        self.0.lock().remove(&request)
    }

    /// Takes out those that match.
    pub(super) fn remove_if(
        &self,
        mut matches: impl FnMut(u32, &Entry) -> bool,
    ) -> Vec<(u32, Entry)> {
        let mut all = self.0.lock();
        all.extract_if(|number, entry| matches(*number, entry))
            .collect()
    }

    /// Those that match, looked at.
    pub(super) fn find<T>(&self, look: impl FnMut((&u32, &Entry)) -> Option<T>) -> Vec<T> {
        self.0.lock().iter().filter_map(look).collect()
    }
}
