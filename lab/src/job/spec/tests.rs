//! Configurations that are read, and those that are refused.

use std::path::Path;

use serde_json::json;

use super::*;

fn read(value: &Value) -> Result<Job, JobError> {
    Job::read(value.to_string().as_bytes())
}

#[test]
fn configurations_are_stellars_or_have_a_kind() {
    let stellar = json!({"SubExperiments": [
        {"Title": "warm", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 1}
    ]});
    let job = read(&stellar).expect("an experiment");
    assert_eq!((job.kind(), job.title().as_str()), ("stellar", "warm"));
    let load = json!({"kind": "load", "function": "hello", "rate": 100, "duration_s": 1});
    let load = read(&load).expect("a load");
    assert_eq!(
        (load.kind(), load.title().as_str()),
        ("load", "How fast is hello at 100 requests per second?")
    );
    let subjects = load.subjects().expect("a function");
    assert_eq!(subjects[0].1.function, "hello");
    let load = json!({"kind": "load", "chain": "shop", "path": "/cart", "connections": 4});
    let load = read(&load).expect("a load");
    assert_eq!(
        (load.subjects().expect("none").len(), load.title().as_str()),
        (0, "How fast is shop/cart, 4 requests at a time?")
    );
    let job = read(&json!({"kind": "tail", "factors": ["cold"]})).expect("a table");
    assert_eq!(job.kind(), "tail");
    let job = read(&json!({"kind": "overhead", "cold": 5})).expect("a study");
    assert_eq!(
        (job.kind(), job.subjects().expect("none").len()),
        ("overhead", 0)
    );
    let job = read(&json!({"kind": "duet", "first": "a@1", "second": "a@2"})).expect("a duet");
    assert_eq!(job.title(), "Is a@2 faster than a@1?");
    let Job::Duet(duet) = job else {
        panic!("a duet")
    };
    assert_eq!((duet.calls, duet.repeats, duet.control), (15, 3, true));
    let gate = json!({"kind": "duet", "first": "a@1", "second": "a@2", "threshold": 0.05,
        "events": [1, 2], "names": ["small"]});
    let gate = read(&gate).expect("a gate");
    assert_eq!(gate.title(), "May a@2 replace a@1?");
    let Job::Duet(gate) = gate else {
        panic!("a duet")
    };
    let settings = gate.settings(Vec::new()).expect("settings");
    let names: Vec<&str> = settings
        .events
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["small", "event 2"]);
    let suite = json!({"kind": "suite", "tool": "go", "first": "old", "second": "new/tree"});
    let suite = read(&suite).expect("a suite");
    assert_eq!(
        (suite.kind(), suite.title().as_str()),
        ("suite", "Is new/tree faster than old, by its benchmarks?")
    );
    let Job::Suite(suite) = suite else {
        panic!("a suite")
    };
    let settings = suite
        .settings(Path::new("/trees"), "lab-e1")
        .expect("settings");
    assert_eq!(
        settings.second.as_deref(),
        Some(Path::new("/trees/new/tree"))
    );
    assert_eq!(
        (settings.function.as_str(), settings.method.calls),
        ("lab-e1-suite", 15)
    );
    let memory = json!({"kind": "replay", "first": "a@1", "settings": {"memory_mb": 256}});
    let memory = read(&memory).expect("a replay");
    assert_eq!(
        memory.title(),
        "Is a@1 with memory_mb=256 faster than a@1, replayed?"
    );
    let replica = json!({"kind": "replay", "first": "a@1", "second": "a@2", "network": {"allow": ["replica.example.com:5432"]}});
    for (config, allowed) in [
        (&replica, true),
        (&json!({"kind": "replay", "first": "a"}), false),
    ] {
        let Job::Replay(replay) = read(config).expect("a replay") else {
            panic!("a replay")
        };
        let settings = replay.settings("lab-e1").expect("settings");
        assert_eq!(settings.network.is_none(), !allowed, "{config}");
    }
    let aa = read(&json!({"kind": "duet", "first": "a"})).expect("a duet");
    assert_eq!(aa.title(), "Does a differ from itself?");
}

