//! `hearth lab suite`: two source trees compared by their own microbenchmarks, in real sandboxes.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{Client, Server, TOKEN, eventually, signal, skip};

/// Suites with the packages that they import, where set-up puts them.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/packages");

const WORDS: &str = "// Package words counts words.
package words

// Rounds is how often the same work is done.
const Rounds = 1

// Count counts the words of a text.
func Count(text string) int {
	count := 0
	for range Rounds {
		count = 0
		inside := false
		for _, c := range text {
			if c == ' ' {
				inside = false
			} else if !inside {
				inside = true
				count++
			}
		}
	}
	return count
}
";

const WORDS_TEST: &str = r#"package words

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

var sink int

func BenchmarkCount(b *testing.B) {
	for _, size := range []int{10, 100} {
		text := strings.Repeat("some words ", size)
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				sink += Count(text)
			}
		})
	}
}

func BenchmarkFile(b *testing.B) {
	text, err := os.ReadFile("testdata/text")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		sink += strings.Count(string(text), "x")
	}
}
"#;

/// In C, so that nothing is summed at compile time.
const SUM: &str = "package words

// static unsigned sum(unsigned of) {
//   volatile unsigned all = 0;
//   for (unsigned i = 0; i < of; i++) all += i;
//   return all;
// }
import \"C\"

// Sum sums in C.
func Sum() int {
\treturn int(C.sum(ROUNDS))
}
";

const SUM_TEST: &str = "package words

import \"testing\"

func BenchmarkSum(b *testing.B) {
\tfor b.Loop() {
\t\tsink += Sum()
\t}
}
";

/// A Go module whose package `inner` counts words so many times.
fn go_module(at: &Path, rounds: usize) -> PathBuf {
    let file = |name: &str, text: &str| {
        let path = at.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        fs::write(path, text).expect("written");
    };
    file("go.mod", "module example.org/words\n\ngo 1.24\n");
    let rounds = format!("const Rounds = {rounds}");
    file(
        "inner/words.go",
        &WORDS.replace("const Rounds = 1", &rounds),
    );
    file("inner/words_test.go", WORDS_TEST);
    file("inner/testdata/text", &"x".repeat(1000));
    at.to_owned()
}

/// Why there is no tool chain whose build cache may be a program, if there is none.
fn without_go() -> Option<String> {
    let version = |go: &str| {
        let output = std::process::Command::new(go)
            .arg("version")
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let minor = text.split("go1.").nth(1)?.split(['.', ' ', 'r']).next()?;
        minor.parse::<u32>().ok()
    };
    let found = ["go", "/usr/local/go/bin/go", "/usr/bin/go"]
        .into_iter()
        .find_map(version);
    match found {
        Some(24..) => None,
        Some(minor) => Some(format!("suites need Go 1.24, and here is 1.{minor}")),
        None => Some("there is no Go".to_owned()),
    }
}

/// Unpacks a suite that set-up has built.
pub fn unpacked(name: &str, at: &Path) -> PathBuf {
    let path = Path::new(BUILT).join(format!("{name}.zip"));
    let archive = fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run scripts/packages.sh", path.display()));
    let mut archive = zip::ZipArchive::new(Cursor::new(archive)).expect("an archive");
    archive.extract(at).expect("unpacked");
    at.to_owned()
}

pub fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("read");
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).expect("written");
}

