//! The first set-up, logging in by password, the limits on it, and sessions.

use serde_json::json;

use crate::support::{Browser, Server, TOKEN, encoded};

/// Long enough.
pub const PASSWORD: &str = "a-long-enough-password";

/// Makes a user by the API.
pub async fn user(server: &Server, name: &str, role: &str) {
    let body = json!({"name": name, "role": role, "password": PASSWORD});
    server
        .client()
        .post("/api/v1/users", &body)
        .await
        .expect(201);
}

async fn set_up(browser: &Browser, code: &str, password: &str) -> crate::support::Answer {
    let fields = [
        ("code", code),
        ("name", "ada"),
        ("password", password),
        ("repeat", password),
    ];
    browser.send(encoded(browser.post("/setup"), &fields)).await
}

#[tokio::test]
async fn the_first_admin_is_made_with_the_code_from_the_log_and_no_other() {
    let server = Server::start();
    let first_code = server.setup_code().expect("a code");
    let server = server.restart();
    let code = server.setup_code().expect("a code");
    assert_ne!(code, first_code, "another one at each start");
    let mut browser = Browser::new(&server);
    let login = browser.get("/login").await.expect(200).text();
    assert!(login.contains("href=\"/setup\"") && login.contains("id=\"login-token\""));
    assert!(!login.contains("id=\"login-password\""));
    browser.get("/setup").await.expect(200);

    for wrong in ["", &first_code, "0000-0000-0000"] {
        let answer = set_up(&browser, wrong, PASSWORD).await.expect(401);
        assert_eq!(answer.header("set-cookie"), "");
        let page = answer.text();
        assert!(
            page.contains("id=\"error-code\">That code is wrong"),
            "{page}"
        );
    }
    for (password, message) in [
        ("short-pass", "12 to 128 characters"),
        ("ada", "12 to 128 characters"),
    ] {
        let page = set_up(&browser, &code, password).await.expect(422).text();
        assert!(page.contains(message), "{page}");
        assert!(!page.contains("short-pass"), "a password is never repeated");
        assert!(page.contains(&code), "the code stays");
    }
    let fields = [
        ("code", code.as_str()),
        ("name", "Ada Lovelace"),
        ("password", PASSWORD),
        ("repeat", PASSWORD),
    ];
    let page = browser.send(encoded(browser.post("/setup"), &fields)).await;
    assert!(
        page.expect(422)
            .text()
            .contains("id=\"error-name\">Must be 1 to 64")
    );

    let made = set_up(&browser, &code.to_uppercase(), PASSWORD).await;
    let made = made.expect(303);
    assert_eq!(made.header("location"), "/");
    browser.enter(&made).await;
    browser.get("/users").await.expect(200);
    let again = set_up(&browser, &code, PASSWORD).await.expect(409).text();
    assert!(again.contains("id=\"setup-done\""));

    let server = server.restart();
    assert_eq!(server.setup_code(), None);
    let browser = Browser::new(&server);
    let done = browser.get("/setup").await.expect(200).text();
    assert!(done.contains("id=\"setup-done\"") && !done.contains("<form"));
    let login = browser.get("/login").await.expect(200).text();
    assert!(login.contains("id=\"login-password\"") && !login.contains("href=\"/setup\""));
    // Upper case and spaces were not meant.
    Browser::of_user(&server, " ADA ", PASSWORD).await;
}

#[tokio::test]
async fn a_user_made_by_the_api_closes_the_setup() {
    let server = Server::start();
    let code = server.setup_code().expect("a code");
    user(&server, "bob", "admin").await;
    let browser = Browser::new(&server);
    let page = browser.get("/setup").await.expect(200).text();
    assert!(page.contains("id=\"setup-done\""));
    set_up(&browser, &code, PASSWORD).await.expect(409);
    let users = server
        .client()
        .get("/api/v1/users")
        .await
        .expect(200)
        .json();
    assert_eq!(users["items"].as_array().expect("a list").len(), 1);
}

