//! Loads as experiments: of functions and chains, and of other addresses where the agent allows them.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::experiments::{agent, agent_with, ended, refused};
use crate::support::{Server, TOKEN, eventually, signal};

const CODE: &str =
    "def handler(event, context):\n    return event['requestContext']['http']['method']\n";
const EXPERIMENTS: &str = "/api/v1/experiments";

fn titles(found: &Value) -> Vec<&str> {
    let rows = found["result"]["rows"].as_array().expect("rows");
    let titles = rows.iter().map(|row| row["title"].as_str());
    titles.map(|title| title.expect("a title")).collect()
}

#[tokio::test]
async fn a_function_is_loaded_in_each_way() {
    let server = Server::start();
    let client = server.client();
    client.deploy("asked", CODE, json!({})).await;
    let _agent = agent(&server);
    let closed = json!({"kind": "load", "function": "asked", "count": 60, "connections": 4});
    let found = ended(&client, &closed).await;
    assert_eq!(found["state"], "succeeded", "{found}");
    // A closed loop intends no times.
    assert_eq!(
        titles(&found),
        ["to the first byte", "to the last byte"],
        "{found}"
    );
    let load = &found["result"]["load"];
    assert_eq!((&load["sent"], &load["good"]), (&json!(60), &json!(60)));
    let starts = found["result"]["starts"].as_object().expect("starts");
    let all: u64 = starts.values().filter_map(Value::as_u64).sum();
    assert_eq!(all, 60, "{starts:?}");
    assert!(!found.to_string().contains(TOKEN));

    let open = json!({"kind": "load", "function": "asked", "path": "/a?b=c", "rate": 100, "arrivals": "exponential",
        "duration_s": 1, "body": "{}", "seed": 7});
    let found = ended(&client, &open).await;
    assert_eq!(found["state"], "succeeded", "{found}");
    assert_eq!(
        titles(&found),
        [
            "to the first byte",
            "to the first byte, corrected",
            "to the last byte",
            "to the last byte, corrected"
        ]
    );
    assert!(
        found["result"]["load"]["send_delay_ns"]["p99"].is_number(),
        "{found}"
    );
    let yardstick = &found["result"]["noise"]["yardstick_ns"];
    assert!(yardstick[0].as_f64() > Some(0.0), "{found}");

    let bursts =
        json!({"kind": "load", "function": "asked", "burst": 8, "count": 20, "pause_ms": 10});
    let found = ended(&client, &bursts).await;
    assert_eq!(found["state"], "succeeded", "{found}");
    let paths: Vec<&str> = found["files"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    for path in [
        "load.json",
        "samples.csv",
        "cdf.svg",
        "histogram.svg",
        "percentiles.svg",
        "over_time.svg",
    ] {
        assert!(paths.contains(&path), "{path}: {paths:?}");
    }
    let file = |name: &str| format!("{EXPERIMENTS}/{}/files/{name}", found["id"]);
    let samples = client.get(&file("samples.csv")).await.expect(200).text();
    let bursts: Vec<&str> = samples
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    assert_eq!(bursts.len(), 20, "{samples}");
    assert_eq!(bursts.iter().filter(|burst| **burst == "2").count(), 4);
    let written = client.get(&file("load.json")).await.expect(200).json();
    assert!(written["node"]["version"].is_string(), "{written}");
    assert!(!written.to_string().contains(TOKEN));
    client.get("/api/v1/functions/asked").await.expect(200);
}

#[tokio::test]
async fn a_load_that_makes_no_sense_is_refused() {
    let server = Server::start();
    let client = server.client();
    client.deploy("asked", CODE, json!({})).await;
    for (config, expected) in [
        (
            json!({"kind": "load"}),
            "url: one of url, function and chain",
        ),
        (
            json!({"kind": "load", "function": "nobody"}),
            "function: there is no function \"nobody\"",
        ),
        (
            json!({"kind": "load", "function": "asked@1"}),
            "function: without a version",
        ),
        (
            json!({"kind": "load", "function": "asked", "count": 5_000_001}),
            "count: 1 to 5000000",
        ),
        (
            json!({"kind": "load", "function": "asked", "rate": 500, "duration_s": 90_000}),
            "duration_s: more than 0, and at most 86400",
        ),
        (
            json!({"kind": "load", "chain": "nobody", "path": "/r"}),
            "chain: there is no chain \"nobody\"",
        ),
        (
            json!({"kind": "load", "function": "asked", "burst": 1, "count": 5_000_000}),
            "count: at most 100000 bursts",
        ),
        (
            json!({"kind": "load", "url": "http://u:p@a.b/"}),
            "url: must have no user",
        ),
        (
            json!({"kind": "load", "function": "asked", "headers": {"x": "a\r\nb: c"}}),
            "headers: values",
        ),
        (
            json!({"Endpoint": "a.b", "SubExperiments": [{"Title": "t", "Bursts": 1, "BurstSizes": [1]}]}),
            "Endpoint: must begin with",
        ),
    ] {
        refused(&client, &config, expected).await;
    }
}

#[tokio::test]
async fn other_addresses_are_measured_where_the_agent_allows_them() {
    let server = Server::start();
    let client = server.client();
    let at = format!("{}/healthz", server.url);
    let load = json!({"kind": "load", "url": at, "count": 5});
    let stellar = json!({"Endpoint": at, "SubExperiments": [
        {"Title": "there", "Bursts": 3, "BurstSizes": [2], "IATSeconds": 0}
    ]});
    let strict = agent_with(&server, &["--endpoint", "http://127.0.0.1:1/"]);
    for config in [&load, &stellar] {
        let found = ended(&client, config).await;
        assert_eq!(found["state"], "failed", "{found}");
        let error = found["error"].as_str().expect("an error");
        let flag = format!("hearth lab agent --endpoint {}", server.url);
        assert!(error.contains(&flag), "{error}");
    }
    drop(strict);
    let _agent = agent_with(&server, &["--endpoint", &server.url]);
    let found = ended(&client, &load).await;
    assert_eq!(found["state"], "succeeded", "{found}");
    assert_eq!(found["result"]["load"]["good"], 5, "{found}");
    assert!(found["result"]["starts"].is_null(), "{found}");
    let found = ended(&client, &stellar).await;
    assert_eq!(found["state"], "succeeded", "{found}");
    assert_eq!(
        found["result"]["rows"][0]["latency_ns"]["count"], 6,
        "{found}"
    );

    // What is refused each time is given up, and what there is of it stays.
    let nothing = json!({"kind": "load", "url": format!("{}/nothing", server.url), "count": 500, "faults_max": 10});
    let found = ended(&client, &nothing).await;
    assert_eq!(found["state"], "failed", "{found}");
    assert_eq!(
        found["error"],
        "given up, too many requests failed: 11 status (404)"
    );
    assert_eq!(found["result"]["load"]["sent"], 11, "{found}");
}

/// A server that takes requests and never answers.
#[tokio::test]
async fn a_peer_that_stops_half_way_holds_nobody_up() {
    let server = Server::start();
    let client = server.client();
    let peer = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", peer.local_addr().expect("an address"));
    let (ended_by, mut ends) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = peer.accept().await {
            let ended_by = ended_by.clone();
            tokio::spawn(async move {
                let mut text = Vec::new();
                let _ = stream.read_to_end(&mut text).await;
                let _ = ended_by.send(text);
            });
        }
    });
    let _agent = agent_with(&server, &["--endpoint", &url]);
    let short = json!({"kind": "load", "url": url, "count": 3, "timeout_ms": 200});
    let found = ended(&client, &short).await;
    assert_eq!(found["state"], "failed", "{found}");
    assert_eq!(
        found["error"],
        "no request was answered with 200: 3 timeout"
    );
    for _ in 0..3 {
        let text = ends.recv().await.expect("a request");
        assert!(text.starts_with(b"GET / HTTP/1.1\r\n"));
    }

    // A cancel ends the load generator, and its connections with it.
    let long = json!({"kind": "load", "url": url, "connections": 5, "duration_s": 3_000, "timeout_ms": 800_000});
    let made = client.post(EXPERIMENTS, &long).await.expect(201).json();
    let address = format!("{EXPERIMENTS}/{}", made["id"]);
    eventually("it tells seconds", Duration::from_secs(60), || async {
        let found = client.get(&address).await.expect(200).json();
        (found["progress"]["total"] == 3_000).then_some(())
    })
    .await;
    client
        .post(&format!("{address}/cancel"), &Value::Null)
        .await
        .expect(200);
    eventually("it is cancelled", Duration::from_secs(60), || async {
        let found = client.get(&address).await.expect(200).json();
        (found["state"] == "cancelled").then_some(())
    })
    .await;
    for _ in 0..5 {
        ends.recv().await.expect("a connection that ends");
    }
}

