//! When each token was last used: tracked in memory on the request path, written periodically.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use super::{During, Store, StoreError};

/// Between two writes of what was used meanwhile. A crash forgets this much of it at most.
const PERIOD: Duration = Duration::from_secs(60);
/// A use this soon after the last one is not noted, in µs: busy cores would else take the value's cache line from each
/// other with every request.
const RESOLUTION_US: i64 = 1_000_000;
/// Never used.
const NEVER: i64 = i64::MIN;

/// The last use of one token.
#[derive(Debug, Clone)]
pub(super) struct LastUse {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// µs since 1970.
    used: AtomicI64,
    /// What the database holds.
    written: AtomicI64,
}

impl LastUse {
    /// As the database has it.
    pub(super) fn stored(used_us: Option<i64>) -> Self {
        let used = used_us.unwrap_or(NEVER);
        Self {
            shared: Arc::new(Shared {
                used: AtomicI64::new(used),
                written: AtomicI64::new(used),
            }),
        }
    }

    /// Notes a use. Relaxed, as everything here: each value stands for itself.
    pub(super) fn note(&self, now: Timestamp) {
        let now = now.as_microsecond();
        let last = self.shared.used.load(Ordering::Relaxed);
        if now.saturating_sub(last) >= RESOLUTION_US {
            self.shared.used.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// The last use.
    pub(super) fn get(&self) -> Option<Timestamp> {
        Timestamp::from_microsecond(self.shared.used.load(Ordering::Relaxed)).ok()
    }

    /// What the database does not know yet.
    fn unwritten(&self) -> Option<i64> {
        let used = self.shared.used.load(Ordering::Relaxed);
        (used != self.shared.written.load(Ordering::Relaxed)).then_some(used)
    }
}

impl Store {
    /// Writes the tokens' last use every [`PERIOD`] until the database is closed.
    pub(super) fn write_token_use_in_background(&self) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PERIOD).await;
                let Some(inner) = inner.upgrade() else { return };
                let store = Self { inner };
                if store.inner.pools.writer.is_closed() {
                    return;
                }
                if let Err(error) = store.write_token_use().await {
                    tracing::warn!(%error, "cannot write the last use of some tokens yet");
                }
            }
        });
    }

    /// Writes, in one transaction, when tokens were used since the last time.
    pub(super) async fn write_token_use(&self) -> Result<(), StoreError> {
        let news: Vec<(i64, LastUse, i64)> = self
            .inner
            .tokens
            .uses()
            .into_iter()
            .filter_map(|(id, last)| last.unwritten().map(|used| (id, last, used)))
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        let work = async {
            let mut transaction = self.write().await?;
            for (id, _, used) in &news {
                sqlx::query!(
                    "UPDATE tokens SET last_used_us = ?2 WHERE id = ?1",
                    id,
                    used
                )
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await
        };
        work.await.during("write the last use of tokens")?;
        for (_, last, used) in &news {
            last.shared.written.store(*used, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_noted_once_a_second_and_written_once() {
        let at = |us| Timestamp::from_microsecond(us).unwrap();
        let last = LastUse::stored(None);
        assert_eq!((last.get(), last.unwritten()), (None, None));
        last.note(at(5_000_000));
        last.note(at(5_900_000));
        assert_eq!(last.get(), Some(at(5_000_000)));
        last.note(at(6_000_000));
        assert_eq!(last.unwritten(), Some(6_000_000));
        // A clock that was set back takes nothing away.
        last.note(at(1_000_000));
        assert_eq!(last.get(), Some(at(6_000_000)));
        assert_eq!(LastUse::stored(Some(7)).get(), Some(at(7)));
        assert_eq!(LastUse::stored(Some(7)).unwritten(), None);
    }
}