#[tokio::test]
async fn wrong_passwords_are_limited_by_account_and_tell_nothing() {
    let server = Server::start();
    user(&server, "ada", "admin").await;
    user(&server, "bob", "viewer").await;
    let browser = Browser::new(&server);
    let mut pages = Vec::new();
    for (name, password) in [("ada", "not-the-password"), ("eve", PASSWORD)] {
        let answer = browser.try_password(name, password).await.expect(401);
        assert_eq!(answer.header("set-cookie"), "");
        pages.push(answer.text().replace(&format!("value=\"{name}\""), ""));
    }
    assert_eq!(
        pages[0], pages[1],
        "an unknown name looks like a wrong password"
    );
    assert!(pages[0].contains("Wrong name or password."));
    for (name, password) in [("", PASSWORD), ("ada", "")] {
        browser.try_password(name, password).await.expect(422);
    }

    let mut refused = None;
    for _ in 0..20 {
        let answer = browser.try_password("ada", "not-the-password").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
        answer.expect(401);
    }
    let refused = refused.expect("a limit");
    let wait: u64 = refused.header("retry-after").parse().expect("seconds");
    assert!((1..=30).contains(&wait), "{wait}");
    assert!(refused.text().contains("Too many attempts. Try again in"));
    // Not even the right one is looked at; other accounts are.
    browser.try_password("ada", PASSWORD).await.expect(429);
    Browser::of_user(&server, "bob", PASSWORD).await;
    // Nor does the limit stand in the way of a token.
    Browser::logged_in(&server, TOKEN).await;
}

#[tokio::test]
async fn who_is_known_at_an_address_is_not_locked_out_by_others() {
    let server = Server::start_with(&[("HEARTH_TRUSTED_PROXIES", "127.0.0.1")]);
    user(&server, "ada", "admin").await;
    let browser = Browser::new(&server);
    let from = async |address: &str, password: &str| {
        let request = browser.post("/login").header("x-forwarded-for", address);
        let fields = [("name", "ada"), ("password", password)];
        browser
            .send(encoded(request, &fields))
            .await
            .status
            .as_u16()
    };
    assert_eq!(from("192.0.2.1", PASSWORD).await, 303);
    let mut tried = 0;
    while from(&format!("192.0.2.{}", 10 + tried), "wrong").await == 401 {
        tried += 1;
        assert!(tried < 20, "no limit");
    }
    assert_eq!(from("192.0.2.99", PASSWORD).await, 429);
    assert_eq!(from("192.0.2.1", PASSWORD).await, 303);
}

