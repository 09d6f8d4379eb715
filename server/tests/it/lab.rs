//! `hearth lab run` against the real server: it deploys what it needs, measures, and leaves nothing.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Client, Server, TOKEN, eventually, signal};

fn lab(server: &Server, directory: &Path, experiment: &Value) -> Command {
    let file = directory.join("experiment.json");
    std::fs::write(&file, experiment.to_string()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    command
        .args(["lab", "run"])
        .arg(file)
        .arg("--out")
        .arg(directory.join("out"));
    command
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN)
        .kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn functions(client: &Client) -> usize {
    let list = client.get("/api/v1/functions").await.expect(200).json();
    list["items"].as_array().expect("a list").len()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What the run printed: where its files are.
fn run_directory(output: &Output) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

#[tokio::test]
async fn an_experiment_deploys_measures_and_removes() {
    let server = Server::start();
    let client = server.client();
    let directory = tempfile::tempdir().expect("a directory");
    let experiment = json!({
        "Sequential": true,
        "Provider": "hearth",
        "SubExperiments": [
            {
                "Title": "python", "Function": "hellopy", "Bursts": 4, "BurstSizes": [1, 5], "IATSeconds": 0,
                "Parallelism": 2, "FunctionImageSizeMB": 1,
            },
            {
                "Title": "node", "Function": "hellonode", "Bursts": 3, "BurstSizes": [2], "IATSeconds": 0,
                "PayloadLengthBytes": 4096, "BusySpinIncrements": [1000],
            },
            {
                "Title": "rust", "Function": "hellorust", "Bursts": 2, "BurstSizes": [3], "IATSeconds": 1,
                "PayloadLengthBytes": 4096, "DesiredServiceTimes": ["5ms"], "Visualization": "all",
            },
        ],
    });
    let output = lab(&server, directory.path(), &experiment)
        .output()
        .await
        .expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(functions(&client).await, 0);
    let run = run_directory(&output);
    for (name, count) in [
        (
            "python-memory128MB-img1MB-IAT0s-burst1-st0ms-payload0KB",
            2 + 10,
        ),
        ("node-memory128MB-img0MB-IAT0s-burst2-st0ms-payload4KB", 6),
        ("rust-memory128MB-img0MB-IAT1s-burst3-st5ms-payload4KB", 6),
    ] {
        let latencies =
            std::fs::read_to_string(run.join(name).join("latencies.csv")).expect("it is there");
        let mut ids: Vec<&str> = latencies
            .lines()
            .skip(1)
            .filter_map(|line| line.split(',').next())
            .collect();
        // Each invocation's own id, as the function was told it.
        assert!(ids.iter().all(|id| uuid_like(id)), "{latencies}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{latencies}");
        let result =
            std::fs::read_to_string(run.join(name).join("result.json")).expect("it is there");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        assert_eq!(result["report"]["good"], count);
        assert_eq!(result["report"]["faults"], json!({}));
    }
    let plots = run.join("rust-memory128MB-img0MB-IAT1s-burst3-st5ms-payload4KB");
    for plot in [
        "empirical_CDF.svg",
        "histogram.svg",
        "histograms/burst0_delta1s.svg",
        "histograms/burst1_delta1s.svg",
        "bursts_characterization.svg",
    ] {
        let svg = std::fs::read_to_string(plots.join(plot)).expect(plot);
        assert!(svg.contains("3 samples") || svg.contains("rust"), "{svg}");
    }
    let summary = std::fs::read_to_string(run.join("experiment.json")).expect("it is there");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert!(summary["node"]["version"].is_string(), "{summary}");
    assert!(!summary.to_string().contains(TOKEN));
}

#[tokio::test]
async fn functions_of_a_chain_hand_a_payload_on() {
    let server = Server::start();
    let client = server.client();
    let directory = tempfile::tempdir().expect("a directory");
    let chain = |title: &str, function: &str, length: usize, payload: usize| {
        json!({
            "Title": title, "Function": function, "Bursts": 4, "BurstSizes": [1, 5], "IATSeconds": 0, "Parallelism": 2,
            "DataTransferChainLength": length, "PayloadLengthBytes": payload, "ConcurrencyLimit": 2,
        })
    };
    let experiment = json!({
        "Sequential": true,
        "SubExperiments": [chain("python", "hellopy", 3, 300_000), chain("node", "hellonode", 2, 2_000_000)],
    });
    let output = lab(&server, directory.path(), &experiment)
        .output()
        .await
        .expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(functions(&client).await, 0);
    let chains = client.get("/api/v1/chains").await.expect(200).json();
    assert_eq!(chains["items"], json!([]), "{chains}");
    let run = run_directory(&output);
    for (name, length) in [
        (
            "python-memory128MB-img0MB-IAT0s-burst1-st0ms-payload292KB",
            3,
        ),
        (
            "node-memory128MB-img0MB-IAT0s-burst1-st0ms-payload1953KB",
            2,
        ),
    ] {
        let read =
            |file: &str| std::fs::read_to_string(run.join(name).join(file)).expect("it is there");
        let transfers = read("data-transfers.csv");
        let mut rows = transfers
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let head = rows.next().expect("a head");
        assert_eq!(head.len(), 3 + length, "{transfers}");
        assert_eq!(
            head.last(),
            Some(&format!("Function {} Timestamp", length - 1).as_str())
        );
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows.len(), 2 + 10, "{transfers}");
        for row in rows {
            assert!(uuid_like(row[0]) && row.len() == 3 + length, "{row:?}");
            let stamps = row[3..].iter().map(|stamp| stamp.parse::<u64>());
            let stamps: Result<Vec<u64>, _> = stamps.collect();
            assert!(stamps.expect("numbers").is_sorted(), "{row:?}");
        }
        let ids = |text: &str| {
            let rows = text.lines().skip(1);
            let mut ids: Vec<String> = rows
                .filter_map(|row| row.split(',').next().map(str::to_owned))
                .collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&transfers), ids(&read("latencies.csv")));
    }
}

