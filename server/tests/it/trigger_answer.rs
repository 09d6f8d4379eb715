//! `/fn/{name}`: from what a handler returns to an HTTP response.

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Client, Server};

/// Evaluates its request body as the response.
const EVALUATE: &str = "def handler(event, context):\n    return eval(event['body'])\n";

async fn evaluator() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("eval", EVALUATE, json!({})).await;
    (server, client)
}

async fn evaluate(client: &Client, expression: &str) -> Answer {
    let request = client
        .request(Method::POST, "/fn/eval")
        .header("content-type", "text/plain")
        .body(expression.to_owned());
    client.send(request).await
}

#[tokio::test]
async fn a_response_has_the_handlers_status_headers_cookies_and_body() {
    let (_server, client) = evaluator().await;
    let answer = evaluate(
        &client,
        "{'statusCode': 201, 'headers': {'Content-Type': 'text/html; charset=utf-8', 'X-Number': 7, 'X-List': ['a', 'b']}, \
         'cookies': ['a=1; Path=/', 'b=2'], 'body': '<p>grün</p>'}",
    )
    .await
    .expect(201);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("x-number"), "7");
    assert_eq!(answer.header("x-list"), "a,b");
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1; Path=/fn/eval", "b=2; Path=/fn/eval"]);
    assert_eq!(answer.text(), "<p>grün</p>");
    assert!(
        !answer.headers.contains_key("cache-control"),
        "a function's headers are its own"
    );

    for (expression, status, kind, body) in [
        (
            "{'message': 'hi'}",
            200,
            "application/json",
            &b"{\"message\":\"hi\"}"[..],
        ),
        ("'text'", 200, "application/json", b"\"text\""),
        ("None", 200, "application/json", b"null"),
        ("[1, 2]", 200, "application/json", b"[1,2]"),
        ("{'statusCode': '404'}", 404, "application/json", b""),
        (
            "{'statusCode': 200, 'body': {'a': 1}}",
            200,
            "application/json",
            b"{\"a\":1}",
        ),
        (
            "{'statusCode': 200, 'body': 'AAH/', 'isBase64Encoded': True}",
            200,
            "application/octet-stream",
            b"\x00\x01\xff",
        ),
        (
            "{'statusCode': 200, 'body': bytes([0, 255])}",
            200,
            "application/octet-stream",
            b"\x00\xff",
        ),
        (
            "{'statusCode': 599, 'body': 'odd'}",
            599,
            "application/json",
            b"odd",
        ),
    ] {
        let answer = evaluate(&client, expression).await.expect(status);
        assert_eq!(answer.bytes, body, "{expression}");
        assert_eq!(answer.header("content-type"), kind, "{expression}");
    }
    for status in [204, 304] {
        let answer = evaluate(
            &client,
            &format!("{{'statusCode': {status}, 'body': 'ignored'}}"),
        )
        .await;
        assert!(answer.expect(status).bytes.is_empty());
    }
}

#[tokio::test]
async fn headers_that_are_not_the_functions_to_set_are_dropped() {
    let (_server, client) = evaluator().await;
    let answer = evaluate(
        &client,
        "{'statusCode': 200, 'body': 'whole', 'headers': {'Content-Length': '2', 'Transfer-Encoding': 'gzip', \
         'Connection': 'upgrade', 'X-Hearth-Start': 'forged', 'X-Hearth-Role': 'admin', 'X-Request-Id': 'forged', \
         'Set-Cookie': 'hearth_session=stolen', 'Date': 'never'}, 'cookies': ['hearth_csrf=x', 'mine=1']}",
    )
    .await
    .expect(200);
    assert_eq!(answer.text(), "whole");
    assert_eq!(answer.header("x-hearth-start"), "fork");
    assert_ne!(answer.header("x-request-id"), "forged");
    assert!(!answer.headers.contains_key("x-hearth-role"));
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["mine=1; Path=/fn/eval"]);
}

