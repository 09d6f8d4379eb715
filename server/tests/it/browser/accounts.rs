//! Set-up, log-in, users, sessions, tokens and the audit log, as an admin and a viewer meet them.

use fantoccini::Locator;

use super::driver::{Browser, DESKTOP, PHONE};
use crate::logins::{PASSWORD, user};
use crate::support::{Server, TOKEN};

async fn open(browser: &Browser, server: &Server, path: &str) {
    browser
        .client
        .goto(&format!("{}{path}", server.url))
        .await
        .expect("the page");
    browser.find("main").await;
}

async fn log_in(browser: &Browser, name: &str, password: &str) {
    browser.fill("#login-name", name).await;
    browser.fill("#login-password", password).await;
    browser.click("#login-password-submit").await;
}

async fn is_there(browser: &Browser, css: &str) -> bool {
    browser.client.find(Locator::Css(css)).await.is_ok()
}

#[tokio::test]
async fn an_admin_is_made_adds_a_viewer_and_sees_all_that_happens() {
    let server = Server::start();
    let code = server.setup_code().expect("a code");
    let (admin, viewer) = Browser::start_two([(DESKTOP, false), (PHONE, true)]).await;
    open(&admin, &server, "/").await;
    look(&admin, "login-fresh-desktop-light").await;
    admin.click("#to-setup").await;
    admin.fill("#code", "0000-0000-0000").await;
    admin.fill("#name", "ada").await;
    admin.fill("#password", PASSWORD).await;
    admin.fill("#repeat", PASSWORD).await;
    admin.click("#setup-submit").await;
    admin.wait_for_text("#error-code", "code is wrong").await;
    look(&admin, "setup-error-desktop-light").await;
    admin.fill("#code", &code).await;
    admin.fill("#password", PASSWORD).await;
    admin.fill("#repeat", PASSWORD).await;
    admin.click("#setup-submit").await;
    admin.find("#logout").await;

    open(&admin, &server, "/users").await;
    admin.click("#add-person summary").await;
    admin.fill("#name", "bob").await;
    admin.click("#role-viewer").await;
    look(&admin, "accounts-add-desktop-light").await;
    admin.click("#add-person-button").await;
    let first_password = admin.text("#made-secret").await;
    look(&admin, "accounts-made-desktop-light").await;
    assert!(is_there(&admin, "#accounts [data-person=bob]").await);

    // Somebody guesses the admin's password on a phone, until nobody listens any more.
    open(&viewer, &server, "/").await;
    look(&viewer, "login-phone-dark").await;
    loop {
        log_in(&viewer, "ada", "not-the-password").await;
        viewer
            .wait_for_any_text(
                "#login-password-error",
                &["Wrong name", "Too many attempts"],
            )
            .await;
        if viewer
            .text("#login-password-error")
            .await
            .contains("Too many")
        {
            break;
        }
        // Its empty message distinguishes the next answer from this one.
        open(&viewer, &server, "/login").await;
    }
    look(&viewer, "login-limited-phone-dark").await;
    log_in(&viewer, "bob", &first_password).await;
    viewer.find("#logout").await;
    open(&viewer, &server, "/account").await;
    viewer.wait_for_text("#account-name", "bob").await;
    look(&viewer, "account-phone-dark").await;
    // What a viewer may not do is not offered, and refused.
    for offer in ["a[href='/users']", "a[href='/tokens']", "a[href='/new']"] {
        assert!(!is_there(&viewer, offer).await, "{offer}");
    }
    open(&viewer, &server, "/users").await;
    viewer.wait_for_text("main", "lacks the right").await;
    look(&viewer, "forbidden-phone-dark").await;

    // The viewer's session is ended from elsewhere.
    open(&admin, &server, "/users/bob").await;
    look(&admin, "person-desktop-light").await;
    admin.click("#sessions .row-action button").await;
    admin.wait_for_text("#notice", "Session ended").await;
    assert!(!is_there(&admin, "#sessions").await);
    open(&viewer, &server, "/account").await;
    viewer.find("#login-password").await;

    // A token is shown once.
    open(&admin, &server, "/tokens").await;
    admin.click("#add-token summary").await;
    admin.fill("#name", "deploys").await;
    admin.click("#right-write").await;
    admin.fill("#scope", "Bad Name").await;
    admin.click("#add-token-button").await;
    admin.wait_for_text("#error-scope", "function names").await;
    look(&admin, "tokens-error-desktop-light").await;
    admin.fill("#scope", "hello").await;
    admin.click("#add-token-button").await;
    let secret = admin.text("#made-secret").await;
    assert!(secret.starts_with("hth_"), "{secret}");
    look(&admin, "tokens-made-desktop-light").await;
    let token = server.client_with(Some(&secret));
    token.get("/api/v1/functions").await.expect(200);
    // A reload neither makes another one nor shows this one again.
    admin.client.refresh().await.expect("a reload");
    admin.find("#tokens").await;
    assert!(!is_there(&admin, "#made-secret").await);
    let source = admin.client.source().await.expect("the page");
    assert_eq!(source.matches("deploys</th>").count(), 1, "{source}");
    admin
        .click("#tokens tbody tr:first-child .ask summary")
        .await;
    look(&admin, "tokens-ask-desktop-light").await;
    admin
        .click("#tokens tbody tr:first-child .ask button")
        .await;
    admin.wait_for_text("#notice", "revoked").await;
    token
        .get("/api/v1/functions")
        .await
        .problem(401, "unauthorized");

    open(&admin, &server, "/users/bob").await;
    admin.click("#ask-delete summary").await;
    admin.click("#delete-button").await;
    admin.wait_for_text("#notice", "User deleted").await;
    open(&admin, &server, "/users/ada").await;
    admin.click("#disable-button").await;
    admin.wait_for_text("#problem", "the last admin").await;
    look(&admin, "person-last-admin-desktop-light").await;

    // All of it is in the log.
    open(&admin, &server, "/audit").await;
    let log = admin.text("#audit").await;
    for action in [
        "user.create",
        "session.login",
        "session.login_failed",
        "session.end",
        "token.create",
        "token.revoke",
        "user.delete",
    ] {
        assert!(log.contains(action), "{action} is missing in {log}");
    }
    look(&admin, "audit-desktop-light").await;
    admin.fill("#filter-target", "deploys").await;
    admin.click("#filter-button").await;
    admin.wait_for_text("#audit", "token.revoke").await;
    let filtered = admin.text("#audit").await;
    assert!(!filtered.contains("user.create"), "{filtered}");

    // The own password, and out.
    open(&admin, &server, "/account").await;
    admin.fill("#old", PASSWORD).await;
    admin.fill("#password", "another-password").await;
    admin.fill("#repeat", "another-password").await;
    admin.click("#password-submit").await;
    admin.wait_for_text("#notice", "Password changed").await;
    look(&admin, "account-desktop-light").await;
    admin.close().await;
    viewer.close().await;
}

