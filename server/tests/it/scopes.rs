//! Tokens that are limited to some functions, that expire, and when they were last used.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Browser, Client, Server, encoded, eventually};

const ONE: &str = "def handler(event, context):\n    return 1\n";

async fn token(client: &Client, body: Value) -> String {
    let made = client
        .post("/api/v1/tokens", &body)
        .await
        .expect(201)
        .json();
    made["token"].as_str().expect("a secret").to_owned()
}

#[tokio::test]
async fn a_limited_token_reaches_its_functions_and_nothing_else() {
    let server = Server::start();
    let admin = server.client();
    for name in ["mine", "other"] {
        admin.deploy(name, ONE, json!({})).await;
    }
    let foreign = admin.invoke("other", &json!({})).await;
    let foreign = foreign.header("x-hearth-invocation-id").to_owned();
    let rights = json!(["read", "invoke", "write"]);
    let body = json!({"name": "limited", "rights": rights, "scope": ["mine", "future"]});
    let secret = token(&admin, body).await;
    let limited = server.client_with(Some(&secret));

    let list = limited.get("/api/v1/functions").await.expect(200).json();
    let names: Vec<&Value> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|function| &function["name"])
        .collect();
    assert_eq!(names, [&json!("mine")]);
    let own = limited.invoke("mine", &json!({})).await.expect(200);
    let own = own.header("x-hearth-invocation-id").to_owned();
    limited.get("/fn/mine").await.expect(200);
    for path in ["", "/versions", "/stats", "/invocations", "/logs"] {
        limited
            .get(&format!("/api/v1/functions/mine{path}"))
            .await
            .expect(200);
    }
    eventually(
        "the invocation's record",
        Duration::from_secs(30),
        || async {
            let answer = limited.get(&format!("/api/v1/invocations/{own}")).await;
            (answer.status == 200).then_some(())
        },
    )
    .await;
    limited
        .patch("/api/v1/functions/mine", &json!({"memory_mb": 64}))
        .await
        .expect(200);
    limited
        .try_deploy("future", ONE, json!({}))
        .await
        .expect(201);

    eventually("the other's record", Duration::from_secs(30), || async {
        let answer = admin.get(&format!("/api/v1/invocations/{foreign}")).await;
        (answer.status == 200).then_some(())
    })
    .await;
    let code = json!({"code": {"inline": ONE}});
    let create = json!({"name": "made", "runtime": "python3", "code": {"inline": ONE}});
    let invocation = format!("/api/v1/invocations/{foreign}");
    for (method, path, body) in [
        (Method::GET, "/api/v1/functions/other", None),
        (Method::GET, "/api/v1/functions/other/versions", None),
        (Method::GET, "/api/v1/functions/other/invocations", None),
        (Method::GET, "/api/v1/functions/other/stats", None),
        (Method::GET, "/api/v1/functions/other/events", None),
        (Method::GET, "/api/v1/functions/other/logs", None),
        (Method::GET, "/api/v1/functions/nowhere", None),
        (Method::GET, "/api/v1/functions/m%69ne", None),
        (Method::GET, invocation.as_str(), None),
        (
            Method::POST,
            "/api/v1/functions/other/invoke",
            Some(json!({})),
        ),
        (Method::GET, "/fn/other", None),
        (Method::POST, "/fn/other/x", Some(json!({}))),
        (Method::POST, "/api/v1/functions", Some(create)),
        (
            Method::PATCH,
            "/api/v1/functions/other",
            Some(json!({"memory_mb": 64})),
        ),
        (Method::PUT, "/api/v1/functions/other/code", Some(code)),
        (
            Method::POST,
            "/api/v1/functions/other/versions/1/activate",
            None,
        ),
        (Method::DELETE, "/api/v1/functions/other", None),
        (Method::GET, "/api/v1/node", None),
        (Method::GET, "/metrics", None),
    ] {
        let mut request = limited.request(method.clone(), path);
        if let Some(body) = &body {
            request = request.json(body);
        }
        let problem = limited.send(request).await.problem(403, "forbidden");
        assert_eq!(
            problem["scope"],
            json!(["mine", "future"]),
            "{method} {path}"
        );
        let detail = problem["detail"].as_str().expect("text");
        assert!(
            detail.contains("limited to the functions \"mine\", \"future\""),
            "{detail}"
        );
    }
    limited
        .get("/api/v1/tokens")
        .await
        .problem(403, "forbidden");
    let other = admin
        .get("/api/v1/functions/other")
        .await
        .expect(200)
        .json();
    assert_eq!(other["active_version"], 1, "nothing was changed");

    // It does not open the console either, whose pages are about all functions.
    let browser = Browser::new(&server);
    let form = encoded(browser.post("/login"), &[("token", &secret)]);
    let answer = browser.send(form).await.expect(403);
    assert_eq!(answer.header("set-cookie"), "");
    assert!(answer.text().contains("works with the API only"));
}

