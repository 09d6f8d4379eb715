//! Versions, deletion, and functions that are not there.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, eventually};

const ONE: &str = "def handler(event, context):\n    return 1\n";

#[tokio::test]
async fn only_versions_that_exist_can_be_activated() {
    let server = Server::start();
    let client = server.client();
    client.deploy("rolled", ONE, json!({})).await;
    client
        .patch("/api/v1/functions/rolled", &json!({"timeout_ms": 1000}))
        .await
        .expect(200);
    let activate = |version: &str| {
        let path = format!("/api/v1/functions/rolled/versions/{version}/activate");
        let client = client.clone();
        async move { client.post(&path, &Value::Null).await }
    };
    for missing in ["0", "3", "-1", "x", "1.0", "99999999999999999999", "1%20"] {
        activate(missing).await.problem(404, "not_found");
    }
    let back = activate("1").await.expect(200).json();
    assert_eq!(back["active_version"], 1);
    assert_eq!(back["timeout_ms"], 30000, "its settings come back with it");
    let again = activate("1").await.expect(200).json();
    assert_eq!(again["active_version"], 1, "activating twice is no mistake");
    let forward = activate("2").await.expect(200).json();
    assert_eq!(forward["timeout_ms"], 1000);
    let versions = client
        .get("/api/v1/functions/rolled/versions")
        .await
        .expect(200)
        .json();
    assert_eq!(
        versions["items"].as_array().unwrap().len(),
        2,
        "no version was made"
    );
    assert_eq!(versions["items"][0]["active"], true);
    assert_eq!(versions["items"][1]["active"], false);
}

#[tokio::test]
async fn a_function_that_is_not_there_is_not_found_on_every_route() {
    let server = Server::start();
    let client = server.client();
    let code = json!({"code": {"inline": ONE}});
    for (method, path, body) in [
        (Method::GET, "/api/v1/functions/nobody", None),
        (
            Method::PATCH,
            "/api/v1/functions/nobody",
            Some(json!({"memory_mb": 64})),
        ),
        (Method::DELETE, "/api/v1/functions/nobody", None),
        (Method::PUT, "/api/v1/functions/nobody/code", Some(code)),
        (Method::GET, "/api/v1/functions/nobody/versions", None),
        (
            Method::POST,
            "/api/v1/functions/nobody/versions/1/activate",
            None,
        ),
        (
            Method::POST,
            "/api/v1/functions/nobody/invoke",
            Some(json!({})),
        ),
        (
            Method::POST,
            "/api/v1/functions/nobody/versions",
            Some(json!({"code": {"inline": ONE}})),
        ),
        (
            Method::POST,
            "/api/v1/functions/nobody/versions/1/invoke",
            Some(json!({})),
        ),
        (Method::GET, "/api/v1/functions/nobody/invocations", None),
        (Method::GET, "/api/v1/functions/nobody/stats", None),
        (Method::GET, "/api/v1/functions/nobody/events", None),
        (Method::GET, "/api/v1/functions/nobody/logs", None),
        (
            Method::GET,
            "/api/v1/functions/nobody/logs?follow=true",
            None,
        ),
        (Method::GET, "/fn/nobody", None),
        (Method::POST, "/fn/nobody/deeper/still", Some(json!({}))),
        (Method::GET, "/api/v1/functions/No%20Body!", None),
        (Method::GET, "/api/v1/functions/%2e%2e%2f%2e%2e", None),
        (Method::GET, "/api/v1/functions/%ff", None),
        (
            Method::POST,
            "/api/v1/functions/%6eobody/invoke",
            Some(json!({})),
        ),
        (
            Method::GET,
            "/api/v1/invocations/0190b5a4-0000-7000-8000-000000000000",
            None,
        ),
        (Method::GET, "/api/v1/invocations/nonsense", None),
    ] {
        let mut request = client.request(method.clone(), path);
        if let Some(body) = &body {
            request = request.json(body);
        }
        let answer = client.send(request).await;
        let headers = answer.headers.clone();
        let status = answer.status;
        if path.contains("%ff") {
            // Not UTF-8: no name at all, but an answer like any other.
            assert!(status.is_client_error(), "{method} {path}: {status}");
            continue;
        }
        answer.problem(404, "not_found");
        assert!(
            !headers.contains_key("x-hearth-invocation-id"),
            "{method} {path}: nothing was invoked"
        );
    }
}

