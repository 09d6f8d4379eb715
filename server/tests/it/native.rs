//! Functions that are programs: deployed, called, failing, members of chains.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::restore;
use crate::support::{Answer, Client, Server, eventually};

/// An example of the crate `hearth-native`.
fn program(name: &str) -> Vec<u8> {
    let server = PathBuf::from(env!("CARGO_BIN_EXE_hearth"));
    let path = server.with_file_name("examples").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn try_deploy(client: &Client, name: &str, code: Vec<u8>, settings: Value) -> Answer {
    let mut form = Form::new()
        .text("name", name.to_owned())
        .text("runtime", "native")
        .part("code", Part::bytes(code).file_name("program"));
    for (field, value) in settings.as_object().expect("settings") {
        let text = value.as_str().map_or(value.to_string(), str::to_owned);
        form = form.text(field.clone(), text);
    }
    let request = client.request(Method::POST, "/api/v1/functions");
    client.send(request.multipart(form)).await
}

pub(crate) async fn deploy(client: &Client, name: &str, example: &str, settings: Value) {
    let deployed = try_deploy(client, name, program(example), settings).await;
    deployed.expect(201);
}

#[tokio::test]
async fn a_program_is_a_function() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"memory_mb": 64, "timeout_ms": 1000, "public": true});
    deploy(&client, "probe", "native_probe", settings).await;
    let invoke = async |what: &str| client.invoke("probe", &json!({"do": what})).await;

    // Forked, then warm, each instance with its own start.
    for (calls, start) in [(1, "fork"), (2, "warm")] {
        let answer = invoke("state").await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), start);
        assert_eq!(
            answer.json(),
            json!({"calls": calls, "hooks": 1, "is_template": false})
        );
        let id = answer.header("x-hearth-invocation-id");
        let record = client.invocation(id).await.to_string();
        assert!(record.contains(&format!("call {calls}")), "{record}");
    }
    let answer = invoke("context").await.expect(200);
    let id = answer.header("x-hearth-invocation-id");
    assert_eq!(answer.json(), json!([id, "probe", 1, 64, true, null]));

    // What fails, fails its invocation, and the instance goes on.
    let failed = invoke("fail").await.problem(502, "function_error");
    assert_eq!(failed["errorType"], "ParseIntError");
    let panicked = invoke("panic").await.problem(502, "function_error");
    assert_eq!(panicked["errorType"], "Panic");
    assert_eq!(panicked["errorMessage"], "as probe asked");
    let place = panicked["stackTrace"][0].as_str().unwrap_or_default();
    assert!(place.contains("native_probe.rs"), "{panicked}");
    assert_eq!(invoke("state").await.expect(200).json()["calls"], 6);

    // What ends it, or hangs, ends the instance; the template goes on.
    invoke("sleep").await.problem(504, "function_timeout");
    invoke("exit").await.problem(502, "function_crashed");
    assert_eq!(invoke("state").await.expect(200).json()["calls"], 1);

    // By its URL.
    let request = client.request(Method::POST, "/fn/probe/a/b");
    let request = request.header("content-type", "image/png").body("\u{ff}");
    let answer = client.send(request).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.header("x-path"), "/a/b");
    assert_eq!(answer.bytes, "\u{ff}".as_bytes());
    let browser = crate::support::Browser::logged_in(&server, crate::support::TOKEN).await;
    let page = browser
        .get("/functions/probe/code")
        .await
        .expect(200)
        .text();
    assert!(page.contains("bootstrap"), "{page}");
}

#[tokio::test]
async fn a_program_comes_out_of_an_image() {
    let server = Server::start();
    let client = server.client();
    if !restore::available(&client).await {
        return;
    }
    let settings = json!({"start": "restore", "timeout_ms": 2000});
    deploy(&client, "probe", "native_probe", settings).await;
    restore::image_of(&client, "probe").await;
    // The one that was booted is busy.
    let slow = client.clone();
    let slow = tokio::spawn(async move { slow.invoke("probe", &json!({"do": "sleep"})).await });
    eventually("a busy instance", Duration::from_secs(30), || async {
        let function = client.get("/api/v1/functions/probe").await.expect(200);
        (function.json()["instances"]["busy"] == 1).then_some(())
    })
    .await;
    let answer = client.invoke("probe", &json!({"do": "state"})).await;
    let answer = answer.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "restore");
    assert_eq!(answer.json()["calls"], 1);
    assert_eq!(answer.json()["hooks"], 1);
    let slow = slow.await.expect("an answer");
    slow.problem(504, "function_timeout");
}

