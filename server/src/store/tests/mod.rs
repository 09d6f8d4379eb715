//! The store on throwaway databases.

mod accounts;
mod audit;
mod batches;
mod chains;
mod experiments;
mod filters;
mod functions;
mod opening;
mod retention;
mod saved_events;
mod search;
mod tokens;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::Row as _;

use super::*;
use crate::model::LogEntry;
use crate::model::{
    InvocationFilter, InvocationId, InvocationRecord, LogLine, LogStream, Network, Right, Runtime,
    Stages, Status, Trigger,
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
        keep_warm: false,
        template_idle_timeout_s: 3600,
        start: crate::model::Start::Auto,
        network: Network::None,
        body: crate::model::BodyForm::Base64,
        public: false,
        triggers: Vec::new(),
        port_limits: crate::model::PortLimits::default(),
        cors: None,
        secrets: Vec::new(),
        env: BTreeMap::from([("KEY".into(), "välue \"quoted\"".into())]),
        copy_of: None,
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
        counters: None,
        request_bytes: u64::MAX,
        response_bytes: 0,
        attempts: 1,
        error: None,
        chain: None,
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

fn records_of(count: usize) -> Vec<InvocationRecord> {
    (0..count)
        .map(|_| finished(Status::Failed, &["x"]))
        .collect()
}
