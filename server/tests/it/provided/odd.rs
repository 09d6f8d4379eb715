//! Bootstraps that do what none should: each invocation ends in one clear error, and the next one works.

use std::time::Duration;

use serde_json::{Value, json};

use super::{log, try_deploy};
use crate::support::{Answer, Client, Server, archive, eventually};

/// Does what its event or its handler setting names.
const ODD: &[u8] = include_bytes!("odd.py");

async fn try_deploy_odd(client: &Client, name: &str, settings: Value) -> Answer {
    try_deploy(client, name, archive(&[("bootstrap", ODD)]), settings).await
}

pub(super) async fn deploy(client: &Client, name: &str, settings: Value) {
    try_deploy_odd(client, name, settings).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_initialisation_that_fails_is_said() {
    let server = Server::start();
    let client = server.client();
    for (handler, error_type, message, printed) in [
        (
            "dies",
            "Runtime.ExitError",
            "the bootstrap exited with status 3 before it asked for an invocation",
            "about to die",
        ),
        (
            "killed",
            "Runtime.ExitError",
            "the bootstrap was killed by signal 11 before it asked for an invocation",
            "",
        ),
        (
            "reports",
            "Config.Missing",
            "no table",
            "202 {\"status\":\"OK\"}",
        ),
        (
            "never",
            "Runtime.InitTimeout",
            "the bootstrap did not ask for an invocation within 15 s (GET /2018-06-01/runtime/invocation/next at \
             AWS_LAMBDA_RUNTIME_API)",
            "here, and silent",
        ),
    ] {
        let refused = try_deploy_odd(&client, "odd", json!({"handler": handler})).await;
        let problem = refused.problem(422, "import_failed");
        assert_eq!(problem["errorType"], error_type, "{problem}");
        assert_eq!(problem["errorMessage"], message, "{problem}");
        assert!(
            problem["logs"]
                .to_string()
                .contains(&printed.replace('"', "\\\"")),
            "{problem}"
        );
        if handler == "reports" {
            assert_eq!(problem["stackTrace"], json!(["a", "b"]));
        }
    }
    // A script whose interpreter is not there.
    let script = archive(&[("bootstrap", b"#!/opt/none\n")]);
    let refused = try_deploy(&client, "odd", script, json!({})).await;
    let problem = refused.problem(422, "import_failed");
    assert_eq!(
        problem["errorType"], "Runtime.InvalidEntrypoint",
        "{problem}"
    );
    client.get("/api/v1/functions/odd").await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_bootstrap_ends_its_invocation_only() {
    let server = Server::start();
    let client = server.client();
    deploy(
        &client,
        "odd",
        json!({"memory_mb": 64, "timeout_ms": 3000, "max_concurrency": 1}),
    )
    .await;
    let invoke = async |what: &str| client.invoke("odd", &json!({"do": what})).await;
    let calls = async || invoke("state").await.expect(200).json()["calls"].clone();

    let crashed = invoke("exit").await;
    assert_eq!(log(&client, &crashed).await, "does exit\n");
    let problem = crashed.problem(502, "function_crashed");
    assert!(
        problem["detail"].to_string().contains("status 7"),
        "{problem}"
    );
    assert_eq!(calls().await, 1);
    let problem = invoke("kill").await.problem(502, "function_crashed");
    assert!(
        problem["detail"].to_string().contains("SIGKILL"),
        "{problem}"
    );
    assert_eq!(calls().await, 1);
    invoke("memory")
        .await
        .problem(502, "function_out_of_memory");
    assert_eq!(calls().await, 1);
    // What it has answered before counts. A request that is on its way when it ends is a crash, the next one finds another.
    let fresh = || async {
        let answer = invoke("state").await;
        (answer.status == 200 && answer.json()["calls"] == 1).then_some(())
    };
    for (what, result) in [
        ("answer, exit", json!("last words")),
        // While nothing is asked of it.
        ("later exit", json!("later")),
    ] {
        assert_eq!(invoke(what).await.expect(200).json(), result);
        eventually("another bootstrap", Duration::from_secs(30), fresh).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_wrong_are_refused_and_the_instance_goes_on() {
    let server = Server::start();
    let client = server.client();
    deploy(
        &client,
        "odd",
        json!({"timeout_ms": 10_000, "public": true, "max_concurrency": 1}),
    )
    .await;
    let send = async |event: Value| client.invoke("odd", &event).await;
    let invoke = async |what: &str| send(json!({"do": what})).await;
    let before = invoke("state").await.expect(200).json();

    assert_eq!(invoke("twice").await.expect(200).json(), "first");
    // What it printed after its answer is read by then: it has asked again since.
    assert_eq!(invoke("half, then whole").await.expect(200).json(), "whole");
    // The quotes and the limit: 6 MiB and no byte more.
    let most = (6 << 20) - 2;
    let large = send(json!({"do": "large", "bytes": most}))
        .await
        .expect(200);
    assert_eq!(large.bytes.len(), 6 << 20);
    let larger = send(json!({"do": "large", "bytes": most + 1})).await;
    larger.problem(502, "result_too_large");
    let huge = send(json!({"do": "large", "bytes": 12 << 20})).await;
    huge.problem(502, "result_too_large");
    for (what, error_type) in [
        ("no JSON", "Runtime.InvalidResponse"),
        ("reports", "Own.Type"),
    ] {
        let problem = invoke(what).await.problem(502, "function_error");
        assert_eq!(problem["errorType"], error_type, "{problem}");
    }
    let again = invoke("asks again").await.expect(200).json();
    assert_eq!(again, json!([403, "InvalidStateTransition"]));
    let wrong = invoke("wrong").await.expect(200).json();
    assert_eq!(
        wrong,
        json!([400, 405, 404, 403, "HTTP/1.1 400 Bad Request", 431])
    );
    let printed = invoke("prints").await;
    let log = log(&client, &printed).await;
    assert_eq!(printed.expect(200).json(), "printed");
    assert!(log.starts_with("does prints\nline\n"), "{}", log.len());

    let reached = invoke("reached").await.expect(200).json();
    assert_eq!(reached["api"], "Success");
    assert_eq!(reached["closed"], "Connection refused");
    for outside in ["outside", "outside6"] {
        assert_eq!(reached[outside], "Network is unreachable", "{reached}");
    }
    let after = invoke("state").await.expect(200).json();
    // The same process: it has its three streams and the connection that it is served by, and nothing of the server's.
    assert_eq!(after["pid"], before["pid"]);
    assert_eq!(before["fds"], json!([0, 1, 2]), "{before}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_stops_half_way_is_a_timeout() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"timeout_ms": 1500, "public": true, "max_concurrency": 1});
    deploy(&client, "odd", settings).await;
    let half = client.invoke("odd", &json!({"do": "half"})).await;
    half.problem(504, "function_timeout");
    let state = client
        .invoke("odd", &json!({"do": "state"}))
        .await
        .expect(200);
    assert_eq!(state.json()["calls"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_answers_that_fail_are_errors() {
    let server = Server::start();
    let client = server.client();
    deploy(
        &client,
        "odd",
        json!({"timeout_ms": 5000, "max_concurrency": 1, "public": true}),
    )
    .await;
    // The body that follows a wrong prelude is nobody's.
    for _ in 0..2 {
        let answer = client.get("/fn/odd?do=streamed,%20headless").await;
        let problem = answer.problem(502, "function_error");
        assert_eq!(problem["errorType"], "Runtime.InvalidResponse", "{problem}");
    }
    for (what, error_type) in [
        ("streamed, cut", "Runtime.TruncatedResponse"),
        ("streamed, failed", "Late.Error"),
        ("failed at its end", "Late.Error"),
    ] {
        let answer = client.invoke("odd", &json!({"do": what})).await;
        let problem = answer.problem(502, "function_error");
        assert_eq!(problem["errorType"], error_type, "{problem}");
    }
    let state = client
        .invoke("odd", &json!({"do": "state"}))
        .await
        .expect(200);
    assert_eq!(state.json()["calls"], 6);
}