/// `hearth lab run` of a configuration.
fn lab_run(server: &Server, directory: &Path, config: &Value, arguments: &[&str]) -> Command {
    let file = directory.join("load.json");
    std::fs::write(&file, config.to_string()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    command
        .args(["lab", "run"])
        .arg(&file)
        .args(arguments)
        .current_dir(directory)
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN)
        .env("TMPDIR", directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

#[tokio::test]
async fn a_file_of_a_load_is_run_from_the_command_line() {
    let server = Server::start();
    let client = server.client();
    client.deploy("asked", CODE, json!({})).await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = json!({"kind": "load", "function": "asked", "rate": 50, "count": 20});
    let mut run = lab_run(&server, directory.path(), &config, &["--out", "out"]);
    let output = run.output().await.expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("20 answered with 200"), "{printed}");
    assert!(
        printed.contains("to the first byte, corrected"),
        "{printed}"
    );
    let run = printed.lines().last().expect("a directory");
    let plot = directory.path().join(run).join("over_time.svg");
    assert!(plot.is_file(), "{printed}");
    let list = client.get(EXPERIMENTS).await.expect(200).json();
    assert_eq!(list["items"], json!([]), "nothing is kept unless asked");
}

#[tokio::test]
async fn a_run_of_the_command_line_is_kept_when_asked() {
    let server = Server::start();
    let client = server.client();
    client.deploy("asked", CODE, json!({})).await;
    let directory = tempfile::tempdir().expect("a directory");
    // Another one runs for now: this one waits for its turn.
    let other = json!({"kind": "load", "function": "asked"});
    let taken = format!("{EXPERIMENTS}/taken");
    let other = client.post(&taken, &other).await.expect(201).json();
    let stellar = json!({"SubExperiments": [
        {"Title": "there", "Bursts": 2, "BurstSizes": [3], "IATSeconds": 0}
    ]});
    let at = format!("{}/healthz", server.url);
    let arguments = ["--keep", "--endpoint", at.as_str()];
    let run = lab_run(&server, directory.path(), &stellar, &arguments)
        .spawn()
        .expect("it starts");
    let end = format!("{EXPERIMENTS}/{}/end", other["id"]);
    let ended = json!({"state": "succeeded", "error": null, "result": {}});
    client.put(&end, &ended).await.expect(204);
    let output = run.wait_with_output().await.expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    let list = client.get(EXPERIMENTS).await.expect(200).json();
    let kept = &list["items"][0];
    assert_eq!(
        (&kept["kind"], &kept["state"]),
        (&json!("stellar"), &json!("succeeded")),
        "{list}"
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    let page = format!("{}/lab/{}", server.url, kept["id"]);
    assert_eq!(printed.lines().last(), Some(page.as_str()), "{printed}");
    let one = client
        .get(&format!("{EXPERIMENTS}/{}", kept["id"]))
        .await
        .expect(200)
        .json();
    assert_eq!(one["result"]["rows"][0]["latency_ns"]["count"], 6, "{one}");
    assert_ne!(one["files"], json!([]), "{one}");
    let left = std::fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(left.count(), 1, "only the configuration is here");

    // One that is interrupted is kept as cancelled.
    let long = json!({"kind": "load", "function": "asked", "rate": 10, "duration_s": 3000});
    let run = lab_run(&server, directory.path(), &long, &["--keep"])
        .spawn()
        .expect("it starts");
    let state = async |id: u64| {
        let one = client.get(&format!("{EXPERIMENTS}/{id}")).await;
        one.expect(200).json()["progress"]["total"].clone()
    };
    let id = kept["id"].as_u64().expect("a number") + 1;
    eventually("it reports", Duration::from_secs(60), || async {
        let list = client.get(EXPERIMENTS).await.expect(200).json();
        let is_there = list["items"][0]["id"] == id && state(id).await == 3_000;
        is_there.then_some(())
    })
    .await;
    signal(run.id().expect("it runs"), rustix::process::Signal::INT).expect("it runs");
    let output = run.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let one = client.get(&format!("{EXPERIMENTS}/{id}")).await.expect(200);
    assert_eq!(one.json()["state"], "cancelled");

    // One that the server has given up is lost, and says so.
    let run = lab_run(&server, directory.path(), &long, &["--keep"])
        .spawn()
        .expect("it starts");
    eventually("it reports", Duration::from_secs(60), || async {
        let list = client.get(EXPERIMENTS).await.expect(200).json();
        let is_there = list["items"][0]["id"] == id + 1 && state(id + 1).await == 3_000;
        is_there.then_some(())
    })
    .await;
    let end = format!("{EXPERIMENTS}/{}/end", id + 1);
    let failed = json!({"state": "failed", "error": "gone", "result": null});
    client.put(&end, &failed).await.expect(204);
    let output = run.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("given up: "), "{}", said(&output));

    for (config, arguments, expected) in [
        (json!([1]), vec!["--keep"], "not an experiment"),
        (
            json!([1]),
            vec!["--keep", "--endpoint", "http://a.b/"],
            "must be an object",
        ),
        (
            json!({"kind": "load"}),
            vec!["--keep"],
            "one of url, function",
        ),
        (
            json!({"kind": "load"}),
            vec!["--keep", "--out", "x"],
            "--out",
        ),
        (
            json!({"kind": "load", "function": "nobody"}),
            vec!["--keep"],
            "there is no function",
        ),
        (
            json!({"kind": "load"}),
            vec!["--insecure"],
            "ca, insecure: for STeLLAR's",
        ),
        (
            json!({"kind": "load"}),
            vec!["--seed", "7"],
            "seed: for STeLLAR's",
        ),
    ] {
        let mut run = lab_run(&server, directory.path(), &config, &arguments);
        let output = run.output().await.expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}
