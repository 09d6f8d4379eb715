//! What the tools print, read.

use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{Microbenchmark, Tool};
use crate::statistics::quantile::median;

/// One execution that has a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Time of one iteration in ns: Go's mean, the others' median.
    pub ns: f64,
    /// Time of all iterations that were measured, in ns.
    pub all_ns: f64,
}

/// What a runner says of one execution.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Execution {
    /// Whether it was ended at its limit.
    #[serde(default)]
    pub interrupted: bool,
    /// The process's exit status.
    #[serde(default)]
    pub status: i32,
    /// What it has printed, or its report.
    #[serde(default)]
    pub output: String,
    /// How long the process ran, in s.
    pub took_s: f64,
}

/// Reads the result of one execution.
///
/// # Errors
/// What is missing, with the end of the output.
pub fn measured(tool: Tool, execution: &Execution) -> Result<Measured, String> {
    let output = execution.output.trim();
    if execution.status != 0 {
        return Err(format!("status {}: {}", execution.status, end(output)));
    }
    let found = match tool {
        Tool::Go => go(output),
        Tool::PytestBenchmark => pytest(output),
        Tool::Pyperf => pyperf(output)?,
        Tool::Tinybench | Tool::Mitata => javascript(output)?,
    };
    let found = found.filter(|found| found.ns.is_finite() && found.ns > 0.0);
    found.ok_or_else(|| format!("no result: {}", end(output)))
}

/// The end of an output: where tools say what went wrong.
pub(super) fn end(output: &str) -> &str {
    const MOST: usize = 2_000;
    let mut start = output.len().saturating_sub(MOST);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    &output[start..]
}

/// `BenchmarkName-2 1000 1234 ns/op 56 B/op`; what the benchmark prints may stand between its name and the rest.
fn go(output: &str) -> Option<Measured> {
    output.lines().rev().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let unit = fields.iter().position(|field| *field == "ns/op")?;
        let ns: f64 = fields.get(unit.checked_sub(1)?)?.parse().ok()?;
        let iterations: f64 = fields.get(unit.checked_sub(2)?)?.parse().ok()?;
        Some(Measured {
            ns,
            all_ns: ns * iterations,
        })
    })
}

fn pytest(output: &str) -> Option<Measured> {
    let report: Value = serde_json::from_str(output).ok()?;
    let [one] = report["benchmarks"].as_array()?.as_slice() else {
        return None;
    };
    // Times in s: of one iteration, and in `total` summed over the rounds, each with so many iterations.
    let stats = &one["stats"];
    let iterations = stats["iterations"].as_f64()?;
    Some(Measured {
        ns: stats["median"].as_f64()? * 1e9,
        all_ns: stats["total"].as_f64()? * iterations * 1e9,
    })
}

/// A value is the time of one iteration in s; each is of `loops` times `inner_loops`.
fn pyperf(output: &str) -> Result<Option<Measured>, String> {
    let report: Value = serde_json::from_str(output).unwrap_or_default();
    let metadata = &report["metadata"];
    // A script may measure memory, or count something.
    if let Some(unit) = metadata["unit"].as_str().filter(|unit| *unit != "second") {
        return Err(format!("its values are of the unit {unit}, and no times"));
    }
    let values = report["benchmarks"][0]["runs"][0]["values"].as_array();
    let mut values: Vec<f64> = values
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    let times = |name: &str| metadata[name].as_f64().unwrap_or(1.0);
    let iterations = times("loops") * times("inner_loops");
    let all_ns = values.iter().sum::<f64>() * iterations * 1e9;
    Ok(median(&mut values).map(|seconds| Measured {
        ns: seconds * 1e9,
        all_ns,
    }))
}

fn javascript(output: &str) -> Result<Option<Measured>, String> {
    let Ok(report) = serde_json::from_str::<Value>(output) else {
        return Ok(None);
    };
    if let Some(error) = report["error"].as_str() {
        return Err(end(error).to_owned());
    }
    let ms = |name: &str| report[name].as_f64();
    Ok(ms("median_ms")
        .zip(ms("total_ms"))
        .map(|(ns, all_ns)| Measured {
            ns: ns * 1e6,
            all_ns: all_ns * 1e6,
        }))
}

/// Reads what a runner has listed of a unit.
///
/// # Errors
/// What the tool says, where it cannot load the unit.
pub fn listed(tool: Tool, unit: &str, answer: &Value) -> Result<Vec<Microbenchmark>, String> {
    if let Some(error) = answer["error"].as_str() {
        return Err(end(error.trim()).to_owned());
    }
    let array = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    Ok(match tool {
        Tool::Go => array("runs")
            .iter()
            .flat_map(|run| go_names(unit, run))
            .collect(),
        Tool::PytestBenchmark => {
            let names = array("names");
            let names = names.iter().filter_map(Value::as_str);
            names
                .map(|name| Microbenchmark {
                    name: name.to_owned(),
                    unit: unit.to_owned(),
                    select: name.to_owned(),
                })
                .collect()
        }
        Tool::Pyperf => {
            let names = array("names");
            let names = names.iter().filter_map(Value::as_str);
            names
                .map(|name| Microbenchmark {
                    name: format!("{unit} > {name}"),
                    unit: unit.to_owned(),
                    select: name.to_owned(),
                })
                .collect()
        }
        Tool::Tinybench | Tool::Mitata => array("tasks")
            .iter()
            .map(|task| javascript_task(unit, task))
            .collect(),
    })
}

