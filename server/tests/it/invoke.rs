//! `POST /api/v1/functions/{name}/invoke`: results, stages, logs, and every way in which an invocation can fail.

use std::time::Duration;

use serde_json::json;

use crate::support::{Server, eventually};

const ECHO: &str =
    "def handler(event, context):\n    print('seen', event)\n    return {'echo': event}\n";

#[tokio::test]
async fn a_function_answers_and_its_invocation_is_recorded() {
    let server = Server::start();
    let client = server.client();
    let function = client.deploy("hello", ECHO, json!({})).await;
    assert_eq!(function["state"], "ready");
    assert_eq!(function["active_version"], 1);

    let first = client
        .invoke("hello", &json!({"a": [1, "ü"]}))
        .await
        .expect(200);
    assert_eq!(first.json(), json!({"echo": {"a": [1, "ü"]}}));
    assert_eq!(first.header("x-hearth-start"), "fork");
    assert_eq!(first.header("x-hearth-version"), "1");
    let timing = first.header("server-timing").to_owned();
    for stage in [
        "queue;dur=",
        "start;dur=",
        "send;dur=",
        "run;dur=",
        "recv;dur=",
        "total;dur=",
    ] {
        assert!(timing.contains(stage), "{stage} is missing in {timing}");
    }
    let record = client
        .invocation(first.header("x-hearth-invocation-id"))
        .await;
    assert_eq!(record["status"], "succeeded");
    assert_eq!(record["start"], "fork");
    assert_eq!(record["logs"][0]["text"], "seen {'a': [1, 'ü']}");
    assert_eq!(record["logs"][0]["stream"], "stdout");
    assert!(record["stages_us"]["run"].as_u64().unwrap() > 0);
    assert!(record["stages_us"]["total"].as_u64() >= record["stages_us"]["run"].as_u64());

    let second = client.invoke("hello", &json!(null)).await.expect(200);
    assert_eq!(second.header("x-hearth-start"), "warm");
    let list = client
        .get("/api/v1/functions/hello/invocations")
        .await
        .expect(200)
        .json();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        list["items"][0]["id"],
        second.header("x-hearth-invocation-id"),
        "newest first"
    );
}

#[tokio::test]
async fn a_handler_that_raises_is_a_function_error_with_its_traceback() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "raises",
            "def handler(event, context):\n    raise ValueError('no ' + event['what'])\n",
            json!({}),
        )
        .await;
    let problem = client
        .invoke("raises", &json!({"what": "luck"}))
        .await
        .problem(502, "function_error");
    assert_eq!(problem["errorType"], "ValueError");
    assert_eq!(problem["errorMessage"], "no luck");
    let trace = problem["stackTrace"].to_string();
    assert!(
        trace.contains("main.py") && !trace.contains("/opt/hearth"),
        "{trace}"
    );
    let again = client.invoke("raises", &json!({"what": "luck"})).await;
    assert_eq!(
        again.header("x-hearth-start"),
        "warm",
        "an exception does not cost the instance"
    );
}

#[tokio::test]
async fn a_handler_past_its_deadline_is_killed_and_the_next_call_is_served() {
    let server = Server::start();
    let client = server.client();
    let code = "import time\ndef handler(event, context):\n    print('before', flush=True)\n    time.sleep(event)\n    return 'done'\n";
    client
        .deploy(
            "slow",
            code,
            json!({"timeout_ms": 300, "max_concurrency": 1}),
        )
        .await;
    let answer = client.invoke("slow", &json!(600)).await;
    let id = answer.header("x-hearth-invocation-id").to_owned();
    answer.problem(504, "function_timeout");
    let record = client.invocation(&id).await;
    assert_eq!(record["status"], "timed_out");
    assert_eq!(
        record["logs"][0]["text"], "before",
        "what it printed until then is kept"
    );
    assert_eq!(
        client.invoke("slow", &json!(0)).await.expect(200).json(),
        "done"
    );
}

