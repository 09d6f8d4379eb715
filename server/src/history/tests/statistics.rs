//! Counting: totals, minutes, windows, and what a crash leaves.

use super::*;
use crate::model::Percentiles;

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
        p50: Some(50),
        p90: Some(90),
        p99: Some(99),
        p999: None,
        max: Some(100),
    };
    let check = |stats: Stats| {
        assert_eq!(
            (stats.count, stats.errors, stats.starts.warm),
            (100, 10, 100)
        );
        assert_eq!(stats.total_us, expected);
        assert_eq!(stats.stages_us.run, expected);
        let zero = Percentiles {
            p50: Some(0),
            p90: Some(0),
            p99: Some(0),
            p999: None,
            max: Some(0),
        };
        assert_eq!(stats.stages_us.queue, zero);
        assert_eq!(stats.tail_to_median, Some(99.0 / 50.0));
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
        .list(fixture.function, &InvocationFilter::default(), None, 1)
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
