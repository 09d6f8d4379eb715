//! A suite of ten Go benchmarks, as `hearth lab suite --tool go` runs it, of a tree and itself: what the run takes beside the time that
//! `go test` measures.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use hearth_lab::statistics::Bootstrap;
use hearth_lab::suite::{self, Method, Settings, Tool};
use tokio::sync::watch;

use super::{client, runtime};
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// The category.
pub const GO: &str = "Go suite";
/// The row of the goal.
pub const RATIO: &str = "from the first call to the last, over benchmark time";

const CALLS: usize = 15;
const REPEATS: usize = 3;
/// Seconds that `go test` measures for. The shorter, the more a run takes beside it: users have 1 s by default.
const TIME_S: f64 = 0.2;
const QUICK_TIME_S: f64 = 0.01;

/// Where Go is looked for, as the lab does.
const PLACES: [&str; 3] = ["go", "/usr/local/go/bin/go", "/usr/bin/go"];
/// The first minor version whose build cache may be a program.
const MINOR_MIN: u32 = 24;

/// The module.
fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("words")
}

/// Why there is no tool chain, if there is none.
fn without_go() -> Option<String> {
    let version = |program: &&str| {
        let output = Command::new(program).arg("version").output().ok()?;
        minor(&String::from_utf8_lossy(&output.stdout))
    };
    match PLACES.iter().find_map(version) {
        Some(MINOR_MIN..) => None,
        Some(minor) => Some(format!("needs Go 1.{MINOR_MIN}, and here is 1.{minor}")),
        None => Some("there is no Go".to_owned()),
    }
}

/// The minor version in what `go version` says.
fn minor(text: &str) -> Option<u32> {
    let after = text.split("go1.").nth(1)?;
    after
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    if let Some(reason) = without_go() {
        document.skip(GO, reason);
        return Ok(());
    }
    let server = Server::start(&[])?;
    // The runner is Python.
    if let Err(reason) = server.runtime(Runtime::Python)? {
        document.skip(GO, reason);
        return Ok(());
    }
    let settings = Settings {
        tool: Tool::Go,
        first: module(),
        second: Some(module()),
        paths: Vec::new(),
        only: scale.pick(None, Some("Count".to_owned())),
        method: Method {
            calls: scale.pick(CALLS, 2),
            repeats: scale.pick(REPEATS, 1),
            with_control: false,
            seed: 1,
            bootstrap: Bootstrap::default(),
            width: 1.0,
        },
        parallel: None,
        limit: Duration::from_secs(20),
        time_s: scale.pick(TIME_S, QUICK_TIME_S),
        memory_mb: 2048,
        cgo: false,
        program: None,
        function: "lab-bench".to_owned(),
    };
    let begun = Instant::now();
    let (_sender, cancelled) = watch::channel(false);
    let client = client(&server)?;
    let ran = suite::run(&client, &settings, cancelled, |_, _| {});
    let report = runtime()?.block_on(ran)?;
    let whole = begun.elapsed().as_secs_f64();
    let suite = report.suite.as_ref().context("a report without a suite")?;
    let trials: usize = report
        .benchmarks
        .iter()
        .map(|one| one.trials.repeats.len())
        .sum();
    let faults: usize = report
        .benchmarks
        .iter()
        .map(|one| one.trials.faults())
        .sum();
    anyhow::ensure!(faults == 0, "{faults} executions failed");
    let mut add = |name: &str, value, unit: &str| document.figure(GO, name, value, unit);
    add("benchmarks", report.benchmarks.len() as f64, "");
    add("trials", trials as f64, "");
    add("asked of go test for an execution", suite.time_s, "s");
    add(
        "benchmark time, as go test has measured",
        suite.measured_s,
        "s",
    );
    add("go test\u{2019}s processes", suite.executions_s, "s");
    add("from the first call to the last", suite.wall_s, "s");
    add(
        "before, to compile, deploy and list, and after",
        whole - suite.wall_s,
        "s",
    );
    if let Some(ratio) = suite.ratio {
        add(RATIO, ratio, "×");
    }
    add("calls at a time", suite.parallel as f64, "");
    add(
        "changes found between the tree and itself",
        report.changes().count() as f64,
        "",
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        assert_eq!(minor("go version go1.26.8 linux/amd64\n"), Some(26));
        assert_eq!(minor("go version go1.24rc1 linux/amd64"), Some(24));
        assert_eq!(minor("go version go1.19 linux/amd64"), Some(19));
        assert_eq!(minor("gcc 14"), None);
    }

    #[test]
    fn the_module_has_ten_benchmarks() {
        let text = std::fs::read_to_string(module().join("words_test.go")).unwrap();
        let benchmarks = text
            .lines()
            .filter(|line| line.starts_with("func Benchmark"));
        assert_eq!(benchmarks.count(), 10);
        assert!(module().join("go.mod").is_file());
    }
}
