//! The store on throwaway databases.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::Row as _;

use super::*;
use crate::history::LogEntry;
use crate::model::{
    InvocationId, InvocationRecord, LogLine, LogStream, Network, Right, Runtime, Stages, Status,
    Trigger,
};

struct Fixture {
    directory: tempfile::TempDir,
    store: Store,
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("hearth.db"))
            .await
            .unwrap();
        Self { directory, store }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("hearth.db")
    }

    async fn reopen(self) -> Self {
        self.store.close().await;
        let store = Store::open(&self.file()).await.unwrap();
        Self { store, ..self }
    }

    async fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        sqlx::query(sqlx::AssertSqlSafe(sql))
            .fetch_one(self.store.readers())
            .await
            .unwrap()
            .get(0)
    }
}

fn spec(name: &str) -> FunctionSpec {
    FunctionSpec {
        name: name.into(),
        runtime: Runtime::Python3,
        handler: "main.handler".into(),
        memory_mb: 128,
        timeout_ms: 30_000,
        max_concurrency: 8,
        idle_timeout_s: 300,
        min_instances: 0,
        network: Network::None,
        public: false,
        env: BTreeMap::from([("KEY".into(), "välue \"quoted\"".into())]),
    }
}

fn finished(status: Status, logs: &[&str]) -> InvocationRecord {
    let now = Timestamp::from_microsecond(1_700_000_000_123_456).unwrap();
    InvocationRecord {
        id: InvocationId::new(),
        function: String::new(),
        version: 1,
        trigger: Trigger::Invoke,
        status,
        start: None,
        received_at: now,
        finished_at: None,
        stages_us: Stages::default(),
        request_bytes: u64::MAX,
        response_bytes: 0,
        attempts: 1,
        error: None,
        logs: logs
            .iter()
            .map(|text| LogLine {
                time: now,
                stream: LogStream::Stdout,
                text: (*text).into(),
            })
            .collect(),
    }
}

async fn write(store: &Store, function: i64, records: &[InvocationRecord]) {
    let mut batch = HistoryBatch::default();
    for record in records {
        batch.push(function, record).unwrap();
    }
    store.write_history(&batch).await.unwrap();
}

#[tokio::test]
async fn a_database_opens_again_and_is_private() {
    let fixture = Fixture::new().await;
    let created = fixture
        .store
        .create_function(&spec("kept"), "aa", 10)
        .await
        .unwrap();
    for file in std::fs::read_dir(fixture.directory.path()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let fixture = fixture.reopen().await.reopen().await;
    let functions = fixture.store.functions().await.unwrap();
    assert_eq!(functions.len(), 1);
    assert_eq!(functions[0].id, created.id);
    assert_eq!(functions[0].active.spec, spec("kept"));
    assert_eq!(functions[0].created_at, created.created_at);
    fixture.store.ping().await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hearth.db");
    std::fs::write(&file, vec![b'x'; 8192]).unwrap();
    let error = Store::open(&file).await.unwrap_err();
    assert!(
        error.to_string().starts_with("open the database: "),
        "{error}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), vec![b'x'; 8192]);
}

#[tokio::test]
async fn the_writer_syncs_and_the_readers_cannot_write() {
    let Fixture { store, directory } = Fixture::new().await;
    let pools = &store.inner.pools;
    let pragma = async |pool: &sqlx::SqlitePool, sql: &'static str| -> i64 {
        sqlx::query(sql).fetch_one(pool).await.unwrap().get(0)
    };
    assert_eq!(pragma(&pools.writer, "PRAGMA synchronous").await, 2);
    assert_eq!(pragma(&pools.writer, "PRAGMA foreign_keys").await, 1);
    let mode: String = sqlx::query("PRAGMA journal_mode")
        .fetch_one(&pools.writer)
        .await
        .unwrap()
        .get(0);
    assert_eq!(mode, "wal");
    let refused = sqlx::query("DELETE FROM tokens")
        .execute(&pools.readers)
        .await;
    assert!(refused.is_err());
    drop(directory);
}

/// A build that missed a new migration (cargo does not watch the directory) fails here instead of in production.
#[test]
fn every_migration_is_in_the_binary() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations");
    let mut files: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let mut embedded: Vec<String> = sqlx::migrate!("../migrations")
        .iter()
        .map(|migration| migration.sql.as_str().to_owned())
        .collect();
    files.sort();
    embedded.sort();
    assert_eq!(files, embedded);
}

