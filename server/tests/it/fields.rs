//! Every field of the API out of its range, of the wrong type, missing, unknown: each refused by name, nothing changed.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

const ONE: &str = "def handler(event, context):\n    return 1\n";

/// Settings that both a create and a patch refuse: field named by the refusal, and the members sent.
fn wrong_settings() -> Vec<(&'static str, Value)> {
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
    for field in [
        "memory_mb",
        "timeout_ms",
        "max_concurrency",
        "idle_timeout_s",
        "min_instances",
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
    let flags = [json!("true"), json!(1), json!(null), json!([true])];
    wrong.extend(flags.map(|value| ("public", json!({"public": value}))));
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
fn wrong_creates() -> Vec<(&'static str, Value)> {
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
        ("code", json!({"inline": ONE, "zip_base64": "UEsFBg=="})),
        ("code.inline", json!({"inline": ""})),
        ("code.inline", json!({"inline": " \n"})),
        ("code.inline", json!({"inline": 1})),
        ("code.inline", json!({"inline": null})),
        ("code.zip_base64", json!({"zip_base64": ""})),
        ("code.zip_base64", json!({"zip_base64": "%%%"})),
        ("code.zip_base64", json!({"zip_base64": "UEsFB"})),
        ("code.zip_base64", json!({"zip_base64": ["UEsFBg=="]})),
        ("code.url", json!({"url": "http://example.com/"})),
        ("code.path", json!({"inline": ONE, "path": "/etc/passwd"})),
    ] {
        wrong.push((field, json!({"code": code})));
    }
    wrong.push(("env.A", json!({"env": {"A": null}})));
    wrong
}

fn with(mut document: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

#[track_caller]
fn check(problem: &Value, field: &str, sent: &Value) {
    assert_eq!(problem["field"], field, "{sent}\n{problem}");
    let rule = problem["rule"].as_str().unwrap_or_default();
    assert!(!rule.is_empty(), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(rule) && detail.contains(field), "{problem}");
    assert!(problem.get("value").is_some(), "{problem}");
    assert!(
        problem.to_string().len() < 4096,
        "an answer of a decent size"
    );
}

#[tokio::test]
async fn a_create_with_a_wrong_field_is_refused_by_name_and_makes_nothing() {
    let server = Server::start();
    let client = server.client();
    let good = json!({"name": "wrong", "runtime": "python3", "code": {"inline": ONE}});
    for (field, changes) in wrong_settings().into_iter().chain(wrong_creates()) {
        let sent = with(good.clone(), &changes);
        let answer = client.post("/api/v1/functions", &sent).await;
        check(&answer.problem(422, "invalid_field"), field, &changes);
    }
    for field in ["name", "runtime", "code"] {
        let mut sent = good.clone();
        sent.as_object_mut().unwrap().remove(field);
        let answer = client.post("/api/v1/functions", &sent).await;
        let problem = answer.problem(422, "invalid_field");
        check(&problem, field, &sent);
        assert!(
            problem["rule"].as_str().unwrap().contains("required"),
            "{problem}"
        );
    }
    let list = client.get("/api/v1/functions").await.expect(200).json();
    assert_eq!(list["items"], json!([]));
    assert_eq!(server.packages(), 0);
    client.post("/api/v1/functions", &good).await.expect(201);
}

#[tokio::test]
async fn a_patch_with_a_wrong_field_is_refused_by_name_and_changes_nothing() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"env": {"A": "secret"}});
    client.deploy("steady", ONE, settings).await;
    let before = client.get("/api/v1/functions/steady").await.expect(200);
    let fixed = [
        ("name", json!({"name": "other"})),
        ("runtime", json!({"runtime": "python3"})),
        ("code", json!({"code": {"inline": ONE}})),
        ("body", json!({})),
    ];
    for (field, changes) in wrong_settings().into_iter().chain(fixed) {
        // A good field beside the wrong one must not take effect either.
        let sent = match field {
            "body" => changes.clone(),
            "memory_mb" => with(json!({"timeout_ms": 5000}), &changes),
            _ => with(json!({"memory_mb": 256}), &changes),
        };
        let answer = client.patch("/api/v1/functions/steady", &sent).await;
        check(&answer.problem(422, "invalid_field"), field, &changes);
    }
    // Each is in its range, but not beside what the function has.
    client
        .patch("/api/v1/functions/steady", &json!({"min_instances": 8}))
        .await
        .expect(200);
    let sent = json!({"max_concurrency": 7});
    let answer = client.patch("/api/v1/functions/steady", &sent).await;
    check(
        &answer.problem(422, "invalid_field"),
        "max_concurrency",
        &sent,
    );
    client
        .post("/api/v1/functions/steady/versions/1/activate", &Value::Null)
        .await
        .expect(200);
    let after = client.get("/api/v1/functions/steady").await.expect(200);
    let configuration = |answer: &Value| {
        let mut object = answer.clone();
        for live in ["versions", "instances", "updated_at"] {
            object.as_object_mut().unwrap().remove(live);
        }
        object
    };
    assert_eq!(configuration(&before.json()), configuration(&after.json()));
    assert_eq!(after.json()["versions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn wrong_code_uploads_are_refused_by_name_and_the_old_code_answers() {
    let server = Server::start();
    let client = server.client();
    client.deploy("steady", ONE, json!({})).await;
    for (field, changes) in wrong_creates() {
        if field.starts_with("code") {
            let answer = client.put("/api/v1/functions/steady/code", &changes).await;
            check(&answer.problem(422, "invalid_field"), field, &changes);
        }
    }
    let both = json!({"code": {"inline": ONE}, "memory_mb": 64});
    let answer = client.put("/api/v1/functions/steady/code", &both).await;
    check(&answer.problem(422, "invalid_field"), "memory_mb", &both);
    let answer = client
        .put("/api/v1/functions/steady/code", &json!({}))
        .await;
    check(&answer.problem(422, "invalid_field"), "code", &json!({}));
    assert_eq!(
        client.invoke("steady", &json!(0)).await.expect(200).json(),
        1
    );
    let function = client.get("/api/v1/functions/steady").await.json();
    assert_eq!(function["versions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_runtime_that_this_node_lacks_is_an_invalid_field() {
    let server = Server::start();
    let client = server.client();
    let sent = json!({"name": "noded", "runtime": "node", "code": {"inline": "exports.handler = async () => 1"}});
    let answer = client.post("/api/v1/functions", &sent).await;
    check(&answer.problem(422, "invalid_field"), "runtime", &sent);
    assert_eq!(server.packages(), 0);
}

#[tokio::test]
async fn wrong_query_parameters_are_refused_by_name() {
    let server = Server::start();
    let client = server.client();
    client.deploy("asked", ONE, json!({})).await;
    for (route, parameter, values) in [
        (
            "invocations",
            "limit",
            &["0", "1001", "-1", "x", "1.5", "", "99999999999"][..],
        ),
        (
            "invocations",
            "status",
            &["ok", "", "Succeeded", "succeeded,failed"],
        ),
        ("invocations", "before", &["x", "", "0", "../..", "%00"]),
        ("invocations", "after", &["1"]),
        (
            "stats",
            "window",
            &[
                "",
                "5",
                "m",
                "59s",
                "8d",
                "-5m",
                "1.5h",
                "5M",
                "99999999999999999999d",
            ],
        ),
        ("stats", "windows", &["5m"]),
        ("logs", "limit", &["0", "10001", "x"]),
        ("logs", "follow", &["1", "yes", "TRUE", ""]),
        ("logs", "tail", &["1"]),
    ] {
        for value in values {
            let path = format!("/api/v1/functions/asked/{route}?{parameter}={value}");
            let problem = client.get(&path).await.problem(422, "invalid_field");
            check(&problem, parameter, &json!(path));
        }
    }
    let twice = "/api/v1/functions/asked/invocations?limit=1&limit=2";
    let problem = client.get(twice).await.problem(422, "invalid_field");
    check(&problem, "limit", &json!(twice));
    let list = client.get("/api/v1/functions?limit=1").await;
    check(&list.problem(422, "invalid_field"), "limit", &json!("list"));
}

#[tokio::test]
async fn wrong_tokens_to_make_are_refused_by_name() {
    let server = Server::start();
    let client = server.client();
    let good = json!({"name": "ci", "rights": ["read"]});
    for (field, changes) in [
        ("name", json!({"name": ""})),
        ("name", json!({"name": "x".repeat(65)})),
        ("name", json!({"name": "a\nb"})),
        ("name", json!({"name": 1})),
        ("rights", json!({"rights": []})),
        ("rights", json!({"rights": "read"})),
        ("rights", json!({"rights": ["root"]})),
        ("rights", json!({"rights": ["read", "read"]})),
        ("rights", json!({"rights": [1]})),
        ("token", json!({"token": "my-own-secret"})),
    ] {
        let sent = with(good.clone(), &changes);
        let answer = client
            .send(client.request(Method::POST, "/api/v1/tokens").json(&sent))
            .await;
        check(&answer.problem(422, "invalid_field"), field, &changes);
    }
    let list = client.get("/api/v1/tokens").await.expect(200).json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
}