#[tokio::test]
async fn what_is_no_program_of_this_host_is_refused() {
    let server = Server::start();
    let client = server.client();
    let mut foreign = program("native_hello");
    foreign[18..20].copy_from_slice(&[0xf3, 0]);
    let zip = crate::support::archive(&[("other", &foreign)]);
    for (code, reason, said) in [
        (foreign, "not_executable", "built for RISC-V"),
        (
            b"#!/bin/sh\n".to_vec(),
            "not_executable",
            "is not an executable",
        ),
        (zip, "missing_module", "has no bootstrap"),
    ] {
        let refused = try_deploy(&client, "f", code, json!({})).await;
        let problem = refused.problem(422, "invalid_package");
        assert_eq!(problem["reason"], reason);
        assert!(problem["detail"].to_string().contains(said), "{problem}");
    }
    let inline = json!({"name": "f", "runtime": "native", "code": {"inline": "x"}});
    for (body, field) in [
        (inline.clone(), "code"),
        (json!({"handler": "../x"}), "handler"),
        (json!({"body": "bytes"}), "body"),
    ] {
        let mut all = inline.clone();
        for (name, value) in body.as_object().expect("fields") {
            all[name] = value.clone();
        }
        let refused = client.post("/api/v1/functions", &all).await;
        assert_eq!(refused.problem(422, "invalid_field")["field"], field);
    }
    // A program that is none of Hearth's ends before it has said anything.
    let other = std::fs::read("/bin/true").expect("a program");
    let refused = try_deploy(&client, "f", other, json!({})).await;
    let problem = refused.problem(422, "import_failed");
    assert_eq!(problem["errorType"], "Runtime.ExitError");

    // A handler that the code does not have.
    let zip = crate::support::archive(&[("bin/hello", &program("native_hello"))]);
    let handler = json!({"handler": "bin/hello"});
    try_deploy(&client, "f", zip, handler).await.expect(201);
    let said = client
        .invoke("f", &json!({"name": "Ada"}))
        .await
        .expect(200);
    assert_eq!(said.json(), json!({"hello": "Ada"}));
    let path = "/api/v1/functions/f";
    let refused = client.patch(path, &json!({"handler": "bin/other"})).await;
    assert_eq!(
        refused.problem(422, "invalid_package")["reason"],
        "not_executable"
    );
}

#[tokio::test]
async fn a_program_is_a_member_of_a_chain_with_its_payload_in_place() {
    let server = Server::start();
    let client = server.client();
    deploy(&client, "relay", "native_relay", json!({})).await;
    deploy(&client, "probe", "native_probe", json!({})).await;
    let double = "def handler(event, context):\n    return event + event\n";
    client.deploy("double", double, json!({})).await;
    let chain = json!({
        "name": "c",
        "members": {
            "first": {"function": "relay"}, "double": {"function": "double"},
            "last": {"function": "relay"}, "probe": {"function": "probe"},
        },
        "routes": {"r": ["first", "double", "last"], "only": ["first"], "probe": ["probe"]},
        "edges": [["first", "double"], ["first", "last"], ["probe", "double"]],
        "pool": {"block_kb": 4},
    });
    client.post("/api/v1/chains", &chain).await.expect(201);
    let invoke = async |route: &str, event: Value| {
        let path = format!("/api/v1/chains/c/routes/{route}/invoke");
        client.post(&path, &event).await
    };
    for (route, event, result) in [
        ("r", "abc", "ABCABC"),
        ("only", "call abc", "abcabc"),
        ("r", "respond early", "early"),
        ("r", "send ahead", "AHEAD"),
    ] {
        let answer = invoke(route, json!(event)).await.expect(200);
        assert_eq!(answer.json(), result, "{event}");
    }
    // The block of that call has nothing of it for another request.
    let left = invoke("only", json!("left")).await.expect(200);
    assert_eq!(left.json(), json!(0));
    // The payload lies in the pool, and may take all of its block.
    let place = invoke("only", json!("where")).await.expect(200).json();
    assert!(place.to_string().contains("memfd"), "{place}");
    let full = invoke("only", json!("fill")).await.expect(200);
    assert_eq!(full.bytes.len(), 4096);
    for (event, error) in [
        ("fail", "Asked"),
        ("panic", "Panic"),
        ("overflow", "Runtime.ResultTooLarge"),
    ] {
        let answer = invoke("only", json!(event)).await;
        let code = match event {
            "overflow" => "result_too_large",
            _ => "function_error",
        };
        let problem = answer.problem(502, code);
        if code == "function_error" {
            assert_eq!(problem["errorType"], error);
        }
    }
    // With its payload as a value.
    let called = json!({"do": "call", "value": [1]});
    assert_eq!(
        invoke("probe", called).await.expect(200).json(),
        json!([1, 1])
    );
    // Outside of a chain, the same handler has its event in memory of its own.
    let alone = client.invoke("relay", &json!("abc")).await.expect(200);
    assert_eq!(alone.json(), json!("ABC"));
    let alone = client.invoke("relay", &json!("where")).await.expect(200);
    assert!(!alone.text().contains("memfd"), "{}", alone.text());
    let refused = client.invoke("relay", &json!("call x")).await;
    let problem = refused.problem(502, "function_error");
    assert_eq!(problem["errorType"], "ChainError");
}
