//! Removes history past the age and size limits, and shrinks the database file afterwards.
//!
//! One task does this in batches: see [`crate::store`] for the batches and [`policy`] for what is due. After each batch
//! it pauses for as long as the batch took, so that the history and deploys have the write connection at least half of
//! the time. Work interrupted by a crash is due again at the next start.

pub mod policy;
mod status;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, watch};

use crate::history::History;
use crate::model::Retention;
use crate::store::{PIECE, Store, StoreError};
use policy::Due;
use status::Budgets;

pub use status::{Amount, DatabaseFile, Pass, RetentionStatus, WouldRemove, would_remove};

/// Under this name the settings are stored.
const SETTING: &str = "retention";
/// How long after the start the first pass is made: a start has other things to do.
const FIRST_PASS: Duration = Duration::from_secs(10);
/// Time between two passes.
const PERIOD: Duration = Duration::from_secs(60);
/// Shortest rest after a piece.
const SHORTEST_REST: Duration = Duration::from_millis(1);
/// Free space that stays in the file, bytes: new rows go there, and the file need not grow again for them.
const SLACK: u64 = 4 << 20;

/// Keeps the history within its settings. Cheap to clone.
#[derive(Clone)]
pub struct Retainer {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    history: History,
    settings: ArcSwap<Retention>,
    /// Locked by changes.
    turn: Arc<Mutex<()>>,
    pass: watch::Sender<Pass>,
    /// The settings were changed.
    changed: Notify,
}

/// A change of the settings that has begun.
pub struct Change {
    _turn: OwnedMutexGuard<()>,
    inner: Arc<Inner>,
}

impl Change {
    /// The settings, as they stay until this change ends.
    pub fn present(&self) -> Retention {
        **self.inner.settings.load()
    }

    /// Changes them; they are applied at once, in the background.
    ///
    /// # Errors
    /// [`StoreError`]; they stay as they were.
    pub async fn save(self, settings: Retention) -> Result<(), StoreError> {
        self.inner.store.set_setting(SETTING, &settings).await?;
        self.inner.settings.store(Arc::new(settings));
        self.inner.history.limit_payloads(settings.payloads());
        self.inner.changed.notify_one();
        Ok(())
    }
}

impl Retainer {
    /// Reads the settings and begins to apply them in the background.
    pub async fn start(store: Store, history: History) -> Result<Self, StoreError> {
        let settings: Retention = store.setting(SETTING).await?.unwrap_or_default();
        history.limit_payloads(settings.payloads());
        let retainer = Self {
            inner: Arc::new(Inner {
                store,
                history,
                settings: ArcSwap::from_pointee(settings),
                turn: Arc::default(),
                pass: watch::Sender::default(),
                changed: Notify::new(),
            }),
        };
        tokio::spawn(retainer.clone().run());
        Ok(retainer)
    }

    /// The settings.
    pub fn settings(&self) -> Retention {
        **self.inner.settings.load()
    }

    /// Begins a change of the settings and locks them until it ends.
    pub async fn change(&self) -> Change {
        Change {
            _turn: self.inner.turn.clone().lock_owned().await,
            inner: self.inner.clone(),
        }
    }

    /// Retention settings, the space used and the progress of removal.
    pub async fn status(&self) -> Result<RetentionStatus, StoreError> {
        let store = &self.inner.store;
        let (invocations, logs) = self.amounts().await?;
        let file = store.file_size().await?;
        Ok(RetentionStatus {
            settings: self.settings(),
            invocations,
            logs,
            statistics_oldest: store.oldest_statistics().await?,
            database: DatabaseFile {
                bytes: file.bytes,
                free_bytes: file.free,
                shrinks: file.shrinks,
            },
            pass: self.inner.pass.borrow().clone(),
        })
    }

    /// The number of invocations and of log lines.
    async fn amounts(&self) -> Result<(Amount, Amount), StoreError> {
        let store = &self.inner.store;
        let (sizes, oldest) = (store.sizes().await?, store.oldest().await?);
        let invocations = Amount {
            count: sizes.invocations.rows,
            bytes: sizes.invocation_bytes(),
            oldest: oldest.invocation,
        };
        let logs = Amount {
            count: sizes.logs.rows,
            bytes: sizes.log_bytes(),
            oldest: oldest.line,
        };
        Ok((invocations, logs))
    }

