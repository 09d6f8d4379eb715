//! Experiments against an endpoint, by the command line.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Peer, answer};

const ANSWER: &[u8] = br#"{"RequestID": "r-1", "TimestampChain": ["1700000000000"]}"#;

fn lab(directory: &Path, experiment: &Value, arguments: &[&str]) -> Command {
    let file = directory.join("experiment.json");
    fs::write(&file, experiment.to_string()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth-lab"));
    command
        .arg("run")
        .arg(file)
        .arg("--out")
        .arg(directory.join("out"))
        .args(arguments);
    command
        .env_remove("HEARTH_URL")
        .env_remove("HEARTH_TOKEN")
        .env("TZ", "UTC");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parsed(path: PathBuf) -> Value {
    serde_json::from_str(&read(path)).expect("JSON")
}

/// The only directory below `out`.
fn run_directory(directory: &Path) -> PathBuf {
    let mut entries = fs::read_dir(directory.join("out")).expect("it is there");
    let found = entries.next().expect("a run").expect("an entry").path();
    assert!(entries.next().is_none());
    found
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn an_endpoint_is_measured_and_the_files_are_stellars() {
    let peer = Peer::start(|_, stream| {
        answer(stream, ANSWER)?;
        Ok(true)
    });
    let one = json!({"Title": "warm", "Bursts": 4, "BurstSizes": [1, 3], "IATSeconds": 0, "Parallelism": 2});
    let experiment = json!({"Sequential": true, "Provider": "aws", "SubExperiments": [one, one]});
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("{}invoke?x=1", peer.url());
    let output = lab(directory.path(), &experiment, &["--endpoint", &url])
        .output()
        .expect("it runs");
    succeeded(&output);
    let run = run_directory(directory.path());
    assert_eq!(text(&output.stdout), format!("{}\n", run.display()));
    // Rounds of two endpoints: 2 x 1, 2 x 3, and that twice.
    assert_eq!(peer.requests(), 16);

    let name = "warm-memory128MB-img0MB-IAT0s-burst1-st0ms-payload0KB";
    for name in [name.to_owned(), format!("{name}-2")] {
        let latencies = read(run.join(&name).join("latencies.csv"));
        let mut lines = latencies.lines();
        assert_eq!(
            lines.next(),
            Some("Request ID,Host,Sent At,Received At,Client Latency (ms),Burst ID")
        );
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 8);
        assert!(
            rows.iter()
                .all(|row| row[0] == "r-1" && row[1] == "127.0.0.1")
        );
        assert!(
            rows.iter()
                .all(|row| row[2].ends_with('Z') && row[2].len() == 20),
            "{latencies}"
        );
        let bursts: Vec<&str> = rows.iter().map(|row| row[5]).collect();
        assert_eq!(bursts, ["0", "1", "2", "2", "2", "3", "3", "3"]);
        let statistics = read(run.join(&name).join("statistics.csv"));
        assert!(
            statistics.starts_with(
                "Count,Mean,Standard Deviation,Min,25%ile,50%ile,75%ile,95%ile,Max\n8,"
            )
        );
        let result = parsed(run.join(&name).join("result.json"));
        assert_eq!(
            result["samples"]["first_byte_ns"].as_array().map(Vec::len),
            Some(8)
        );
        assert_eq!(result["report"]["good"], 8);
        assert!(result["report"]["to_first_byte"]["corrected_ns"]["p99"].is_number());
        assert!(result["report"]["processor_ns"].as_u64() > Some(0));
    }
    let summary = parsed(run.join("experiment.json"));
    assert_eq!(summary["sub_experiments"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&summary["error"], &summary["endpoint"]),
        (&Value::Null, &json!(url))
    );
    assert!(summary["environment"]["clock_step_ns"].as_u64() > Some(0));
    let log = read(run.join("run_logs.txt"));
    assert!(
        log.contains("level=info msg=\"[sub-experiment 1] Successfully finished.\""),
        "{log}"
    );
}

#[test]
fn sub_experiments_run_at_once_unless_sequential_and_one_can_be_chosen() {
    let peer = Peer::answers_after(Duration::from_millis(1));
    let one =
        |title: &str| json!({"Title": title, "Bursts": 2, "BurstSizes": [1], "IATSeconds": 0});
    let experiment = json!({"SubExperiments": [one("a"), one("b"), one("c")]});
    let titles = |arguments: &[&str]| {
        let directory = tempfile::tempdir().expect("a directory");
        let url = peer.url();
        let arguments = [&["--endpoint", &url], arguments].concat();
        succeeded(
            &lab(directory.path(), &experiment, &arguments)
                .output()
                .expect("it runs"),
        );
        let summary = parsed(run_directory(directory.path()).join("experiment.json"));
        let all = summary["sub_experiments"]
            .as_array()
            .expect("a list")
            .clone();
        all.iter()
            .map(|one| one["title"].as_str().expect("text").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(titles(&[]), ["a", "b", "c"]);
    assert_eq!(titles(&["--only", "1"]), ["b"]);
}

#[test]
fn what_cannot_run_is_said_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let one = json!({"Title": "t", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 0});
    let experiment = |provider: &str| json!({"Provider": provider, "SubExperiments": [one]});
    for (experiment, arguments, expected) in [
        (experiment("y"), [].as_slice(), "known are: hearth"),
        (
            experiment("x"),
            &["--endpoint", "http://127.0.0.1:1/"],
            "aliyun",
        ),
        (experiment("hearth"), &[], "HEARTH_TOKEN"),
        (
            experiment("hearth"),
            &["--token", "t", "--server", "http://127.0.0.1:1"],
            "GET /api/v1/node",
        ),
        (
            experiment("hearth"),
            &["--token", "t", "--server", "127.0.0.1:1"],
            "not an address",
        ),
        (
            experiment("hearth"),
            &["--endpoint", "http://127.0.0.1:1/", "--only", "1"],
            "there is no sub-experiment 1",
        ),
        (json!({"SubExperiments": 1}), &[], "not an experiment"),
    ] {
        let output = lab(directory.path(), &experiment, arguments)
            .output()
            .expect("it runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!directory.path().join("out").exists());
    }
}

#[test]
fn too_many_failed_requests_end_an_experiment_and_what_was_measured_is_kept() {
    let peer = Peer::start(|number, stream| {
        if number < 20 {
            answer(stream, ANSWER)?;
        } else {
            stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")?;
        }
        Ok(true)
    });
    let one = json!({"Title": "t", "Bursts": 100, "BurstSizes": [1], "IATSeconds": 0});
    let experiment = json!({"SubExperiments": [one]});
    let directory = tempfile::tempdir().expect("a directory");
    let url = peer.url();
    let output = lab(directory.path(), &experiment, &["--endpoint", &url])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("given up after 11 failed requests"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(peer.requests(), 31);
    let run = run_directory(directory.path());
    let summary = parsed(run.join("experiment.json"));
    assert_eq!(
        summary["error"],
        "sub-experiment 0: given up after 11 failed requests"
    );
    let latencies =
        read(run.join("t-memory128MB-img0MB-IAT0s-burst1-st0ms-payload0KB/latencies.csv"));
    assert_eq!(latencies.lines().count(), 21);
}

#[test]
fn an_interrupt_ends_an_experiment_and_its_load_generator() {
    let peer = Peer::start(|_, _| {
        thread::sleep(Duration::from_secs(120));
        Ok(false)
    });
    let one = json!({"Title": "t", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 0});
    let experiment = json!({"SubExperiments": [one]});
    let directory = tempfile::tempdir().expect("a directory");
    let url = peer.url();
    let mut command = lab(directory.path(), &experiment, &["--endpoint", &url]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    while peer.requests() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("cancelled"),
        "{}",
        text(&output.stderr)
    );
    let summary = parsed(run_directory(directory.path()).join("experiment.json"));
    assert_eq!(summary["error"], "cancelled");
}