/// A restart forgets when passwords were entered, as ten minutes do: sessions go on.
#[tokio::test]
async fn what_outlasts_a_session_asks_for_the_password_again() {
    let server = Server::start();
    user(&server, "ada", "admin").await;
    let (admin, viewer) = Browser::start_two([(DESKTOP, false), (PHONE, true)]).await;
    open(&admin, &server, "/").await;
    log_in(&admin, "ada", PASSWORD).await;
    admin.find("#logout").await;
    let server = server.restart();

    open(&admin, &server, "/tokens").await;
    admin.click("#add-token summary").await;
    admin.fill("#name", "ci & \"co\"").await;
    admin.click("#right-write").await;
    admin.click("#add-token-button").await;
    admin.wait_for_text("h1", "Enter your password again").await;
    admin
        .wait_for_text("label[for=confirm]", "Password for ada")
        .await;
    // One can type at once.
    admin
        .wait_until(
            "the field has the focus",
            "return document.activeElement?.id === 'confirm';",
        )
        .await;
    look(&admin, "confirm-desktop-light").await;
    admin.fill("#confirm", "not-the-password").await;
    admin.click("#confirm-button").await;
    admin
        .wait_for_text("#error-confirm", "Wrong password.")
        .await;
    look(&admin, "confirm-error-desktop-light").await;
    admin.fill("#confirm", PASSWORD).await;
    admin.click("#confirm-button").await;
    // What was asked for is done, as it was typed before the question.
    let secret = admin.text("#made-secret").await;
    let token = server.client_with(Some(&secret));
    token.get("/api/v1/functions").await.expect(200);
    let tokens = server.client().get("/api/v1/tokens").await.expect(200);
    let tokens = tokens.json();
    let made = tokens["items"].as_array().expect("a list").iter();
    let made: Vec<_> = made
        .filter(|token| token["name"] == "ci & \"co\"")
        .collect();
    assert_eq!(made.len(), 1, "{tokens}");
    assert!(made[0]["rights"].to_string().contains("write"), "{tokens}");

    // Not again for ten minutes.
    open(&admin, &server, "/users").await;
    admin.click("#add-person summary").await;
    admin.fill("#name", "bob").await;
    admin.click("#add-person-button").await;
    admin.find("#made-secret").await;

    // For a user it is the same, on a phone as well.
    let server = server.restart();
    open(&admin, &server, "/users").await;
    admin.click("#add-person summary").await;
    admin.fill("#name", "eve").await;
    admin.click("#role-viewer").await;
    admin.resize(PHONE).await;
    admin.click("#add-person-button").await;
    admin.find("#confirm").await;
    look(&admin, "confirm-phone-light").await;
    admin.fill("#confirm", PASSWORD).await;
    admin.click("#confirm-button").await;
    let first = admin.text("#made-secret").await;
    open(&viewer, &server, "/").await;
    log_in(&viewer, "eve", &first).await;
    viewer.find("#logout").await;
    viewer.close().await;
    admin.close().await;
}

