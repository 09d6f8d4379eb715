//! `/fn/{name}`: from a request to the payload-2.0 event, and who may send one.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Server, eventually, exchange};

/// Answers with the event it got.
const MIRROR: &str = "def handler(event, context):\n    return event\n";

async fn mirror() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("mirror", MIRROR, json!({})).await;
    (server, client)
}

#[tokio::test]
async fn the_event_is_the_one_aws_documents_for_payload_2_0() {
    let (server, client) = mirror().await;
    let request = client
        .request(
            Method::POST,
            "/fn/mirror/my/path?parameter1=value1&parameter1=value2&parameter2=value",
        )
        .header("cookie", "cookie1=a; cookie2=b")
        .header("header1", "value1")
        .header("header2", "value1")
        .header("header2", "value2")
        .header("user-agent", "agent")
        .header("x-request-id", "my-request")
        .header("content-type", "text/plain")
        .body("Hello from client!");
    let answer = client.send(request).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert!(!answer.header("x-hearth-invocation-id").is_empty());
    assert_eq!(answer.header("x-hearth-start"), "fork");
    assert!(answer.header("server-timing").contains("run;dur="));
    let mut event = answer.json();
    let host = server.url.strip_prefix("http://").unwrap();
    let context = event["requestContext"].as_object_mut().unwrap();
    let epoch = context.remove("timeEpoch").unwrap().as_i64().unwrap();
    assert!(epoch > 1_700_000_000_000, "milliseconds: {epoch}");
    let time = context.remove("time").unwrap();
    let parsed = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", time.as_str().unwrap())
        .and_then(|time| time.to_timestamp());
    assert_eq!(parsed.unwrap().as_second(), epoch / 1000);
    let headers = event["headers"].as_object_mut().unwrap();
    assert_eq!(headers.remove("accept"), Some(json!("*/*")));
    assert_eq!(
        event,
        json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "/my/path",
            "rawQueryString": "parameter1=value1&parameter1=value2&parameter2=value",
            "cookies": ["cookie1=a", "cookie2=b"],
            "headers": {
                "host": host, "header1": "value1", "header2": "value1,value2", "user-agent": "agent",
                "x-request-id": "my-request", "content-type": "text/plain", "content-length": "18",
            },
            "queryStringParameters": {"parameter1": "value1,value2", "parameter2": "value"},
            "requestContext": {
                "accountId": "anonymous",
                "apiId": "mirror",
                "domainName": host,
                "domainPrefix": "127",
                "http": {
                    "method": "POST", "path": "/my/path", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1",
                    "userAgent": "agent",
                },
                "requestId": "my-request",
                "routeKey": "$default",
                "stage": "$default",
            },
            "body": "Hello from client!",
            "isBase64Encoded": false,
        })
    );
}

#[tokio::test]
async fn every_method_reaches_the_function() {
    let (server, client) = mirror().await;
    for method in [
        "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND",
    ] {
        let name = Method::from_bytes(method.as_bytes()).unwrap();
        let event = client
            .send(client.request(name, "/fn/mirror"))
            .await
            .expect(200)
            .json();
        assert_eq!(event["requestContext"]["http"]["method"], method);
        assert!(event.get("body").is_none(), "{event}");
        assert_eq!(event["isBase64Encoded"], false);
        assert!(event.get("cookies").is_none());
        assert!(event.get("queryStringParameters").is_none());
        assert_eq!(event["rawQueryString"], "");
    }
    let head = client
        .send(client.request(Method::HEAD, "/fn/mirror"))
        .await
        .expect(200);
    assert!(head.bytes.is_empty());
    // What GET streams has no length that is known.
    assert_eq!(head.header("content-length"), "");
    let id = head.header("x-hearth-invocation-id");
    let path = format!("/api/v1/invocations/{id}");
    // The body that is not sent is read to its end all the same, but nobody waits for that.
    eventually("it is recorded", Duration::from_secs(5), || async {
        let record = client.get(&path).await.json();
        (record["status"] == "succeeded").then_some(())
    })
    .await;
    drop(server);
}