#[test]
fn bad_configurations_are_refused_with_their_field() {
    for (bad, expected) in [
        (json!([]), "SubExperiments"),
        (
            json!({"kind": "x"}),
            "\"x\" is none of load, tail, overhead, duet, replay, suite",
        ),
        (
            json!({"kind": "replay", "first": "a", "speed": 101}),
            "speed: 1 to 100",
        ),
        (
            json!({"kind": "replay", "first": "a", "settings": {"network": "internet"}}),
            "settings: network cannot be set: all copies of a replay have the same",
        ),
        (
            json!({"kind": "replay", "first": "a", "network": "internet"}),
            "network: must be \"none\", or an object whose \"allow\" names",
        ),
        (
            json!({"kind": "replay", "first": "a", "network": {"allow": "b.example"}}),
            "network: must be \"none\", or an object whose \"allow\" names",
        ),
        (
            json!({"kind": "replay", "first": "a", "settings": {"memory": 1}}),
            "settings: \"memory\" is none of memory_mb",
        ),
        (
            json!({"kind": "replay", "first": "a", "last_s": 0}),
            "from: must be before",
        ),
        (
            json!({"kind": "replay", "first": "a", "trace": {"text": "app,func\n"}}),
            "trace: line 1: a header",
        ),
        (
            json!({"kind": "replay", "first": "a", "trace": {
                "text": "app,func,end_timestamp,duration\na,f,1,0\na,f,99999,0\n"
            }}),
            "speed: takes longer than 6 h",
        ),
        (json!({"kind": 7}), "is none of load, tail"),
        (json!({"kind": "load"}), "url: one of url, function and"),
        (
            json!({"kind": "load", "url": "a.b"}),
            "url: must begin with http",
        ),
        (
            json!({"kind": "load", "function": "a", "rate": 1e9}),
            "rate: above 0",
        ),
        (
            json!({"kind": "tail", "samples": 1}),
            "samples: 1 is not within",
        ),
        (
            json!({"kind": "tail", "factors": ["x"]}),
            "factors: \"x\" is none of warm",
        ),
        (json!({"kind": "tail", "sample": 100}), "unknown field"),
        (
            json!({"kind": "overhead", "samples": 9}),
            "samples: 9 is not within 10 and 3000",
        ),
        (
            json!({"kind": "overhead", "cold": 201}),
            "cold: at most 200",
        ),
        (
            json!({"kind": "overhead", "workloads": ["x"]}),
            "workloads: \"x\" is none of empty",
        ),
        (
            json!({"kind": "overhead", "runtimes": ["x"]}),
            "runtimes: \"x\" is none of python3",
        ),
        (json!({"kind": "duet"}), "first: a function"),
        (
            json!({"kind": "duet", "first": "a", "second": "B"}),
            "second: a function",
        ),
        (
            json!({"kind": "duet", "first": "a", "calls": 0}),
            "calls: 0 is not within",
        ),
        (
            json!({"kind": "suite", "tool": "go", "first": "../up"}),
            "first: a directory below the agent's trees",
        ),
        (
            json!({"kind": "suite", "tool": "go", "first": "a", "second": "/etc"}),
            "second: a directory below",
        ),
        (
            json!({"kind": "suite", "tool": "jmh", "first": "a"}),
            "unknown variant `jmh`",
        ),
        (
            json!({"kind": "suite", "tool": "go", "first": "a", "time_s": 30}),
            "time: 30 s is not within",
        ),
        (
            json!({"kind": "suite", "tool": "pyperf", "first": "a", "cgo": true}),
            "cgo: only for go, not for pyperf",
        ),
        (
            json!({"kind": "suite", "tool": "go", "first": "a", "calls": 0}),
            "calls",
        ),
        (
            json!({"kind": "duet", "first": "a", "confidence": 1.0}),
            "confidence",
        ),
        (
            json!({"kind": "duet", "first": "a", "stage": "x"}),
            "unknown variant",
        ),
        (
            json!({"kind": "duet", "first": "a@1", "second": "a@2", "threshold": 11}),
            "threshold: 0 to 10",
        ),
        (
            json!({"kind": "duet", "first": "a", "threshold": 0.05}),
            "threshold: needs a second version",
        ),
        (
            json!({"kind": "duet", "first": "a", "names": ["x"]}),
            "names: not more than events",
        ),
        (
            json!({"kind": "duet", "first": "a", "recorded": 999}),
            "recorded: at most",
        ),
    ] {
        let error = read(&bad).expect_err("it is bad");
        if let Some((setting, rule)) = error.setting() {
            assert_eq!(error.to_string(), format!("{setting}: {rule}"));
        }
        let error = error.to_string();
        assert!(error.contains(expected), "{bad}: {error}");
    }
    assert!(matches!(Job::read(b"{"), Err(JobError::Json(_))));
}
