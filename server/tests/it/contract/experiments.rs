//! Experiments, as who creates them and as the agent that runs them.

use reqwest::Method;
use serde_json::json;

use super::document::Contract;
use crate::support::Client;

const ALL: &str = "/api/v1/experiments";
const ONE: &str = "/api/v1/experiments/{id}";
const CANCEL: &str = "/api/v1/experiments/{id}/cancel";
const TAKEN: &str = "/api/v1/experiments/taken";
const NEXT: &str = "/api/v1/experiments/next";
const PROGRESS: &str = "/api/v1/experiments/{id}/progress";
const FILE: &str = "/api/v1/experiments/{id}/files/{path}";
const END: &str = "/api/v1/experiments/{id}/end";

/// There is a function `f`.
pub async fn ask(contract: &Contract, client: &Client) {
    let stellar = json!({"SubExperiments": [{"Title": "t", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 0}]});
    for (body, status) in [
        (stellar, 201),
        (json!({"kind": "duet", "first": "f"}), 201),
        (json!({"kind": "duet", "first": "nobody"}), 422),
        (json!({"kind": "x"}), 422),
    ] {
        let made = contract.tell(client, Method::POST, ALL, ALL, body).await;
        made.expect(status);
    }
    for (request, status) in [
        (client.request(Method::POST, ALL).body("{"), 400),
        (
            client
                .request(Method::POST, ALL)
                .header("content-encoding", "gzip")
                .body("x"),
            415,
        ),
        (
            client.request(Method::POST, ALL).body(vec![b' '; 2 << 20]),
            413,
        ),
    ] {
        let answer = contract.send(client, Method::POST, ALL, request).await;
        answer.expect(status);
    }
    for (query, status) in [
        ("", 200),
        ("?limit=1", 200),
        ("?limit=0", 422),
        ("?x=1", 422),
    ] {
        let path = format!("{ALL}{query}");
        let list = contract.ask(client, Method::GET, ALL, &path).await;
        list.expect(status);
    }
    let report = json!({"what": "requests", "done": 1, "total": 2});
    // The first is given to an agent, which is told of a cancel.
    let taken = contract.ask(client, Method::POST, NEXT, NEXT).await;
    let one = format!("{ALL}/{}", taken.expect(200).json()["id"]);
    for (path, status) in [(format!("{ALL}/999"), 404), (one.clone(), 200)] {
        let answer = contract.ask(client, Method::GET, ONE, &path).await;
        answer.expect(status);
        let progress = format!("{path}/progress");
        let answer = contract.tell(client, Method::PUT, PROGRESS, &progress, report.clone());
        answer.await.expect(status);
        let cancel = format!("{path}/cancel");
        let answer = contract.ask(client, Method::POST, CANCEL, &cancel).await;
        answer.expect(status);
        let answer = contract.ask(client, Method::DELETE, ONE, &path).await;
        answer.expect(if status == 200 { 409 } else { status });
    }
    let file = format!("{one}/files/a%2Fb.csv");
    for (path, status) in [
        (file.clone(), 204),
        (format!("{one}/files/..%2Fb"), 422),
        (format!("{ALL}/999/files/b"), 404),
    ] {
        let request = client.request(Method::PUT, &path).body("a,b\n");
        let answer = contract.send(client, Method::PUT, FILE, request).await;
        answer.expect(status);
    }
    for (path, status) in [(file, 200), (format!("{one}/files/c"), 404)] {
        let answer = contract.ask(client, Method::GET, FILE, &path).await;
        answer.expect(status);
    }
    let end = format!("{one}/end");
    for (body, status) in [
        (json!({"state": "nowhere"}), 422),
        (
            json!({"state": "cancelled", "error": "cancelled", "result": {"rows": []}}),
            204,
        ),
        (
            json!({"state": "failed", "error": null, "result": null}),
            409,
        ),
    ] {
        let answer = contract.tell(client, Method::PUT, END, &end, body).await;
        answer.expect(status);
    }
    let whole = contract.ask(client, Method::GET, ONE, &one).await;
    assert_eq!(whole.expect(200).json()["files"][0]["bytes"], 4);
    let list = contract.ask(client, Method::GET, ALL, ALL).await;
    list.expect(200);
    // Who creates one may run it, unless another one runs.
    let duet = json!({"kind": "duet", "first": "f"});
    for status in [201, 409] {
        let taken = contract
            .tell(client, Method::POST, TAKEN, TAKEN, duet.clone())
            .await;
        taken.expect(status);
    }
    let bad = json!({"kind": "x"});
    let bad = contract.tell(client, Method::POST, TAKEN, TAKEN, bad).await;
    bad.expect(422);
    let cancel = format!("{one}/cancel");
    let again = contract.ask(client, Method::POST, CANCEL, &cancel);
    again.await.expect(409);
    let gone = contract.ask(client, Method::DELETE, ONE, &one).await;
    gone.expect(204);
}
