//! Copies of versions: with variables and secrets, which nobody gets at by them, and for a while only.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Browser, Client, Server, TOKEN, eventually};

const LIMIT: Duration = Duration::from_secs(20);

/// Tells variables, and how much memory it has.
const CODE: &str = "\
import os

def handler(event, context):
    return [os.environ.get(name) for name in event] + [int(context.memory_limit_in_mb)]
";
const COPIES: &str = "/api/v1/functions/f/copies";
const COPY: &str = "/api/v1/functions/shadow";

/// A function with a variable, a secret as a variable, and one that is put into its requests.
async fn deployed(client: &Client) {
    for name in ["login", "stripe"] {
        let path = format!("/api/v1/secrets/{name}");
        let value = json!({"value": format!("s3cr3t-{name}")});
        client.put(&path, &value).await.expect(201);
    }
    let settings = json!({"env": {"KEY": "s3cr3t", "MODE": "slow"}, "public": true, "min_instances": 1,
        "secrets": [{"secret": "login", "env": "LOGIN"}]});
    client.deploy("f", CODE, settings).await;
}

async fn copy(client: &Client, body: Value) -> Answer {
    client.post(COPIES, &body).await
}

#[tokio::test]
async fn a_copy_has_the_versions_variables_and_secrets_and_its_own_settings() {
    let server = Server::start();
    let client = server.client();
    deployed(&client).await;
    let next = json!({"env": {"KEY": "another"}});
    client.patch("/api/v1/functions/f", &next).await.expect(200);
    let asked = json!({"name": "shadow", "version": 1, "memory_mb": 256, "env": {"MODE": "fast"}});
    let made = copy(&client, asked).await.expect(201);
    assert_eq!(made.header("location"), COPY);
    let made = made.json();
    assert_eq!(made["copy_of"]["function"], "f", "{made}");
    assert_eq!(made["copy_of"]["version"], 1);
    assert_eq!(made["copy_of"]["lacks"], json!([]));
    assert!(made["copy_of"]["expires_at"].as_str() > made["created_at"].as_str());
    assert_eq!(
        (&made["network"], &made["public"], &made["min_instances"]),
        (&json!("none"), &json!(false), &json!(0))
    );
    assert_eq!(made["env"], json!({"KEY": null, "MODE": null}));
    assert!(!made.to_string().contains("s3cr3t"), "{made}");

    let names = json!(["KEY", "MODE", "LOGIN"]);
    let told = client.invoke("shadow", &names).await.expect(200).json();
    assert_eq!(told, json!(["s3cr3t", "fast", "s3cr3t-login", 256]));
    let told = client.invoke("f", &names).await.expect(200).json();
    assert_eq!(told, json!(["another", "slow", "s3cr3t-login", 128]));
    let original = client.get("/api/v1/functions/f").await.expect(200).json();
    assert_eq!(original["copy_of"], json!(null));
    server
        .client_with(None)
        .get("/fn/shadow")
        .await
        .problem(401, "unauthorized");

    // It needs its function no more.
    client.delete("/api/v1/functions/f").await.expect(204);
    let told = client.invoke("shadow", &names).await.expect(200).json();
    assert_eq!(told[0], "s3cr3t");
    client.delete(COPY).await.expect(204);
    // The last sandbox that may read it ends in the background.
    eventually("its code is removed", LIMIT, || async {
        (server.packages() == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_copy_stays_as_it_was_made() {
    let server = Server::start();
    let client = server.client();
    deployed(&client).await;
    copy(&client, json!({"name": "shadow"})).await.expect(201);
    let console = Browser::logged_in(&server, TOKEN).await;
    eventually("the list tells it apart", LIMIT, || async {
        let list = console.get("/functions").await.expect(200).text();
        (list.matches("copy of f<").count() == 1).then_some(())
    })
    .await;
    let code = json!({"code": {"inline": "def handler(event, context):\n    return 1\n"}});
    for (method, path, body) in [
        (Method::PATCH, COPY.to_owned(), json!({"memory_mb": 64})),
        (
            Method::PATCH,
            COPY.to_owned(),
            json!({"network": "internet"}),
        ),
        (Method::PUT, format!("{COPY}/code"), code.clone()),
        (Method::POST, format!("{COPY}/versions"), code),
        (
            Method::POST,
            format!("{COPY}/versions/1/activate"),
            json!(null),
        ),
        (
            Method::POST,
            format!("{COPY}/copies"),
            json!({"name": "again"}),
        ),
    ] {
        let request = client.request(method.clone(), &path).json(&body);
        let answer = client.send(request).await;
        let problem = answer.problem(409, "function_is_copy");
        assert!(!problem.to_string().contains("s3cr3t"), "{method} {path}");
    }
    let chain = json!({"name": "chain", "members": {"one": {"function": "shadow"}}, "routes": {"r": ["one"]}});
    let refused = client.post("/api/v1/chains", &chain).await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "members.one.function");
    for page in [COPY.to_owned(), format!("{COPY}/versions")] {
        let shown = client.get(&page).await.expect(200).text();
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }

    copy(&client, json!({"name": "shadow"}))
        .await
        .problem(409, "already_exists");
    for (bad, field) in [
        (json!({"name": "x", "version": 9}), "version"),
        (json!({"name": "x", "network": "internet"}), "network"),
        (json!({"name": "x", "triggers": []}), "triggers"),
        (json!({"name": "x", "secrets": []}), "secrets"),
        // Which would answer with a variable.
        (json!({"name": "x", "handler": "os.getenv"}), "handler"),
        (json!({"name": "x", "min_instances": 9}), "min_instances"),
        (
            json!({"name": "x", "env": {"LOGIN": "mine"}}),
            "secrets[0].env",
        ),
    ] {
        let problem = copy(&client, bad).await.problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let missing = client
        .post("/api/v1/functions/nobody/copies", &json!({"name": "x"}))
        .await;
    missing.problem(404, "not_found");
}

#[tokio::test]
async fn who_may_write_the_function_may_copy_it_and_the_audit_log_says_so() {
    let server = Server::start();
    let admin = server.client();
    deployed(&admin).await;
    let token = async |body: Value| {
        let made = admin.post("/api/v1/tokens", &body).await.expect(201);
        let made = made.json();
        server.client_with(Some(made["token"].as_str().expect("a secret")))
    };
    let rights = json!(["read", "invoke", "write"]);
    let source = token(json!({"name": "source", "rights": rights, "scope": ["f"]})).await;
    let other = token(json!({"name": "other", "rights": rights, "scope": ["shadow"]})).await;
    let reader = token(json!({"name": "reader", "rights": ["read", "invoke"]})).await;
    let both = token(json!({"name": "both", "rights": rights, "scope": ["f", "shadow"]})).await;
    for refused in [&source, &other, &reader] {
        let answer = copy(refused, json!({"name": "shadow"})).await;
        answer.problem(403, "forbidden");
    }
    let asked = json!({"name": "shadow", "timeout_ms": 1000, "env": {"KEY": "s3cr3t-2"}});
    copy(&both, asked).await.expect(201);
    // Whoever may change what is called so gets at nothing by that.
    let code = json!({"code": {"inline": CODE}});
    let changed = other.put(&format!("{COPY}/code"), &code).await;
    changed.problem(409, "function_is_copy");

    let log = admin.get("/api/v1/audit?action=function.copy").await;
    let log = log.expect(200).json();
    let items = log["items"].as_array().expect("a list");
    assert_eq!(items.len(), 1, "{log}");
    assert_eq!(
        (&items[0]["actor"], &items[0]["target"]),
        (&json!("both"), &json!("f"))
    );
    let detail = items[0]["detail"].as_str().expect("a detail");
    for part in ["as shadow", "timeout_ms", "env.KEY", "version 1"] {
        assert!(detail.contains(part), "{detail}");
    }
    assert!(!log.to_string().contains("s3cr3t"), "{log}");
}

#[tokio::test]
async fn a_copy_goes_when_its_time_is_over_also_after_a_restart() {
    let server = Server::start();
    let client = server.client();
    deployed(&client).await;
    let asked = json!({"name": "shadow", "lifetime_s": 10});
    copy(&client, asked).await.expect(201);
    let asked = json!({"name": "stays", "lifetime_s": 86_400});
    copy(&client, asked).await.expect(201);
    let server = server.restart();
    let client = server.client();
    eventually("it goes", Duration::from_secs(60), || async {
        (client.get(COPY).await.status == 404).then_some(())
    })
    .await;
    let names = json!(["KEY"]);
    for name in ["f", "stays"] {
        let told = client.invoke(name, &names).await.expect(200).json();
        assert_eq!(told[0], "s3cr3t", "{name}");
    }
}
