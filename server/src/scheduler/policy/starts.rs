//! Starts under way, over all functions: as many as the cores can work on, each function in its turn.
//!
//! A fork is CPU time: more at once than there are cores delays each and finishes none sooner. The rest waits here, in a
//! queue for each function, and the functions take turns (round robin), so that the burst of one does not keep the first
//! call of another waiting for all of it.

use std::collections::{HashMap, VecDeque};

/// Starts under way per core: a start waits for the kernel and for its template now and then, and another one fills
/// the gap.
pub const STARTS_PER_CORE: usize = 2;

/// The place of a start in the queue, or its right to run: `K` tells functions apart.
#[derive(Debug)]
pub struct StartQueue<K, T> {
    limit: usize,
    /// Under way, by function; without zeros.
    running: HashMap<K, usize>,
    total: usize,
    waiting: HashMap<K, VecDeque<T>>,
    /// The functions in `waiting`, each once, in the order in which they are served.
    order: VecDeque<K>,
}

impl<K: Copy + Eq + std::hash::Hash, T> StartQueue<K, T> {
    /// A queue that lets `limit` starts run at once, one at least.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            running: HashMap::new(),
            total: 0,
            waiting: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Most starts of one function: one place is always left to the others, so that a function whose starts hang does
    /// not stop theirs.
    fn share(&self) -> usize {
        self.limit.saturating_sub(1).max(1)
    }

    fn may_run(&self, key: &K) -> bool {
        self.total < self.limit && self.running.get(key).copied().unwrap_or(0) < self.share()
    }

    fn begin(&mut self, key: K) {
        *self.running.entry(key).or_insert(0) += 1;
        self.total += 1;
    }

    /// Asks for a start: true when it may run now. Otherwise [`Self::enqueue`] it.
    pub fn try_begin(&mut self, key: K) -> bool {
        // Who waits already is not overtaken, unless it waits for its own function's share only.
        let overtakes = self.order.iter().any(|key| self.may_run(key));
        if overtakes || self.waiting.contains_key(&key) || !self.may_run(&key) {
            return false;
        }
        self.begin(key);
        true
    }

    /// Waits; `ticket` comes back out of [`Self::end`] when its turn has come.
    pub fn enqueue(&mut self, key: K, ticket: T) {
        let queue = self.waiting.entry(key).or_default();
        if queue.is_empty() {
            self.order.push_back(key);
        }
        queue.push_back(ticket);
    }

    /// A start is over, or its requester went away. Returns who may run now, counted as running: the caller wakes it, and
    /// calls this again when that one is gone as well.
    pub fn end(&mut self, key: K) -> Option<(K, T)> {
        match self.running.get_mut(&key) {
            Some(running) if *running > 1 => *running -= 1,
            Some(_) => drop(self.running.remove(&key)),
            None => {
                debug_assert!(false, "a start ended that did not begin");
                return None;
            }
        }
        self.total -= 1;
        let next = self.order.iter().position(|key| self.may_run(key))?;
        let key = self.order.remove(next)?;
        let queue = self.waiting.get_mut(&key)?;
        let ticket = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&key);
        } else {
            self.order.push_back(key);
        }
        self.begin(key);
        Some((key, ticket))
    }

    /// Starts under way.
    pub fn running(&self) -> usize {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn functions_take_turns() {
        let mut queue = StartQueue::new(2);
        assert!(queue.try_begin('a'));
        assert!(!queue.try_begin('a'), "one place is left to the others");
        for ticket in 1..=3 {
            queue.enqueue('a', ticket);
        }
        assert!(queue.try_begin('b'), "nobody who waits could use the place");
        queue.enqueue('b', 10);
        queue.enqueue('b', 11);
        assert_eq!(queue.end('a'), Some(('a', 1)));
        assert_eq!(queue.end('b'), Some(('b', 10)));
        assert_eq!(queue.end('a'), Some(('a', 2)));
        assert_eq!(queue.end('a'), Some(('a', 3)));
        assert_eq!(queue.end('b'), Some(('b', 11)));
        assert_eq!(queue.end('b'), None);
        assert_eq!(queue.end('a'), None);
        assert_eq!(queue.running(), 0);
    }

    #[test]
    fn one_core_still_starts() {
        let mut queue = StartQueue::new(1);
        assert!(queue.try_begin('a'));
        assert!(!queue.try_begin('b'));
        queue.enqueue('b', ());
        assert_eq!(queue.end('a'), Some(('b', ())));
    }

    proptest! {
        /// Never more than the limit; nobody is lost; each function is served in order; nobody waits beside a place that
        /// it could use.
        #[test]
        fn nobody_is_lost(limit in 1_usize..6, steps in prop::collection::vec((0_u8..4, any::<bool>()), 0..200)) {
            let mut queue = StartQueue::new(limit);
            let (mut running, mut waiting) = (Vec::new(), Vec::new());
            let mut next = 0;
            for (key, asks) in steps {
                if asks {
                    if queue.try_begin(key) {
                        running.push(key);
                    } else {
                        queue.enqueue(key, next);
                        waiting.push((key, next));
                        next += 1;
                    }
                } else if !running.is_empty() {
                    let ended = running.remove(usize::from(key) % running.len());
                    if let Some((key, ticket)) = queue.end(ended) {
                        let first = waiting.iter().position(|(waits, _)| *waits == key);
                        prop_assert_eq!(waiting.remove(first.unwrap()), (key, ticket), "first come, first served");
                        running.push(key);
                    }
                }
                prop_assert_eq!(queue.running(), running.len());
                prop_assert!(running.len() <= limit);
                let usable = waiting.iter().any(|(key, _)| queue.may_run(key));
                prop_assert!(!usable, "a place is free and somebody waits for it");
            }
            // What is under way ends, and everybody has had a turn.
            while let Some(ended) = running.pop() {
                if let Some((key, ticket)) = queue.end(ended) {
                    waiting.retain(|waits| *waits != (key, ticket));
                    running.push(key);
                }
            }
            prop_assert!(waiting.is_empty());
        }
    }
}