#[tokio::test]
async fn paths_and_queries_arrive_as_they_were_sent() {
    let (server, client) = mirror().await;
    for (sent, path, query, parameters) in [
        ("/fn/mirror", "/", "", Value::Null),
        ("/fn/mirror/", "/", "", Value::Null),
        (
            "/fn/mirror/a%20b/%C3%A4?x=%C3%A4+b&flag",
            "/a%20b/%C3%A4",
            "x=%C3%A4+b&flag",
            json!({"x": "ä b", "flag": ""}),
        ),
        ("/fn/mirror/a//b/?", "/a//b/", "", Value::Null),
        (
            "/fn/mirror/a%2Fb?k=a%26b%3D",
            "/a%2Fb",
            "k=a%26b%3D",
            json!({"k": "a&b="}),
        ),
        (
            "/fn/mirror?a=1&a=2&b=%zz",
            "/",
            "a=1&a=2&b=%zz",
            json!({"a": "1,2", "b": "%zz"}),
        ),
        (
            "/fn/mirror/..%2f..%2fetc",
            "/..%2f..%2fetc",
            "",
            Value::Null,
        ),
        ("/fn/mirror/fn/mirror", "/fn/mirror", "", Value::Null),
    ] {
        // By hand: a client would tidy the address up first.
        let request = format!(
            "GET {sent} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            crate::support::TOKEN
        );
        let answer = exchange(&server.url, request.as_bytes()).await;
        assert_eq!(answer.status, 200, "{sent}: {answer:?}");
        assert!(answer.head.contains("x-hearth-version: 1\r\n"), "{sent}");
        let event = event_in(&answer.body);
        assert_eq!(event["rawPath"], path, "{sent}");
        assert_eq!(event["requestContext"]["http"]["path"], path, "{sent}");
        assert_eq!(event["rawQueryString"], query, "{sent}");
        assert_eq!(event["queryStringParameters"], parameters, "{sent}");
    }
    drop(client);
}

/// The JSON in a body that may be chunked.
fn event_in(body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    let start = text.find('{').expect("an object");
    let end = text.rfind('}').expect("an object");
    serde_json::from_str(&text[start..=end]).expect("one chunk")
}

#[tokio::test]
async fn text_bodies_are_text_and_others_are_base64() {
    let (_server, client) = mirror().await;
    let cases: [(&str, &[u8], &str, bool); 9] = [
        (
            "text/plain; charset=utf-8",
            "grün".as_bytes(),
            "grün",
            false,
        ),
        ("application/json", b"{\"a\":1}", "{\"a\":1}", false),
        ("application/vnd.api+json", b"{}", "{}", false),
        (
            "application/x-www-form-urlencoded",
            b"a=1&b=2",
            "a=1&b=2",
            false,
        ),
        ("APPLICATION/XML", b"<a/>", "<a/>", false),
        ("application/octet-stream", b"plain", "cGxhaW4=", true),
        ("image/png", b"\x89PNG\r\n\x1a\n\0", "iVBORw0KGgoA", true),
        ("text/plain", b"\xff\xfe", "//4=", true),
        ("", b"\x00\x01", "AAE=", true),
    ];
    for (kind, body, expected, encoded) in cases {
        let mut request = client
            .request(Method::POST, "/fn/mirror")
            .body(body.to_vec());
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let event = client.send(request).await.expect(200).json();
        assert_eq!(event["body"], expected, "{kind}");
        assert_eq!(event["isBase64Encoded"], encoded, "{kind}");
    }
}

#[tokio::test]
async fn only_a_public_function_answers_without_a_token() {
    let server = Server::start();
    let client = server.client();
    client.deploy("closed", MIRROR, json!({})).await;
    client.deploy("open", MIRROR, json!({"public": true})).await;
    let anonymous = server.client_with(None);
    let with_wrong_token = server.client_with(Some("hth_of_somebody_else_entirely"));
    for path in ["/fn/closed", "/fn/closed/deeper", "/fn/nobody"] {
        // Whether there is such a function is nobody's business.
        let problem = anonymous.get(path).await;
        assert!(problem.header("www-authenticate").starts_with("Bearer"));
        problem.problem(401, "unauthorized");
        with_wrong_token
            .get(path)
            .await
            .problem(401, "unauthorized");
    }
    client.get("/fn/closed").await.expect(200);
    client.get("/fn/nobody").await.problem(404, "not_found");

    let event = anonymous.get("/fn/open").await.expect(200).json();
    assert!(event["headers"].get("authorization").is_none());
    let event = with_wrong_token.get("/fn/open").await.expect(200).json();
    assert_eq!(
        event["headers"]["authorization"], "Bearer hth_of_somebody_else_entirely",
        "a public function may have logins of its own"
    );
    for path in ["/fn/open", "/fn/closed"] {
        let request = client
            .request(Method::GET, path)
            .header("cookie", "a=1; hearth_session=stolen; b=2");
        let event = client.send(request).await.expect(200).json();
        let text = event.to_string();
        assert!(
            !text.contains("hth_test_token"),
            "our token is ours: {text}"
        );
        assert!(
            !text.contains("stolen"),
            "so is the console's cookie: {text}"
        );
        assert_eq!(event["cookies"], json!(["a=1", "b=2"]));
    }

    client
        .patch("/api/v1/functions/open", &json!({"public": false}))
        .await
        .expect(200);
    anonymous.get("/fn/open").await.problem(401, "unauthorized");
}
