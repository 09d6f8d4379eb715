//! What the store accepted outlives the process, however that ends.
//!
//! The test starts itself again as a child that changes a database as fast as it can and prints every change that was
//! accepted; kills it with SIGKILL in the middle; and looks for every printed change.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hearth::history::History;
use hearth::model::{
    FunctionSpec, InvocationFilter, InvocationId, InvocationRecord, Network, NewToken, Right,
    Runtime, Stages, StartKind, Status, Trigger,
};
use hearth::store::Store;
use jiff::Timestamp;

/// Names the database in the child.
const CHILD: &str = "HEARTH_TEST_STORE_CHILD";

/// Lines the parent waits for before it kills the child, one count a round.
const ROUNDS: [usize; 3] = [7, 40, 101];

fn spec(name: &str, memory_mb: u32) -> FunctionSpec {
    FunctionSpec {
        name: name.into(),
        runtime: Runtime::Python3,
        handler: "main.handler".into(),
        memory_mb,
        timeout_ms: 30_000,
        max_concurrency: 8,
        idle_timeout_s: 300,
        min_instances: 0,
        keep_warm: false,
        template_idle_timeout_s: 3600,
        start: hearth::model::Start::Auto,
        network: Network::None,
        body: hearth::model::BodyForm::Base64,
        public: false,
        triggers: Vec::new(),
        port_limits: hearth::model::PortLimits::default(),
        cors: None,
        secrets: Vec::new(),
        env: BTreeMap::new(),
        copy_of: None,
    }
}

fn token() -> NewToken {
    NewToken {
        name: "t".into(),
        rights: vec![Right::Invoke],
        scope: None,
        expires_at: None,
    }
}

fn record() -> InvocationRecord {
    let now = Timestamp::now();
    InvocationRecord {
        id: InvocationId::new(),
        function: "steady".into(),
        version: 1,
        trigger: Trigger::Invoke,
        status: Status::Succeeded,
        start: Some(StartKind::Fork),
        received_at: now,
        finished_at: Some(now),
        stages_us: Stages {
            total: 100,
            ..Stages::default()
        },
        counters: None,
        request_bytes: 1,
        response_bytes: 1,
        attempts: 1,
        error: None,
        chain: None,
        logs: Vec::new(),
    }
}

/// The child: nothing at all unless it is started as one.
#[test]
fn child_that_is_killed() {
    let Ok(file) = std::env::var(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(change_until_killed(Path::new(&file)));
}

async fn change_until_killed(file: &Path) {
    let store = Store::open(file).await.unwrap();
    let history = History::start(store.clone());
    let steady = match store.functions().await.unwrap().first() {
        Some(function) => function.id,
        None => {
            let created = store.create_function(&spec("steady", 128), "aa", 1).await;
            created.unwrap().id
        }
    };
    // One write, so that no line is torn by the kill.
    let say = |line: String| std::io::stdout().write_all(line.as_bytes()).unwrap();
    for number in 0_u32.. {
        let updated = store
            .add_version(steady, &spec("steady", 32 + number), "bb", 2)
            .await
            .unwrap();
        say(format!(
            "\nversion {} {}\n",
            updated.active.version,
            32 + number
        ));
        let (token, secret) = store.create_token(token()).await.unwrap();
        say(format!("\ntoken {secret}\n"));
        if number % 3 == 0 {
            assert!(store.delete_token(token.id).await.unwrap().is_some());
            say(format!("\ndeleted {secret}\n"));
        }
        let sent = record();
        history.record(steady, sent.clone()).await;
        // Reading waits for the disk, but not for ever.
        while history.get(sent.id).await.unwrap().is_none() {}
        say(format!("\ninvocation {}\n", sent.id));
    }
}

/// Runs the child until it printed `lines` changes, kills it and returns what it printed.
fn run_and_kill(file: &Path, lines: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(CHILD, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let words = ["version ", "token ", "deleted ", "invocation "];
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut accepted = |line: &std::io::Result<String>| {
        let line = line.as_ref().unwrap();
        words.iter().any(|word| line.starts_with(word))
    };
    let mut printed: Vec<String> = output
        .by_ref()
        .filter(&mut accepted)
        .take(lines)
        .map(Result::unwrap)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it was quick enough to print before it died counts as well.
    printed.extend(output.filter(&mut accepted).map(Result::unwrap));
    assert!(printed.len() >= lines, "the child ended by itself");
    printed
}

#[test]
fn what_was_accepted_survives_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hearth.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut invocations = 0;
    for lines in ROUNDS {
        let printed = run_and_kill(&file, lines);
        runtime.block_on(async {
            let store = Store::open(&file).await.unwrap();
            let history = History::start(store.clone());
            let function = store.functions().await.unwrap().remove(0);
            let versions = store.versions(function.id).await.unwrap();
            let mut newest = 0;
            let mut tokens: BTreeMap<&str, bool> = BTreeMap::new();
            for line in &printed {
                let mut words = line.split(' ');
                match (words.next().unwrap(), words.next().unwrap()) {
                    ("version", number) => {
                        newest = number.parse().unwrap();
                        let memory: u32 = words.next().unwrap().parse().unwrap();
                        let kept = versions.iter().find(|version| version.version == newest);
                        assert_eq!(kept.unwrap().spec.memory_mb, memory);
                    }
                    ("token", secret) => {
                        tokens.insert(secret, true);
                    }
                    ("deleted", secret) => {
                        tokens.insert(secret, false);
                    }
                    (_, id) => {
                        let id = InvocationId(id.parse().unwrap());
                        let kept = history.get(id).await.unwrap().unwrap();
                        assert_eq!(kept.function, "steady");
                    }
                }
            }
            // The last change may have been accepted without having been printed.
            let last = printed.last().unwrap();
            for (secret, valid) in tokens {
                if !last.ends_with(secret) {
                    assert_eq!(store.find_token(secret).is_some(), valid);
                }
            }
            assert!(function.active.version >= newest);

            // Statistics agree with the invocations, though the minute was never stored.
            invocations = count(&history, function.id).await;
            let window = Duration::from_secs(3600);
            let stats = history.stats(function.id, window).await.unwrap();
            assert_eq!(stats.count, invocations);
            assert_eq!(stats.total_us.p50, Some(100));
            history.flush().await;
            store.close().await;
        });
    }
    assert!(invocations >= ROUNDS.iter().map(|lines| *lines as u64 / 4).sum());
}

async fn count(history: &History, function: i64) -> u64 {
    let mut count = 0;
    let mut before = None;
    loop {
        let page = history
            .list(
                function,
                &InvocationFilter::default(),
                before.as_deref(),
                1000,
            )
            .await;
        let page = page.unwrap().unwrap();
        count += page.items.len() as u64;
        before = page.next;
        if before.is_none() {
            return count;
        }
    }
}