#[tokio::test]
async fn a_response_that_http_cannot_carry_is_the_functions_error() {
    let (_server, client) = evaluator().await;
    for (expression, error_type) in [
        ("{'statusCode': 99}", "Runtime.InvalidResponse"),
        ("{'statusCode': 101}", "Runtime.InvalidResponse"),
        ("{'statusCode': 1000}", "Runtime.InvalidResponse"),
        ("{'statusCode': 'ok'}", "Runtime.InvalidResponse"),
        ("{'statusCode': True}", "Runtime.InvalidResponse"),
        (
            "{'statusCode': 200, 'headers': []}",
            "Runtime.InvalidResponse",
        ),
        (
            "{'statusCode': 200, 'headers': {'a b': 'x'}}",
            "Runtime.InvalidResponse",
        ),
        (
            "{'statusCode': 200, 'headers': {'a': 'x\\r\\nb: y'}}",
            "Runtime.InvalidResponse",
        ),
        (
            "{'statusCode': 200, 'headers': {'a': {}}}",
            "Runtime.InvalidResponse",
        ),
        (
            "{'statusCode': 200, 'headers': {'a': 'x' * 70000}}",
            "Runtime.InvalidResponse",
        ),
        (
            "{'statusCode': 200, 'cookies': 'a=1'}",
            "Runtime.InvalidResponse",
        ),
        (
            "{'statusCode': 200, 'body': '%%%', 'isBase64Encoded': True}",
            "Runtime.InvalidResponse",
        ),
        ("{'statusCode': 200, 'body': {1}}", "Runtime.MarshalError"),
        ("{1, 2}", "Runtime.MarshalError"),
        ("float('nan')", "Runtime.MarshalError"),
        ("1 / 0", "ZeroDivisionError"),
        ("exit(3)", "SystemExit"),
    ] {
        let answer = evaluate(&client, expression).await;
        let id = answer.header("x-hearth-invocation-id").to_owned();
        let problem = answer.problem(502, "function_error");
        assert_eq!(problem["errorType"], error_type, "{expression}: {problem}");
        assert_eq!(
            client.invocation(&id).await["status"],
            "failed",
            "{expression}"
        );
    }
    let fine = evaluate(&client, "'fine'").await.expect(200);
    assert_eq!(
        fine.header("x-hearth-start"),
        "warm",
        "no instance was lost"
    );
}

#[tokio::test]
async fn every_way_to_fail_has_its_own_answer_and_status() {
    let server = Server::start();
    let client = server.client();
    let code = "import os, time\n\
        def late():\n    \
            yield 'first'\n    \
            time.sleep(30)\n    \
            yield 'last'\n\
        def handler(event, context):\n    \
            return eval(event['body'])\n";
    let settings = json!({"timeout_ms": 1000, "memory_mb": 64});
    client.deploy("eval", code, settings).await;
    for (expression, status, code, recorded) in [
        ("time.sleep(30)", 504, "function_timeout", "timed_out"),
        ("os._exit(7)", 502, "function_crashed", "crashed"),
        (
            "os.kill(os.getpid(), 9)",
            502,
            "function_crashed",
            "crashed",
        ),
        (
            "len(bytearray(300 << 20))",
            502,
            "function_out_of_memory",
            "out_of_memory",
        ),
        ("nowhere", 502, "function_error", "failed"),
    ] {
        let answer = evaluate(&client, expression).await;
        let id = answer.header("x-hearth-invocation-id").to_owned();
        assert_eq!(answer.header("x-hearth-version"), "1", "{expression}");
        answer.problem(status, code);
        assert_eq!(
            client.invocation(&id).await["status"],
            recorded,
            "{expression}"
        );
    }
    let late = client
        .request(Method::POST, "/fn/eval")
        .header("content-type", "text/plain")
        .body("late()");
    let mut late = late.send().await.expect("a head");
    assert_eq!(late.status(), 200);
    let id = late.headers()["x-hearth-invocation-id"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(late.chunk().await.unwrap().as_deref(), Some(&b"first"[..]));
    assert!(late.chunk().await.is_err(), "cut at the deadline");
    assert_eq!(client.invocation(&id).await["status"], "timed_out");
    evaluate(&client, "'well'").await.expect(200);
}