#[tokio::test]
async fn the_pages_about_people_are_sound_at_every_size_and_in_every_theme() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, false).await;
    browser
        .pictures(
            &server.url,
            &[("login-fresh", "/login"), ("setup", "/setup")],
        )
        .await;
    user(&server, "ada", "admin").await;
    user(
        &server,
        "a-user-with-quite-a-long-name@example.org",
        "operator",
    )
    .await;
    let limited = serde_json::json!({
        "name": "deploys from continuous integration", "rights": ["read", "write"],
        "scope": ["thumbnails", "a-function-with-quite-a-long-name"], "expires_at": "2099-01-01T00:00:00Z",
    });
    server
        .client()
        .post("/api/v1/tokens", &limited)
        .await
        .expect(201);
    browser
        .pictures(
            &server.url,
            &[("login-users", "/login"), ("setup-done", "/setup")],
        )
        .await;
    open(&browser, &server, "/login").await;
    browser.click("#token-login summary").await;
    look(&browser, "login-token-desktop-light").await;
    browser.fill("#login-token", TOKEN).await;
    browser.click("#login-submit").await;
    browser.find("#logout").await;
    browser
        .pictures(&server.url, &[("account-token", "/account")])
        .await;
    // Now as a user, who logs in from where the token was.
    browser
        .client
        .delete_all_cookies()
        .await
        .expect("no session");
    open(&browser, &server, "/login").await;
    log_in(&browser, "ada", PASSWORD).await;
    browser.find("#logout").await;
    browser
        .pictures(
            &server.url,
            &[
                ("account", "/account"),
                ("accounts", "/users"),
                ("person", "/users/ada"),
                (
                    "person-other",
                    "/users/a-user-with-quite-a-long-name@example.org",
                ),
                ("tokens", "/tokens"),
                ("secrets-empty", "/secrets"),
                ("audit", "/audit"),
                ("audit-nothing", "/audit?target=nothing"),
            ],
        )
        .await;
    // What the pages open, on a phone in the dark.
    browser.resize(PHONE).await;
    browser.prefer(true).await;
    open(&browser, &server, "/users").await;
    browser.click("#add-person summary").await;
    browser.click("#first-typed").await;
    look(&browser, "accounts-add-phone-dark").await;
    open(&browser, &server, "/tokens").await;
    browser
        .click("#tokens tbody tr:first-child .ask summary")
        .await;
    browser.click("#add-token summary").await;
    look(&browser, "tokens-add-phone-dark").await;
    browser.fill("#name", "ci").await;
    browser.click("#add-token-button").await;
    browser.find("#made-secret").await;
    look(&browser, "tokens-made-phone-dark").await;
    browser.close().await;
}

/// The open page, whatever it was answered with: a refusal is an error to the browser's console.
async fn look(browser: &Browser, name: &str) {
    browser.console().await;
    browser.look(name).await;
}