fn uuid_like(id: &str) -> bool {
    id.len() == 36
        && id
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[tokio::test]
async fn an_interrupted_experiment_removes_its_functions() {
    let server = Server::start();
    let client = server.client();
    let directory = tempfile::tempdir().expect("a directory");
    let experiment = json!({"SubExperiments": [
        {"Title": "long", "Bursts": 1000, "BurstSizes": [1], "IATSeconds": 60, "Parallelism": 2}
    ]});
    let child = lab(&server, directory.path(), &experiment)
        .spawn()
        .expect("it starts");
    eventually(
        "its functions are deployed",
        Duration::from_secs(60),
        || async { (functions(&client).await == 2).then_some(()) },
    )
    .await;
    signal(child.id().expect("it runs"), rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("cancelled"), "{}", said(&output));
    assert_eq!(functions(&client).await, 0);
}

#[tokio::test]
async fn a_service_time_is_calibrated_on_the_function() {
    let server = Server::start();
    let client = server.client();
    let directory = tempfile::tempdir().expect("a directory");
    let experiment = json!({"SubExperiments": [
        {"Title": "busy", "Bursts": 3, "BurstSizes": [1], "IATSeconds": 0, "DesiredServiceTimes": ["0ms", "200ms"]}
    ]});
    let output = lab(&server, directory.path(), &experiment)
        .output()
        .await
        .expect("it runs");
    if !output.status.success() {
        // A host that is too busy to be measured is told, and its functions are removed all the same.
        assert!(
            said(&output).contains("of service time"),
            "{}",
            said(&output)
        );
        assert_eq!(functions(&client).await, 0);
        return;
    }
    let run = run_directory(&output);
    let name = "busy-memory128MB-img0MB-IAT0s-burst1-st0ms-payload0KB";
    let result = std::fs::read_to_string(run.join(name).join("result.json")).expect("it is there");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(result["increments"][0], 0);
    assert!(
        result["increments"][1].as_u64() > Some(10_000),
        "{}",
        result["increments"]
    );
    let reached = result["service_times_ms"][1].as_f64().expect("a number");
    assert!((190.0..=210.0).contains(&reached), "{reached}");
}

#[tokio::test]
async fn a_wrong_token_deploys_nothing() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let experiment = json!({"SubExperiments": [{"Title": "t", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 0}]});
    let mut command = lab(&server, directory.path(), &experiment);
    let output = command
        .env("HEARTH_TOKEN", "wrong")
        .output()
        .await
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("401"), "{}", said(&output));
    assert!(!directory.path().join("out").exists());
    assert_eq!(functions(&server.client()).await, 0);
}

