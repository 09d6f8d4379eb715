//! A function's gate and saved events, what other settings would have made of its calls, and how fast its versions run.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::document::Contract;
use crate::support::{Client, eventually};

const GATE: &str = "/api/v1/functions/{name}/gate";
const SAVED: &str = "/api/v1/functions/{name}/saved-events";
const SAVED_ONE: &str = "/api/v1/functions/{name}/saved-events/{event}";
const PERFORMANCE: &str = "/api/v1/functions/{name}/performance";
const WHAT_IF: &str = "/api/v1/functions/{name}/what-if";

/// There is a function `f`, which was called.
pub async fn ask(contract: &Contract, client: &Client) {
    let (path, nobody) = ("/api/v1/functions/f/gate", "/api/v1/functions/nobody/gate");
    let none = contract.ask(client, Method::GET, GATE, path).await;
    none.expect(404);
    for (path, body, status) in [
        (path, json!({"threshold_percent": 5}), 200),
        (path, json!({"threshold_percent": -1}), 422),
        (path, json!({"threshold": 5}), 422),
        (nobody, json!({}), 404),
    ] {
        let set = contract.tell(client, Method::PUT, GATE, path, body).await;
        set.expect(status);
    }
    let there = contract.ask(client, Method::GET, GATE, path).await;
    there.expect(200);
    let taken = contract.ask(client, Method::DELETE, GATE, path).await;
    taken.expect(204);
    let missing = contract.ask(client, Method::DELETE, GATE, nobody).await;
    missing.expect(404);

    saved_events(contract, client).await;

    let path = "/api/v1/functions/f/what-if?window=1h";
    // What is recorded is written a moment later.
    eventually("it is recorded", Duration::from_secs(30), || async {
        let found = contract.ask(client, Method::GET, WHAT_IF, path).await;
        (found.status == StatusCode::OK).then_some(())
    })
    .await;
    let refused = format!("{path}&idle_timeout_s=x");
    let refused = contract.ask(client, Method::GET, WHAT_IF, &refused).await;
    refused.expect(422);

    let path = "/api/v1/functions/f/performance?days=1";
    let found = contract.ask(client, Method::GET, PERFORMANCE, path).await;
    let versions = &found.expect(200).json()["versions"];
    assert_eq!(versions[0]["version"], 1, "{versions}");
    for (query, status) in [("f/performance?days=0", 422), ("nobody/performance", 404)] {
        let path = format!("/api/v1/functions/{query}");
        let found = contract.ask(client, Method::GET, PERFORMANCE, &path).await;
        found.expect(status);
    }
}

async fn saved_events(contract: &Contract, client: &Client) {
    let all = "/api/v1/functions/f/saved-events";
    let (one, nobodys) = (
        format!("{all}/a%20b%2Fc"),
        "/api/v1/functions/nobody/saved-events/a",
    );
    for (path, body, status) in [
        (one.as_str(), json!({"a": 1}), 201),
        (&one, json!([2]), 200),
        (&format!("{all}/{}", "x".repeat(65)), json!({}), 422),
        (nobodys, json!({}), 404),
    ] {
        let put = contract
            .tell(client, Method::PUT, SAVED_ONE, path, body)
            .await;
        put.expect(status);
    }
    let json_of = |text: String| {
        let request = client.request(Method::PUT, &one);
        request
            .header("content-type", "application/json")
            .body(text)
    };
    for (request, status) in [
        (json_of("{".to_owned()), 400),
        (json_of(format!("\"{}\"", "x".repeat(300 << 10))), 413),
        (client.request(Method::PUT, &one).body("{}"), 415),
    ] {
        let answer = contract.send(client, Method::PUT, SAVED_ONE, request).await;
        answer.expect(status);
    }
    let listed = contract.ask(client, Method::GET, SAVED, all).await;
    let listed = listed.expect(200).json();
    assert_eq!(listed, json!({"items": [{"name": "a b/c"}], "next": null}));
    let found = contract.ask(client, Method::GET, SAVED_ONE, &one).await;
    assert_eq!(found.expect(200).json(), json!([2]));
    let deleted = contract.ask(client, Method::DELETE, SAVED_ONE, &one).await;
    deleted.expect(204);
    for (method, route, path) in [
        (Method::GET, SAVED_ONE, one.as_str()),
        (Method::DELETE, SAVED_ONE, &one),
        (Method::GET, SAVED, "/api/v1/functions/nobody/saved-events"),
    ] {
        contract.ask(client, method, route, path).await.expect(404);
    }
}
