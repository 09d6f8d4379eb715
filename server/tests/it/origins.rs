//! What keeps a function's answers out of the console's origin. `browser/origins.rs` has the same with a real browser.

mod hosts;

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Client, Server};

/// Evaluates its request body as the response.
const EVALUATE: &str = "def handler(event, context):\n    return eval(event['body'])\n";

fn policies(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("content-security-policy");
    all.iter()
        .map(|value| value.to_str().expect("text"))
        .collect()
}

/// Checks that a browser gives this answer an opaque origin.
#[track_caller]
fn isolated(answer: &Answer) {
    // A function's own policy may be before it: what any of them forbids is forbidden.
    assert_eq!(
        policies(answer).last(),
        Some(&"sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"),
        "{}",
        answer.status
    );
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}

async fn ask(client: &Client, method: Method, path: &str, expression: &str) -> Answer {
    let request = client
        .request(method, path)
        .header("content-type", "text/plain")
        .body(expression.to_owned());
    client.send(request).await
}

#[tokio::test]
async fn every_answer_of_a_function_on_the_consoles_host_is_isolated() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "eval",
            EVALUATE,
            json!({"public": true, "timeout_ms": 1000}),
        )
        .await;
    client.deploy("private", EVALUATE, json!({})).await;
    let anonymous = server.client_with(None);
    let page = "{'statusCode': 200, 'headers': {'content-type': 'text/html', 'x-content-type-options': 'none', \
        'content-security-policy': \"sandbox allow-scripts allow-same-origin\"}, 'body': 'x'}";
    for (method, path, expression, status) in [
        (Method::GET, "/fn/eval", page, 200),
        (Method::POST, "/fn/eval/", page, 200),
        (Method::PUT, "/fn/eval/a/b?c", page, 200),
        (Method::DELETE, "/fn/eval", page, 200),
        (Method::OPTIONS, "/fn/eval", page, 200),
        (
            Method::from_bytes(b"REPORT").unwrap(),
            "/fn/eval",
            page,
            200,
        ),
        (
            Method::GET,
            "/fn/eval",
            "{'statusCode': 302, 'headers': {'refresh': '0; url=/account'}}",
            302,
        ),
        (
            Method::GET,
            "/fn/eval",
            "{'statusCode': 404, 'body': '<script>1</script>'}",
            404,
        ),
        (Method::GET, "/fn/eval", "{'statusCode': 500}", 500),
        (Method::GET, "/fn/eval", "{'statusCode': 99}", 502),
        (Method::GET, "/fn/eval", "1 / 0", 502),
        (Method::GET, "/fn/eval", "__import__('time').sleep(9)", 504),
        (Method::GET, "/fn/private", page, 401),
        (Method::GET, "/fn/nobody", page, 401),
        (Method::GET, "/fn/%ff", page, 401),
    ] {
        let answer = ask(&anonymous, method.clone(), path, expression).await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{method} {path} {expression}"
        );
        if answer.header("content-type") == "text/html" {
            assert_eq!(
                policies(&answer)[0],
                "sandbox allow-scripts allow-same-origin"
            );
        }
        isolated(&answer);
    }
    isolated(&client.get("/fn/nobody").await.expect(404));
    isolated(&client.send(client.request(Method::HEAD, "/fn/eval")).await);
    for cookie in ["hearth_session=x", "__Host-hearth_session=x"] {
        let request = anonymous.request(Method::POST, "/fn/eval").body(page);
        let request = request.header("content-type", "text/plain");
        isolated(
            &anonymous
                .send(request.header("cookie", cookie))
                .await
                .expect(200),
        );
    }
    // What a page of the console would load into itself, and a service worker, are not served.
    for headers in [
        &[("service-worker", "script")][..],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-dest", "script"),
        ],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-dest", "sharedworker"),
        ],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-dest", "empty"),
        ],
    ] {
        let request = anonymous.request(Method::POST, "/fn/eval").body(page);
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        let answer = anonymous.send(request).await;
        isolated(&answer);
        answer.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn bytes_that_functions_made_are_no_page_in_the_api_either() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    print('<script>1</script>')\n    return '<script>1</script>'\n";
    client.deploy("markup", code, json!({})).await;
    let answer = client.invoke("markup", &json!({})).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let id = answer.header("x-hearth-invocation-id").to_owned();
    for path in [
        format!("/api/v1/invocations/{id}"),
        "/api/v1/functions/markup/logs".to_owned(),
        "/api/v1/functions/markup/versions/1/code".to_owned(),
        "/api/v1/functions/nobody".to_owned(),
    ] {
        let answer = client.get(&path).await;
        assert_eq!(
            policies(&answer),
            ["default-src 'none'; frame-ancestors 'none'; sandbox"],
            "{path}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert!(!answer.header("content-type").contains("html"), "{path}");
    }
}

#[tokio::test]
async fn headers_that_speak_for_the_consoles_origin_are_held_back() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("eval", EVALUATE, json!({"public": true}))
        .await;
    let answer = ask(
        &client,
        Method::POST,
        "/fn/eval",
        "{'statusCode': 200, 'body': 'x', 'headers': {'NEL': '{}', 'Report-To': '{}', 'Reporting-Endpoints': 'a=\"/\"', \
         'Accept-CH': 'DPR', 'Critical-CH': 'DPR', 'Origin-Agent-Cluster': '?0', 'Clear-Site-Data': '\"*\"', \
         'Strict-Transport-Security': 'max-age=1', 'Speculation-Rules': '\"/x\"', 'Set-Login': 'logged-out', \
         'Use-As-Dictionary': 'match=\"/*\"', 'Tomorrows-Header': '1', 'WWW-Authenticate': 'Basic realm=\"Hearth\"', \
         'X-Accel-Redirect': '/secret', 'X-App': '1', 'Cache-Control': 'max-age=60', 'HX-Trigger': 'saved', \
         'Access-Control-Allow-Origin': '*', 'Link': '</2>; rel=\"next\"'}, \
         'cookies': ['=hearth_session=x', 'hearth_session', ' HEARTH_session = x', '__host-hearth_session=x; Secure; Path=/', \
         '__Host-a=1; Secure; Path=/', 'cart=1; Path=/; Domain=localhost']}",
    )
    .await
    .expect(200);
    for (name, value) in [
        ("x-app", "1"),
        ("cache-control", "max-age=60"),
        ("hx-trigger", "saved"),
        ("access-control-allow-origin", "*"),
        ("link", "</2>; rel=\"next\""),
    ] {
        assert_eq!(answer.header(name), value);
    }
    let withheld = answer.header("x-hearth-withheld-headers");
    for name in [
        "nel",
        "report-to",
        "reporting-endpoints",
        "accept-ch",
        "critical-ch",
        "origin-agent-cluster",
        "clear-site-data",
        "strict-transport-security",
        "speculation-rules",
        "set-login",
        "use-as-dictionary",
        "tomorrows-header",
        "www-authenticate",
        "x-accel-redirect",
    ] {
        assert_eq!(answer.header(name), "", "{name}");
        assert!(
            withheld.split(", ").any(|held| held == name),
            "{name}: {withheld}"
        );
    }
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["cart=1; Path=/fn/eval"]);
}
