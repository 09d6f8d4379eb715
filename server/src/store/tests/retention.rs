//! Removing the oldest, keeping count, and the file that becomes smaller.

use uuid::{NoContext, Timestamp as UuidTime, Uuid};

use super::*;
use crate::model::{InvocationPayloads, Payload};

const DAY: i64 = 86_400;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// An invocation of that time, with an error and a line.
fn old(second: i64) -> InvocationRecord {
    let mut record = finished(Status::Failed, &["a line of it"]);
    let time = UuidTime::from_unix(NoContext, second.cast_unsigned(), 0);
    record.id = InvocationId(Uuid::new_v7(time));
    record.received_at = at(second);
    record.logs[0].time = at(second);
    record.chain = Some(crate::model::chain::Trace {
        route: "r".into(),
        hops: Vec::new(),
    });
    record.error = Some(crate::model::FunctionError {
        error_type: "E".into(),
        error_message: "m".repeat(50),
        stack_trace: Vec::new(),
    });
    record
}

fn payloads(bytes: usize) -> InvocationPayloads {
    InvocationPayloads {
        event: Some(Payload {
            text: Some("e".repeat(bytes)),
            truncated: true,
            binary: false,
        }),
        result: Some(Payload {
            text: None,
            truncated: false,
            binary: true,
        }),
    }
}

async fn write_with_payloads(store: &Store, function: i64, records: &[InvocationRecord]) {
    let mut batch = HistoryBatch::default();
    for record in records {
        batch.push(function, record).unwrap();
        batch
            .push_payloads(function, record.id, &payloads(100))
            .unwrap();
    }
    store.write_history(&batch).await.unwrap();
}

/// What the counts say is what is there.
async fn assert_counts_are_right(store: &Store) {
    let sizes = store.sizes().await.unwrap();
    for (size, sql) in [
        (
            sizes.invocations,
            "SELECT count(*), coalesce(sum(octet_length(error)), 0) + coalesce(sum(octet_length(trace)), 0) \
             FROM invocations",
        ),
        (
            sizes.payloads,
            "SELECT count(*), coalesce(sum(octet_length(event)), 0) + coalesce(sum(octet_length(result)), 0) \
             FROM invocation_payloads",
        ),
        (
            sizes.logs,
            "SELECT count(*), coalesce(sum(octet_length(text)), 0) FROM logs",
        ),
    ] {
        let row = sqlx::query(sql).fetch_one(store.readers()).await.unwrap();
        let (rows, text): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!((size.rows as i64, size.text as i64), (rows, text), "{sql}");
    }
}

#[tokio::test]
async fn payloads_are_kept_as_they_were() {
    let Fixture { store, directory } = Fixture::new().await;
    let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    let record = old(1_700_000_000);
    write_with_payloads(&store, id, std::slice::from_ref(&record)).await;
    assert_eq!(store.payloads(record.id).await.unwrap(), payloads(100));
    let none = store.payloads(InvocationId::new()).await.unwrap();
    assert_eq!(none, InvocationPayloads::default());
    // Those of a function that is gone are passed over, as its invocations are.
    write_with_payloads(&store, id + 1, &[old(1_700_000_001)]).await;
    assert_counts_are_right(&store).await;
    drop(directory);
}

