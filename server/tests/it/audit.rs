//! The audit log: every change is in it, whoever made it and by whichever way, and nothing secret is.

use serde_json::{Value, json};

use crate::logins::{PASSWORD, user};
use crate::support::{Browser, Client, Server, TOKEN, settings_form};

const ONE: &str = "def handler(event, context):\n    return 1\n";
const TWO: &str = "def handler(event, context):\n    return 2\n";

/// The log, oldest first.
async fn log(admin: &Client) -> Vec<Value> {
    let page = admin
        .get("/api/v1/audit?limit=1000")
        .await
        .expect(200)
        .json();
    assert_eq!(page["next"], Value::Null);
    let mut items = page["items"].as_array().expect("a list").clone();
    items.reverse();
    items
}

/// Actor, action, target and detail of each record.
fn lines(log: &[Value]) -> Vec<String> {
    let text = |record: &Value, name: &str| record[name].as_str().unwrap_or("?").to_owned();
    log.iter()
        .map(|record| {
            let parts = ["actor_kind", "actor", "action", "target", "detail"];
            parts.map(|name| text(record, name)).join(" | ")
        })
        .collect()
}

#[tokio::test]
async fn changes_by_the_api_are_recorded() {
    let server = Server::start();
    let admin = server.client();
    admin
        .deploy("one", ONE, json!({"env": {"KEY": "s3cr3t"}}))
        .await;
    let patch = json!({"memory_mb": 64, "env": {"KEY": "s3cr3t2", "NEW": "s3cr3t3"}});
    admin
        .patch("/api/v1/functions/one", &patch)
        .await
        .expect(200);
    admin
        .put(
            "/api/v1/functions/one/code",
            &json!({"code": {"inline": TWO}}),
        )
        .await
        .expect(200);
    admin
        .post("/api/v1/functions/one/versions/1/activate", &json!(null))
        .await
        .expect(200);
    // Neither a refusal nor an invocation changes anything.
    admin
        .patch("/api/v1/functions/one", &json!({"memory_mb": 1}))
        .await
        .expect(422);
    admin.delete("/api/v1/functions/none").await.expect(404);
    admin.invoke("one", &json!({})).await.expect(200);
    let body = json!({"name": "ci", "rights": ["read", "write"], "scope": ["one"]});
    let made = admin.post("/api/v1/tokens", &body).await.expect(201).json();
    let id = made["id"].as_i64().expect("a number");
    let limited = server.client_with(made["token"].as_str());
    limited.delete("/api/v1/functions/one").await.expect(204);
    limited.get("/api/v1/audit").await.expect(403);
    admin
        .delete(&format!("/api/v1/tokens/{id}"))
        .await
        .expect(204);
    user(&server, "ada", "admin").await;
    user(&server, "bob", "viewer").await;
    admin
        .patch("/api/v1/users/bob", &json!({"role": "operator"}))
        .await
        .expect(200);
    admin
        .patch(
            "/api/v1/users/bob",
            &json!({"disabled": true, "password": "another-password"}),
        )
        .await
        .expect(200);
    admin
        .patch("/api/v1/users/ada", &json!({"role": "viewer"}))
        .await
        .expect(409);
    admin.delete("/api/v1/users/bob").await.expect(204);

    let log = log(&admin).await;
    assert_eq!(
        lines(&log),
        [
            "token | admin | function.create | one | ",
            "token | admin | function.settings | one | memory_mb, env.KEY, env.NEW, version 2",
            "token | admin | function.deploy | one | version 3",
            "token | admin | function.activate | one | version 1",
            "token | admin | token.create | ci | rights read write, limited to one",
            "token | ci | function.delete | one | ",
            "token | admin | token.revoke | ci | ",
            "token | admin | user.create | ada | role admin",
            "token | admin | user.create | bob | role viewer",
            "token | admin | user.role | bob | role operator",
            "token | admin | user.change | bob | disabled, password",
            "token | admin | user.delete | bob | ",
        ]
    );
    for record in &log {
        assert_eq!(record["address"], "127.0.0.1");
        assert!(record["request_id"].as_str().is_some_and(|id| id.len() > 8));
        assert!(
            record["time"]
                .as_str()
                .expect("text")
                .parse::<jiff::Timestamp>()
                .is_ok()
        );
    }
    let text = Value::from(log).to_string();
    for secret in ["s3cr3t", PASSWORD, "another-password", TOKEN] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn changes_in_the_console_and_log_ins_are_recorded() {
    let server = Server::start();
    let code = server.setup_code().expect("a code");
    let mut ada = Browser::new(&server);
    let fields = [
        ("code", "wrong"),
        ("name", "ada"),
        ("password", PASSWORD),
        ("repeat", PASSWORD),
    ];
    let setup =
        |fields: &[(&str, &str)]| ada.send(crate::support::encoded(ada.post("/setup"), fields));
    setup(&fields).await.expect(401);
    let mut right = fields;
    right[0].1 = &code;
    let answer = setup(&right).await.expect(303);
    ada.enter(&answer).await;
    ada.try_password("ada", "not-the-password")
        .await
        .expect(401);
    ada.try_password("eve", "not-the-password")
        .await
        .expect(401);
    let token = Browser::logged_in(&server, TOKEN).await;
    token.submit("/logout", &[]).await.expect(303);

    let new = [("name", "one"), ("runtime", "python3"), ("code", ONE)];
    ada.submit("/new", &new).await.expect(303);
    ada.submit("/new", &[("name", "Bad")]).await.expect(422);
    let settings = settings_form(&[]);
    ada.submit("/functions/one/settings", &settings)
        .await
        .expect(303);
    // Saved once more there is nothing to change, and nothing to record.
    ada.submit("/functions/one/settings", &settings)
        .await
        .expect(303);
    ada.submit("/functions/one/invoke", &[("event", "{}")])
        .await
        .expect(200);
    ada.submit("/functions/one/versions/1/activate", &[])
        .await
        .expect(303);
    ada.submit("/functions/one/delete", &[("confirm", "one")])
        .await
        .expect(303);

    let bob = [
        ("name", "bob"),
        ("role", "viewer"),
        ("first", "typed"),
        ("password", PASSWORD),
    ];
    ada.submit("/users", &bob).await.expect(303);
    ada.submit("/users/bob/role", &[("role", "operator")])
        .await
        .expect(303);
    ada.submit("/users/ada/role", &[("role", "viewer")])
        .await
        .expect(409);
    let typed = [("first", "typed"), ("password", "another-password")];
    ada.submit("/users/bob/password", &typed).await.expect(303);
    ada.submit("/users/bob/sessions/end", &[]).await.expect(303);
    ada.submit("/users/bob/disable", &[]).await.expect(303);
    ada.submit("/users/bob/enable", &[]).await.expect(303);
    ada.submit("/users/bob/delete", &[]).await.expect(303);
    let made = [("name", "ci"), ("rights", "read"), ("expires", "")];
    ada.submit("/tokens", &made).await.expect(200);
    let id = server.client().get("/api/v1/tokens").await.json()["items"][0]["id"].to_string();
    ada.submit(&format!("/tokens/{id}/revoke"), &[])
        .await
        .expect(303);
    ada.submit("/account/sessions/end-others", &[])
        .await
        .expect(303);
    let change = [
        ("old", PASSWORD),
        ("password", "another-password"),
        ("repeat", "another-password"),
    ];
    let answer = ada.submit("/account/password", &change).await.expect(303);
    ada.enter(&answer).await;

    let log = log(&server.client()).await;
    assert_eq!(
        lines(&log),
        [
            "nobody |  | session.login_failed |  | wrong set-up code",
            "user | ada | user.create | ada | role admin, by the set-up's code",
            "nobody | ada | session.login_failed |  | wrong password",
            "nobody | eve | session.login_failed |  | no such user",
            "token | admin | session.login |  | ",
            "token | admin | session.logout |  | ",
            "user | ada | function.create | one | ",
            "user | ada | function.settings | one | memory_mb, version 2",
            "user | ada | function.activate | one | version 1",
            "user | ada | function.delete | one | ",
            "user | ada | user.create | bob | role viewer",
            "user | ada | user.role | bob | role operator",
            "user | ada | user.password | bob | ",
            "user | ada | session.end_others | bob | 0 ended",
            "user | ada | user.disable | bob | disabled",
            "user | ada | user.enable | bob | enabled",
            "user | ada | user.delete | bob | ",
            "user | ada | token.create | ci | rights read",
            "user | ada | token.revoke | ci | ",
            "user | ada | session.end_others | ada | 0 ended",
            "user | ada | account.password | ada | ",
        ]
    );
    let text = Value::from(log).to_string();
    for secret in [
        PASSWORD,
        "another-password",
        "not-the-password",
        TOKEN,
        &code,
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn the_log_is_filtered_and_paged() {
    let server = Server::start();
    let admin = server.client();
    for name in ["a", "b", "c"] {
        let body = json!({"name": name, "rights": ["read"]});
        admin.post("/api/v1/tokens", &body).await.expect(201);
    }
    user(&server, "ada", "admin").await;
    let count = async |query: &str| {
        let page = admin
            .get(&format!("/api/v1/audit?{query}"))
            .await
            .expect(200)
            .json();
        page["items"].as_array().expect("a list").len()
    };
    assert_eq!(count("").await, 4);
    assert_eq!(count("action=token.create").await, 3);
    assert_eq!(count("action=token.create&target=b").await, 1);
    assert_eq!(count("actor=admin&action=user.create").await, 1);
    assert_eq!(count("actor=nobody").await, 0);
    let first = admin.get("/api/v1/audit?limit=3").await.expect(200).json();
    let next = first["next"].as_str().expect("another page").to_owned();
    let second = admin
        .get(&format!("/api/v1/audit?limit=3&before={next}"))
        .await
        .json();
    assert_eq!(second["items"][0]["target"], "a");
    assert_eq!(second["next"], Value::Null);
    for (wrong, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("before=x", "before"),
        ("action=explode", "action"),
        ("who=ada", "who"),
    ] {
        let problem = admin.get(&format!("/api/v1/audit?{wrong}")).await;
        assert_eq!(problem.problem(422, "invalid_field")["field"], field);
    }
    let ada = Browser::of_user(&server, "ada", PASSWORD).await;
    let page = ada
        .get("/audit?action=token.create")
        .await
        .expect(200)
        .text();
    assert_eq!(
        page.matches("<td data-label=\"Action\">token.create")
            .count(),
        3
    );
    assert!(!page.contains(">user.create</td>"));
    ada.get("/audit?before=x").await.expect(422);
    // Nobody changes or removes a record.
    for path in ["/api/v1/audit", "/api/v1/audit/1"] {
        let answer = admin.delete(path).await;
        assert!([404, 405].contains(&answer.status.as_u16()));
    }
}

/// A client that hangs up takes back neither the change nor its record.
#[tokio::test]
async fn a_change_is_recorded_though_its_client_went_away() {
    let server = Server::start();
    let admin = server.client();
    let slow = "import time\ntime.sleep(1)\ndef handler(event, context):\n    return 1\n";
    let body = json!({"name": "slow", "runtime": "python3", "code": {"inline": slow}});
    let request = admin
        .request(reqwest::Method::POST, "/api/v1/functions")
        .timeout(std::time::Duration::from_millis(300))
        .json(&body);
    assert!(request.send().await.is_err(), "the client went away");
    crate::support::eventually("the record", std::time::Duration::from_secs(60), || async {
        let log = log(&admin).await;
        lines(&log)
            .contains(&"token | admin | function.create | slow | ".to_owned())
            .then_some(())
    })
    .await;
    admin.get("/api/v1/functions/slow").await.expect(200);
}
