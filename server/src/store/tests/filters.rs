//! Each filter finds what a plain one over the same rows does, whichever index answers it and however it is paged.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::model::StartKind;

const STATUSES: [Status; 4] = [
    Status::Succeeded,
    Status::Failed,
    Status::TimedOut,
    Status::Cancelled,
];
const STARTS: [Option<StartKind>; 4] = [
    None,
    Some(StartKind::Warm),
    Some(StartKind::Fork),
    Some(StartKind::Boot),
];
const TRIGGERS: [Trigger; 2] = [Trigger::Invoke, Trigger::Http];
/// Around the edge of the index of slow ones.
const TOTALS: [u64; 5] = [0, 400, 999_999, 1_000_000, 7_000_000];

/// What a row is made of: indexes into the lists above, and the version.
type Choice = (usize, usize, usize, usize, u32);

fn rows() -> impl Strategy<Value = Vec<Choice>> {
    let one = (
        prop_oneof![5 => Just(0), 1 => 0..STATUSES.len()],
        prop_oneof![5 => Just(1), 1 => 0..STARTS.len()],
        0..TRIGGERS.len(),
        0..TOTALS.len(),
        1..4_u32,
    );
    proptest::collection::vec(one, 0..60)
}

fn filters() -> impl Strategy<Value = InvocationFilter> {
    let maybe = |values: &'static [u64]| prop_oneof![2 => Just(None), 1 => proptest::sample::select(values).prop_map(Some)];
    (
        proptest::option::weighted(0.3, proptest::sample::select(&STATUSES[..])),
        prop_oneof![2 => Just(None), 1 => proptest::sample::select(&STARTS[1..])],
        proptest::option::weighted(0.3, 1..4_u32),
        proptest::option::weighted(0.3, proptest::sample::select(&TRIGGERS[..])),
        maybe(&TOTALS),
        maybe(&TOTALS),
    )
        .prop_map(
            |(status, start, version, trigger, min_us, max_us)| InvocationFilter {
                status,
                start,
                version,
                trigger,
                min_us,
                max_us,
            },
        )
}

fn passes(filter: &InvocationFilter, row: &InvocationRecord) -> bool {
    let total = row.stages_us.total;
    filter.status.is_none_or(|status| status == row.status)
        && filter.start.is_none_or(|start| Some(start) == row.start)
        && filter.version.is_none_or(|version| version == row.version)
        && filter.trigger.is_none_or(|trigger| trigger == row.trigger)
        && filter.min_us.is_none_or(|least| least <= total)
        && filter.max_us.is_none_or(|most| most >= total)
}

/// All pages, one after the other.
async fn paged(
    store: &Store,
    pieces: &[u32],
    function: i64,
    filter: &InvocationFilter,
    limit: u32,
) -> Vec<InvocationId> {
    let (mut ids, mut before, mut pages) = (Vec::new(), None, 0);
    loop {
        let found = store
            .invocations_in(pieces, function, filter, before, limit)
            .await
            .unwrap();
        assert!(found.items.len() <= limit as usize);
        ids.extend(found.items.iter().map(|item| item.id));
        pages += 1;
        assert!(pages < 200, "it comes to an end");
        match found.next {
            Some(next) => {
                assert!(before.is_none_or(|before| next < before), "it goes on");
                before = Some(next);
            }
            None => return ids,
        }
    }
}

#[test]
fn filters_find_what_a_plain_one_finds() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(Fixture::new());
    let store = &fixture.store;
    let (made, cases) = (std::cell::Cell::new(0), Config::with_cases(48));
    let pages = (1..9_u32, proptest::collection::vec(1..12_u32, 1..4));
    let check =
        |(choices, filter, (limit, pieces)): (Vec<Choice>, InvocationFilter, (u32, Vec<u32>))| {
            made.set(made.get() + 1);
            runtime.block_on(async {
                // A function of its own each time, and rows of another between them.
                let name = format!("f{}", made.get());
                let id = store
                    .create_function(&spec(&name), "aa", 1)
                    .await
                    .unwrap()
                    .id;
                let records: Vec<_> = choices
                    .iter()
                    .map(|(status, start, trigger, total, version)| {
                        let mut record = finished(STATUSES[*status], &[]);
                        record.start = STARTS[*start];
                        record.trigger = TRIGGERS[*trigger];
                        record.stages_us.total = TOTALS[*total];
                        record.version = *version;
                        record
                    })
                    .collect();
                write(store, id, &records).await;
                let expected: Vec<_> = records
                    .iter()
                    .rev()
                    .filter(|row| passes(&filter, row))
                    .map(|row| row.id)
                    .collect();
                let found = paged(store, &pieces, id, &filter, limit).await;
                prop_assert_eq!(&found, &expected, "{:?}", &filter);
                let whole = store.invocations(id, &filter, None, 1000).await.unwrap();
                prop_assert_eq!(whole.items.len(), expected.len());
                prop_assert_eq!(whole.next, None);
                Ok(())
            })
        };
    let outcome = TestRunner::new(cases).run(&(rows(), filters(), pages), check);
    outcome.unwrap();
}

/// Every way to the rows is an index, and none sorts.
#[tokio::test]
async fn every_filter_has_an_index() {
    let Fixture { store, directory } = Fixture::new().await;
    for (index, path) in [
        ("PRIMARY KEY", ""),
        (
            "invocations_unsuccessful",
            "AND i.status <> 3 AND i.status = ?2",
        ),
        ("invocations_slow", "AND i.total_us >= 1000000"),
        (
            "invocations_cold",
            "AND i.start_code <> 1 AND i.start_code = ?2",
        ),
        ("invocations_by_version", "AND i.version = ?2"),
    ] {
        let by = match path {
            "" => String::new(),
            _ => format!("INDEXED BY {index}"),
        };
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT i.error FROM functions f CROSS JOIN invocations i {by} ON i.function_id = f.id \
             WHERE f.id = ?1 AND i.id < x'ff' AND i.id >= x'00' AND (?2 IS NULL OR i.status = ?2) \
             AND (?2 IS NULL OR i.total_us >= ?2) {path} ORDER BY i.id DESC LIMIT 5"
        );
        let plan: Vec<String> = sqlx::query(sqlx::AssertSqlSafe(sql))
            .fetch_all(store.readers())
            .await
            .unwrap()
            .iter()
            .map(|row| row.get("detail"))
            .collect();
        assert!(
            plan[1].contains(index) && plan[1].contains("id>?"),
            "{plan:?}"
        );
        assert_eq!(plan.len(), 2, "{plan:?}");
    }
    drop(directory);
}
