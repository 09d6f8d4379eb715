//! Every function to start from, deployed as the console does it, and called with its own sample.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hearth_web::starters::{EVENT_NAME, STARTERS, Starter};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Browser, Client, Server, TOKEN};

/// Deploys by the form, with the name it offers, and answers that name.
async fn deploy(browser: &Browser, starter: &Starter) -> String {
    let page = browser
        .get(&format!("/new?template={}", starter.key))
        .await
        .expect(200)
        .text();
    let chosen = format!("id=\"starter-{}\"", starter.key);
    assert!(page.contains(&chosen), "{}", starter.key);
    let name = page
        .split_once("name=\"name\" value=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(name, _)| name.to_owned())
        .expect("a free name");
    let fields = [
        ("name", name.as_str()),
        ("runtime", starter.runtime),
        ("template", starter.key),
        ("code", starter.code),
    ];
    let made = browser.submit("/new", &fields).await.expect(303);
    assert_eq!(
        made.header("location"),
        format!("/functions/{name}?notice=created")
    );
    // The test panel starts with the starter's own event.
    let page = browser
        .get(&format!("/functions/{name}"))
        .await
        .expect(200)
        .text();
    let option = format!("data-name=\"{EVENT_NAME}\" selected");
    assert!(page.contains(&option), "{page}");
    name
}

async fn invoke(client: &Client, name: &str, starter: &Starter) -> Value {
    let event: Value = serde_json::from_str(starter.event).expect("JSON");
    client.invoke(name, &event).await.expect(200).json()
}

#[tokio::test]
async fn every_starter_runs_with_its_sample() {
    let server = Server::start();
    let client = server.client();
    let browser = Browser::logged_in(&server, TOKEN).await;
    let node = client.get("/api/v1/node").await.json();
    let node = node["capabilities"]["runtimes"]["node"]["available"]
        .as_bool()
        .or(node["runtimes"]["node"]["available"].as_bool())
        .unwrap_or(true);
    for starter in STARTERS {
        if starter.runtime == "node" && !node {
            continue;
        }
        let name = deploy(&browser, &starter).await;
        let result = invoke(&client, &name, &starter).await;
        match starter.key {
            "hello" | "node-hello" => {
                assert_eq!(result["message"], "Hello, world!");
                assert!(result["invocation"].is_string(), "{result}");
                let by_url = client
                    .get(&format!("/fn/{name}?name=Ada"))
                    .await
                    .expect(200);
                assert_eq!(by_url.json()["message"], "Hello, Ada!");
            }
            "http-api" | "node-http-api" => api(&client, &name, &result).await,
            "json-transform" | "node-json-transform" => {
                assert_eq!(result["customer"], "Ada Lovelace");
                assert_eq!(result["totalCents"], 13_998);
                assert_eq!(result["lines"][0]["sku"], "AB-1");
                let refused = client.invoke(&name, &json!({"id": "x"})).await;
                let problem = refused.problem(502, "function_error");
                assert_eq!(problem["errorType"], "Invalid");
            }
            "image-thumbnail" => thumbnail(&client, &name, &starter, &result).await,
            "scheduled-job" => {
                assert_eq!(result["run"], 1);
                let again = invoke(&client, &name, &starter).await;
                assert_eq!(again["run"], 2, "it remembers: {again}");
                assert!(again["total"].as_u64() > result["total"].as_u64());
            }
            other => panic!("nothing checks {other}"),
        }
    }
    // A second one of the same kind gets the next free name.
    assert_eq!(deploy(&browser, &STARTERS[0]).await, "hello-2");
}

async fn api(client: &Client, name: &str, result: &Value) {
    assert_eq!(result["statusCode"], 200);
    assert_eq!(
        result["body"].as_str().map(|body| body.replace(' ', "")),
        Some("{\"sum\":6.5}".into())
    );
    let call = |method: Method, path: &str, body: &'static str| {
        let request = client
            .request(method, &format!("/fn/{name}{path}"))
            .header("content-type", "application/json")
            .body(body);
        client.send(request)
    };
    let greeted = call(Method::GET, "/greetings/Ada?word=Hi", "").await;
    assert_eq!(greeted.expect(200).json(), json!({"greeting": "Hi, Ada!"}));
    for (method, path, body, status) in [
        (Method::GET, "/nope", "", 404),
        (Method::GET, "/sums", "", 405),
        (Method::POST, "/sums", "{", 400),
        (Method::POST, "/sums", "[true]", 422),
    ] {
        let answer = call(method, path, body).await.expect(status);
        assert!(answer.json()["error"].is_string(), "{path}");
    }
}

/// Width and height in a PNG's header.
fn size(png: &[u8]) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "a PNG");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

async fn thumbnail(client: &Client, name: &str, starter: &Starter, result: &Value) {
    let png = STANDARD
        .decode(result["png"].as_str().expect("an image"))
        .expect("base64");
    assert_eq!(size(&png), (24, 16));
    // Behind its URL it takes and answers the image itself.
    let event: Value = serde_json::from_str(starter.event).expect("JSON");
    let original = STANDARD
        .decode(event["png"].as_str().expect("an image"))
        .expect("base64");
    let request = client
        .request(Method::POST, &format!("/fn/{name}?width=12"))
        .header("content-type", "image/png")
        .body(original);
    let answer = client.send(request).await.expect(200);
    assert_eq!(answer.header("content-type"), "image/png");
    assert_eq!(size(&answer.bytes), (12, 8));
    let request = client
        .request(Method::POST, &format!("/fn/{name}"))
        .body("no image");
    client.send(request).await.expect(422);
}
