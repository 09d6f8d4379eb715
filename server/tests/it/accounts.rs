//! Users: made, changed, locked out, deleted, by the API and by the console; and that no page shows a secret.

use serde_json::json;

use crate::logins::{PASSWORD, user};
use crate::support::{Browser, Server, TOKEN};

#[tokio::test]
async fn users_live_and_die_by_the_api() {
    let server = Server::start();
    let admin = server.client();
    let users = "/api/v1/users";
    assert_eq!(
        admin.get(users).await.expect(200).json()["items"],
        json!([])
    );
    admin
        .post(users, &json!({"name": "bob", "role": "viewer"}))
        .await
        .problem(409, "last_admin");
    let made = admin
        .post(users, &json!({"name": "ada", "role": "admin"}))
        .await
        .expect(201)
        .json();
    let password = made["password"].as_str().expect("one was made").to_owned();
    assert!(password.len() >= 20, "{password}");
    let typed = json!({"name": "bob", "role": "viewer", "password": PASSWORD});
    let made = admin.post(users, &typed).await.expect(201).json();
    assert!(made.get("password").is_none() && made.get("id").is_none());
    assert_eq!(
        (&made["role"], &made["disabled"]),
        (&json!("viewer"), &json!(false))
    );
    admin
        .post(users, &typed)
        .await
        .problem(409, "already_exists");
    for (body, field) in [
        (json!({"name": "Bob", "role": "viewer"}), "name"),
        (json!({"name": "eve", "role": "root"}), "role"),
        (
            json!({"name": "eve", "role": "viewer", "password": "hunter2"}),
            "password",
        ),
        (
            json!({"name": "eve-eve-eve-eve", "role": "viewer", "password": "eve-eve-eve-eve"}),
            "password",
        ),
        (
            json!({"name": "eve", "role": "viewer", "pass": "hunter2hunter2"}),
            "pass",
        ),
    ] {
        let answer = admin.post(users, &body).await;
        assert!(!answer.text().contains("hunter2"), "{}", answer.text());
        assert_eq!(answer.problem(422, "invalid_field")["field"], field);
    }
    let list = admin.get(users).await.expect(200);
    assert!(!list.text().contains("argon2") && !list.text().contains(&password));
    let names: Vec<_> = list.json()["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|user| user["name"].clone())
        .collect();
    assert_eq!(names, ["ada", "bob"]);

    // What an admin does holds from the next request on.
    let bob = Browser::of_user(&server, "bob", PASSWORD).await;
    bob.get("/new").await.expect(403);
    let patched = admin
        .patch("/api/v1/users/bob", &json!({"role": "operator"}))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&patched["role"], &patched["sessions"]),
        (&json!("operator"), &json!(1))
    );
    bob.get("/new").await.expect(200);
    admin
        .patch("/api/v1/users/bob", &json!({"disabled": true}))
        .await
        .expect(200);
    bob.get("/account").await.expect(303);
    let page = bob.try_password("bob", PASSWORD).await.expect(401).text();
    assert!(page.contains("This user is disabled."), "{page}");
    bob.try_password("bob", "not-the-password")
        .await
        .expect(401);
    admin
        .patch(
            "/api/v1/users/bob",
            &json!({"disabled": false, "password": "another-password"}),
        )
        .await
        .expect(200);
    Browser::of_user(&server, "bob", "another-password").await;
    for body in [
        json!({"name": "rob"}),
        json!({}),
        json!({"disabled": 1}),
        json!({"age": 3}),
    ] {
        admin
            .patch("/api/v1/users/bob", &body)
            .await
            .problem(422, "invalid_field");
    }

    for change in [json!({"role": "viewer"}), json!({"disabled": true})] {
        let problem = admin.patch("/api/v1/users/ada", &change).await;
        let problem = problem.problem(409, "last_admin");
        assert!(
            problem["detail"]
                .as_str()
                .expect("text")
                .contains("\"ada\" is the last admin")
        );
    }
    admin
        .delete("/api/v1/users/ada")
        .await
        .problem(409, "last_admin");
    admin.delete("/api/v1/users/bob").await.expect(204);
    admin
        .delete("/api/v1/users/bob")
        .await
        .problem(404, "not_found");
    admin
        .patch("/api/v1/users/bob", &json!({"role": "viewer"}))
        .await
        .problem(404, "not_found");
    Browser::of_user(&server, "ada", &password).await;
}