#[tokio::test]
async fn of_several_creates_of_one_name_one_wins() {
    let server = Server::start();
    let client = server.client();
    let mut creates = tokio::task::JoinSet::new();
    for number in 0..4 {
        let client = client.clone();
        creates.spawn(async move {
            let code = format!("def handler(event, context):\n    return {number}\n");
            (number, client.try_deploy("wanted", &code, json!({})).await)
        });
    }
    let mut winner = None;
    while let Some(create) = creates.join_next().await {
        let (number, answer) = create.unwrap();
        if answer.status == 201 {
            assert_eq!(winner.replace(number), None, "two won");
        } else {
            answer.problem(409, "already_exists");
        }
    }
    let served = client.invoke("wanted", &json!(0)).await.expect(200).json();
    assert_eq!(served, winner.expect("one won"));
    eventually(
        "the losers' code is gone",
        Duration::from_secs(5),
        || async { (server.packages() == 1).then_some(()) },
    )
    .await;
}

#[tokio::test]
async fn a_running_request_finishes_although_its_function_is_deleted() {
    let server = Server::start();
    let client = server.client();
    let code =
        "import time\ndef handler(event, context):\n    time.sleep(1)\n    return 'finished'\n";
    client.deploy("leaving", code, json!({})).await;
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.invoke("leaving", &json!(0)).await }
    });
    eventually("the call runs", Duration::from_secs(5), || async {
        let function = client.get("/api/v1/functions/leaving").await.json();
        (function["instances"]["busy"] == 1).then_some(())
    })
    .await;
    let deleted = client.delete("/api/v1/functions/leaving").await.expect(204);
    assert!(deleted.bytes.is_empty());
    client
        .invoke("leaving", &json!(0))
        .await
        .problem(404, "not_found");
    assert_eq!(running.await.unwrap().expect(200).json(), "finished");
}

#[tokio::test]
async fn code_that_no_longer_imports_is_unavailable_until_it_does_again() {
    let mut server = Server::start();
    let client = server.client();
    client.deploy("brittle", ONE, json!({})).await;
    client.deploy("sound", ONE, json!({})).await;
    let versions = client
        .get("/api/v1/functions/brittle/versions")
        .await
        .json();
    let hash = versions["items"][0]["code_sha256"].as_str().unwrap();
    // Both functions have the same code, hence one directory: give one of them code of its own.
    client
        .put(
            "/api/v1/functions/sound/code",
            &json!({"code": {"inline": "def handler(event, context):\n    return 'sound'\n"}}),
        )
        .await
        .expect(200);
    let file = server.data_dir().join("code").join(hash).join("main.py");
    server.kill_9();
    // A disk that lost a block, an administrator's mistake.
    std::fs::write(&file, "raise RuntimeError('rotten')\n").unwrap();

    let server = server.restart();
    let client = server.client();
    let problem = client
        .invoke("brittle", &json!(0))
        .await
        .problem(503, "function_unavailable");
    assert!(
        problem["detail"].as_str().unwrap().contains("rotten"),
        "{problem}"
    );
    let function = client.get("/api/v1/functions/brittle").await.json();
    assert_eq!(function["state"], "failed", "{function}");
    assert!(
        function["state_reason"]
            .as_str()
            .unwrap()
            .contains("rotten"),
        "{function}"
    );
    let failed = client
        .get("/api/v1/functions/brittle/invocations?status=failed")
        .await
        .json();
    assert_eq!(
        failed["items"].as_array().unwrap().len(),
        1,
        "it is part of the history"
    );
    assert_eq!(
        client.invoke("sound", &json!(0)).await.expect(200).json(),
        "sound"
    );
    std::fs::write(&file, ONE).unwrap();
    eventually("it answers again", Duration::from_secs(10), || async {
        (client.invoke("brittle", &json!(0)).await.status == 200).then_some(())
    })
    .await;
    let function = client.get("/api/v1/functions/brittle").await.json();
    assert_eq!(function["state"], "ready");
    assert_eq!(function["state_reason"], Value::Null);
}

