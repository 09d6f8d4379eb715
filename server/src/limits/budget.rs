//! A shared budget of bytes with many holders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all may take, and what they do take. Its copies are one.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    taken: AtomicUsize,
}

/// A claim would have taken all together past the bound.
#[derive(Debug, PartialEq, Eq)]
pub struct Full {
    /// Bytes that all may take.
    pub most: usize,
}

impl Budget {
    /// Creates a budget of this many bytes.
    pub fn of(most: usize) -> Self {
        let taken = AtomicUsize::new(0);
        Self(Arc::new(Shared { most, taken }))
    }

    /// A claim on nothing yet.
    pub fn claim(&self) -> Claim {
        Claim {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }
}

/// What one holder has taken, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    budget: Budget,
    bytes: usize,
}

impl Claim {
    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes this many more bytes.
    ///
    /// # Errors
    /// [`Full`]: then it takes none of them.
    pub fn grow(&mut self, more: usize) -> Result<(), Full> {
        let Shared { most, taken } = &*self.budget.0;
        let all = taken.fetch_add(more, Ordering::Relaxed) + more;
        if all > *most {
            taken.fetch_sub(more, Ordering::Relaxed);
            return Err(Full { most: *most });
        }
        self.bytes += more;
        Ok(())
    }

    /// Returns this many bytes, at most what it holds.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.budget.0.taken.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_claims_together_have_a_bound_and_give_back_what_they_took() {
        let budget = Budget::of(10);
        let (mut one, mut other) = (budget.claim(), budget.clone().claim());
        assert_eq!((one.grow(6), other.grow(4)), (Ok(()), Ok(())));
        assert_eq!(one.grow(1), Err(Full { most: 10 }));
        assert_eq!((one.bytes(), budget.taken()), (6, 10));
        one.shrink(5);
        assert_eq!(other.grow(5), Ok(()));
        one.shrink(9);
        assert_eq!((one.bytes(), budget.taken()), (0, 9));
        drop(other);
        assert_eq!(budget.taken(), 0);
    }
}