#[tokio::test]
async fn guesses_of_the_code_and_of_tokens_are_limited_by_address() {
    let server = Server::start();
    let browser = Browser::new(&server);
    let mut limited = false;
    for _ in 0..10 {
        let answer = set_up(&browser, "0000-0000-0000", PASSWORD).await;
        limited = answer.status == 429;
        if limited {
            assert!(!answer.header("retry-after").is_empty());
            assert!(
                answer
                    .text()
                    .contains("id=\"error-code\">Too many attempts")
            );
            break;
        }
    }
    assert!(limited);
    limited = false;
    for _ in 0..40 {
        let form = encoded(browser.post("/login"), &[("token", "hth_guess")]);
        let answer = browser.send(form).await;
        limited = answer.status == 429;
        if limited {
            assert!(answer.text().contains("role=\"alert\">Too many attempts"));
            break;
        }
        answer.expect(401);
    }
    assert!(limited);
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one_and_all_others() {
    let server = Server::start();
    user(&server, "ada", "admin").await;
    user(&server, "bob", "viewer").await;
    let here = Browser::of_user(&server, "ada", PASSWORD).await;
    let there = Browser::of_user(&server, "ada", PASSWORD).await;
    let bob = Browser::of_user(&server, "bob", PASSWORD).await;
    let page = here.get("/account").await.expect(200).text();
    let others = sessions(&page);
    assert_eq!(others.len(), 1, "{page}");
    assert!(page.contains("this session") && page.contains("127.0.0.1"));
    // Not by somebody else, not with a guess.
    let end = format!("/account/sessions/{}/end", others[0]);
    bob.submit(&end, &[]).await.expect(404);
    here.submit("/account/sessions/x/end", &[])
        .await
        .expect(404);
    there.get("/account").await.expect(200);
    here.submit(&end, &[]).await.expect(303);
    there.get("/account").await.expect(303);
    here.submit(&end, &[]).await.expect(404);

    let second = Browser::of_user(&server, "ada", PASSWORD).await;
    let third = Browser::of_user(&server, "ada", PASSWORD).await;
    here.submit("/account/sessions/end-others", &[])
        .await
        .expect(303);
    for ended in [&second, &third] {
        ended.get("/account").await.expect(303);
    }
    here.get("/account").await.expect(200);
    bob.get("/account").await.expect(200);

    // An admin ends those of others.
    let page = here.get("/users/bob").await.expect(200).text();
    let bobs = sessions(&page);
    assert_eq!(bobs.len(), 1);
    let end = format!("/users/bob/sessions/{}/end", bobs[0]);
    here.submit(&end, &[]).await.expect(303);
    bob.get("/account").await.expect(303);
    // A new log-in takes the place of the browser's session.
    let form = encoded(here.post("/login"), &[("token", TOKEN)]);
    here.send(form).await.expect(303);
    here.get("/account").await.expect(303);
}

/// The sessions that a page offers to end.
fn sessions(page: &str) -> Vec<String> {
    page.split("/sessions/")
        .skip(1)
        .filter_map(|rest| rest.split_once("/end\""))
        .map(|(id, _)| id.to_owned())
        .filter(|id| id.bytes().all(|b| b.is_ascii_digit()))
        .collect()
}

#[tokio::test]
async fn a_changed_password_ends_the_other_sessions_and_renews_this_one() {
    let server = Server::start();
    user(&server, "ada", "admin").await;
    let mut here = Browser::of_user(&server, "ada", PASSWORD).await;
    let there = Browser::of_user(&server, "ada", PASSWORD).await;
    let new = "another-long-password";
    for (old, password, repeat, status, message) in [
        ("", new, new, 422, "Enter your current password."),
        ("wrong-password", new, new, 403, "Wrong current password."),
        (PASSWORD, "short", "short", 422, "12 to 128 characters"),
        (
            PASSWORD,
            PASSWORD,
            PASSWORD,
            422,
            "Choose a password that differs",
        ),
        (
            PASSWORD,
            new,
            "different-password",
            422,
            "The passwords do not match",
        ),
    ] {
        let fields = [("old", old), ("password", password), ("repeat", repeat)];
        let page = here.submit("/account/password", &fields).await;
        let page = page.expect(status).text();
        assert!(page.contains(message), "{message} in {page}");
        assert!(!page.contains(new) && !page.contains(PASSWORD));
    }
    there.get("/account").await.expect(200);
    let fields = [("old", PASSWORD), ("password", new), ("repeat", new)];
    let changed = here.submit("/account/password", &fields).await.expect(303);
    there.get("/account").await.expect(303);
    let old_cookie = here.cookie.clone();
    here.get("/account").await.expect(303);
    here.enter(&changed).await;
    assert_ne!(here.cookie, old_cookie);
    here.try_password("ada", PASSWORD).await.expect(401);
    Browser::of_user(&server, "ada", new).await;
    // A token has no password.
    let token = Browser::logged_in(&server, TOKEN).await;
    token.submit("/account/password", &fields).await.expect(403);
}

/// A restart forgets when passwords were entered, as ten minutes do: sessions go on.
#[tokio::test]
async fn what_outlasts_a_session_asks_for_the_password_again() {
    let server = Server::start();
    user(&server, "ada", "admin").await;
    let mut ada = Browser::of_user(&server, "ada", PASSWORD).await;
    let mut by_token = Browser::logged_in(&server, TOKEN).await;
    let token = [
        ("name", "ci & \"co\""),
        ("rights", "read"),
        ("rights", "write"),
    ];
    let made = ada.submit("/tokens", &token).await.expect(200).text();
    assert!(
        made.contains("hth_"),
        "just after the log-in nothing is asked"
    );
    let server = server.restart();
    for browser in [&mut ada, &mut by_token] {
        browser.at(&server);
        browser.get("/tokens").await.expect(200);
    }
    let count = async || {
        let tokens = server.client().get("/api/v1/tokens").await.json();
        tokens["items"].as_array().expect("a list").len()
    };
    let before = count().await;
    let person = [("name", "eve"), ("role", "admin"), ("first", "made")];
    for (path, fields) in [
        ("/tokens", &token[..]),
        ("/users", &person),
        ("/users/ada/role", &[("role", "viewer")]),
        ("/users/ada/password", &[("first", "made")]),
        ("/users/ada/enable", &[]),
    ] {
        let page = ada.submit(path, fields).await.expect(403).text();
        assert!(page.contains("id=\"confirm\""), "{path}: {page}");
        assert!(page.contains(&format!("action=\"{path}\"")), "{page}");
        for (name, _) in fields {
            assert!(
                page.contains(&format!("type=\"hidden\" name=\"{name}\"")),
                "{page}"
            );
        }
    }
    // Nor by the API with the session's cookie.
    for (path, body) in [
        ("/api/v1/tokens", json!({"name": "x", "rights": ["admin"]})),
        ("/api/v1/users", json!({"name": "eve", "role": "admin"})),
    ] {
        let request = ada
            .post(path)
            .header("x-csrf-token", ada.csrf())
            .json(&body);
        ada.send(request).await.problem(403, "forbidden");
    }
    let question = ada.submit("/tokens", &token).await.expect(403).text();
    assert!(
        question.contains("value=\"ci &#38; &#34;co&#34;\""),
        "{question}"
    );
    let with = |password: &'static str| {
        let mut fields = token.to_vec();
        fields.push(("confirm", password));
        fields
    };
    let wrong = ada
        .submit("/tokens", &with("wrong"))
        .await
        .expect(403)
        .text();
    assert!(wrong.contains("Wrong password."), "{wrong}");
    assert!(
        !wrong.contains("value=\"wrong\""),
        "a password is never repeated"
    );
    assert_eq!(count().await, before);
    let made = ada
        .submit("/tokens", &with(PASSWORD))
        .await
        .expect(200)
        .text();
    assert!(made.contains("hth_"), "{made}");
    assert_eq!(count().await, before + 1);
    let added = ada.submit("/users", &person).await.expect(200).text();
    assert!(
        added.contains("Initial password for eve"),
        "and not again for ten minutes"
    );

    // A token's session asks for that token and no other.
    let body = json!({"name": "o", "rights": ["admin"]});
    let other = server.client().post("/api/v1/tokens", &body).await;
    let other = other.expect(201).json()["token"].clone();
    let other = other.as_str().expect("a token").to_owned();
    let again = |token: &str| {
        let mut fields: Vec<(&'static str, String)> =
            vec![("name", "b".into()), ("rights", "read".into())];
        fields.push(("confirm", token.to_owned()));
        fields
    };
    for (token, status) in [(other.as_str(), 403), (PASSWORD, 403), (TOKEN, 200)] {
        let fields = again(token);
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        by_token.submit("/tokens", &fields).await.expect(status);
    }
    let audit = server
        .client()
        .get("/api/v1/audit")
        .await
        .expect(200)
        .text();
    assert!(audit.contains("session.confirm_failed"), "{audit}");

    // Guesses are limited as at the log-in.
    let server = server.restart();
    ada.at(&server);
    let mut limited = false;
    for _ in 0..10 {
        limited |= ada.submit("/tokens", &with("wrong")).await.status == 429;
    }
    assert!(limited);
    ada.submit("/tokens", &with(PASSWORD)).await.expect(429);
}