/// A handler that counts so far.
fn counting(to: usize) -> String {
    format!(
        "def handler(event, context):\n    if event.get('fail') and {to} > 20_000:\n        raise ValueError('no')\n    \
         for _ in range({to}):\n        pass\n    return {to}\n"
    )
}

/// Few trials, because the differences are large.
async fn compare(server: &Server, directory: &Path, arguments: &[&str]) -> Output {
    let mut tries = 0;
    loop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
        command.arg("lab").args(arguments);
        command.args(["--calls", "4", "--invocations", "2", "--resamples", "1000"]);
        command
            .arg("--out")
            .arg(directory.join("duets"))
            .env("HEARTH_URL", &server.url)
            .env("HEARTH_TOKEN", TOKEN)
            .kill_on_drop(true);
        let output = command.output().await.expect("it runs");
        // With so few trials a version differs from itself now and then.
        let is_noisy = String::from_utf8_lossy(&output.stdout).contains("too noisy");
        tries += 1;
        if !is_noisy || tries == 5 {
            return output;
        }
    }
}

#[tokio::test]
async fn versions_are_compared_and_slow_ones_do_not_pass_the_gate() {
    let server = Server::start();
    let client = server.client();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let event = file("event.json", "{}");
    client.deploy("counted", &counting(20_000), json!({})).await;

    let slow = file("slow.py", &counting(60_000));
    let arguments = ["gate", "counted", "--code", &slow, "--event", &event];
    let output = compare(&server, directory.path(), &arguments).await;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}{}", said(&output));
    // Each try that was too noisy has added a version.
    assert!(
        printed.contains("fell short: version ") && printed.contains(" is slower by "),
        "{printed}"
    );

    // One that fails where the active one does not.
    let failing = file("failing.json", r#"{"fail": true}"#);
    let arguments = ["gate", "counted", "--version", "2", "--event", &failing];
    let output = compare(&server, directory.path(), &arguments).await;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}{}", said(&output));
    assert!(
        printed.contains("version 2 fails with failing"),
        "{printed}"
    );

    let fast = file("fast.py", &counting(5_000));
    let arguments = [
        "gate",
        "counted",
        "--code",
        &fast,
        "--recorded",
        "2",
        "--activate",
    ];
    let output = compare(&server, directory.path(), &arguments).await;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}{}", said(&output));
    let function = client
        .get("/api/v1/functions/counted")
        .await
        .expect(200)
        .json();
    let active = function["active_version"].to_string();
    assert!(
        printed.contains(&format!("held: version {active} ")),
        "{printed}"
    );

    // Without a control, which is noisy by chance now and then.
    let arguments = [
        "duet",
        "counted@1",
        "counted",
        "--no-control",
        "--event",
        &event,
    ];
    let output = compare(&server, directory.path(), &arguments).await;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}{}", said(&output));
    assert!(printed.contains("faster"), "{printed}");
    let written = printed.lines().last().expect("a directory");
    for file in ["result.json", "trials.csv", "forest.svg"] {
        assert!(Path::new(written).join(file).is_file(), "{file}");
    }

    for (arguments, expected) in [
        (
            ["gate", "counted", "--version", active.as_str()],
            "is the active one",
        ),
        (["duet", "nobody", "counted", "--no-control"], "404"),
        (["duet", "counted@9", "counted", "--no-control"], ""),
        (
            ["duet", "counted", "counted", "--confidence=1"],
            "confidence",
        ),
    ] {
        let output = compare(&server, directory.path(), &arguments).await;
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(expected),
            "{arguments:?}: {}",
            said(&output)
        );
    }
}
