//! What is kept, and how long.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, eventually};

const CODE: &str = "def handler(event, context):\n    print('a line')\n    return event\n";

#[tokio::test]
async fn retention_is_shown_changed_and_applied() {
    let server = Server::start();
    let client = server.client();
    client.deploy("kept", CODE, json!({})).await;
    for number in 0..3 {
        client.invoke("kept", &json!(number)).await.expect(200);
    }
    let whole = client
        .get("/api/v1/functions/kept/invocations")
        .await
        .expect(200)
        .json();
    assert_eq!(whole["items"].as_array().unwrap().len(), 3);
    let status = client.get("/api/v1/retention").await.expect(200).json();
    assert_eq!(
        status["settings"],
        json!({
            "invocations_days": 30, "invocations_mib": 2048, "logs_days": 14, "logs_mib": 1024,
            "statistics_days": 90, "audit_days": 400, "event_bytes": 4096, "result_bytes": 4096,
        })
    );
    assert_eq!(status["invocations"]["count"], 3);
    assert_eq!(status["logs"]["count"], 3);
    assert!(status["invocations"]["bytes"].as_u64().unwrap() > 300);
    assert!(status["logs"]["oldest"].is_string());
    assert!(status["database"]["bytes"].as_u64().unwrap() > 4096);
    assert_eq!(status["database"]["shrinks"], true);

    let sent = json!({"logs_days": 2, "event_bytes": 0, "result_bytes": 3});
    let changed = client
        .patch("/api/v1/retention", &sent)
        .await
        .expect(200)
        .json();
    assert_eq!(changed["settings"]["logs_days"], 2);
    assert_eq!(changed["settings"]["invocations_days"], 30);
    let audit = client
        .get("/api/v1/audit?action=retention.change")
        .await
        .expect(200)
        .json();
    assert_eq!(
        audit["items"][0]["detail"],
        "logs_days, event_bytes, result_bytes"
    );
    let pass = eventually("a pass", Duration::from_secs(60), || async {
        let status = client.get("/api/v1/retention").await.json();
        let pass = status["pass"].clone();
        (pass["finished_at"].is_string() && pass["running"] == false).then_some(pass)
    })
    .await;
    assert_eq!(pass["error"], Value::Null);
    assert_eq!(pass["removed"], 0, "nothing is that old");

    let answer = client.invoke("kept", &json!("abcdef")).await.expect(200);
    let record = client
        .invocation(answer.header("x-hearth-invocation-id"))
        .await;
    assert_eq!(record["event"], Value::Null);
    assert_eq!(
        record["result"],
        json!({"text": "\"ab", "truncated": true, "binary": false})
    );

    // Settings outlive the server.
    let server = server.restart();
    let client = server.client();
    let status = client.get("/api/v1/retention").await.expect(200).json();
    assert_eq!(status["settings"]["logs_days"], 2);
    assert_eq!(status["invocations"]["count"], 4);
}

#[tokio::test]
async fn retention_refuses_what_breaks_its_rules_and_who_may_not_change_it() {
    let server = Server::start();
    let client = server.client();
    for (body, field) in [
        (json!({"logs_days": 0}), "logs_days"),
        (json!({"invocations_mib": 15}), "invocations_mib"),
        (json!({"audit_days": 29}), "audit_days"),
        (json!({"event_bytes": 65537}), "event_bytes"),
        (json!({"logs_day": 3}), "logs_day"),
    ] {
        let answer = client.patch("/api/v1/retention", &body).await;
        let problem = answer.problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let body = json!({"name": "reader", "rights": ["read"]});
    let token = client
        .post("/api/v1/tokens", &body)
        .await
        .expect(201)
        .json();
    let reader = server.client_with(token["token"].as_str());
    reader
        .get("/api/v1/retention")
        .await
        .problem(403, "forbidden");
    reader
        .patch("/api/v1/retention", &json!({"logs_days": 1}))
        .await
        .problem(403, "forbidden");
}

#[tokio::test]
async fn lines_are_searched_by_word_invocation_and_page() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    \
        for n in range(event['lines']): print('order', n, 'was <b>lost</b>')\n    \
        print('done:', event['lines'])\n";
    client.deploy("search", code, json!({})).await;
    let first = client
        .invoke("search", &json!({"lines": 5}))
        .await
        .expect(200);
    let id = first.header("x-hearth-invocation-id").to_owned();
    client
        .invoke("search", &json!({"lines": 3}))
        .await
        .expect(200);
    let search = async |query: &str| {
        let path = format!("/api/v1/functions/search/logs?{query}");
        let answer = client.get(&path).await.expect(200);
        let lines: Vec<Value> = answer
            .text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        (lines, answer.header("x-hearth-next").to_owned())
    };
    let (lines, next) = search("q=lost").await;
    assert_eq!((lines.len(), next.as_str()), (8, ""));
    assert_eq!(lines[0]["text"], "order 0 was <b>lost</b>");
    assert_eq!(lines[0]["invocation"], id.as_str());
    assert_eq!(search("q=%22was+b%22").await.0.len(), 8);
    assert_eq!(search("q=ord*+4").await.0.len(), 1);
    assert_eq!(search("q=order+OR+done").await.0.len(), 0);
    assert_eq!(search(&format!("q=lost&invocation={id}")).await.0.len(), 5);
    assert_eq!(search(&format!("invocation={id}")).await.0.len(), 6);
    let mut paged = Vec::new();
    let mut query = "q=lost&limit=3".to_owned();
    loop {
        let (lines, next) = search(&query).await;
        paged.splice(0..0, lines);
        if next.is_empty() {
            break;
        }
        query = format!("q=lost&limit=3&before={next}");
    }
    assert_eq!(paged, search("q=lost").await.0);
    for (query, field) in [
        ("q=", "q"),
        ("q=%22open", "q"),
        ("q=ab*", "q"),
        ("q=a&before=x", "before"),
        ("before=1", "before"),
        ("invocation=x", "invocation"),
        ("q=a&follow=true", "follow"),
    ] {
        let path = format!("/api/v1/functions/search/logs?{query}");
        let problem = client.get(&path).await.problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let other = client.request(Method::GET, "/api/v1/functions/nope/logs?q=a");
    client.send(other).await.problem(404, "not_found");
}
