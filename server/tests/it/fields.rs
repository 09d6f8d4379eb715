//! Every field of the API at its limits, out of its range, of the wrong type, missing, unknown: what is wrong is refused
//! by name, and nothing was changed.

mod tables;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;
use tables::{wrong_creates, wrong_settings};

const ONE: &str = "def handler(event, context):\n    return 1\n";

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
        for live in ["versions", "instances", "decisions", "updated_at"] {
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
    let server = Server::start_with(&[("HEARTH_NODE", "/usr/bin/no-such-node")]);
    let client = server.client();
    let sent = json!({"name": "noded", "runtime": "node", "code": {"inline": "exports.handler = async () => 1"}});
    let answer = client.post("/api/v1/functions", &sent).await;
    check(&answer.problem(422, "invalid_field"), "runtime", &sent);
    assert_eq!(server.packages(), 0);
    let page = client.get("/api/v1/node").await.expect(200).json();
    let node = &page["capabilities"]["runtimes"]["node"];
    assert_eq!(node["available"], false);
    assert!(
        node["reason"].as_str().unwrap().contains("no-such-node"),
        "{node}"
    );
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

#[tokio::test]
async fn the_limits_themselves_are_accepted() {
    let server = Server::start();
    let client = server.client();
    let longest = "n".repeat(64);
    let module = "m".repeat(119);
    for (name, settings) in [
        (
            "a",
            json!({"memory_mb": 32, "timeout_ms": 900_000, "max_concurrency": 1, "idle_timeout_s": 1, "template_idle_timeout_s": 0}),
        ),
        (
            &longest,
            json!({"memory_mb": 16_384, "max_concurrency": 1000, "idle_timeout_s": 86_400, "template_idle_timeout_s": 2_592_000}),
        ),
        (
            "a--9-",
            json!({"handler": format!("{module}.handler_"), "env": {"A": "x".repeat(4095)}}),
        ),
        ("full", json!({"min_instances": 2, "max_concurrency": 2})),
    ] {
        let code = "def handler(event, context):\n    return [event]\nhandler_ = handler\n";
        client.deploy(name, code, settings).await;
        assert_eq!(
            client.invoke(name, &json!(1)).await.expect(200).json(),
            json!([1]),
            "{name}"
        );
    }
    let shortest = json!({"timeout_ms": 1});
    client
        .deploy(
            "hasty",
            "import time\ndef handler(e, c): time.sleep(1)\n",
            shortest,
        )
        .await;
    client
        .invoke("hasty", &json!(0))
        .await
        .problem(504, "function_timeout");
}
