//! A disk that is full, a database that cannot be written, a queue that is.

use super::*;

#[tokio::test]
async fn a_full_disk_delays_the_history_and_loses_nothing() {
    let mut fixture = Fixture::new().await;
    fixture.history = History::start_with(fixture.store.clone(), Duration::from_millis(300));
    let store = fixture.store.clone();
    let pragma = async |sql: String| -> i64 {
        sqlx::Row::get(
            &sqlx::query(sqlx::AssertSqlSafe(sql))
                .fetch_one(store.writer())
                .await
                .unwrap(),
            0,
        )
    };
    let pages = pragma("PRAGMA page_count".into()).await;
    pragma(format!("PRAGMA max_page_count = {pages}")).await;
    let mut sent = Vec::new();
    for _ in 0..100 {
        let mut large = record(T0, 1, Status::Succeeded);
        large.logs = vec![line(T0, &"x".repeat(5000))];
        sent.push(large.id);
        fixture.record(large).await;
    }
    // Reading waits a while for them, then answers with what is there.
    let page = fixture
        .history
        .list(fixture.function, &InvocationFilter::default(), None, 1000)
        .await;
    assert!(page.unwrap().unwrap().items.is_empty());
    pragma("PRAGMA max_page_count = 1000000".into()).await;
    assert!(fixture.history.inner.queue.written(TIMEOUT).await);
    fixture.history.flush().await;
    let page = fixture
        .history
        .list(fixture.function, &InvocationFilter::default(), None, 1000)
        .await;
    let ids: Vec<_> = page
        .unwrap()
        .unwrap()
        .items
        .iter()
        .rev()
        .map(|item| item.id)
        .collect();
    assert_eq!(ids, sent);
    assert_eq!(fixture.stats().await.count, 100);
}

#[tokio::test]
async fn minutes_that_cannot_be_stored_stay_in_memory() {
    let fixture = Fixture::new().await;
    fixture.record(record(T0, 7, Status::Succeeded)).await;
    fixture
        .history
        .list(fixture.function, &InvocationFilter::default(), None, 1)
        .await
        .unwrap();
    let before = fixture.stats().await;
    let pragma = async |sql: &'static str| {
        sqlx::query(sql)
            .execute(fixture.store.writer())
            .await
            .unwrap();
    };
    pragma("PRAGMA query_only = 1").await;
    let stored = fixture.history.inner.store_minutes_before(i64::MAX).await;
    assert!(stored.is_err());
    assert_eq!(fixture.stats().await, before);
    pragma("PRAGMA query_only = 0").await;
    fixture
        .history
        .inner
        .store_minutes_before(i64::MAX)
        .await
        .unwrap();
    assert_eq!(fixture.stats().await, before);
}

#[tokio::test]
async fn the_queue_makes_callers_wait_when_it_is_full() {
    let fixture = Fixture::new().await;
    let (queue, outlet) = queue::queue(4);
    tokio::spawn(Writer::new(fixture.store.clone(), Arc::default()).run(outlet));
    // Nothing can be written while the test holds the writing connection.
    let held = fixture.store.writer().begin().await.unwrap();
    let put = async || {
        let record = Arc::new(record(T0, 1, Status::Succeeded));
        queue
            .put(Item::Invocation(fixture.function, record, None))
            .await;
    };
    for _ in 0..4 {
        put().await;
    }
    let limit = Duration::from_millis(50);
    assert!(tokio::time::timeout(limit, put()).await.is_err());
    assert!(!queue.written(limit).await);
    drop(held);
    // The one whose caller gave up is there as well.
    assert!(queue.written(TIMEOUT).await);
    put().await;
    let page = fixture
        .history
        .list(fixture.function, &InvocationFilter::default(), None, 10)
        .await;
    assert!(page.unwrap().unwrap().items.len() >= 5);
}

#[tokio::test]
async fn no_caller_waits_for_a_disk_that_is_full() {
    let fixture = Fixture::new().await;
    let (queue, outlet) = queue::queue(4);
    let pragma = async |sql: String| -> i64 {
        let sql = sqlx::AssertSqlSafe(sql);
        let row = sqlx::query(sql).fetch_one(fixture.store.writer()).await;
        sqlx::Row::get(&row.unwrap(), 0)
    };
    let pages = pragma("PRAGMA page_count".into()).await;
    pragma(format!("PRAGMA max_page_count = {pages}")).await;
    tokio::spawn(Writer::new(fixture.store.clone(), Arc::default()).run(outlet));
    let put = async || {
        let mut large = record(T0, 1, Status::Succeeded);
        // More than is left in the pages.
        large.logs = vec![line(T0, &"x".repeat(30_000))];
        let item = Item::Invocation(fixture.function, Arc::new(large), None);
        tokio::time::timeout(TIMEOUT, queue.put(item)).await
    };
    // One is enough to fill the queue. It waits until the disk is known to be full, and so may some; the others are lost.
    for _ in 0..100 {
        put().await.expect("it does not wait for the disk");
    }
    pragma("PRAGMA max_page_count = 1000000".into()).await;
    assert!(queue.written(TIMEOUT).await);
    put().await.expect("it is written again");
    assert!(queue.written(TIMEOUT).await);
    let page = fixture
        .history
        .list(fixture.function, &InvocationFilter::default(), None, 200)
        .await;
    let count = page.unwrap().unwrap().items.len();
    assert!((2..20).contains(&count), "{count}");
}

#[tokio::test]
async fn a_record_the_database_refuses_takes_no_other_with_it() {
    let fixture = Fixture::new().await;
    sqlx::query(
        "CREATE TRIGGER refuse BEFORE INSERT ON invocations WHEN NEW.version = 666 \
         BEGIN SELECT RAISE(ABORT, 'never'); END",
    )
    .execute(fixture.store.writer())
    .await
    .unwrap();
    let mut expected = Vec::new();
    for number in 0..20 {
        let mut one = record(T0, 1, Status::Succeeded);
        if number % 7 == 3 {
            one.version = 666;
        } else {
            expected.push(one.id);
        }
        fixture.record(one).await;
    }
    let page = fixture
        .history
        .list(fixture.function, &InvocationFilter::default(), None, 100)
        .await;
    let page = page.unwrap().unwrap();
    let ids: Vec<_> = page.items.iter().rev().map(|item| item.id).collect();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_closed_store_ends_reading_and_flushing_with_an_error_and_no_wait() {
    let fixture = Fixture::new().await;
    fixture.record(record(T0, 1, Status::Succeeded)).await;
    fixture.store.close().await;
    fixture.history.flush().await;
    let page = fixture
        .history
        .list(fixture.function, &InvocationFilter::default(), None, 1)
        .await;
    assert!(page.is_err());
    fixture.record(record(T0, 1, Status::Succeeded)).await;
}