    async fn run(self) {
        let mut rest = FIRST_PASS;
        loop {
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = self.inner.changed.notified() => {}
            }
            rest = PERIOD;
            match self.pass().await {
                Ok(()) => {}
                Err(StoreError::Sqlx {
                    source: sqlx::Error::PoolClosed,
                    ..
                }) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot remove old history");
                    self.update(|pass| pass.error = Some(error.to_string()));
                }
            }
            self.update(|pass| {
                pass.running = false;
                pass.stage = None;
                pass.finished_at = Some(Timestamp::now());
            });
        }
    }

    fn update(&self, change: impl FnOnce(&mut Pass)) {
        self.inner.pass.send_modify(change);
    }

    /// Removes all that is due.
    async fn pass(&self) -> Result<(), StoreError> {
        let (status, now) = (self.status().await?, Timestamp::now());
        let expected = would_remove(&status, &status.settings, now);
        self.update(|pass| {
            *pass = Pass {
                running: true,
                expected: expected.invocations + expected.logs,
                started_at: Some(now),
                ..Pass::default()
            };
        });
        self.remove_kind("invocations").await?;
        self.remove_kind("logs").await?;
        self.remove_statistics().await?;
        self.remove_audit().await?;
        self.shrink().await
    }

    /// Removes what is due of invocations or of log lines. The settings are read again for each batch.
    async fn remove_kind(&self, kind: &'static str) -> Result<(), StoreError> {
        let store = &self.inner.store;
        let of_invocations = kind == "invocations";
        loop {
            let begun = Instant::now();
            let (invocations, logs) = self.amounts().await?;
            let budgets = Budgets::of(&self.settings());
            let (kept, budget) = match of_invocations {
                true => (invocations.kept(), budgets.invocations),
                false => (logs.kept(), budgets.logs),
            };
            let (before, most) = match policy::due(&kept, &budget, Timestamp::now()) {
                None => return Ok(()),
                Some(Due::Before(before)) => (before, PIECE),
                Some(Due::Oldest(rows)) => {
                    let rows = u32::try_from(rows).unwrap_or(PIECE);
                    (Timestamp::MAX, rows.min(PIECE))
                }
            };
            self.update(|pass| pass.stage = Some(kind));
            let removed = match of_invocations {
                true => store.remove_invocations(before, most).await?,
                false => store.remove_lines(before, most).await?,
            };
            if removed == 0 {
                return Ok(());
            }
            self.update(|pass| pass.removed += removed);
            self.rest(begun).await;
        }
    }

    /// Removes entries of the audit log that are too old.
    async fn remove_audit(&self) -> Result<(), StoreError> {
        let before = policy::cutoff(self.settings().audit_days, Timestamp::now());
        loop {
            let begun = Instant::now();
            let store = &self.inner.store;
            let removed = store.delete_audit_before(before, PIECE).await?;
            if removed == 0 {
                return Ok(());
            }
            self.update(|pass| {
                pass.stage = Some("audit");
                pass.removed += removed;
            });
            self.rest(begun).await;
        }
    }

    /// Removes statistics of minutes that are too old.
    async fn remove_statistics(&self) -> Result<(), StoreError> {
        let store = &self.inner.store;
        let before = policy::cutoff(self.settings().statistics_days, Timestamp::now());
        for function in store.subject_ids().await? {
            loop {
                let begun = Instant::now();
                let removed = store.remove_statistics(function, before).await?;
                if removed == 0 {
                    break;
                }
                self.update(|pass| {
                    pass.stage = Some("statistics");
                    pass.removed += removed;
                });
                self.rest(begun).await;
            }
        }
        Ok(())
    }

    /// Gives free pages of the file back.
    async fn shrink(&self) -> Result<(), StoreError> {
        let store = &self.inner.store;
        let mut file = store.file_size().await?;
        if !file.shrinks || file.free <= SLACK {
            return Ok(());
        }
        self.update(|pass| pass.stage = Some("file"));
        while file.free > SLACK {
            let begun = Instant::now();
            let after = store.shrink_step().await?;
            if after.bytes >= file.bytes {
                break;
            }
            file = after;
            self.rest(begun).await;
        }
        store.truncate_log().await
    }

    /// Rests for as long as the piece took that began then.
    async fn rest(&self, begun: Instant) {
        tokio::time::sleep(begun.elapsed().max(SHORTEST_REST)).await;
    }
}