/// Few and short trials, because the differences are large: a trial that had to wait for its processor is still told from one
/// of the other version.
fn suite(server: &Server, directory: &TempDir, tool: &str, v1: &Path, v2: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    command.args([
        "lab",
        "suite",
        "--tool",
        tool,
        "--calls",
        "4",
        "--time",
        "0.05",
        "--resamples",
        "1000",
        "--no-control",
    ]);
    command.arg("--v1").arg(v1).arg("--v2").arg(v2);
    command.arg("--out").arg(directory.path().join("suites"));
    command
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// What was printed, of a run that has done its work.
async fn done(mut command: Command) -> (String, Value) {
    let output = command.output().await.expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}{}", said(&output));
    let directory = PathBuf::from(printed.lines().last().expect("a directory"));
    for file in ["trials.csv", "forest.svg"] {
        assert!(directory.join(file).is_file(), "{file}");
    }
    let result = fs::read_to_string(directory.join("result.json")).expect("it is there");
    (printed, serde_json::from_str(&result).expect("JSON"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What was decided of a benchmark with this in its name.
fn verdict<'a>(result: &'a Value, name: &str) -> &'a Value {
    let mut all = result["benchmarks"].as_array().expect("benchmarks").iter();
    let found = all.find(|one| {
        one["name"]
            .as_str()
            .is_some_and(|other| other.contains(name))
    });
    &found.unwrap_or_else(|| panic!("{name}: {result}"))["verdict"]
}

async fn functions(client: &Client) -> usize {
    let list = client.get("/api/v1/functions").await.expect(200).json();
    list["items"].as_array().expect("a list").len()
}

#[tokio::test]
async fn two_go_modules_are_compared_in_the_same_instances() {
    if let Some(reason) = without_go() {
        return skip(&reason);
    }
    let (server, directory) = (Server::start(), tempfile::tempdir().expect("a directory"));
    let v1 = go_module(&directory.path().join("one"), 1);
    let v2 = go_module(&directory.path().join("two"), 100);
    let new = "\nfunc BenchmarkNew(b *testing.B) {\n\tfor b.Loop() {\n\t\tsink++\n\t}\n}\n";
    fs::write(
        v2.join("inner/new_test.go"),
        format!("package words\n\nimport \"testing\"\n{new}"),
    )
    .expect("written");

    let (printed, result) = done(suite(&server, &directory, "go", &v1, &v2)).await;
    for size in [
        "inner.BenchmarkCount/size=10",
        "inner.BenchmarkCount/size=100",
    ] {
        assert_eq!(verdict(&result, size), "slower", "{printed}");
    }
    assert!(
        printed.contains("inner.BenchmarkNew: only the second version has it"),
        "{printed}"
    );
    assert!(printed.contains("s of benchmark time"), "{printed}");
    let suite_of = &result["suite"];
    assert!(suite_of["ratio"].as_f64() > Some(0.0), "{suite_of}");
    assert_eq!(
        suite_of["pinned_to"].as_array().map(Vec::len),
        Some(1),
        "{suite_of}"
    );
    // testdata is where `go test` has it.
    let file = result["benchmarks"].as_array().expect("benchmarks").iter();
    let mut file = file.filter(|one| one["name"] == "inner.BenchmarkFile");
    assert_eq!(
        file.next().expect("it ran")["trials"]["failed"],
        0,
        "{printed}"
    );
    assert_eq!(functions(&server.client()).await, 0);

    // What is wrong is said, by the compiler itself where it is its to say.
    fs::write(
        v2.join("inner/new_test.go"),
        "package words\n\nvar x int = \"no\"\n",
    )
    .expect("written");
    let none = directory.path().join("none");
    fs::create_dir_all(&none).expect("made");
    for (tool, v2, expected) in [
        ("go", &v2, "inner/new_test.go:3:13"),
        ("go", &none, "not a Go module"),
        ("pytest-benchmark", &v1, "requirements.txt"),
        ("pyperf", &v1, "pyperf is neither installed in it"),
        ("tinybench", &v1, "npm install"),
        ("mitata", &v1, "mitata is not in its node_modules"),
    ] {
        let output = suite(&server, &directory, tool, &v1, v2)
            .output()
            .await
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{tool}");
        assert!(
            said(&output).contains(expected),
            "{tool}: {}",
            said(&output)
        );
    }
    fs::remove_file(v2.join("inner/new_test.go")).expect("removed");
    fs::remove_file(v2.join("inner/words_test.go")).expect("removed");
    let output = suite(&server, &directory, "go", &v1, &v2)
        .output()
        .await
        .expect("it runs");
    assert!(said(&output).contains("no benchmarks"), "{}", said(&output));
    assert_eq!(functions(&server.client()).await, 0);
}

#[tokio::test]
async fn two_python_suites_are_compared() {
    let (server, directory) = (Server::start(), tempfile::tempdir().expect("a directory"));
    let v1 = unpacked("suite-pytest", &directory.path().join("one"));
    let v2 = unpacked("suite-pytest", &directory.path().join("two"));
    edit(&v1.join("words.py"), "ROUNDS = 1", "ROUNDS = 100");
    let (printed, result) = done(suite(&server, &directory, "pytest-benchmark", &v1, &v2)).await;
    for size in ["test_count[10]", "test_count[1000]"] {
        assert_eq!(verdict(&result, size), "faster", "{printed}");
    }
    assert!(!printed.contains("test_plain"), "{printed}");
    assert_eq!(functions(&server.client()).await, 0);
}

#[tokio::test]
async fn one_benchmark_of_pyperf_runs_at_a_time_with_its_packages_beside_or_named() {
    let (server, directory) = (Server::start(), tempfile::tempdir().expect("a directory"));
    let v1 = unpacked("suite-pyperf", &directory.path().join("one"));
    let v2 = unpacked("suite-pyperf", &directory.path().join("two"));
    edit(&v2.join("words.py"), "ROUNDS = 1", "ROUNDS = 100");
    let (printed, result) = done(suite(&server, &directory, "pyperf", &v1, &v2)).await;
    for name in [
        "bench/bench_words.py > count 10",
        "bench/bench_words.py > count 1000",
        "bench/bench_words.py > count in a statement",
    ] {
        assert_eq!(verdict(&result, name), "slower", "{printed}");
    }
    // A command is measured, too, and is the same in both.
    let all = result["benchmarks"].as_array().expect("benchmarks");
    assert_eq!(all.len(), 4, "{printed}");
    let command = all
        .iter()
        .find(|one| one["name"] == "bench/bench_words.py > interpreter");
    let trials = &command.expect("it ran")["trials"];
    assert_eq!(
        trials["repeats"].as_array().map(Vec::len),
        Some(12),
        "{trials}"
    );

    // What the script itself says of a benchmark is passed on, and none is run beside it.
    edit(
        &v2.join("bench/bench_words.py"),
        "runner = pyperf.Runner()",
        "runner = pyperf.Runner()\nrunner.bench_func(\"broken\", lambda: 1 / 0)",
    );
    edit(
        &v1.join("bench/bench_words.py"),
        "runner = pyperf.Runner()",
        "runner = pyperf.Runner()\nrunner.bench_func(\"broken\", lambda: 1 / 1)",
    );
    let mut command = suite(&server, &directory, "pyperf", &v1, &v2);
    command.args(["--only", "broken"]);
    let output = command.output().await.expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        printed.contains("broken: 0 interrupted, 12 failed: status 1: ZeroDivisionError"),
        "{printed}"
    );
    assert!(printed.contains("0 of 1 compared"), "{printed}");
    edit(
        &v2.join("bench/bench_words.py"),
        "import pyperf",
        "import pyperf, nowhere",
    );
    let output = suite(&server, &directory, "pyperf", &v1, &v2)
        .output()
        .await
        .expect("it runs");
    assert!(
        said(&output).contains("No module named 'nowhere'"),
        "{}",
        said(&output)
    );
    assert_eq!(functions(&server.client()).await, 0);
}

