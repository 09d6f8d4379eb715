//! Reading what was recorded: pages, lines, listeners.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

#[tokio::test]
async fn what_was_recorded_is_read_at_once() {
    let fixture = Fixture::new().await;
    for number in 0..50 {
        let mut sent = record(T0, number, Status::Succeeded);
        sent.logs = vec![line(T0, "one"), line(T0, "two")];
        fixture.record(sent.clone()).await;
        let read = fixture.history.get(sent.id).await.unwrap();
        assert_eq!(read, Some(sent.clone()));
        let page = fixture
            .history
            .list(fixture.function, &InvocationFilter::default(), None, 1)
            .await;
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
            .list(
                fixture.function,
                &InvocationFilter::default(),
                before.as_deref(),
                1000,
            )
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
async fn a_cursor_that_is_none_is_refused() {
    let fixture = Fixture::new().await;
    for cursor in ["", "x", "12", "zz945e9c-0000-7000-8000-000000000000"] {
        let page = fixture
            .history
            .list(
                fixture.function,
                &InvocationFilter::default(),
                Some(cursor),
                5,
            )
            .await;
        assert!(page.unwrap().is_none(), "{cursor}");
    }
    let empty = fixture
        .history
        .list(fixture.function + 1, &InvocationFilter::default(), None, 5)
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
                    .list(fixture.function, &InvocationFilter { status, ..InvocationFilter::default() }, before.as_deref(), limit)
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