#[tokio::test]
async fn users_live_and_die_without_a_script() {
    let server = Server::start();
    user(&server, "ada", "admin").await;
    let ada = Browser::of_user(&server, "ada", PASSWORD).await;
    let fields = [("name", "bob"), ("role", "viewer"), ("first", "made")];
    let page = ada.submit("/users", &fields).await.expect(200).text();
    let password = secret(&page);
    let mut bob = Browser::new(&server);
    let answer = bob.try_password("bob", &password).await.expect(303);
    bob.enter(&answer).await;
    assert!(
        !ada.get("/users").await.text().contains(&password),
        "shown once"
    );

    let fields = [("name", "bob"), ("role", "viewer"), ("first", "made")];
    let page = ada.submit("/users", &fields).await.expect(422).text();
    assert!(page.contains("id=\"error-name\">A user named"), "{page}");
    let fields = [
        ("name", "eve"),
        ("role", "viewer"),
        ("first", "typed"),
        ("password", "sh0rt"),
    ];
    let page = ada.submit("/users", &fields).await.expect(422).text();
    assert!(page.contains("id=\"error-password\">Must be 12") && !page.contains("sh0rt"));

    let answer = ada.submit("/users/bob/role", &[("role", "operator")]).await;
    assert_eq!(
        answer.expect(303).header("location"),
        "/users/bob?notice=role"
    );
    ada.submit("/users/bob/role", &[("role", "root")])
        .await
        .expect(422);
    bob.get("/new").await.expect(200);
    ada.submit("/users/bob/disable", &[]).await.expect(303);
    bob.get("/account").await.expect(303);
    ada.submit("/users/bob/enable", &[]).await.expect(303);
    let page = ada
        .submit("/users/bob/password", &[("first", "made")])
        .await;
    let renewed = secret(&page.expect(200).text());
    assert_ne!(renewed, password);
    bob.try_password("bob", &password).await.expect(401);
    Browser::of_user(&server, "bob", &renewed).await;

    for path in ["/users/ada/role", "/users/ada/disable", "/users/ada/delete"] {
        let page = ada
            .submit(path, &[("role", "viewer")])
            .await
            .expect(409)
            .text();
        assert!(page.contains("is the last admin who can log in"), "{page}");
    }
    ada.submit("/users/bob/delete", &[]).await.expect(303);
    ada.get("/users/bob").await.expect(404);
    ada.submit("/users/bob/delete", &[]).await.expect(404);
    // Who resets their own password stays logged in here.
    let fields = [("first", "typed"), ("password", "another-password")];
    ada.submit("/users/ada/password", &fields).await.expect(303);
    ada.get("/account").await.expect(200);
}

/// The secret that a page shows this once.
fn secret(page: &str) -> String {
    page.split_once("id=\"made-secret\" tabindex=\"0\">")
        .and_then(|(_, rest)| rest.split_once('<'))
        .map(|(secret, _)| secret.to_owned())
        .unwrap_or_else(|| panic!("no secret in {page}"))
}

#[tokio::test]
async fn no_page_shows_a_secret() {
    let server = Server::start();
    let admin = server.client();
    user(&server, "ada", "admin").await;
    let code = "def handler(event, context):\n    return 1\n";
    let env = json!({"env": {"API_KEY": "s3cr3t-value"}});
    admin.deploy("one", code, env).await;
    admin
        .patch(
            "/api/v1/functions/one",
            &json!({"env": {"OTHER": "s3cr3t-other"}}),
        )
        .await
        .expect(200);
    let answer = admin.invoke("one", &json!({})).await;
    let id = answer.header("x-hearth-invocation-id").to_owned();
    let ada = Browser::of_user(&server, "ada", PASSWORD).await;
    let fields = [("name", "ci"), ("rights", "read")];
    let made = secret(&ada.submit("/tokens", &fields).await.expect(200).text());
    assert!(made.starts_with("hth_"));
    server
        .client_with(Some(&made))
        .get("/api/v1/functions")
        .await
        .expect(200);

    let hidden = [
        "s3cr3t-value",
        "s3cr3t-other",
        "argon2",
        PASSWORD,
        TOKEN,
        &made,
        &ada.cookie["hearth_session=".len()..],
    ];
    // Followed from link to link, beginning at every page the console has.
    let mut open: Vec<String> = [
        "/",
        "/functions",
        "/new",
        "/account",
        "/users",
        "/tokens",
        "/audit",
        "/retention",
        "/login",
        "/setup",
        "/functions/one",
        "/functions/one/code",
        "/functions/one/latency",
        "/functions/one/invocations",
        "/functions/one/logs",
        "/functions/one/versions",
        "/functions/one/settings",
        "/api/v1/functions",
        "/api/v1/functions/one",
        "/api/v1/users",
        "/api/v1/tokens",
        "/api/v1/audit",
        "/api/v1/node",
        "/metrics",
    ]
    .map(str::to_owned)
    .to_vec();
    open.push(format!("/functions/one/invocations/{id}"));
    let mut seen: Vec<String> = Vec::new();
    while let Some(path) = open.pop() {
        if seen.contains(&path) || seen.len() > 150 {
            continue;
        }
        let answer = ada.get(&path).await;
        let text = answer.text();
        for secret in hidden {
            assert!(!text.contains(secret), "{path} shows {secret}");
            let headers = format!("{:?}", answer.headers);
            assert!(!headers.contains(secret), "{path} sends {secret}");
        }
        for link in text.split("href=\"/").skip(1) {
            let link = link.split(['"', '#']).next().unwrap_or_default();
            if !link.starts_with("static/") && !link.starts_with("fn/") {
                open.push(format!(
                    "/{}",
                    link.replace("&amp;", "&").replace("&#38;", "&")
                ));
            }
        }
        seen.push(path);
    }
    assert!(seen.len() > 20, "{seen:?}");
}

#[tokio::test]
async fn every_page_and_refusal_has_the_security_headers() {
    let server = Server::start();
    user(&server, "root", "admin").await;
    user(&server, "ada", "viewer").await;
    let ada = Browser::of_user(&server, "ada", PASSWORD).await;
    let foreign = ada.post("/logout").header("sec-fetch-site", "cross-site");
    let answers = [
        ada.get("/account").await.expect(200),
        ada.get("/users").await.expect(403),
        ada.get("/no/such/page").await.expect(404),
        Browser::new(&server).get("/login").await.expect(200),
        Browser::new(&server).get("/setup").await.expect(200),
        ada.send(foreign).await.expect(403),
    ];
    for answer in answers {
        assert_eq!(
            answer.header("content-security-policy"),
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
             font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none', \
             script-src *:*/static/; style-src *:*/static/; img-src *:*/static/ data:; font-src *:*/static/; worker-src 'none'"
        );
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "same-origin");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
}
