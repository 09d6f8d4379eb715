//! The audit log: rows are added, read in pages, and removed by age.

use jiff::Timestamp;
use sqlx::{QueryBuilder, Row as _, Sqlite};

use super::codes::{StoredCode, timestamp};
use super::{During, Store, StoreError};
use crate::model::{ActorKind, AuditFilter, AuditRecord, Page};

/// A record to write; the store adds time and number.
#[derive(Debug, Clone)]
pub struct NewAudit {
    /// What kind of actor.
    pub actor_kind: ActorKind,
    /// Who.
    pub actor: String,
    /// What.
    pub action: &'static str,
    /// On what.
    pub target: String,
    /// From where.
    pub address: String,
    /// In which request.
    pub request_id: String,
    /// A few words more, never a secret.
    pub detail: String,
}

impl Store {
    /// Adds a record.
    pub async fn record_audit(&self, record: &NewAudit) -> Result<(), StoreError> {
        let now = Timestamp::now().as_microsecond();
        let kind = record.actor_kind.code();
        sqlx::query!(
            "INSERT INTO audit (time_us, actor_kind, actor, action, target, address, request_id, detail) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            now,
            kind,
            record.actor,
            record.action,
            record.target,
            record.address,
            record.request_id,
            record.detail
        )
        .execute(&self.inner.pools.writer)
        .await
        .during("write the audit log")?;
        Ok(())
    }

    /// One page, newest first. `before` is an earlier page's `next`; `None` when it is no such key.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Option<Page<AuditRecord>>, StoreError> {
        let before = match before.map(str::parse::<i64>) {
            None => i64::MAX,
            Some(Ok(id)) if id > 0 => id,
            Some(_) => return Ok(None),
        };
        let work = async {
            // Built as it is asked for: with "?1 IS NULL OR actor = ?1" SQLite would read the whole log past its indexes.
            let mut query = QueryBuilder::<Sqlite>::new(
                "SELECT id, time_us, actor_kind, actor, action, target, address, request_id, detail \
                 FROM audit WHERE id < ",
            );
            query.push_bind(before);
            for (condition, wanted) in [
                (" AND actor = ", &filter.actor),
                (" AND action = ", &filter.action),
                (" AND target = ", &filter.target),
            ] {
                if let Some(wanted) = wanted {
                    query.push(condition).push_bind(wanted);
                }
            }
            // One more row than requested shows whether there is another page.
            query
                .push(" ORDER BY id DESC LIMIT ")
                .push_bind(i64::from(limit) + 1);
            let rows = query.build().fetch_all(self.readers()).await?;
            let mut items = rows
                .iter()
                .map(|row| {
                    Ok(AuditRecord {
                        id: row.try_get("id")?,
                        time: timestamp(row.try_get("time_us")?)?,
                        actor_kind: ActorKind::from_code(row.try_get("actor_kind")?)?,
                        actor: row.try_get("actor")?,
                        action: row.try_get("action")?,
                        target: row.try_get("target")?,
                        address: row.try_get("address")?,
                        request_id: row.try_get("request_id")?,
                        detail: row.try_get("detail")?,
                    })
                })
                .collect::<Result<Vec<AuditRecord>, sqlx::Error>>()?;
            let more = items.len() > limit as usize;
            items.truncate(limit as usize);
            let next = items
                .last()
                .filter(|_| more)
                .map(|last| last.id.to_string());
            Ok(Some(Page { items, next }))
        };
        work.await.during("read the audit log")
    }

    /// Removes at most `limit` records older than `time`, oldest first, and returns how many: one batch of a removal by
    /// age, short enough not to delay others.
    pub async fn delete_audit_before(
        &self,
        time: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let time = time.as_microsecond();
        let limit = i64::from(limit);
        let deleted = sqlx::query!(
            "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE time_us < ?1 ORDER BY time_us LIMIT ?2)",
            time,
            limit
        )
        .execute(&self.inner.pools.writer)
        .await
        .during("remove old audit records")?
        .rows_affected();
        Ok(deleted)
    }
}
