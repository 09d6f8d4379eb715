//! Gates of functions, and what they said of versions.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::codes::{StoredCode as _, decode_error, narrow, timestamp};
use super::{During, Store, StoreError};
use crate::model::{ActorKind, Gate, GateState, VersionGate};

/// A comparison that is not decided yet.
#[derive(Debug, Clone)]
pub struct PendingGate {
    /// Row id of the function.
    pub function: i64,
    /// Its name.
    pub name: String,
    /// The version that is to become active.
    pub version: u32,
    /// The version that was active.
    pub against: u32,
    /// What compares them.
    pub experiment: i64,
    /// Who wants it.
    pub actor_kind: ActorKind,
    /// Their name.
    pub actor: String,
    /// When it is given up.
    pub deadline: Timestamp,
}

impl Store {
    /// A function's gate.
    pub async fn gate(&self, function: i64) -> Result<Option<Gate>, StoreError> {
        let work = async {
            let text = sqlx::query_scalar!(
                "SELECT settings FROM gates WHERE function_id = ?1",
                function
            )
            .fetch_optional(self.readers())
            .await?;
            let gate = text.map(|text| serde_json::from_str(&text).map_err(decode_error));
            gate.transpose()
        };
        work.await.during("read a gate")
    }

    /// Sets a function's gate, or takes it away. Returns whether anything changed.
    pub async fn set_gate(&self, function: i64, gate: Option<&Gate>) -> Result<bool, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let changed = match gate {
                Some(gate) => {
                    let settings = serde_json::to_string(gate)
                        .map_err(|error| sqlx::Error::Encode(error.into()))?;
                    sqlx::query!(
                        "INSERT INTO gates (function_id, settings) SELECT id, ?2 FROM functions WHERE id = ?1 \
                         ON CONFLICT (function_id) DO UPDATE SET settings = excluded.settings",
                        function,
                        settings
                    )
                    .execute(&mut *transaction)
                    .await?
                }
                None => {
                    sqlx::query!("DELETE FROM gates WHERE function_id = ?1", function)
                        .execute(&mut *transaction)
                        .await?
                }
            };
            transaction.commit().await?;
            Ok(changed.rows_affected() > 0)
        };
        work.await.during("keep a gate")
    }

    /// Whether a version has ever been active.
    pub async fn was_active(&self, function: i64, version: u32) -> Result<bool, StoreError> {
        let at = sqlx::query_scalar!(
            "SELECT activated_us FROM versions WHERE function_id = ?1 AND version = ?2",
            function,
            version
        )
        .fetch_optional(self.readers())
        .await
        .during("look whether a version was active")?;
        Ok(at.flatten().is_some())
    }

    /// Notes that a version is compared before it becomes active, in place of what was said of it before.
    pub async fn begin_gate(&self, new: &PendingGate) -> Result<(), StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let (deadline, state) = (new.deadline.as_microsecond(), GateState::Pending.code());
            let actor_kind = new.actor_kind.code();
            let mut transaction = self.write().await?;
            sqlx::query!(
                "INSERT INTO version_gates \
                 (function_id, version, against, experiment_id, state, deadline_us, actor_kind, actor, begun_us) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                 ON CONFLICT (function_id, version) DO UPDATE SET against = excluded.against, \
                 experiment_id = excluded.experiment_id, state = excluded.state, reason = NULL, \
                 deadline_us = excluded.deadline_us, actor_kind = excluded.actor_kind, actor = excluded.actor, \
                 begun_us = excluded.begun_us, ended_us = NULL",
                new.function,
                new.version,
                new.against,
                new.experiment,
                state,
                deadline,
                actor_kind,
                new.actor,
                now
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        work.await.during("begin to compare a version")
    }

    /// Decides on a version; nothing happens where there is no comparison of it.
    pub async fn end_gate(
        &self,
        function: i64,
        version: u32,
        state: GateState,
        reason: &str,
    ) -> Result<(), StoreError> {
        let work = async {
            let (now, state) = (Timestamp::now().as_microsecond(), state.code());
            let mut transaction = self.write().await?;
            sqlx::query!(
                "UPDATE version_gates SET state = ?3, reason = ?4, ended_us = ?5 WHERE function_id = ?1 AND version = ?2",
                function,
                version,
                state,
                reason,
                now
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        work.await.during("decide on a version")
    }

    /// Comparisons that are not decided, oldest first.
    pub async fn pending_gates(&self) -> Result<Vec<PendingGate>, StoreError> {
        let work = async {
            let pending = GateState::Pending.code();
            let rows = sqlx::query!(
                r#"SELECT g.function_id AS "function_id!: i64", f.name, g.version AS "version!: i64", g.against, g.experiment_id,
                   g.actor_kind, g.actor, g.deadline_us
                   FROM version_gates g JOIN functions f ON f.id = g.function_id WHERE g.state = ?1 ORDER BY g.begun_us"#,
                pending
            )
            .fetch_all(self.readers())
            .await?;
            let read = rows.into_iter().map(|row| {
                Ok::<_, sqlx::Error>(PendingGate {
                    function: row.function_id,
                    name: row.name,
                    version: narrow("version number", row.version)?,
                    against: narrow("version number", row.against)?,
                    experiment: row.experiment_id,
                    actor_kind: ActorKind::from_code(row.actor_kind)?,
                    actor: row.actor,
                    deadline: timestamp(row.deadline_us)?,
                })
            });
            read.collect::<Result<Vec<PendingGate>, _>>()
        };
        work.await.during("list the comparisons of versions")
    }

    /// What a function's gate said of its versions, by their numbers.
    pub async fn version_gates(
        &self,
        function: i64,
    ) -> Result<BTreeMap<u32, VersionGate>, StoreError> {
        let work = async {
            let rows = sqlx::query!(
                r#"SELECT version AS "version!: i64", against, experiment_id, state, reason, begun_us, ended_us
                   FROM version_gates WHERE function_id = ?1"#,
                function
            )
            .fetch_all(self.readers())
            .await?;
            let read = rows.into_iter().map(|row| {
                let gate = VersionGate {
                    state: GateState::from_code(row.state)?,
                    against: narrow("version number", row.against)?,
                    experiment: row.experiment_id,
                    reason: row.reason,
                    begun_at: timestamp(row.begun_us)?,
                    ended_at: row.ended_us.map(timestamp).transpose()?,
                };
                Ok::<_, sqlx::Error>((narrow("version number", row.version)?, gate))
            });
            read.collect::<Result<BTreeMap<u32, VersionGate>, _>>()
        };
        work.await.during("read what a gate said")
    }
}
