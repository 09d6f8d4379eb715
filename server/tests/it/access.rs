//! Who may do what: tokens and their rights on every route; and the routes that need none.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Client, Server, TOKEN};

const ONE: &str = "def handler(event, context):\n    return 1\n";

/// Settings of a chain of one function.
fn chain(function: &str) -> Value {
    json!({"members": {"a": {"function": function}}, "routes": {"r": ["a"]}})
}

/// Every route that needs a token: method, path, body, the right it needs.
pub fn routes() -> Vec<(Method, &'static str, Option<Value>, &'static str)> {
    let code = json!({"code": {"inline": ONE}});
    let create = json!({"name": "made", "runtime": "python3", "code": {"inline": ONE}});
    let mut made = chain("made");
    made["name"] = json!("made");
    vec![
        (Method::GET, "/api/v1/node", None, "read"),
        (Method::GET, "/metrics", None, "read"),
        (Method::GET, "/api/v1/functions", None, "read"),
        (Method::GET, "/api/v1/functions/guarded", None, "read"),
        (
            Method::GET,
            "/api/v1/functions/guarded/versions",
            None,
            "read",
        ),
        (
            Method::GET,
            "/api/v1/functions/guarded/invocations",
            None,
            "read",
        ),
        (Method::GET, "/api/v1/functions/guarded/stats", None, "read"),
        (
            Method::GET,
            "/api/v1/functions/guarded/events",
            None,
            "read",
        ),
        (Method::GET, "/api/v1/functions/guarded/logs", None, "read"),
        (
            Method::GET,
            "/api/v1/invocations/0190b5a4-0000-7000-8000-000000000000",
            None,
            "read",
        ),
        (
            Method::POST,
            "/api/v1/functions/guarded/invoke",
            Some(json!(0)),
            "invoke",
        ),
        (Method::GET, "/fn/guarded", None, "invoke"),
        (Method::POST, "/fn/guarded/x/y", Some(json!(0)), "invoke"),
        (Method::POST, "/api/v1/functions", Some(create), "write"),
        (
            Method::PATCH,
            "/api/v1/functions/guarded",
            Some(json!({"memory_mb": 64})),
            "write",
        ),
        (
            Method::PUT,
            "/api/v1/functions/guarded/code",
            Some(code),
            "write",
        ),
        (
            Method::POST,
            "/api/v1/functions/guarded/versions/1/activate",
            None,
            "write",
        ),
        (Method::GET, "/api/v1/chains", None, "read"),
        (Method::GET, "/api/v1/chains/guarded", None, "read"),
        (Method::GET, "/api/v1/chains/guarded/versions", None, "read"),
        (Method::GET, "/api/v1/chains/guarded/ingress", None, "read"),
        (
            Method::POST,
            "/api/v1/chains/guarded/routes/r/invoke",
            Some(json!(0)),
            "invoke",
        ),
        (Method::GET, "/chain/guarded/r", None, "invoke"),
        (
            Method::POST,
            "/chain/guarded/r/x/y",
            Some(json!(0)),
            "invoke",
        ),
        (Method::POST, "/api/v1/chains", Some(made), "write"),
        (
            Method::PUT,
            "/api/v1/chains/guarded",
            Some(chain("guarded")),
            "write",
        ),
        (
            Method::PATCH,
            "/api/v1/chains/guarded",
            Some(json!({"timeout_ms": 1000})),
            "write",
        ),
        (
            Method::POST,
            "/api/v1/chains/guarded/versions/1/activate",
            None,
            "write",
        ),
        (Method::DELETE, "/api/v1/chains/guarded", None, "write"),
        (Method::DELETE, "/api/v1/functions/guarded", None, "write"),
        (Method::GET, "/api/v1/tokens", None, "admin"),
        (
            Method::POST,
            "/api/v1/tokens",
            Some(json!({"name": "x", "rights": ["admin"]})),
            "admin",
        ),
        (Method::GET, "/api/v1/users", None, "admin"),
        (
            Method::POST,
            "/api/v1/users",
            Some(json!({"name": "guarded", "role": "admin"})),
            "admin",
        ),
        (
            Method::PATCH,
            "/api/v1/users/guarded",
            Some(json!({"role": "admin"})),
            "admin",
        ),
        (Method::DELETE, "/api/v1/users/nobody", None, "admin"),
        (Method::GET, "/api/v1/audit", None, "admin"),
        (Method::DELETE, "/api/v1/tokens/1", None, "admin"),
    ]
}

/// Status and code of the answer's head; bodies that stream are not waited for.
async fn ask(client: &Client, method: &Method, path: &str, body: Option<&Value>) -> StatusCode {
    let mut request = client.request(method.clone(), path);
    if let Some(body) = body {
        request = request.json(body);
    }
    request.send().await.expect("an answer").status()
}

