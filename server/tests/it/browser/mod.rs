//! The console in a real browser, as a person uses it.

mod driver;
mod people;

use driver::{Browser, DESKTOP, PHONE};
use serde_json::json;

use crate::support::{Server, TOKEN};

const CODE: &str = "def handler(event, context):\n    print('asked for', event['name'])\n    return {'greeting': 'Hello, ' + event['name']}\n";

async fn log_in(browser: &Browser, server: &Server) {
    browser
        .client
        .goto(&format!("{}/", server.url))
        .await
        .expect("the console");
    browser.fill("#login-token", TOKEN).await;
    browser.click("#login-submit").await;
    browser.find("#logout").await;
}

#[tokio::test]
async fn a_person_logs_in_deploys_invokes_and_sees_the_result_and_the_new_row() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, false).await;
    browser
        .client
        .goto(&format!("{}/", server.url))
        .await
        .expect("the console");
    browser.picture("login-desktop-light").await;
    browser.fill("#login-token", "not-the-token").await;
    browser.click("#login-submit").await;
    browser.wait_for_text("#login-error", "token").await;
    browser.fill("#login-token", TOKEN).await;
    browser.click("#login-submit").await;

    browser.picture("empty-desktop-light").await;
    browser.click("#create-first").await;
    browser.fill("#name", "greeter").await;
    browser.paste("#code-editor", CODE).await;
    browser.picture("new-desktop-light").await;
    browser.click("#deploy-button").await;

    browser.wait_for_text("#function-state", "ready").await;
    browser.paste("#event", "{\"name\": \"Ada\"}").await;
    browser.click("#invoke-button").await;
    browser.wait_for_text("#result-body", "Hello, Ada").await;
    assert!(browser.text("#result-logs").await.contains("asked for Ada"));
    assert_eq!(browser.text("#result-rung").await, "fork");
    let stages = browser.text("#result .stages").await;
    for stage in ["queue", "start", "send", "run", "recv", "total"] {
        assert!(stages.contains(stage), "{stage} is missing in {stages}");
    }
    browser.find("#history-rows tr[data-invocation]").await;
    browser.picture("function-desktop-light").await;

    browser.click("#invoke-button").await;
    browser.wait_for_text("#result-rung", "warm").await;
    browser.find("#history-rows tr:nth-child(2)").await;
    browser.click("#history-rows tr:first-child a").await;
    browser.wait_for_text("main", "asked for Ada").await;
    browser.picture("invocation-desktop-light").await;
    browser.close().await;
}

#[tokio::test]
async fn code_that_does_not_import_is_explained_and_nothing_typed_is_lost() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, true).await;
    log_in(&browser, &server).await;
    browser
        .client
        .goto(&format!("{}/new", server.url))
        .await
        .expect("the form");
    browser.fill("#name", "Broken Name").await;
    browser.paste("#code-editor", "import nowhere\n").await;
    browser.click("#deploy-button").await;
    browser.wait_for_text("#error-name", "letter").await;
    browser.picture("field-error-desktop-dark").await;
    browser.fill("#name", "broken").await;
    browser.click("#deploy-button").await;
    browser
        .wait_for_text("#form-outcome", "ModuleNotFoundError")
        .await;
    browser.picture("import-error-desktop-dark").await;
    let code = browser
        .find("#code-editor")
        .await
        .prop("value")
        .await
        .unwrap()
        .unwrap_or_default();
    assert_eq!(code.trim(), "import nowhere");
    browser.close().await;
}

#[tokio::test]
async fn every_page_works_on_a_phone_by_direct_link_and_a_function_can_be_deleted() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "pocket",
            "def handler(event, context):\n    raise ValueError('a' * 200)\n",
            json!({}),
        )
        .await;
    let failed = client.invoke("pocket", &json!({})).await;
    let id = failed.header("x-hearth-invocation-id").to_owned();
    let browser = Browser::start(PHONE, true).await;
    log_in(&browser, &server).await;
    for (name, path) in [
        ("functions", "/".to_owned()),
        ("new", "/new".to_owned()),
        ("function", "/functions/pocket".to_owned()),
        ("invocation", format!("/functions/pocket/invocations/{id}")),
        ("code", "/functions/pocket/code".to_owned()),
        ("settings", "/functions/pocket/settings".to_owned()),
    ] {
        browser
            .client
            .goto(&format!("{}{path}", server.url))
            .await
            .expect("the page");
        browser.find("main").await;
        browser.picture(&format!("{name}-phone-dark")).await;
        assert!(
            !browser.scrolls_sideways().await,
            "{path} is wider than a phone"
        );
    }
    browser.fill("#confirm", "pocket").await;
    browser.click("#delete-button").await;
    browser.find("#no-functions").await;
    client
        .get("/api/v1/functions/pocket")
        .await
        .problem(404, "not_found");
    browser.close().await;
}