#[tokio::test]
async fn a_crash_and_an_exhausted_memory_are_told_apart() {
    let server = Server::start();
    let client = server.client();
    let code = "import os, signal\ndef handler(event, context):\n    \
        if event == 'exit': os._exit(3)\n    \
        if event == 'segv': os.kill(os.getpid(), signal.SIGSEGV)\n    \
        if event == 'memory': return len(bytearray(300 * 1024 * 1024))\n    return 'well'\n";
    client
        .deploy("fragile", code, json!({"memory_mb": 64}))
        .await;
    let problem = client
        .invoke("fragile", &json!("exit"))
        .await
        .problem(502, "function_crashed");
    assert!(
        problem["detail"].as_str().unwrap().contains("status 3"),
        "{problem}"
    );
    let problem = client
        .invoke("fragile", &json!("segv"))
        .await
        .problem(502, "function_crashed");
    assert!(
        problem["detail"].as_str().unwrap().contains("SIGSEGV"),
        "{problem}"
    );
    let answer = client.invoke("fragile", &json!("memory")).await;
    let id = answer.header("x-hearth-invocation-id").to_owned();
    answer.problem(502, "function_out_of_memory");
    assert_eq!(client.invocation(&id).await["status"], "out_of_memory");
    assert_eq!(
        client
            .invoke("fragile", &json!(""))
            .await
            .expect(200)
            .json(),
        "well"
    );
}

#[tokio::test]
async fn when_all_are_busy_requests_queue_and_a_full_queue_refuses() {
    let server = Server::start();
    let client = server.client();
    let code = "import time\ndef handler(event, context):\n    time.sleep(0.02)\n    return 1\n";
    client
        .deploy("narrow", code, json!({"max_concurrency": 1}))
        .await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..150 {
        let client = client.clone();
        calls.spawn(async move { client.invoke("narrow", &json!(0)).await });
    }
    let (mut served, mut refused) = (0, 0);
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap();
        if answer.status == 200 {
            served += 1;
        } else {
            assert!(answer.header("retry-after").parse::<u32>().unwrap() >= 1);
            answer.problem(429, "too_many_requests");
            refused += 1;
        }
    }
    assert!(served >= 100, "a hundred may wait: {served} served");
    assert!(refused > 0, "the queue is bounded");
    assert_eq!(served + refused, 150);
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_nothing_behind() {
    let server = Server::start();
    let client = server.client();
    let code = "import time\ndef handler(event, context):\n    time.sleep(event)\n    return 1\n";
    client
        .deploy("left", code, json!({"max_concurrency": 1}))
        .await;
    let request = client
        .request(reqwest::Method::POST, "/api/v1/functions/left/invoke")
        .json(&json!(60));
    let hung_up = tokio::time::timeout(Duration::from_millis(300), request.send()).await;
    assert!(hung_up.is_err(), "the call was still running");
    assert_eq!(
        client.invoke("left", &json!(0)).await.expect(200).json(),
        1,
        "the only place is free again"
    );
    let path = "/api/v1/functions/left/invocations?status=cancelled";
    let cancelled = eventually(
        "the cancelled call is recorded",
        Duration::from_secs(5),
        || async {
            let items = client.get(path).await.expect(200).json()["items"].clone();
            (items.as_array().unwrap().len() == 1).then_some(items)
        },
    )
    .await;
    assert_eq!(cancelled[0]["error"]["errorType"], "Client.Disconnected");
}

#[tokio::test]
async fn results_that_json_cannot_say_and_results_over_the_limit_are_refused() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return {'set': {1}, 'nan': float('nan'), 'big': 'x' * 7_000_000, 'ok': 1}[event]\n";
    client.deploy("odd", code, json!({})).await;
    for event in ["set", "nan"] {
        let problem = client
            .invoke("odd", &json!(event))
            .await
            .problem(502, "function_error");
        assert_eq!(problem["errorType"], "Runtime.MarshalError");
    }
    client
        .invoke("odd", &json!("big"))
        .await
        .problem(502, "result_too_large");
    let fine = client.invoke("odd", &json!("ok")).await.expect(200);
    assert_eq!(
        fine.header("x-hearth-start"),
        "warm",
        "none of it cost the instance"
    );
}
