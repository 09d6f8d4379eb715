//! The history on throwaway databases.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::model::{
    FunctionSpec, LogStream, Network, Percentiles, Runtime, Stages, StartRung, Trigger,
};

/// 2023-11-14T22:13:20Z: 20 s into a minute.
const T0: i64 = 1_700_000_000_000_000;
const MINUTE: i64 = 60_000_000;

struct Fixture {
    directory: tempfile::TempDir,
    store: Store,
    history: History,
    function: i64,
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("hearth.db"))
            .await
            .unwrap();
        let spec = FunctionSpec {
            name: "f".into(),
            runtime: Runtime::Python3,
            handler: "main.handler".into(),
            memory_mb: 128,
            timeout_ms: 30_000,
            max_concurrency: 8,
            idle_timeout_s: 300,
            min_instances: 0,
            network: Network::None,
            public: false,
            env: BTreeMap::new(),
        };
        let function = store.create_function(&spec, "aa", 1).await.unwrap().id;
        let history = History::start(store.clone());
        Self {
            directory,
            store,
            history,
            function,
        }
    }

    /// As after a crash: what is in memory is gone, what is in the database stays.
    async fn restart(self) -> Self {
        drop(self.history);
        self.store.close().await;
        let store = Store::open(&self.directory.path().join("hearth.db"))
            .await
            .unwrap();
        let history = History::start(store.clone());
        Self {
            store,
            history,
            ..self
        }
    }

    async fn record(&self, record: InvocationRecord) {
        self.history.record(self.function, record).await;
    }

    /// Statistics since 1970: the tests' records are of the past.
    async fn stats(&self) -> Stats {
        self.history
            .stats(self.function, Duration::from_secs(100 * 366 * 86_400))
            .await
            .unwrap()
    }
}

fn record(at: i64, total: u64, status: Status) -> InvocationRecord {
    InvocationRecord {
        id: InvocationId::new(),
        function: "f".into(),
        version: 1,
        trigger: Trigger::Invoke,
        status,
        start: Some(StartRung::Warm),
        received_at: Timestamp::from_microsecond(at).unwrap(),
        finished_at: Some(Timestamp::from_microsecond(at).unwrap()),
        stages_us: Stages {
            run: total,
            total,
            ..Stages::default()
        },
        request_bytes: 2,
        response_bytes: 4,
        attempts: 1,
        error: None,
        logs: Vec::new(),
    }
}

fn line(at: i64, text: &str) -> LogLine {
    LogLine {
        time: Timestamp::from_microsecond(at).unwrap(),
        stream: LogStream::Stderr,
        text: text.into(),
    }
}

#[tokio::test]
async fn what_was_recorded_is_read_at_once() {
    let fixture = Fixture::new().await;
    for number in 0..50 {
        let mut sent = record(T0, number, Status::Succeeded);
        sent.logs = vec![line(T0, "one"), line(T0, "two")];
        fixture.record(sent.clone()).await;
        let read = fixture.history.get(sent.id).await.unwrap();
        assert_eq!(read, Some(sent.clone()));
        let page = fixture.history.list(fixture.function, None, None, 1).await;
        let page = page.unwrap().unwrap();
        assert_eq!(page.items[0].id, sent.id);
        assert_eq!(page.next.is_some(), number > 0);
    }
    let unknown = fixture.history.get(InvocationId::new()).await.unwrap();
    assert_eq!(unknown, None);
}