#[tokio::test]
async fn versions_are_counted_and_activated() {
    let Fixture { store, directory } = Fixture::new().await;
    let first = store.create_function(&spec("f"), "aa", 10).await.unwrap();
    assert_eq!(first.active.version, 1);
    assert_eq!(store.next_version(first.id).await.unwrap(), 2);

    let changed = FunctionSpec {
        memory_mb: 256,
        ..spec("f")
    };
    let second = store
        .add_version(first.id, &changed, "bb", 20)
        .await
        .unwrap();
    assert_eq!((second.id, second.active.version), (first.id, 2));
    assert_eq!(second.active.spec, changed);
    assert_eq!(second.created_at, first.created_at);
    assert!(second.updated_at >= first.updated_at);

    let back = store.activate(first.id, 1).await.unwrap().unwrap();
    assert_eq!(back.active.version, 1);
    assert_eq!(back.active.code_sha256, "aa");
    assert!(store.activate(first.id, 3).await.unwrap().is_none());
    assert!(store.activate(first.id + 1, 1).await.unwrap().is_none());

    // The next number follows the newest version, not the active one.
    assert_eq!(store.next_version(first.id).await.unwrap(), 3);
    let versions = store.versions(first.id).await.unwrap();
    let numbers: Vec<u32> = versions.iter().map(|version| version.version).collect();
    assert_eq!(numbers, [2, 1]);
    assert_eq!(versions[0].code_bytes, 20);
    assert_eq!(store.code_in_use().await.unwrap(), ["aa", "bb"]);
    drop(directory);
}

#[tokio::test]
async fn names_are_taken_once_and_unknown_functions_are_errors() {
    let Fixture { store, directory } = Fixture::new().await;
    store.create_function(&spec("f"), "aa", 10).await.unwrap();
    let taken = store.create_function(&spec("f"), "bb", 10).await;
    assert!(matches!(taken, Err(StoreError::Exists(name)) if name == "f"));
    let gone = store.add_version(99, &spec("f"), "bb", 10).await;
    assert!(matches!(
        gone,
        Err(StoreError::Sqlx {
            source: sqlx::Error::RowNotFound,
            ..
        })
    ));
    assert!(store.versions(99).await.unwrap().is_empty());
    store.delete_function(99).await.unwrap();
    assert_eq!(store.code_in_use().await.unwrap(), ["aa"]);
    drop(directory);
}

#[tokio::test]
async fn deleting_takes_the_history_too_and_frees_the_name_but_not_the_id() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let doomed = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    let other = store.create_function(&spec("g"), "bb", 1).await.unwrap().id;
    let records: Vec<_> = (0..5000)
        .map(|_| finished(Status::Succeeded, &["line"]))
        .collect();
    write(store, doomed, &records).await;
    write(store, other, &records_of(3)).await;
    let row = RollupRow {
        function: doomed,
        minute: 1,
        counts: RollupCounts::default(),
        stages: Default::default(),
    };
    let kept = RollupRow {
        function: other,
        ..row.clone()
    };
    store.insert_rollups(&[row.clone(), kept]).await.unwrap();

    store.delete_function(doomed).await.unwrap();
    assert!(store.invocation(records[0].id).await.unwrap().is_none());
    let again = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    assert!(again > other);

    // What is recorded for it now is passed over.
    write(store, doomed, &records_of(1)).await;
    store.insert_rollups(&[row]).await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!(fixture.count("invocations").await, 3);
    assert_eq!(fixture.count("logs").await, 3);
    assert_eq!(fixture.count("rollups").await, 1);
    assert_eq!(fixture.count("deleted_functions").await, 0);
    assert_eq!(store.code_in_use().await.unwrap(), ["aa", "bb"]);
}

fn records_of(count: usize) -> Vec<InvocationRecord> {
    (0..count)
        .map(|_| finished(Status::Failed, &["x"]))
        .collect()
}

#[tokio::test]
async fn an_interrupted_removal_is_continued_at_the_next_start() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    write(store, id, &records_of(10)).await;
    // As delete_function leaves it when the server dies right after.
    for sql in [
        "DELETE FROM functions",
        "INSERT INTO deleted_functions VALUES (1)",
    ] {
        sqlx::query(sql)
            .execute(&store.inner.pools.writer)
            .await
            .unwrap();
    }
    let fixture = fixture.reopen().await;
    fixture.store.sweep().await.unwrap();
    assert_eq!(fixture.count("invocations").await, 0);
    assert_eq!(fixture.count("logs").await, 0);
    assert_eq!(fixture.count("deleted_functions").await, 0);
}