#[tokio::test]
async fn the_oldest_of_all_functions_go_first_and_are_counted() {
    let Fixture { store, directory } = Fixture::new().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(
            store
                .create_function(&spec(name), "aa", 1)
                .await
                .unwrap()
                .id,
        );
    }
    for day in 0..30 {
        for (index, id) in ids.iter().enumerate() {
            let second = (1000 + day) * DAY + index as i64;
            write_with_payloads(&store, *id, &[old(second)]).await;
        }
    }
    assert_counts_are_right(&store).await;
    let oldest = store.oldest().await.unwrap();
    assert_eq!(oldest.invocation, Some(at(1000 * DAY)));
    assert_eq!(oldest.line, Some(at(1000 * DAY)));

    let before = at(1010 * DAY);
    assert_eq!(store.remove_invocations(before, 7).await.unwrap(), 7);
    assert_counts_are_right(&store).await;
    assert_eq!(store.remove_invocations(before, 1000).await.unwrap(), 23);
    assert_eq!(store.remove_invocations(before, 1000).await.unwrap(), 0);
    assert_eq!(store.remove_lines(before, 1000).await.unwrap(), 30);
    assert_eq!(store.remove_lines(before, 1000).await.unwrap(), 0);
    assert_eq!(fixture_count(&store, "invocations").await, 60);
    assert_eq!(fixture_count(&store, "invocation_payloads").await, 60);
    let oldest = store.oldest().await.unwrap();
    assert_eq!(oldest.invocation, Some(before));
    assert_eq!(oldest.line, Some(before));
    assert_counts_are_right(&store).await;

    // Whatever their age.
    assert_eq!(
        store.remove_invocations(Timestamp::MAX, 5).await.unwrap(),
        5
    );
    assert_eq!(store.remove_lines(Timestamp::MAX, 5).await.unwrap(), 5);
    store.delete_function(ids[1]).await.unwrap();
    store.sweep().await.unwrap();
    assert_counts_are_right(&store).await;
    drop(directory);
}

async fn fixture_count(store: &Store, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .fetch_one(store.readers())
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn the_file_becomes_smaller_when_rows_go() {
    let Fixture { store, directory } = Fixture::new().await;
    let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    let line = "x".repeat(2000);
    for _ in 0..5 {
        let mut batch = HistoryBatch::default();
        for second in 0..1000 {
            let mut record = old(1000 * DAY + second);
            record.logs[0].text.clone_from(&line);
            batch.push(id, &record).unwrap();
        }
        store.write_history(&batch).await.unwrap();
    }
    store.truncate_log().await.unwrap();
    let file = directory.path().join("hearth.db");
    let size = || std::fs::metadata(&file).unwrap().len();
    let full = size();
    assert!(full > 10 << 20, "{full}");
    while store.remove_lines(Timestamp::MAX, 1000).await.unwrap() > 0 {}
    while store
        .remove_invocations(Timestamp::MAX, 1000)
        .await
        .unwrap()
        > 0
    {}
    let mut known = store.file_size().await.unwrap();
    assert!(known.shrinks && known.free > full / 2, "{known:?}");
    loop {
        let after = store.shrink_step().await.unwrap();
        if after.bytes == known.bytes {
            break;
        }
        known = after;
    }
    store.truncate_log().await.unwrap();
    assert!(size() < full / 4, "{full} became {}", size());
    assert_eq!(size(), known.bytes);
    assert_counts_are_right(&store).await;
}

#[tokio::test]
async fn a_small_database_of_an_earlier_version_learns_to_shrink() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hearth.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("CREATE TABLE earlier (x)")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let store = Store::open(&file).await.unwrap();
    assert!(store.file_size().await.unwrap().shrinks);
    assert_eq!(fixture_count(&store, "earlier").await, 0);
}

#[tokio::test]
async fn settings_are_kept() {
    let fixture = Fixture::new().await;
    let unset: Option<Vec<u32>> = fixture.store.setting("numbers").await.unwrap();
    assert_eq!(unset, None);
    for numbers in [vec![1, 2], vec![3]] {
        fixture
            .store
            .set_setting("numbers", &numbers)
            .await
            .unwrap();
        let kept: Option<Vec<u32>> = fixture.store.setting("numbers").await.unwrap();
        assert_eq!(kept, Some(numbers));
    }
    let fixture = fixture.reopen().await;
    let kept: Option<Vec<u32>> = fixture.store.setting("numbers").await.unwrap();
    assert_eq!(kept, Some(vec![3]));
}