#[tokio::test]
async fn one_case_of_mitata_runs_at_a_time() {
    let (server, directory) = (Server::start(), tempfile::tempdir().expect("a directory"));
    let v1 = unpacked("suite-mitata", &directory.path().join("one"));
    let v2 = unpacked("suite-mitata", &directory.path().join("two"));
    edit(&v1.join("words.js"), "ROUNDS = 1", "ROUNDS = 100");
    let (printed, result) = done(suite(&server, &directory, "mitata", &v1, &v2)).await;
    for name in [
        "bench/words.js > count 10",
        "bench/words.js > count 1000",
        "bench/words.js > again > count",
    ] {
        assert_eq!(verdict(&result, name), "faster", "{printed}");
    }
    assert_eq!(result["benchmarks"].as_array().map(Vec::len), Some(3));
    edit(
        &v2.join("node_modules/mitata/package.json"),
        "\"version\": \"1",
        "\"version\": \"0",
    );
    let output = suite(&server, &directory, "mitata", &v1, &v2)
        .output()
        .await
        .expect("it runs");
    assert!(
        said(&output).contains("mitata 1 or later"),
        "{}",
        said(&output)
    );
    assert_eq!(functions(&server.client()).await, 0);
}

#[tokio::test]
async fn go_packages_that_need_c_are_linked_where_the_compiler_is() {
    if let Some(reason) = without_go() {
        return skip(&reason);
    }
    let (server, directory) = (Server::start(), tempfile::tempdir().expect("a directory"));
    let v1 = go_module(&directory.path().join("one"), 1);
    let v2 = go_module(&directory.path().join("two"), 1);
    for (tree, rounds) in [(&v1, 100), (&v2, 10_000)] {
        fs::write(
            tree.join("inner/sum.go"),
            SUM.replace("ROUNDS", &rounds.to_string()),
        )
        .expect("written");
        fs::write(tree.join("inner/sum_test.go"), SUM_TEST).expect("written");
    }
    // Without it, what is wrong and what helps are said.
    let output = suite(&server, &directory, "go", &v1, &v2)
        .output()
        .await
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let text = said(&output);
    assert!(
        text.contains("undefined: Sum") && text.contains("--cgo"),
        "{text}"
    );
    let mut command = suite(&server, &directory, "go", &v1, &v2);
    command.arg("--cgo").env("CC", "no-such-compiler");
    let output = command.output().await.expect("it runs");
    assert!(
        said(&output).contains("cgo needs a C compiler here (no-such-compiler"),
        "{}",
        said(&output)
    );

    if std::process::Command::new("gcc")
        .arg("--version")
        .output()
        .is_err()
    {
        return skip("there is no C compiler");
    }
    let mut command = suite(&server, &directory, "go", &v1, &v2);
    command.args(["--cgo", "--only", "Sum"]);
    let (printed, result) = done(command).await;
    assert_eq!(
        verdict(&result, "inner.BenchmarkSum"),
        "slower",
        "{printed}"
    );
    assert_eq!(functions(&server.client()).await, 0);
}

