//! The audit log.

use super::*;
use crate::model::{ActorKind, AuditFilter, AuditRecord};

async fn record(store: &Store, actor: &str, action: &'static str, target: &str) {
    let record = NewAudit {
        actor_kind: ActorKind::User,
        actor: actor.into(),
        action,
        target: target.into(),
        address: "192.0.2.1".into(),
        request_id: "r-1".into(),
        detail: "memory_mb".into(),
    };
    store.record_audit(&record).await.unwrap();
}

async fn page(
    store: &Store,
    filter: &AuditFilter,
    before: Option<&str>,
) -> (Vec<AuditRecord>, Option<String>) {
    let page = store
        .audit(filter, before, 4)
        .await
        .unwrap()
        .expect("a key");
    (page.items, page.next)
}

fn of(actor: Option<&str>, action: Option<&str>, target: Option<&str>) -> AuditFilter {
    AuditFilter {
        actor: actor.map(str::to_owned),
        action: action.map(str::to_owned),
        target: target.map(str::to_owned),
    }
}

#[tokio::test]
async fn records_are_read_in_pages_newest_first() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    for number in 0..9 {
        record(store, "ada", "function.create", &format!("f{number}")).await;
    }
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let (items, next) = page(store, &AuditFilter::default(), before.as_deref()).await;
        seen.extend(items.into_iter().map(|record| record.target));
        match next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, ["f8", "f7", "f6", "f5", "f4", "f3", "f2", "f1", "f0"]);
    for wrong in ["", "x", "0", "-1", "1.5", "99999999999999999999"] {
        assert!(
            store
                .audit(&AuditFilter::default(), Some(wrong), 4)
                .await
                .unwrap()
                .is_none(),
            "{wrong}"
        );
    }
    let (items, _) = page(store, &AuditFilter::default(), None).await;
    let newest = &items[0];
    assert_eq!(
        (newest.actor_kind, newest.actor.as_str()),
        (ActorKind::User, "ada")
    );
    assert_eq!(
        (newest.address.as_str(), newest.request_id.as_str()),
        ("192.0.2.1", "r-1")
    );
    assert_eq!(
        (newest.action.as_str(), newest.detail.as_str()),
        ("function.create", "memory_mb")
    );
}

#[tokio::test]
async fn filters_hold_together_and_use_an_index() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    for (actor, action, target) in [
        ("ada", "function.create", "a"),
        ("ada", "function.delete", "a"),
        ("bob", "function.create", "b"),
        ("ada", "function.create", "b"),
    ] {
        record(store, actor, action, target).await;
    }
    for (filter, count) in [
        (of(None, None, None), 4),
        (of(Some("ada"), None, None), 3),
        (of(Some("ad"), None, None), 0),
        (of(Some("ada"), Some("function.create"), None), 2),
        (of(Some("ada"), Some("function.create"), Some("b")), 1),
        (of(None, None, Some("b' OR 1=1 --")), 0),
    ] {
        assert_eq!(
            page(store, &filter, None).await.0.len(),
            count,
            "{filter:?}"
        );
    }
    for (column, index) in [
        ("actor", "audit_by_actor"),
        ("action", "audit_by_action"),
        ("target", "audit_by_target"),
    ] {
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT id FROM audit WHERE id < 9 AND {column} = 'x' ORDER BY id DESC LIMIT 5"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .fetch_all(store.readers())
            .await
            .unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        let plan = plan.join("; ");
        assert!(
            plan.contains(index) && !plan.contains("TEMP B-TREE"),
            "{plan}"
        );
    }
}

#[tokio::test]
async fn old_records_are_removed_a_piece_at_a_time() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    for _ in 0..5 {
        record(store, "ada", "function.create", "a").await;
    }
    let sql = "UPDATE audit SET time_us = id * 1000";
    sqlx::query(sql).execute(store.writer()).await.unwrap();
    let before = Timestamp::from_microsecond(4000).unwrap();
    assert_eq!(store.delete_audit_before(before, 2).await.unwrap(), 2);
    assert_eq!(store.delete_audit_before(before, 2).await.unwrap(), 1);
    assert_eq!(store.delete_audit_before(before, 2).await.unwrap(), 0);
    let (items, _) = page(store, &AuditFilter::default(), None).await;
    assert_eq!(items.iter().map(|r| r.id).collect::<Vec<_>>(), [5, 4]);
}
