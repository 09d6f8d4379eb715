//! The tables: which members of a document are wrong, and which field a refusal names.

use serde_json::{Value, json};

const SOURCE: &str = "def handler(event, context):\n    return 1\n";

/// Settings that both a create and a patch refuse: field named by the refusal, and the members sent.
pub(super) fn wrong_settings() -> Vec<(&'static str, Value)> {
    let mut wrong = Vec::new();
    for (field, least, most) in [
        ("memory_mb", 32_u64, 16_384),
        ("timeout_ms", 1, 900_000),
        ("max_concurrency", 1, 1000),
        ("idle_timeout_s", 1, 86_400),
    ] {
        let out_of_range = [least - 1, most + 1, u64::from(u32::MAX) + 33, u64::MAX];
        wrong.extend(out_of_range.map(|value| (field, json!({ field: value }))));
    }
    wrong.extend(
        [1001_u64, u64::MAX].map(|value| ("min_instances", json!({"min_instances": value}))),
    );
    wrong.push((
        "template_idle_timeout_s",
        json!({"template_idle_timeout_s": 2_592_001}),
    ));
    for field in [
        "memory_mb",
        "timeout_ms",
        "max_concurrency",
        "idle_timeout_s",
        "min_instances",
        "template_idle_timeout_s",
    ] {
        let not_whole = [
            json!(-1),
            json!(64.5),
            json!(1e300),
            json!("64"),
            json!(null),
            json!(true),
            json!([64]),
            json!({}),
        ];
        wrong.extend(not_whole.map(|value| (field, json!({ field: value }))));
    }
    wrong.push(("min_instances", json!({"min_instances": 9})));
    wrong.push((
        "min_instances",
        json!({"min_instances": 3, "max_concurrency": 2}),
    ));
    let handlers = [
        json!(""),
        json!("main"),
        json!(".handler"),
        json!("main."),
        json!("main..handler"),
        json!("../main.handler"),
        json!("/main.handler"),
        json!("a//b.handler"),
        json!("ma in.handler"),
        json!("main.hand-ler"),
        json!("main.1handler"),
        json!("main.händler"),
        json!("main.handler\0"),
        json!("main.handler\n"),
        json!("a".repeat(121) + ".handler"),
        json!(1),
        json!(null),
        json!([]),
        json!({}),
    ];
    wrong.extend(handlers.map(|value| ("handler", json!({"handler": value}))));
    let networks = [
        json!(""),
        json!("None"),
        json!("inbound"),
        json!("none "),
        json!(true),
        json!(null),
        json!(0),
    ];
    wrong.extend(networks.map(|value| ("network", json!({"network": value}))));
    let forms = [
        json!("Bytes"),
        json!(""),
        json!("text"),
        json!(true),
        json!(null),
    ];
    wrong.extend(forms.map(|value| ("body", json!({"body": value}))));
    let starts = [
        json!(""),
        json!("Auto"),
        json!("warm"),
        json!(" fork"),
        json!(true),
        json!(null),
        json!(0),
    ];
    wrong.extend(starts.map(|value| ("start", json!({"start": value}))));
    let flags = [json!("true"), json!(1), json!(null), json!([true])];
    for field in ["public", "keep_warm"] {
        wrong.extend(flags.clone().map(|value| (field, json!({ field: value }))));
    }
    for value in [json!([]), json!("A=b"), json!(1), json!(true), json!(null)] {
        wrong.push(("env", json!({"env": value})));
    }
    for (field, env) in [
        ("env.", json!({"": "x"})),
        ("env.1A", json!({"1A": "x"})),
        ("env.A=B", json!({"A=B": "x"})),
        ("env.A-B", json!({"A-B": "x"})),
        ("env.HEARTH_FUNCTION", json!({"HEARTH_FUNCTION": "x"})),
        ("env.A", json!({"A": 1})),
        ("env.A", json!({"A": true})),
        ("env.A", json!({"A": ["x"]})),
        ("env.A", json!({"A": "nul\0"})),
        ("env", json!({"A": "x".repeat(5000)})),
    ] {
        wrong.push((field, json!({"env": env})));
    }
    for field in [
        "memory",
        "Memory_MB",
        "timeout",
        "",
        "\u{0}",
        "__proto__",
        "state",
        "active_version",
        "url",
    ] {
        wrong.push((field, json!({ field: 64 })));
    }
    wrong
}

/// What only a create refuses.
pub(super) fn wrong_creates() -> Vec<(&'static str, Value)> {
    let mut wrong = Vec::new();
    let names = [
        json!(""),
        json!("A"),
        json!("1a"),
        json!("-a"),
        json!("a_b"),
        json!("a.b"),
        json!("a/b"),
        json!("../a"),
        json!("a b"),
        json!("a\n"),
        json!("ä"),
        json!("a\0"),
        json!("a".repeat(65)),
        json!("a".repeat(100_000)),
        json!(1),
        json!(null),
        json!(["a"]),
        json!({"a": 1}),
    ];
    wrong.extend(names.map(|value| ("name", json!({"name": value}))));
    let runtimes = [
        json!("python"),
        json!("Python3"),
        json!(""),
        json!(3),
        json!(null),
        json!(["python3"]),
    ];
    wrong.extend(runtimes.map(|value| ("runtime", json!({"runtime": value}))));
    for (field, code) in [
        ("code", json!(null)),
        ("code", json!("def handler…")),
        ("code", json!(1)),
        ("code", json!([])),
        ("code", json!({})),
        ("code", json!({"inline": SOURCE, "zip_base64": "UEsFBg=="})),
        ("code.inline", json!({"inline": ""})),
        ("code.inline", json!({"inline": " \n"})),
        ("code.inline", json!({"inline": 1})),
        ("code.inline", json!({"inline": null})),
        ("code.zip_base64", json!({"zip_base64": ""})),
        ("code.zip_base64", json!({"zip_base64": "%%%"})),
        ("code.zip_base64", json!({"zip_base64": "UEsFB"})),
        ("code.zip_base64", json!({"zip_base64": ["UEsFBg=="]})),
        ("code.url", json!({"url": "http://example.com/"})),
        (
            "code.path",
            json!({"inline": SOURCE, "path": "/etc/passwd"}),
        ),
    ] {
        wrong.push((field, json!({"code": code})));
    }
    wrong.push(("env.A", json!({"env": {"A": null}})));
    wrong
}
