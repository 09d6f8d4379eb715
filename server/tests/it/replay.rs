//! Replays: what came to a function, sent once more to copies of two versions.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::experiments::{agent, ended, functions, refused};
use crate::lab_forms::replay_form;
use crate::support::{Browser, Client, Server, TOKEN};

const FAST: &str = "\
import os

def handler(event, context):
    assert os.environ['KEY'] == 's3cr3t'
    return sum(range(int(os.environ.get('TIMES', '1')) * event['work']))
";
/// A hundred times as slow: what starting and answering take on a busy host must not come close to it.
const SLOW: &str = "def handler(event, context):\n    return sum(range(100 * event['work']))\n";

/// A function with a history, and a slower version that is not active.
async fn with_history(client: &Client) {
    let settings = json!({"env": {"KEY": "s3cr3t"}});
    client.deploy("summed", FAST, settings).await;
    for work in 0..30 {
        let event = json!({"work": 2000 + work});
        client.invoke("summed", &event).await.expect(200);
    }
    let slow = json!({"code": {"inline": SLOW}});
    client
        .post("/api/v1/functions/summed/versions", &slow)
        .await
        .expect(201);
}

/// `hearth lab replay`.
pub async fn replay(server: &Server, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    command
        .args(["lab", "replay"])
        .args(arguments)
        .arg("--out")
        .arg(directory.path())
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let done = tokio::time::timeout(Duration::from_secs(120), command.output());
    done.await.expect("it ends").expect("it runs")
}

/// All that it printed.
pub fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

/// The experiment when it has ended well. By chance the first version differs from itself.
pub async fn replayed(client: &Client, config: &Value) -> Value {
    let found = ended(client, config).await;
    let state = found["state"].as_str().expect("a state");
    assert!(["succeeded", "fell_short"].contains(&state), "{found}");
    found
}

fn benchmarks_of(result: &Value) -> &[Value] {
    result["benchmarks"].as_array().expect("benchmarks")
}

#[tokio::test]
async fn a_history_is_replayed_to_the_same_version_with_other_settings() {
    let server = Server::start();
    let client = server.client();
    with_history(&client).await;
    let _agent = agent(&server);
    let settings = json!({"memory_mb": 256, "env": {"TIMES": "100"}});
    let config = json!({"kind": "replay", "first": "summed@1", "settings": settings, "speed": 2});
    let found = replayed(&client, &config).await;
    let result = &found["result"];
    assert_eq!(
        (&result["first"], &result["second"]),
        (
            &json!("summed@1"),
            &json!("summed@1 with env.TIMES=100, memory_mb=256")
        )
    );
    let replayed = &benchmarks_of(result)[0];
    assert_eq!(
        (&replayed["trials"], &replayed["failed"]),
        (&json!(30), &json!(0))
    );
    assert!(
        replayed["change"]["estimate"].as_f64() > Some(1.0),
        "{found}"
    );
    // The active version is the first one, so that this is an A/A.
    let same = json!({"kind": "replay", "first": "summed", "second": "summed@1", "speed": 100});
    let found = ended(&client, &same).await;
    let result = &found["result"];
    assert_eq!(
        (&result["first"], &result["second"]),
        (&json!("summed@1"), &json!("summed@1"))
    );
    // What is set beside the history is no part of the A/A.
    assert_eq!(benchmarks_of(&found["result"]).len(), 2, "{found}");
    let control = &found["result"]["noise"]["control"];
    assert_eq!(control["compared"], 1, "{found}");
    // It says nothing of two versions.
    let path = "/api/v1/functions/summed/performance?days=1";
    let performance = client.get(path).await.expect(200).json();
    assert_eq!(performance["comparisons"], json!([]), "{performance}");
    assert_eq!(functions(&client).await, ["summed"]);

    for (settings, expected) in [
        (
            json!({"network": "internet"}),
            "settings: network cannot be set: all copies of a replay have the same",
        ),
        (
            json!({"memory": 256}),
            "settings: \"memory\" is none of memory_mb",
        ),
        (
            json!({"memory_mb": 1}),
            "settings: memory_mb: 1 is not valid: must be a whole number from 32",
        ),
        (json!({"env": {"HEARTH_X": "1"}}), "settings: env.HEARTH_X"),
    ] {
        let bad = json!({"kind": "replay", "first": "summed", "settings": settings});
        refused(&client, &bad, expected).await;
    }
    let done = replay(&server, &["summed", "--set", "network=internet"]).await;
    assert_eq!(done.status.code(), Some(2));
    assert!(said(&done).contains("settings: network cannot be set"));
    let set = [
        "summed",
        "--speed",
        "100",
        "--set",
        "timeout_ms=5000",
        "--set",
        "env.TIMES=2",
    ];
    let done = replay(&server, &set).await;
    let told = said(&done);
    assert!(
        told.contains("duet: summed@1 with env.TIMES=2, timeout_ms=5000 beside summed@1;"),
        "{told}"
    );

    let browser = Browser::logged_in(&server, TOKEN).await;
    let form = |settings| replay_form(&[("first", "summed"), ("settings", settings)]);
    let refused = browser
        .submit("/lab", &form("memory_mb=256\nports=1"))
        .await
        .expect(422);
    let page = refused.text();
    assert!(
        page.contains("none of memory_mb") && page.contains("ports=1</textarea>"),
        "{page}"
    );
    let refused = browser.submit("/lab", &form("memory_mb")).await.expect(422);
    assert!(refused.text().contains("is not NAME=VALUE"));
    let made = browser
        .submit("/lab", &form("memory_mb=256\n\nenv.TIMES=3\n"))
        .await;
    let address = made.expect(303).header("location").to_owned();
    let page = browser.get(&address).await.expect(200).text();
    assert!(
        page.contains("Is summed with env.TIMES=3, memory_mb=256 faster than summed, replayed?"),
        "{page}"
    );
}