#[tokio::test]
async fn changes_of_one_function_at_the_same_time_happen_one_after_the_other() {
    let server = Server::start();
    let client = server.client();
    client.deploy("contested", ONE, json!({})).await;
    let mut changes = tokio::task::JoinSet::new();
    for number in 1..=4_u32 {
        let client = client.clone();
        changes.spawn(async move {
            let path = "/api/v1/functions/contested";
            let change = json!({"timeout_ms": 1000 * number, "env": {format!("N{number}"): "x"}});
            client.patch(path, &change).await.expect(200).json()["active_version"].clone()
        });
    }
    let mut made: Vec<u64> = changes
        .join_all()
        .await
        .iter()
        .map(|version| version.as_u64().unwrap())
        .collect();
    made.sort_unstable();
    assert_eq!(made, [2, 3, 4, 5]);
    let function = client.get("/api/v1/functions/contested").await.json();
    assert_eq!(
        function["env"],
        json!({"N1": null, "N2": null, "N3": null, "N4": null}),
        "no change was lost"
    );
}

#[tokio::test]
async fn a_version_is_added_and_tried_while_another_is_active() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("tried", ONE, json!({"min_instances": 1}))
        .await;
    let add = |code: &str| {
        let body = json!({"code": {"inline": code}});
        let client = client.clone();
        async move { client.post("/api/v1/functions/tried/versions", &body).await }
    };
    let two = "def handler(event, context):\n    return [2, event, context.function_version]\n";
    let added = add(two).await.expect(201).json();
    assert_eq!(
        (&added["version"], &added["active"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(added["min_instances"], 1, "the settings of the active one");
    add("import nothing_of_that_name\n")
        .await
        .problem(422, "import_failed");
    let function = client.get("/api/v1/functions/tried").await.json();
    assert_eq!(function["active_version"], 1);

    let invoke = |version: &str| {
        let path = format!("/api/v1/functions/tried/versions/{version}/invoke");
        let client = client.clone();
        async move { client.post(&path, &json!({"a": 1})).await }
    };
    let answer = invoke("2").await.expect(200);
    assert_eq!(answer.header("x-hearth-version"), "2");
    assert_eq!(answer.json(), json!([2, {"a": 1}, "2"]));
    assert_eq!(invoke("1").await.expect(200).json(), 1);
    assert_eq!(
        client.invoke("tried", &json!(0)).await.expect(200).json(),
        1
    );
    for missing in ["0", "3", "x", "-1"] {
        invoke(missing).await.problem(404, "not_found");
    }
    client
        .post("/api/v1/functions/tried/versions/2/activate", &Value::Null)
        .await
        .expect(200);
    let served = client.invoke("tried", &json!(0)).await.expect(200).json();
    assert_eq!(served[0], 2);
    client.delete("/api/v1/functions/tried").await.expect(204);
    invoke("1").await.problem(404, "not_found");
}

#[tokio::test]
async fn a_version_has_as_many_templates_as_are_asked_for() {
    let server = Server::start();
    let client = server.client();
    let code = "import os\nBORN = os.urandom(8).hex()\ndef handler(event, context):\n    return [BORN, len(os.sched_getaffinity(0))]\n";
    client.deploy("born", code, json!({})).await;
    let invoke = |query: String| {
        let path = format!("/api/v1/functions/born/versions/1/invoke{query}");
        let client = client.clone();
        async move { client.post(&path, &Value::Null).await }
    };
    let of = async |template: u32| {
        let answer = invoke(format!("?template={template}&processor=0")).await;
        let answer = answer.expect(200).json();
        assert_eq!(answer[1], 1, "pinned: {answer}");
        answer[0].as_str().expect("text").to_owned()
    };
    let any = invoke(String::new()).await.expect(200).json();
    let allowed = rustix::thread::sched_getaffinity(None).expect("own affinity");
    assert_eq!(any[1], allowed.count());
    // Eleven beside it, which is the twelfth; each of its own.
    let mut born = vec![any[0].as_str().expect("text").to_owned()];
    for template in 1..=11 {
        born.push(of(template).await);
    }
    for (template, before) in (1..=11).zip(&born[1..]) {
        assert_eq!(of(template).await, *before, "template {template}");
    }
    assert_eq!(
        invoke(String::new()).await.expect(200).json()[0],
        born[0].as_str()
    );
    // One more takes the place of the one that was not called for longest.
    born.push(of(12).await);
    born.push(of(1).await);
    let of_all = born.len();
    born.sort();
    born.dedup();
    assert_eq!(born.len(), of_all, "{born:?}");

    for (query, field) in [
        ("?template=-1", "template"),
        ("?template=4294967296", "template"),
        ("?template=a", "template"),
        ("?processor=100000", "processor"),
        ("?processor=", "processor"),
        ("?fork=1", "fork"),
    ] {
        let refused = invoke(query.to_owned()).await.problem(422, "invalid_field");
        assert_eq!(refused["field"], field, "{query}: {refused}");
    }
}
