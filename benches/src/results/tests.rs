use std::time::Duration;

use serde_json::{Value, json};

use super::{Document, Samples};

fn samples(count: u64) -> Samples {
    let mut samples = Samples::default();
    for nanos in (1..=count).rev() {
        samples.push(Duration::from_nanos(nanos));
    }
    samples
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .map(|object| object.keys().map(String::as_str).collect())
        .unwrap_or_default();
    keys.sort_unstable();
    keys
}

fn written(document: &mut Document) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let file = document.write(dir.path()).unwrap();
    assert_eq!(Document::read(&file).unwrap(), *document);
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn a_file_has_exactly_the_fields_it_promises() {
    let mut document = Document::new("ring");
    document.add("one thread", "64 B", samples(100));
    let file = written(&mut document);
    assert_eq!(
        keys(&file),
        [
            "benchmark_suite",
            "results",
            "system_info",
            "timestamp",
            "version"
        ]
    );
    assert_eq!(
        keys(&file["system_info"]),
        [
            "cpu_cores",
            "cpu_model",
            "kernel_version",
            "memory_bytes",
            "os"
        ]
    );
    let result = &file["results"][0];
    assert_eq!(keys(result), ["category", "iterations", "metrics", "name"]);
    assert_eq!(
        keys(&result["metrics"]),
        [
            "max_ns",
            "mean_ns",
            "median_ns",
            "min_ns",
            "p95_ns",
            "p99_ns",
            "std_dev_ns"
        ]
    );
}

#[test]
fn what_is_no_time_goes_elsewhere() {
    let mut document = Document::new("memory");
    document.figure("python3", "PSS", 0.9, "MiB");
    document.skip("node", "is not there");
    let file = written(&mut document);
    assert_eq!(file["results"], json!([]));
    assert_eq!(
        file["figures"],
        json!([{ "name": "PSS", "category": "python3", "value": 0.9, "unit": "MiB" }])
    );
    assert_eq!(file["skipped"][0]["reason"], "is not there");
}

#[test]
fn the_first_tenth_is_warm_up_and_percentiles_are_nearest_rank() {
    // 200 down to 1 ns: the tenth that is dropped is 200 to 181.
    let counted = samples(200).without_warm_up();
    assert_eq!(counted.iterations(), 180);
    let metrics = counted.metrics();
    assert_eq!((metrics.min_ns, metrics.max_ns), (1.0, 180.0));
    assert_eq!(
        (metrics.median_ns, metrics.p95_ns, metrics.p99_ns),
        (90.0, Some(171.0), Some(179.0))
    );
    assert_eq!(metrics.mean_ns, 90.5);
}

#[test]
fn a_percentile_of_too_few_samples_is_none() {
    let percentiles = |count| {
        let metrics = samples(count).metrics();
        (metrics.p95_ns.is_some(), metrics.p99_ns.is_some())
    };
    assert_eq!(percentiles(19), (false, false));
    assert_eq!(percentiles(20), (true, false));
    assert_eq!(percentiles(99), (true, false));
    assert_eq!(percentiles(100), (true, true));
}

#[test]
fn a_batch_counts_as_its_mean() {
    let mut samples = Samples::batches(64);
    samples.push(Duration::from_nanos(6400));
    assert_eq!(samples.metrics().median_ns, 100.0);
    assert_eq!(samples.iterations(), 64);
}

#[test]
fn a_file_that_breaks_the_promise_is_refused() {
    let mut document = Document::new("ring");
    document.add("one thread", "64 B", samples(100));
    let good = written(&mut document);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ring.json");
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        change(&mut bad);
        std::fs::write(&file, bad.to_string()).unwrap();
        Document::read(&file).is_err()
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|file| file["quick"] = json!(true)));
    assert!(refused(&|file| file["timestamp"] = json!("yesterday")));
    assert!(refused(&|file| file["results"] = json!([])));
    assert!(refused(
        &|file| file["results"][0]["metrics"]["p95_ns"] = json!(0.5)
    ));
    assert!(refused(
        &|file| file["results"][0]["metrics"]["p999_ns"] = json!(1.0)
    ));
    assert!(refused(&|file| file["results"][0]["iterations"] = json!(0)));
    assert!(refused(&|file| drop(
        file["system_info"].as_object_mut().unwrap().remove("os")
    )));
}
