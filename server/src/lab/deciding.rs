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
        let one = {
            let mut all = self.0.lock();
            // Without those that nobody holds or waits for.
            all.retain(|_, one| Arc::strong_count(one) > 1);
            all.entry(function).or_default().clone()
        };
        one.lock_owned().await
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
        drop(first);
        let first = again.await;
        assert_eq!(deciding.0.lock().len(), 2);
        drop(first);
        let _third = deciding.on(3).await;
        assert!(!deciding.0.lock().contains_key(&1));
    }
}