#[tokio::test]
async fn tokens_are_found_by_their_secret_and_stored_without_it() {
    let fixture = Fixture::new().await;
    let rights = [Right::Read, Right::Invoke];
    let (token, secret) = fixture.store.create_token("ci", &rights).await.unwrap();
    assert!(secret.starts_with("hth_") && secret.len() == 47, "{secret}");
    assert_eq!(fixture.store.find_token(&secret), Some(token.clone()));
    assert_eq!(token.rights, rights);
    assert_eq!(fixture.store.find_token(""), None);
    assert_eq!(fixture.store.find_token(&secret[..46]), None);
    let (later, _) = fixture.store.create_token("ci", &[]).await.unwrap();
    let (cookie, _) = fixture
        .store
        .create_session(token.id, Duration::from_secs(60))
        .await
        .unwrap();
    let tokens = fixture.store.tokens().await.unwrap();
    assert_eq!(tokens, [later.clone(), token.clone()]);

    for file in std::fs::read_dir(fixture.directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for hidden in [&secret[4..], &cookie] {
            let found = bytes
                .windows(hidden.len())
                .any(|window| window == hidden.as_bytes());
            assert!(!found);
        }
    }

    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.find_token(&secret), Some(token.clone()));
    assert!(fixture.store.delete_token(token.id).await.unwrap());
    assert!(!fixture.store.delete_token(token.id).await.unwrap());
    assert_eq!(fixture.store.find_token(&secret), None);
    assert!(fixture.store.find_session(&cookie).await.unwrap().is_none());
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.find_token(&secret), None);
    assert_eq!(fixture.count("sessions").await, 0);
}

#[tokio::test]
async fn a_changed_admin_token_takes_the_old_one_away() {
    let Fixture { store, directory } = Fixture::new().await;
    let all = [Right::Read, Right::Invoke, Right::Write, Right::Admin];
    store.ensure_token("admin", "first", &all).await.unwrap();
    store.ensure_token("admin", "first", &all).await.unwrap();
    let admin = store.find_token("first").unwrap();
    assert_eq!(store.tokens().await.unwrap(), [admin.clone()]);
    let (cookie, _) = store
        .create_session(admin.id, Duration::from_secs(60))
        .await
        .unwrap();
    // A token of the same name that a person made is another matter.
    let (made, made_secret) = store.create_token("admin", &[Right::Read]).await.unwrap();

    store.ensure_token("admin", "second", &all).await.unwrap();
    assert_eq!(store.find_token("first"), None);
    assert!(store.find_session(&cookie).await.unwrap().is_none());
    assert_eq!(store.find_token("second").unwrap().rights, all);
    assert_eq!(store.find_token(&made_secret), Some(made.clone()));

    // A person's token that becomes the configured one gets the rights.
    store
        .ensure_token("admin", &made_secret, &all)
        .await
        .unwrap();
    assert_eq!(store.find_token("second"), None);
    let promoted = store.find_token(&made_secret).unwrap();
    assert_eq!(
        (promoted.id, promoted.rights.as_slice()),
        (made.id, &all[..])
    );
    drop(directory);
}

#[tokio::test]
async fn sessions_expire_and_end() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let (token, _) = store.create_token("me", &[Right::Read]).await.unwrap();
    let hour = Duration::from_secs(3600);
    let hour_us = 3_600_000_000;
    let (cookie, session) = store.create_session_at(token.id, hour, 0).await.unwrap();
    let found = store.find_session_at(&cookie, hour_us - 1).await.unwrap();
    let found = found.unwrap();
    assert_eq!((found.token, &found.csrf), (token.clone(), &session.csrf));
    assert_ne!(cookie, session.csrf);
    assert!(
        store
            .find_session_at(&cookie, hour_us)
            .await
            .unwrap()
            .is_none()
    );
    assert!(store.find_session_at("", 0).await.unwrap().is_none());

    // Opening another removes the expired one.
    let (second, _) = store
        .create_session_at(token.id, hour, hour_us)
        .await
        .unwrap();
    assert_eq!(fixture.count("sessions").await, 1);
    store.delete_session(&second).await.unwrap();
    assert!(store.find_session_at(&second, 0).await.unwrap().is_none());
    let unknown = store.create_session(token.id + 1, hour).await;
    assert!(unknown.is_err());
}

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
    record.start = Some(crate::model::StartRung::Restore);
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
    let all = store.invocations(id, None, None, 10).await.unwrap();
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