/// The benchmark of a function, or its sub-benchmarks: what has printed a result after one iteration. One that did not end within its
/// limit, or failed, counts as itself, so that its executions say so.
fn go_names(unit: &str, run: &Value) -> Vec<Microbenchmark> {
    let name = run["name"].as_str().unwrap_or_default();
    let output = run["output"].as_str().unwrap_or_default();
    let is_whole = run["status"] == json!(0);
    let mut names: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|found| is_below(found, name))
        .collect();
    names.dedup();
    if !is_whole {
        names = vec![name];
    }
    let place = match unit {
        "." => String::new(),
        unit => format!("{unit}."),
    };
    let benchmark = |name: &str| Microbenchmark {
        name: format!("{place}{name}"),
        unit: unit.to_owned(),
        select: go_pattern(name),
    };
    names.into_iter().map(benchmark).collect()
}

fn is_below(found: &str, name: &str) -> bool {
    let rest = found.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `-test.bench` matches the parts between slashes by a regular expression each.
fn go_pattern(name: &str) -> String {
    let quoted = |part: &str| {
        let mut quoted = "^".to_owned();
        for c in part.chars() {
            if c.is_ascii_punctuation() && c != '_' {
                quoted.push('\\');
            }
            quoted.push(c);
        }
        quoted + "$"
    };
    let parts: Vec<String> = name.split('/').map(quoted).collect();
    parts.join("/")
}

fn javascript_task(unit: &str, task: &Value) -> Microbenchmark {
    let name = task["task"].as_str().unwrap_or_default();
    // tinybench's own: several of them in a file are told apart by their number.
    let number = match task["bench"].as_u64().unwrap_or(0) {
        0 => String::new(),
        number => format!(" #{}", number + 1),
    };
    Microbenchmark {
        name: format!("{unit}{number} > {name}"),
        unit: unit.to_owned(),
        select: task.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(output: &str) -> Execution {
        Execution {
            output: output.to_owned(),
            took_s: 1.0,
            ..Execution::default()
        }
    }

    /// As Go 1.26 prints it.
    const GO: &str = "goos: linux\ngoarch: amd64\npkg: example.org/words\ncpu: AMD EPYC\n\
        BenchmarkCount/size=10         \t 1000000\t       375.5 ns/op\nPASS\n";

    const GO_LISTED: &str = "goos: linux\ngoarch: amd64\npkg: example.org/words\ncpu: AMD EPYC\n\
        BenchmarkCount/size=10         \t       1\t       500.0 ns/op\n\
        BenchmarkCount/size=100        \t       1\t      1582 ns/op\nPASS\n";

    /// As pytest-benchmark 5.3.1 writes it, without what is not read.
    const PYTEST: &str = r#"{"benchmarks": [{"name": "test_count[10]", "fullname": "test_words.py::test_count[10]",
        "stats": {"min": 4.206655527620266e-07, "max": 0.0020256915001179245, "mean": 1.513562233957632e-06, "rounds": 58163,
        "median": 6.026675691828132e-07, "total": 0.08803332021367719, "iterations": 6}}]}"#;

    #[test]
    fn go_has_the_mean_and_the_iterations() {
        let found = measured(Tool::Go, &executed(GO)).expect("a result");
        assert_eq!((found.ns, found.all_ns), (375.5, 375_500_000.0));
        // Other units beside it, and what the benchmark itself prints.
        let noisy = "BenchmarkX   \tprinted 7 lines\nmore\n 2000\t 1500 ns/op\t 9.00 MB/s\t 48 B/op\t 1 allocs/op\nPASS\n";
        let found = measured(Tool::Go, &executed(noisy)).expect("a result");
        assert_eq!((found.ns, found.all_ns), (1500.0, 3_000_000.0));
        for none in [
            "PASS\n",
            "BenchmarkX \t 10\t 0 ns/op\nPASS\n",
            "x ns/op",
            "ns/op",
            "",
        ] {
            let error = measured(Tool::Go, &executed(none)).expect_err("no result");
            assert!(error.starts_with("no result"), "{error}");
        }
        let failed = Execution {
            status: 1,
            ..executed("--- FAIL: BenchmarkX\n    x_test.go:9: wrong\nFAIL\n")
        };
        let error = measured(Tool::Go, &failed).expect_err("it failed");
        assert!(
            error.starts_with("status 1:") && error.contains("x_test.go:9: wrong"),
            "{error}"
        );
    }

    #[test]
    fn pytest_benchmark_has_medians_of_rounds() {
        let found = measured(Tool::PytestBenchmark, &executed(PYTEST)).expect("a result");
        assert!((found.ns - 602.667_569).abs() < 1e-3, "{found:?}");
        assert!((found.all_ns - 528_199_921.0).abs() < 1e3, "{found:?}");
        for none in [r#"{"benchmarks": []}"#, "1 passed in 1.21s"] {
            assert!(measured(Tool::PytestBenchmark, &executed(none)).is_err());
        }
    }

    #[test]
    fn pyperf_has_medians_of_values() {
        // As pyperf 2.11.0 writes it, without what is not read.
        let report = |unit: &str| {
            let text = json!({"benchmarks": [{"runs": [{"values": [3.0e-6, 1.0e-6, 2.0e-6, 2.5e-6]}]}],
                "metadata": {"loops": 16384, "inner_loops": 2, "name": "count", "unit": unit}, "version": "1.0"});
            measured(Tool::Pyperf, &executed(&text.to_string()))
        };
        let found = report("second").expect("a result");
        assert!((found.ns - 2250.0).abs() < 1e-3, "{found:?}");
        assert!((found.all_ns - 8.5e3 * 32768.0).abs() < 1.0, "{found:?}");
        let error = report("byte").expect_err("no time");
        assert!(error.contains("unit byte"), "{error}");
        let none = measured(Tool::Pyperf, &executed("Traceback"));
        assert_eq!(none, Err("no result: Traceback".to_owned()));
    }

    #[test]
    fn tinybench_has_medians_or_an_error() {
        let text =
            r#"{"median_ms":0.020029999999906067,"samples":7613,"total_ms":306.5621259999984}"#;
        let found = measured(Tool::Tinybench, &executed(text)).expect("a result");
        assert!((found.ns - 20_030.0).abs() < 1e-3, "{found:?}");
        assert!((found.all_ns - 306_562_126.0).abs() < 1.0, "{found:?}");
        let text = r#"{"median_ms":null,"samples":0,"error":"Error: no\n    at bench.js:3:35"}"#;
        let error = measured(Tool::Tinybench, &executed(text)).expect_err("it throws");
        assert!(error.starts_with("Error: no"), "{error}");
        assert!(measured(Tool::Tinybench, &executed("SyntaxError")).is_err());
    }

    #[test]
    fn sub_benchmarks_are_benchmarks_of_their_own() {
        let answer = json!({"runs": [
            {"name": "BenchmarkCount", "status": 0, "output": GO_LISTED, "took_s": 0.1},
            {"name": "BenchmarkEndless", "interrupted": true, "took_s": 20.0},
            {"name": "BenchmarkBroken", "status": 1, "output": "--- FAIL: BenchmarkBroken\n", "took_s": 0.1},
            {"name": "BenchmarkSkipped", "status": 0, "output": "PASS\n", "took_s": 0.1},
        ]});
        let found = listed(Tool::Go, "inner/words", &answer).expect("a list");
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "inner/words.BenchmarkCount/size=10",
                "inner/words.BenchmarkCount/size=100",
                "inner/words.BenchmarkEndless",
                "inner/words.BenchmarkBroken",
            ]
        );
        assert_eq!(found[0].select, r"^BenchmarkCount$/^size\=10$");
        let found = listed(Tool::Go, ".", &answer).expect("a list");
        assert_eq!(found[0].name, "BenchmarkCount/size=10");
        assert_eq!(
            go_pattern("BenchmarkA_b/x*(y)/ä"),
            r"^BenchmarkA_b$/^x\*\(y\)$/^ä$"
        );
    }

    #[test]
    fn other_tools_list_by_their_own_names() {
        let answer = json!({"names": ["test_words.py::test_count[10]"]});
        let found = listed(Tool::PytestBenchmark, ".", &answer).expect("a list");
        assert_eq!(found[0].select, "test_words.py::test_count[10]");
        let answer =
            json!({"tasks": [{"bench": 0, "task": "count"}, {"bench": 1, "task": "count"}]});
        let found = listed(Tool::Tinybench, "bench/words.js", &answer).expect("a list");
        assert_eq!(found[0].name, "bench/words.js > count");
        assert_eq!(found[1].name, "bench/words.js #2 > count");
        let select: Value = serde_json::from_str(&found[1].select).expect("JSON");
        assert_eq!(select, json!({"bench": 1, "task": "count"}));
        let answer = json!({"names": ["count 10"]});
        let found = listed(Tool::Pyperf, "bench/words.py", &answer).expect("a list");
        assert_eq!(found[0].name, "bench/words.py > count 10");
        assert_eq!(found[0].select, "count 10");
        let answer = json!({"tasks": [{"task": "plain > same #2"}]});
        let found = listed(Tool::Mitata, "bench/words.mjs", &answer).expect("a list");
        assert_eq!(found[0].name, "bench/words.mjs > plain > same #2");
        let error = listed(
            Tool::Go,
            ".",
            &json!({"error": "go test -c: status 1: x.go:3"}),
        );
        assert!(error.expect_err("it does not compile").contains("x.go:3"));
    }
}
