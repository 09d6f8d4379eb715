//! The history on throwaway databases.

mod faults;
mod latency;
mod reading;
mod statistics;

use std::collections::BTreeMap;

use super::*;
use crate::model::{
    FunctionSpec, InvocationFilter, InvocationId, LogLine, LogStream, Network, Runtime, Stages,
    StartKind, Stats, Status, Trigger,
};

/// 2023-11-14T22:13:20Z: 20 s into a minute.
const T0: i64 = 1_700_000_000_000_000;
const MINUTE: i64 = 60_000_000;
/// How long reads wait for the disk here: as long as the slowest machine needs.
const TIMEOUT: Duration = Duration::from_secs(300);

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
            env: BTreeMap::new(),
            copy_of: None,
        };
        let function = store.create_function(&spec, "aa", 1).await.unwrap().id;
        let history = History::start_with(store.clone(), TIMEOUT);
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
        let history = History::start_with(store.clone(), TIMEOUT);
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
        start: Some(StartKind::Warm),
        received_at: Timestamp::from_microsecond(at).unwrap(),
        finished_at: Some(Timestamp::from_microsecond(at).unwrap()),
        stages_us: Stages {
            run: total,
            total,
            ..Stages::default()
        },
        counters: None,
        request_bytes: 2,
        response_bytes: 4,
        attempts: 1,
        error: None,
        chain: None,
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
