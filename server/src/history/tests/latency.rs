//! Distributions, heat maps, merged minutes, and the counters that never go backwards.

use proptest::prelude::*;

use super::super::merge;
use super::super::slice::Slice;
use super::*;
use crate::model::Latency;
use crate::store::{QUARTER, RollupRow};

/// Longer than the tests' records are ago.
const AGES: Duration = Duration::from_secs(100 * 366 * 86_400);

impl Fixture {
    async fn latency(&self) -> Latency {
        let mut reader = self.history.latency(self.function, AGES);
        reader.read().await.unwrap()
    }

    /// Merges all that is stored.
    async fn merge(&self) -> usize {
        let inner = Arc::downgrade(&self.history.inner);
        merge::round(&inner, i64::MAX / 60_000_000 / QUARTER * QUARTER)
            .await
            .unwrap()
    }

    async fn rows(&self, table: &str) -> i64 {
        let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        sqlx::query_scalar(query)
            .fetch_one(self.store.writer())
            .await
            .unwrap()
    }
}

fn with_start(at: i64, total: u64, start: Option<StartKind>) -> InvocationRecord {
    InvocationRecord {
        start,
        ..record(at, total, Status::Succeeded)
    }
}

fn heat_count(latency: &Latency) -> u64 {
    let columns = latency.heat_map.columns.iter();
    columns
        .flat_map(|column| column.counts.iter().map(|(_, count)| count))
        .sum()
}

#[tokio::test]
async fn cold_and_warm_are_told_apart_in_memory_and_when_stored() {
    let fixture = Fixture::new().await;
    for value in 1..=90 {
        fixture
            .record(with_start(T0, value, Some(StartKind::Warm)))
            .await;
    }
    for (value, start) in [
        (5_000, Some(StartKind::Fork)),
        (90_000, Some(StartKind::Boot)),
        (7, None),
    ] {
        fixture.record(with_start(T0 + MINUTE, value, start)).await;
    }
    let check = |latency: Latency| {
        assert_eq!(latency.stats.count, 93);
        assert_eq!((latency.warm.count, latency.cold.count), (90, 2));
        assert_eq!(latency.undivided, 0);
        assert_eq!(latency.warm.total_us.p50, Some(45));
        assert_eq!(latency.warm.total_us.max, Some(90));
        let cold = latency.cold.total_us;
        assert!(cold.p50.is_some_and(|p50| (5_000..=5_050).contains(&p50)));
        assert_eq!(cold.max, Some(90_000));
        let bars: u64 = latency.histogram.iter().map(|(.., count)| count).sum();
        assert_eq!((bars, heat_count(&latency)), (93, 93));
        assert!(
            latency
                .histogram
                .iter()
                .all(|(lower, upper, _)| lower < upper)
        );
    };
    check(fixture.latency().await);
    fixture.history.flush().await;
    check(fixture.latency().await);
    assert_eq!(fixture.merge().await, 1);
    check(fixture.latency().await);
    check(fixture.restart().await.latency().await);
}

#[tokio::test]
async fn a_reader_sees_what_was_stored_since_it_read_last() {
    let fixture = Fixture::new().await;
    let mut reader = fixture.history.latency(fixture.function, AGES);
    for round in 1..=3 {
        fixture
            .record(record(T0, 10 * round, Status::Succeeded))
            .await;
        assert_eq!(reader.read().await.unwrap().stats.count, round);
        fixture.history.flush().await;
        assert_eq!(reader.read().await.unwrap().stats.count, round);
        fixture.merge().await;
        assert_eq!(reader.read().await.unwrap().stats.count, round);
    }
}

#[tokio::test]
async fn merging_moves_minutes_and_counts_nothing_twice() {
    let fixture = Fixture::new().await;
    for value in 1..=60 {
        let at = T0 + (value % 40) * MINUTE;
        fixture
            .record(record(at, value.unsigned_abs(), Status::Failed))
            .await;
    }
    fixture.history.flush().await;
    let before = (fixture.stats().await, fixture.latency().await);
    assert_eq!(fixture.rows("rollups").await, 40);
    assert_eq!(fixture.merge().await, 4);
    assert_eq!(fixture.rows("rollups").await, 0);
    assert_eq!(fixture.rows("rollup_quarters").await, 4);
    assert_eq!((fixture.stats().await, fixture.latency().await), before);
    assert_eq!(fixture.merge().await, 0, "there is nothing left to do");

    // What comes late is a minute like any other, and is moved like any other.
    fixture.record(record(T0, 7, Status::Succeeded)).await;
    fixture.history.flush().await;
    assert_eq!(fixture.stats().await.count, 61);
    assert_eq!(fixture.merge().await, 1);
    assert_eq!(fixture.rows("rollup_quarters").await, 4);
    let after = fixture.stats().await;
    assert_eq!((after.count, after.errors), (61, 60));

    // Nor does a start count the invocations of merged minutes again.
    let fixture = fixture.restart().await;
    assert_eq!(fixture.stats().await, after);
    assert_eq!(fixture.history.lifetime_of(fixture.function), (61, 60));
}