#[tokio::test]
async fn a_history_is_replayed_to_a_slower_version() {
    let server = Server::start();
    let client = server.client();
    with_history(&client).await;
    let _agent = agent(&server);
    let config = json!({"kind": "replay", "first": "summed", "second": "summed@2", "speed": 2});
    let found = replayed(&client, &config).await;
    let result = &found["result"];
    assert_eq!(
        (&result["first"], &result["second"]),
        (&json!("summed@1"), &json!("summed@2"))
    );
    assert_eq!(result["replayed"]["arrivals"], 30, "{found}");
    // Each has copies of its own.
    assert_eq!(result["replayed"]["parts"], 15, "{found}");
    // The history keeps the events of the first few invocations a second.
    let own = result["replayed"]["own_events"].as_u64();
    assert!((Some(1)..=Some(30)).contains(&own), "{found}");
    // Variables are copied, though nobody can read them.
    assert_eq!(result["replayed"]["lacks"], json!([]));
    assert_eq!(benchmarks_of(result)[0]["failed"], 0, "{found}");
    let benchmarks = result["benchmarks"].as_array().expect("benchmarks");
    assert_eq!(
        (&benchmarks[0]["title"], &benchmarks[1]["title"]),
        (&json!("replayed"), &json!("recorded"))
    );
    assert_eq!(benchmarks[0]["trials"], 30, "{found}");
    let change = benchmarks[0]["change"]["estimate"].as_f64();
    assert!(change > Some(1.0), "{found}");
    // By chance the first version differs from itself, and there is no verdict.
    let verdict = match result["control_changes"].as_u64() {
        Some(0) => json!("slower"),
        _ => json!(null),
    };
    assert_eq!(benchmarks[0]["verdict"], verdict, "{found}");
    // Times of before are not judged, whatever the control said.
    let recorded = &benchmarks[1];
    assert_eq!(
        (&recorded["from_history"], &recorded["verdict"]),
        (&json!(true), &json!(null)),
        "{found}"
    );
    assert_eq!(recorded["doubtful"], false, "{found}");
    // The active version was named without its number.
    let path = "/api/v1/functions/summed/performance?days=1";
    let performance = client.get(path).await.expect(200).json();
    let comparison = &performance["comparisons"][0];
    assert_eq!(
        (&comparison["first"], &comparison["second"]),
        (&json!(1), &json!(2)),
        "{performance}"
    );
    let events = comparison["events"].as_array().expect("events");
    assert_eq!(events.len(), 1, "{performance}");
    assert_eq!(
        (&events[0]["name"], &events[0]["verdict"]),
        (&json!("replayed"), &verdict)
    );
    let noise = &result["noise"];
    assert_eq!(noise["control"]["compared"], 1, "{found}");
    assert!(
        noise["fdatasync"]["median_ns"].as_f64() > Some(0.0),
        "{found}"
    );
    assert_eq!(functions(&client).await, ["summed"]);
    // The copies' requests are theirs.
    let list = client
        .get("/api/v1/functions/summed/invocations?limit=1000")
        .await
        .expect(200)
        .json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(30));

    for (bad, expected) in [
        (
            json!({"kind": "replay", "first": "summed", "speed": 0.5}),
            "speed: 1 to 100",
        ),
        (
            json!({"kind": "replay", "first": "nobody"}),
            "no function \"nobody\"",
        ),
        (
            json!({"kind": "replay", "first": "summed", "trace": {"text": "app,func,end_timestamp,duration\na,b,c\n"}}),
            "trace: line 2: 4 fields, not 3",
        ),
    ] {
        refused(&client, &bad, expected).await;
    }
}

#[tokio::test]
async fn traces_are_replayed_and_broken_ones_refused() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return 1\n";
    client.deploy("summed", code, json!({})).await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace.txt");
    let lines: Vec<String> = (0..40)
        .map(|number| format!("app,f{},{}.5,0.25", number % 2, 100 + number))
        .collect();
    let text = format!("app,func,end_timestamp,duration\n{}\n", lines.join("\n"));
    std::fs::write(&path, &text).expect("written");
    let trace = path.to_str().expect("a path");

    let one = [
        "summed",
        "--trace",
        trace,
        "--function",
        "f1",
        "--speed",
        "100",
    ];
    let done = replay(&server, &one).await;
    let told = said(&done);
    // A/A: by chance something may differ.
    assert!(matches!(done.status.code(), Some(0 | 1)), "{told}");
    assert!(
        told.contains("Azure's trace of 2021: 20 arrivals within 38 s at 100 x"),
        "{told}"
    );
    let nobody = ["summed", "--trace", trace, "--function", "f9"];
    let done = replay(&server, &nobody).await;
    assert_eq!(done.status.code(), Some(2));
    assert!(said(&done).contains("no invocation of that function"));
    std::fs::write(&path, text + "app,f0,soon,1\n").expect("written");
    let done = replay(&server, &["summed", "--trace", trace]).await;
    assert_eq!(done.status.code(), Some(2));
    let told = said(&done);
    assert!(
        told.contains("line 42: end_timestamp: \"soon\" is no number of seconds"),
        "{told}"
    );
    let done = replay(&server, &["summed", "--last", "3600"]).await;
    assert!(said(&done).contains("the history has no invocation of summed"));
    assert_eq!(functions(&client).await, ["summed"]);
}