#[tokio::test]
async fn a_token_ends_at_its_time_and_says_when_it_was_used() {
    let server = Server::start();
    let admin = server.client();
    let soon = jiff::Timestamp::now() + Duration::from_secs(3);
    let body = json!({"name": "short", "rights": ["read"], "expires_at": soon.to_string()});
    let secret = token(&admin, body).await;
    let short = server.client_with(Some(&secret));
    let listed = async |name: &str| -> Value {
        let list = admin.get("/api/v1/tokens").await.expect(200).json();
        let items = list["items"].as_array().expect("a list").clone();
        items
            .into_iter()
            .find(|token| token["name"] == name)
            .expect("it is listed")
    };
    let view = listed("short").await;
    assert_eq!(view["last_used_at"], Value::Null);
    assert_eq!(view["scope"], Value::Null);
    assert!(view["expires_at"].is_string());
    // Asked until the time has come: before, it opens; after, it does not.
    let ended = eventually("the token's end", Duration::from_secs(60), || async {
        let answer = short.get("/api/v1/functions").await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    ended.problem(401, "unauthorized");
    assert!(jiff::Timestamp::now() >= soon);
    assert!(listed("short").await["expires_at"].is_string());
    assert!(listed("admin").await["last_used_at"].is_string());

    for (body, field) in [
        (
            json!({"name": "x", "rights": ["read"], "scope": []}),
            "scope",
        ),
        (
            json!({"name": "x", "rights": ["read"], "scope": ["Bad"]}),
            "scope",
        ),
        (
            json!({"name": "x", "rights": ["admin"], "scope": ["a"]}),
            "scope",
        ),
        (
            json!({"name": "x", "rights": ["read"], "expires_at": "2001-01-01T00:00:00Z"}),
            "expires_at",
        ),
        (
            json!({"name": "x", "rights": ["read"], "expires_at": 5}),
            "expires_at",
        ),
    ] {
        let problem = admin.post("/api/v1/tokens", &body).await;
        assert_eq!(problem.problem(422, "invalid_field")["field"], field);
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked() {
    let server = Server::start();
    let admin = server.client();
    admin.deploy("one", ONE, json!({})).await;
    let body = json!({"name": "watcher", "rights": ["read"]});
    let made = admin.post("/api/v1/tokens", &body).await.expect(201).json();
    let watcher = server.client_with(made["token"].as_str());
    let mut streams = Vec::new();
    for path in ["/events", "/logs?follow=true"] {
        let path = format!("/api/v1/functions/one{path}");
        let request = watcher.request(Method::GET, &path);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        streams.push(response);
    }
    let id = &made["id"];
    admin
        .delete(&format!("/api/v1/tokens/{id}"))
        .await
        .expect(204);
    for stream in streams {
        let end = tokio::time::timeout(Duration::from_secs(60), stream.bytes()).await;
        end.expect("it ends").expect("in order");
    }
}