#[tokio::test]
async fn rollups_from_before_the_parts_are_read_as_far_as_they_tell() {
    let fixture = Fixture::new().await;
    let warm = Some(StartKind::Warm);
    let fork = Some(StartKind::Fork);
    for (minute, start) in [(0, warm), (1, warm), (1, fork)] {
        fixture
            .record(with_start(T0 + minute * MINUTE, 100, start))
            .await;
    }
    // In the next quarter.
    fixture
        .record(with_start(T0 + 15 * MINUTE, 100, fork))
        .await;
    fixture.history.flush().await;
    sqlx::query("UPDATE rollups SET cold = NULL, unserved = NULL")
        .execute(fixture.store.writer())
        .await
        .unwrap();
    let latency = fixture.latency().await;
    assert_eq!((latency.warm.count, latency.cold.count), (1, 1));
    assert_eq!(latency.undivided, 2);
    fixture.merge().await;
    // Merged with what cannot be divided, it cannot be either.
    let latency = fixture.latency().await;
    assert_eq!((latency.stats.count, latency.cold.count), (4, 1));
    assert_eq!(latency.undivided, 3);
}

#[tokio::test]
async fn lists_show_what_statistics_say_also_after_a_restart() {
    let fixture = Fixture::new().await;
    let now = Timestamp::now().as_microsecond();
    let first = minute_at(now) - RECENT_MINUTES;
    for value in 1..=200_u64 {
        let status = match value % 50 {
            0 => Status::TimedOut,
            _ => Status::Succeeded,
        };
        let at = now - (value as i64 % 3) * MINUTE;
        fixture.record(record(at, value * 11, status)).await;
    }
    let shown = |fixture: &Fixture| {
        let recent = fixture.history.recent(first);
        assert_eq!(recent.len(), 1);
        assert_eq!(recent[0].0, fixture.function);
        recent[0].1
    };
    let stats = fixture.stats().await;
    let recent = Recent {
        count: stats.count,
        errors: stats.errors,
        p50_us: stats.total_us.p50,
        p99_us: stats.total_us.p99,
    };
    assert_eq!((recent.count, recent.errors), (200, 4));
    assert_eq!(shown(&fixture), recent);
    fixture
        .history
        .inner
        .store_minutes_before(minute_at(now))
        .await
        .unwrap();
    assert_eq!(shown(&fixture), recent);
    fixture.history.flush().await;
    assert_eq!(shown(&fixture), recent);
    let fixture = fixture.restart().await;
    fixture.history.ready().await;
    assert_eq!(shown(&fixture), recent);
    assert_eq!(fixture.history.recent(first + 60), []);
}

#[tokio::test]
async fn counters_go_on_where_they_were() {
    let mut fixture = Fixture::new().await;
    for round in 1..=3_u64 {
        fixture.record(record(T0, 5, Status::Succeeded)).await;
        fixture.record(record(T0, 5, Status::Crashed)).await;
        assert_eq!(fixture.history.lifetime(), (2 * round, round));
        // In the database, but in no rollup.
        fixture
            .history
            .list(fixture.function, &InvocationFilter::default(), None, 1)
            .await
            .unwrap();
        fixture = fixture.restart().await;
        fixture.history.ready().await;
        assert_eq!(fixture.history.lifetime(), (2 * round, round));
        let failures = fixture.history.failures();
        assert_eq!(failures.len() as u64, round);
        assert_eq!(failures[0].status, Status::Crashed);
    }
    fixture
        .store
        .delete_function(fixture.function)
        .await
        .unwrap();
    fixture.history.forget(fixture.function);
    assert_eq!(fixture.history.lifetime(), (6, 3), "they did finish");
}

proptest! {
    /// A quarter is the sum of its minutes, whatever was in them and in whichever order they are added.
    #[test]
    fn a_quarter_is_the_sum_of_its_minutes(
        calls in proptest::collection::vec((0..15_usize, 0..2_000_000_000_u64, 0..5_u8, any::<bool>()), 0..200),
        split in 0..15_usize,
    ) {
        let mut minutes: Vec<Slice> = (0..15).map(|_| Slice::new()).collect();
        let mut whole = Slice::new();
        for (minute, total, start_kind, failed) in calls {
            let start = [None, Some(StartKind::Warm), Some(StartKind::Fork), Some(StartKind::Restore), Some(StartKind::Boot)]
                [usize::from(start_kind)];
            let status = if failed { Status::Failed } else { Status::Succeeded };
            let stages = Stages { run: total / 2, total, ..Stages::default() };
            minutes[minute].record(status, start, &stages);
            whole.record(status, start, &stages);
        }
        let rows: Vec<RollupRow> = (0..)
            .zip(&minutes)
            .map(|(minute, slice)| slice.to_row(1, 30 + minute, 1).unwrap())
            .collect();
        let merged = merge::add_up(&rows, 1, 2).unwrap();
        prop_assert_eq!(&merged, &whole.to_row(1, 30, QUARTER).unwrap());
        // In two steps, as when some minutes are stored late.
        let early = merge::add_up(&rows[..split], 1, 2).unwrap();
        let mut late = rows[split..].to_vec();
        late.push(early);
        prop_assert_eq!(&merge::add_up(&late, 1, 2).unwrap(), &merged);
    }
}
