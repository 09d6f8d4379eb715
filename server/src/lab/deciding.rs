//! Who decides on a function's versions: one at a time.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The functions whose versions are being decided on.
#[derive(Default)]
pub(super) struct Deciding(parking_lot::Mutex<HashMap<i64, Arc<Mutex<()>>>>);

impl Deciding {
    /// Waits until nobody else decides on a function's versions. What they are now is to be read afterwards.
    pub async fn on(&self, function: i64) -> OwnedMutexGuard<()> {
        self.of(function).lock_owned().await
    }

    /// The same, if nobody does.
    pub fn try_on(&self, function: i64) -> Option<OwnedMutexGuard<()>> {
        self.of(function).try_lock_owned().ok()
    }

    fn of(&self, function: i64) -> Arc<Mutex<()>> {
        let mut all = self.0.lock();
        // Without those that nobody holds or waits for.
        all.retain(|_, one| Arc::strong_count(one) > 1);
        all.entry(function).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_function_has_one_turn_and_those_that_are_over_are_forgotten() {
        let deciding = Deciding::default();
        let first = deciding.on(1).await;
        let _second = deciding.on(2).await;
        let mut again = Box::pin(deciding.on(1));
        assert!(futures_util::poll!(&mut again).is_pending());
        assert!(deciding.try_on(1).is_none() && deciding.try_on(4).is_some());
        drop(first);
        let first = again.await;
        assert!(deciding.try_on(1).is_none() && deciding.try_on(2).is_none());
        drop(first);
        let _third = deciding.on(3).await;
        assert!(!deciding.0.lock().contains_key(&1));
    }
}