#[tokio::test]
async fn many_at_once_are_all_written() {
    const TASKS: usize = 20;
    const EACH: usize = 500;
    let fixture = Fixture::new().await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (history, function) = (fixture.history.clone(), fixture.function);
            tokio::spawn(async move {
                for _ in 0..EACH {
                    let mut sent = record(T0, 5, Status::Succeeded);
                    sent.logs = vec![line(T0, "x")];
                    history.record(function, sent).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut seen = 0;
    let mut before = None;
    loop {
        let page = fixture
            .history
            .list(fixture.function, None, before.as_deref(), 1000)
            .await
            .unwrap()
            .unwrap();
        seen += page.items.len();
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, TASKS * EACH);
    let logs = fixture.history.logs(fixture.function, 1_000_000).await;
    assert_eq!(logs.unwrap().len(), TASKS * EACH);
    assert_eq!(fixture.stats().await.count, (TASKS * EACH) as u64);
}

#[tokio::test]
async fn lines_are_read_in_the_order_they_were_written_in() {
    let fixture = Fixture::new().await;
    let mut first = record(T0, 1, Status::Succeeded);
    first.logs = vec![
        line(T0 + 10, "a1"),
        line(T0 + 30, "a2"),
        line(T0 + 30, "a3"),
    ];
    let mut second = record(T0, 1, Status::Succeeded);
    second.logs = vec![line(T0 + 20, "b1")];
    fixture.record(first.clone()).await;
    fixture.record(second).await;
    let late = vec![
        LogEntry {
            invocation: Some(first.id),
            line: line(T0 + 40, "a4"),
        },
        LogEntry {
            invocation: None,
            line: line(T0, "import"),
        },
    ];
    fixture.history.late_logs(fixture.function, late).await;
    fixture
        .history
        .late_logs(fixture.function, Vec::new())
        .await;

    let texts = |entries: Vec<LogEntry>| -> Vec<String> {
        entries.into_iter().map(|entry| entry.line.text).collect()
    };
    let all = fixture.history.logs(fixture.function, 100).await.unwrap();
    assert_eq!(texts(all), ["import", "a1", "b1", "a2", "a3", "a4"]);
    let newest = fixture.history.logs(fixture.function, 2).await.unwrap();
    assert_eq!(texts(newest), ["a3", "a4"]);
    let read = fixture.history.get(first.id).await.unwrap().unwrap();
    let lines: Vec<_> = read.logs.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["a1", "a2", "a3", "a4"]);
}

#[tokio::test]
async fn listeners_hear_of_invocations_and_lines() {
    let fixture = Fixture::new().await;
    let mut listener = fixture.history.subscribe(fixture.function);
    let sent = record(T0, 7, Status::Crashed);
    fixture.record(sent.clone()).await;
    let entry = LogEntry {
        invocation: Some(sent.id),
        line: line(T0, "hello"),
    };
    fixture.history.publish_log(fixture.function, entry);
    fixture.history.publish_log(
        fixture.function + 1,
        LogEntry {
            invocation: None,
            line: line(T0, "of nobody's interest"),
        },
    );
    assert!(matches!(listener.recv().await, Ok(Event::Finished(heard)) if *heard == sent));
    assert!(matches!(listener.recv().await, Ok(Event::Log(heard)) if heard.line.text == "hello"));
    assert!(listener.try_recv().is_err());
    fixture.history.forget(fixture.function);
    let closed = listener.recv().await;
    assert!(matches!(closed, Err(broadcast::error::RecvError::Closed)));
}

#[tokio::test]
async fn totals_count_since_the_start() {
    let fixture = Fixture::new().await;
    fixture.record(record(T0, 100, Status::Succeeded)).await;
    fixture.record(record(T0, 101, Status::TimedOut)).await;
    let mut refused = record(T0, 5, Status::Cancelled);
    refused.start = None;
    fixture.record(refused).await;
    let live = fixture.history.live(fixture.function);
    assert_eq!((live.count, live.errors), (3, 2));
    assert_eq!(live.buckets, [(6, 1), (100, 1), (133, 1)]);
    let totals = fixture.history.totals();
    assert_eq!(totals.len(), 1);
    assert_eq!(totals[0].function, "f");
    assert_eq!(totals[0].by_start, [2, 0, 0, 0]);
    assert_eq!(totals[0].total_us, 206);
    assert!(totals[0].by_status.contains(&(Status::TimedOut, 1)));
    assert!(totals[0].by_status.contains(&(Status::Crashed, 0)));
    fixture.history.forget(fixture.function);
    assert!(fixture.history.totals().is_empty());
    assert_eq!(fixture.history.live(fixture.function).count, 0);
}

#[tokio::test]
async fn statistics_add_stored_minutes_to_those_in_memory() {
    let fixture = Fixture::new().await;
    // 1 to 100 µs over three minutes, every tenth an error.
    for value in 1..=100_u64 {
        let status = if value % 10 == 0 {
            Status::Failed
        } else {
            Status::Succeeded
        };
        let at = T0 + (value as i64 % 3) * MINUTE;
        fixture.record(record(at, value, status)).await;
    }
    let expected = Percentiles {
        p50: 50,
        p90: 90,
        p99: 99,
        p999: 100,
        max: 100,
    };
    let check = |stats: Stats| {
        assert_eq!(
            (stats.count, stats.errors, stats.starts.warm),
            (100, 10, 100)
        );
        assert_eq!(stats.total_us, expected);
        assert_eq!(stats.stages_us.run, expected);
        assert_eq!(stats.stages_us.queue, Percentiles::default());
        assert_eq!(stats.tail_to_median, 99.0 / 50.0);
    };
    check(fixture.stats().await);
    // The first minute goes into the database, the others stay in memory.
    let second = minute_at(T0) + 1;
    fixture
        .history
        .inner
        .store_minutes_before(second)
        .await
        .unwrap();
    check(fixture.stats().await);
    // The second too, in two halves.
    fixture
        .history
        .inner
        .store_minutes_before(second + 1)
        .await
        .unwrap();
    fixture
        .record(record(T0 + MINUTE, 3, Status::Succeeded))
        .await;
    fixture
        .history
        .inner
        .store_minutes_before(second + 1)
        .await
        .unwrap();
    assert_eq!(fixture.stats().await.count, 101);
    fixture.history.flush().await;
    assert_eq!(fixture.stats().await.count, 101);
    let fixture = fixture.restart().await;
    assert_eq!(fixture.stats().await.count, 101);
    // A window that begins later leaves out what is before its first minute.
    let now = Timestamp::now().as_microsecond();
    let window = Duration::from_micros((now - T0 - 2 * MINUTE).unsigned_abs());
    let stats = fixture
        .history
        .stats(fixture.function, window)
        .await
        .unwrap();
    assert_eq!(stats.count, 33);
    let none = fixture
        .history
        .stats(fixture.function, Duration::from_secs(60))
        .await;
    assert_eq!(
        none.unwrap(),
        Stats {
            window_s: 60,
            ..Stats::default()
        }
    );
}

#[tokio::test]
async fn minutes_that_a_crash_left_uncounted_are_counted_at_the_next_start() {
    let fixture = Fixture::new().await;
    for value in 1..=10 {
        fixture.record(record(T0, value, Status::Succeeded)).await;
    }
    fixture.history.flush().await;
    // The rest of that minute, and the one after, are in no rollup.
    for value in 11..=20 {
        fixture.record(record(T0 + 1, value, Status::Failed)).await;
        fixture
            .record(record(T0 + MINUTE, value, Status::Failed))
            .await;
    }
    fixture
        .history
        .list(fixture.function, None, None, 1)
        .await
        .unwrap();
    let before = fixture.stats().await;
    assert_eq!((before.count, before.errors), (30, 20));
    let fixture = fixture.restart().await;
    assert_eq!(fixture.stats().await, before);
    let fixture = fixture.restart().await;
    assert_eq!(fixture.stats().await, before);
    fixture
        .record(record(T0 + MINUTE, 1, Status::Succeeded))
        .await;
    assert_eq!(fixture.stats().await.count, 31);
}

#[tokio::test]
async fn a_full_disk_delays_the_history_and_loses_nothing() {
    let fixture = Fixture::new().await;
    let pragma = async |sql: String| -> i64 {
        sqlx::Row::get(
            &sqlx::query(sqlx::AssertSqlSafe(sql))
                .fetch_one(fixture.store.writer())
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
    // Reading waits a second for them, then answers with what is there.
    let page = fixture
        .history
        .list(fixture.function, None, None, 1000)
        .await;
    assert!(page.unwrap().unwrap().items.is_empty());
    pragma("PRAGMA max_page_count = 1000000".into()).await;
    fixture.history.flush().await;
    let page = fixture
        .history
        .list(fixture.function, None, None, 1000)
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
        .list(fixture.function, None, None, 1)
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
    let (queue, writer) = writer::queue(fixture.store.clone(), 4);
    tokio::spawn(writer.run());
    // Nothing can be written while the test holds the writing connection.
    let held = fixture.store.writer().begin().await.unwrap();
    let put = async || {
        let record = Arc::new(record(T0, 1, Status::Succeeded));
        queue.put(Item::Invocation(fixture.function, record)).await;
    };
    for _ in 0..4 {
        put().await;
    }
    let patience = Duration::from_millis(50);
    assert!(tokio::time::timeout(patience, put()).await.is_err());
    assert!(!queue.written(patience).await);
    drop(held);
    // The one whose caller gave up is there as well.
    assert!(queue.written(Duration::from_secs(60)).await);
    put().await;
    let page = fixture.history.list(fixture.function, None, None, 10).await;
    assert!(page.unwrap().unwrap().items.len() >= 5);
}

#[tokio::test]
async fn a_cursor_that_is_none_is_refused() {
    let fixture = Fixture::new().await;
    for cursor in ["", "x", "12", "zz945e9c-0000-7000-8000-000000000000"] {
        let page = fixture
            .history
            .list(fixture.function, None, Some(cursor), 5)
            .await;
        assert!(page.unwrap().is_none(), "{cursor}");
    }
    let empty = fixture
        .history
        .list(fixture.function + 1, None, None, 5)
        .await;
    let empty = empty.unwrap().unwrap();
    assert!(empty.items.is_empty() && empty.next.is_none());
}

const STATUSES: [Status; 3] = [Status::Succeeded, Status::Failed, Status::TimedOut];

/// Invocations as (time in µs, number that breaks ties in the id, status).
fn invocations() -> impl Strategy<Value = Vec<(u8, u16, usize)>> {
    proptest::collection::vec((0..4_u8, any::<u16>(), 0..STATUSES.len()), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Walking the pages gives what sorting a list gives, whatever the order of recording, also for equal times.
    #[test]
    fn pages_are_a_sorted_list_in_pieces(
        made in invocations(),
        limit in 1..7_u32,
        filter in proptest::option::of(0..STATUSES.len()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = Fixture::new().await;
            let mut model = BTreeMap::new();
            for (time, tie, status) in made {
                let mut one = record(T0 + i64::from(time), 1, STATUSES[status]);
                let random = (u128::from(time) << 80) | (7 << 76) | (2 << 62) | u128::from(tie);
                one.id = InvocationId(Uuid::from_u128(random));
                // Recording an id again replaces it.
                model.insert(one.id, one.clone());
                fixture.record(one).await;
            }
            let status = filter.map(|index| STATUSES[index]);
            let expected: Vec<_> = model
                .into_values()
                .rev()
                .filter(|one| status.is_none_or(|status| one.status == status))
                .collect();
            let mut walked = Vec::new();
            let mut before: Option<String> = None;
            loop {
                let page = fixture
                    .history
                    .list(fixture.function, status, before.as_deref(), limit)
                    .await
                    .unwrap()
                    .unwrap();
                prop_assert!(page.items.len() <= limit as usize);
                prop_assert!(page.next.is_none() || page.items.len() == limit as usize);
                walked.extend(page.items);
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            prop_assert_eq!(walked, expected);
            Ok(())
        })?;
    }
}
