//! What is taken as the code and the settings of a function that brings its own runtime, and what is not.

use serde_json::json;

use super::{rust_lambda, try_deploy};
use crate::support::{Browser, Entry, Server, TOKEN, archive, handmade};

/// The shortest bootstrap that works: it has one answer.
const SCRIPT: &[u8] = br#"#!/usr/bin/python3 -IS
import http.client, os
while True:
    api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    api.request("GET", "/2018-06-01/runtime/invocation/next")
    response = api.getresponse()
    response.read()
    request = response.headers["Lambda-Runtime-Aws-Request-Id"]
    api.request("POST", f"/2018-06-01/runtime/invocation/{request}/response", '"by a script"')
    api.getresponse().read()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_bootstrap_is_refused_and_said() {
    let server = Server::start();
    let client = server.client();
    let mut foreign = std::fs::read("/bin/true").expect("a program");
    foreign[18..20].copy_from_slice(&[0xf3, 0]);
    for (code, reason, said) in [
        (
            archive(&[("main", SCRIPT), ("lib/bootstrap", SCRIPT)]),
            "missing_module",
            "the code has no bootstrap at its root, which the runtime provided requires; it has \"main\", \"lib/bootstrap\"",
        ),
        (
            archive(&[("bootstrap", &foreign)]),
            "not_executable",
            "bootstrap is built for RISC-V",
        ),
        (foreign, "not_executable", "bootstrap is built for RISC-V"),
        (
            archive(&[("bootstrap", b"echo hello\n")]),
            "not_executable",
            "and no script that begins with #!",
        ),
    ] {
        let refused = try_deploy(&client, "f", code, json!({})).await;
        let problem = refused.problem(422, "invalid_package");
        assert_eq!(problem["reason"], reason, "{problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(said), "{problem}");
    }
    let inline = json!({"name": "f", "runtime": "provided", "code": {"inline": "x"}});
    for (field, value) in [
        ("code", inline["code"].clone()),
        ("start", json!("fork")),
        ("start", json!("restore")),
        ("body", json!("bytes")),
        ("handler", json!("a b")),
    ] {
        let mut all = inline.clone();
        all[field] = value;
        let refused = client.post("/api/v1/functions", &all).await;
        assert_eq!(refused.problem(422, "invalid_field")["field"], field);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_is_taken_in_every_form() {
    let server = Server::start();
    let client = server.client();
    // Without the execute bit, which archives of some systems lack, and as the program itself.
    let plain = Entry {
        name: "bootstrap".to_owned(),
        data: SCRIPT.to_vec(),
        mode: 0o100_644,
        method: 0,
        flags: 0,
    };
    for (name, code) in [("plain", handmade(&[plain])), ("bare", SCRIPT.to_vec())] {
        try_deploy(&client, name, code, json!({})).await.expect(201);
        let answer = client.invoke(name, &json!({})).await.expect(200);
        assert_eq!(answer.json(), "by a script", "{name}");
    }
    let node = client.get("/api/v1/node").await.expect(200).json();
    let provided = &node["capabilities"]["runtimes"]["provided"];
    assert_eq!(provided["available"], true, "{provided}");
    assert_eq!(provided["fork"]["available"], false, "{provided}");

    // New code is another version, and settings are kept with it.
    let path = "/api/v1/functions/plain";
    let patched = client
        .patch(path, &json!({"handler": "what.ever", "timeout_ms": 1000}))
        .await;
    assert_eq!(patched.expect(200).json()["handler"], "what.ever");
    let zip = json!({"code": {"zip_base64": base64(&rust_lambda())}});
    client.put(&format!("{path}/code"), &zip).await.expect(200);
    let event = json!({"echoed": true});
    let answer = client.invoke("plain", &event).await.expect(200);
    assert_eq!(answer.json(), event);

    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get("/new").await.expect(200).text();
    assert!(page.contains("value=\"provided\""), "{page}");
    let page = browser
        .get("/functions/plain/code")
        .await
        .expect(200)
        .text();
    assert!(
        page.contains("bootstrap") && page.contains("Provided"),
        "{page}"
    );
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}