async fn token(client: &Client, rights: &[&str]) -> (i64, String) {
    let body = json!({"name": rights.join("+"), "rights": rights});
    let created = client
        .post("/api/v1/tokens", &body)
        .await
        .expect(201)
        .json();
    (
        created["id"].as_i64().unwrap(),
        created["token"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn every_route_asks_for_a_token() {
    let server = Server::start();
    server.client().deploy("guarded", ONE, json!({})).await;
    let anonymous = server.client_with(None);
    for (method, path, body, _) in routes() {
        for authorization in [
            "",
            "Bearer nonsense",
            "Bearer ",
            "Basic YWRtaW46YWRtaW4=",
            TOKEN,
            "Bearer hth_test_token",
        ] {
            let mut request = anonymous.request(method.clone(), path);
            if !authorization.is_empty() {
                request = request.header("authorization", authorization);
            }
            if let Some(body) = &body {
                request = request.json(body);
            }
            let answer = anonymous.send(request).await;
            let challenge = answer.header("www-authenticate").to_owned();
            assert!(
                challenge.starts_with("Bearer realm=\"hearth\""),
                "{method} {path}"
            );
            answer.problem(401, "unauthorized");
        }
        let cookie = anonymous
            .request(method.clone(), path)
            .header("cookie", "hearth_session=guessed");
        anonymous.send(cookie).await.problem(401, "unauthorized");
    }
    let list = server.client().get("/api/v1/functions").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        list["items"][0]["active_version"], 1,
        "nobody changed anything"
    );
}

#[tokio::test]
async fn a_token_opens_the_routes_of_its_rights_and_no_others() {
    let server = Server::start();
    let admin = server.client();
    admin.deploy("guarded", ONE, json!({})).await;
    let guarded = admin.put("/api/v1/chains/guarded", &chain("guarded")).await;
    guarded.expect(201);
    for right in ["read", "invoke", "write", "admin"] {
        let (_, secret) = token(&admin, &[right]).await;
        let client = server.client_with(Some(&secret));
        for (method, path, body, needed) in routes() {
            if needed == right {
                continue;
            }
            let mut request = client.request(method.clone(), path);
            if let Some(body) = &body {
                request = request.json(body);
            }
            let answer = client.send(request).await;
            assert!(
                answer
                    .header("www-authenticate")
                    .contains("insufficient_scope")
            );
            let problem = answer.problem(403, "forbidden");
            assert_eq!(problem["right"], needed, "{method} {path}");
        }
    }
    // Nothing of that did anything; now with the right that is needed, the destructive ones last.
    for (method, path, body, needed) in routes() {
        let (_, secret) = token(&admin, &[needed]).await;
        let client = server.client_with(Some(&secret));
        let status = ask(&client, &method, path, body.as_ref()).await;
        let expected = match (method.as_str(), path) {
            (_, path) if path.contains("/invocations/") || path.ends_with("/nobody") => 404,
            (
                "POST",
                "/api/v1/functions" | "/api/v1/chains" | "/api/v1/tokens" | "/api/v1/users",
            ) => 201,
            ("DELETE", _) => 204,
            _ => 200,
        };
        assert_eq!(status, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn a_tokens_secret_is_shown_once_and_stored_nowhere() {
    let server = Server::start();
    let admin = server.client();
    let created = admin
        .post(
            "/api/v1/tokens",
            &json!({"name": "ci", "rights": ["read", "invoke"]}),
        )
        .await
        .expect(201)
        .json();
    let (id, secret) = (
        created["id"].as_i64().unwrap(),
        created["token"].as_str().unwrap(),
    );
    assert_eq!(created["rights"], json!(["read", "invoke"]));
    assert!(
        created["created_at"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .is_ok()
    );
    assert!(secret.len() >= 32, "{secret}");
    let list = admin.get("/api/v1/tokens").await.expect(200);
    assert!(!list.text().contains(secret));
    let item = &list.json()["items"][0];
    assert_eq!(item["id"], id, "newest first");
    assert!(item.get("token").is_none());

    let client = server.client_with(Some(secret));
    client.get("/api/v1/functions").await.expect(200);
    for entry in std::fs::read_dir(server.data_dir()).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            for secret in [secret, TOKEN] {
                assert!(
                    !bytes
                        .windows(secret.len())
                        .any(|window| window == secret.as_bytes()),
                    "{} holds a token",
                    entry.path().display()
                );
            }
        }
    }

    admin
        .delete(&format!("/api/v1/tokens/{id}"))
        .await
        .expect(204);
    client
        .get("/api/v1/functions")
        .await
        .problem(401, "unauthorized");
    for gone in [
        id.to_string(),
        "0".into(),
        "x".into(),
        "-1".into(),
        "99999999999999999999".into(),
    ] {
        let path = format!("/api/v1/tokens/{gone}");
        admin.delete(&path).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_token_cannot_delete_itself_and_tokens_survive_a_restart() {
    let server = Server::start();
    let admin = server.client();
    let (id, secret) = token(&admin, &["admin"]).await;
    let own = server.client_with(Some(&secret));
    own.delete(&format!("/api/v1/tokens/{id}"))
        .await
        .problem(409, "token_in_use");
    let server = server.restart();
    let own = server.client_with(Some(&secret));
    own.get("/api/v1/tokens").await.expect(200);
    let list = server
        .client()
        .get("/api/v1/tokens")
        .await
        .expect(200)
        .json();
    assert_eq!(
        list["items"].as_array().unwrap().len(),
        2,
        "the first is not made twice"
    );
}

#[tokio::test]
async fn a_generated_admin_token_is_kept_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Server::start_with_generated_token(&data);
    let file = data.join("admin-token");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    // The server's group makes its files there; nobody else is in it.
    assert_eq!(mode(&data), 0o770);
    let secret = std::fs::read_to_string(&file).unwrap();
    let client = server.client_with(Some(secret.trim()));
    client.get("/api/v1/tokens").await.expect(200);
    server
        .client_with(Some(TOKEN))
        .get("/api/v1/tokens")
        .await
        .problem(401, "unauthorized");
}
