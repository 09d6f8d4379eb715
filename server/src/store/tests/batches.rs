//! Writing the history, and the indexes it is read by.

use super::*;

#[tokio::test]
async fn a_batch_keeps_every_value_as_it_was() {
    let Fixture { store, directory } = Fixture::new().await;
    let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    let texts = [
        "",
        "plain",
        "\"quoted\" \\ back",
        "tab\tcr\r",
        "nul \0 inside",
        "\u{1b}[31mred",
        "é中🦀",
        "[1,2]",
        "{\"a\":null}",
        "null",
        "1e999",
    ];
    let mut record = finished(Status::Failed, &texts);
    record.function = "f".into();
    record.finished_at = Some(record.received_at);
    record.start = Some(crate::model::StartKind::Restore);
    record.trigger = Trigger::Http;
    record.request_bytes = i64::MAX as u64;
    record.stages_us = Stages {
        queue: 1,
        start: 2,
        send: 3,
        run: 4,
        recv: 5,
        total: 6,
    };
    record.error = Some(crate::model::FunctionError {
        error_type: "ValueError".into(),
        error_message: "nul \0 \"and\" quotes\n".into(),
        stack_trace: vec!["  File \"main.py\", line 1\n".into(), String::new()],
    });
    write(&store, id, std::slice::from_ref(&record)).await;
    let mut clamped = record.clone();
    clamped.id = InvocationId::new();
    clamped.request_bytes = u64::MAX;
    clamped.stages_us.total = u64::MAX;
    write(&store, id, std::slice::from_ref(&clamped)).await;

    let read = store.invocation(record.id).await.unwrap().unwrap();
    assert_eq!(read, record);
    let read = store.invocation(clamped.id).await.unwrap().unwrap();
    assert_eq!(read.request_bytes, i64::MAX as u64);
    assert_eq!(read.stages_us.total, i64::MAX as u64);

    // Recorded again: replaced.
    record.attempts = 2;
    record.logs.clear();
    write(&store, id, std::slice::from_ref(&record)).await;
    let all = store
        .invocations(id, &InvocationFilter::default(), None, 10)
        .await
        .unwrap()
        .items;
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].attempts, 2);
    drop(directory);
}

#[tokio::test]
async fn a_batch_larger_than_one_statement_is_written_whole() {
    let Fixture { store, directory } = Fixture::new().await;
    let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    let line = "x".repeat(1 << 20);
    let record = finished(Status::Succeeded, &[line.as_str(); 9]);
    let mut batch = HistoryBatch::default();
    batch.push(id, &record).unwrap();
    let mut import = record.logs[0].clone();
    import.text = "while importing".into();
    batch
        .push_logs(
            id,
            &[LogEntry {
                invocation: None,
                line: import,
            }],
        )
        .unwrap();
    store.write_history(&batch).await.unwrap();
    let read = store.invocation(record.id).await.unwrap().unwrap();
    assert_eq!(read.logs, record.logs);
    let newest = store.newest_logs(id, 2).await.unwrap();
    assert_eq!(newest[0].invocation, Some(record.id));
    assert_eq!(newest[1].invocation, None);
    assert_eq!(newest[1].line.text, "while importing");
    drop(directory);
}

#[tokio::test]
async fn batches_of_every_size_are_written_whole() {
    let Fixture { store, directory } = Fixture::new().await;
    let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    let mut total = 0;
    for size in [1, 3, 4, 15, 63, 255, 256, 597] {
        let mut batch = HistoryBatch::default();
        let records: Vec<_> = (0..size)
            .map(|number| {
                let status = [Status::Succeeded, Status::Failed][number % 2];
                let mut record = finished(status, &[]);
                record.stages_us.total = number as u64;
                record.response_bytes = u64::MAX - number as u64;
                record
            })
            .collect();
        for record in &records {
            batch.push(id, record).unwrap();
        }
        // Of a function that is not there.
        batch
            .push(id + 1, &finished(Status::Succeeded, &[]))
            .unwrap();
        store.write_history(&batch).await.unwrap();
        for record in &records {
            let read = store.invocation(record.id).await.unwrap().unwrap();
            let largest = record.response_bytes.min(i64::MAX as u64);
            assert_eq!((read.status, read.response_bytes), (record.status, largest));
            assert_eq!(read.stages_us, record.stages_us);
        }
        total += size as i64;
        let count: i64 = sqlx::query("SELECT count(*) FROM invocations")
            .fetch_one(&store.inner.pools.writer)
            .await
            .unwrap()
            .get(0);
        assert_eq!(count, total);
    }
    drop(directory);
}

/// What the pages, the sweeper and a removal by age ask must be answered from an index.
#[tokio::test]
async fn no_query_of_the_history_scans_or_sorts() {
    let Fixture { store, directory } = Fixture::new().await;
    for sql in [
        "SELECT * FROM invocations WHERE function_id = 1 AND id < x'ff' ORDER BY id DESC LIMIT 5",
        "SELECT * FROM invocations WHERE function_id = 1 AND status = 3 AND id < x'ff' ORDER BY id DESC LIMIT 5",
        "SELECT * FROM invocations WHERE id = x'ff'",
        "SELECT id FROM invocations WHERE id < x'ff' LIMIT 5",
        "SELECT * FROM logs WHERE function_id = 1 ORDER BY time_us DESC, seq DESC LIMIT 5",
        "SELECT seq FROM logs WHERE function_id = 1 AND time_us < 5 LIMIT 5",
        "SELECT * FROM logs WHERE invocation = x'ff'",
        "SELECT * FROM rollups WHERE function_id = 1 AND minute >= 5",
        "DELETE FROM sessions WHERE expires_us <= 5",
    ] {
        let plan: Vec<String> =
            sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
                .fetch_all(&store.inner.pools.writer)
                .await
                .unwrap()
                .iter()
                .map(|row| row.get("detail"))
                .collect();
        assert!(
            plan.iter().all(|step| step.starts_with("SEARCH")),
            "{sql}: {plan:?}"
        );
    }
    drop(directory);
}