#[tokio::test]
async fn two_javascript_suites_are_compared_also_by_an_agent_and_an_interrupt_leaves_nothing() {
    let (server, directory) = (Server::start(), tempfile::tempdir().expect("a directory"));
    let client = server.client();
    let v1 = unpacked("suite-tinybench", &directory.path().join("one"));
    let v2 = unpacked("suite-tinybench", &directory.path().join("two"));
    edit(&v2.join("words.js"), "ROUNDS = 1", "ROUNDS = 100");
    let (printed, result) = done(suite(&server, &directory, "tinybench", &v1, &v2)).await;
    for size in ["bench/words.js > count 10", "bench/words.js > count 1000"] {
        assert_eq!(verdict(&result, size), "slower", "{printed}");
    }

    // The same as an experiment that the server keeps, of trees that its agent has.
    let mut agent = Command::new(env!("CARGO_BIN_EXE_hearth"));
    agent
        .args(["lab", "agent", "--once", "--trees"])
        .arg(directory.path());
    agent
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN)
        .kill_on_drop(true);
    agent.stderr(Stdio::null());
    let _agent = agent.spawn().expect("it starts");
    let experiment = json!({
        "kind": "suite", "tool": "tinybench", "first": "one", "second": "two", "calls": 4, "time_s": 0.05, "only": "1000",
    });
    let made = client
        .post("/api/v1/experiments", &experiment)
        .await
        .expect(201);
    let address = made.header("location").to_owned();
    let over = eventually("the experiment ends", Duration::from_secs(120), || async {
        let found = client.get(&address).await.expect(200).json();
        let is_open = found["state"] == "queued" || found["state"] == "running";
        (!is_open).then_some(found)
    })
    .await;
    // With so few trials the control differs from itself now and then: no verdict then.
    assert!(
        over["state"] == "succeeded" || over["state"] == "fell_short",
        "{over}"
    );
    let benchmark = &over["result"]["benchmarks"][0];
    assert_eq!(benchmark["title"], "bench/words.js > count 1000", "{over}");
    assert_eq!(benchmark["trials"], 12, "{over}");
    let files = over["files"].as_array().expect("files").iter();
    assert!(
        files.filter(|file| file["path"] == "forest.svg").count() == 1,
        "{over}"
    );

    let mut command = suite(&server, &directory, "tinybench", &v1, &v2);
    let child = command
        .args(["--repeats", "100"])
        .spawn()
        .expect("it starts");
    eventually(
        "its function is deployed",
        Duration::from_secs(60),
        || async { (functions(&client).await == 1).then_some(()) },
    )
    .await;
    signal(child.id().expect("it runs"), rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("cancelled"), "{}", said(&output));
    assert_eq!(functions(&client).await, 0);
}
