//! From the login to the first result, and code that does not import.

use super::driver::{Browser, DESKTOP};
use super::{CODE, log_in};
use crate::support::{Server, TOKEN};

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
    assert_eq!(browser.text("#result-start").await, "fork");
    let stages = browser.text("#result .stages").await;
    for stage in ["queue", "start", "send", "run", "recv", "total"] {
        assert!(stages.contains(stage), "{stage} is missing in {stages}");
    }
    browser.find("#history-rows tr[data-invocation]").await;
    browser.picture("function-desktop-light").await;

    browser.click("#invoke-button").await;
    browser.wait_for_text("#result-start", "warm").await;
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
    // Until it is there, what lies below it moves, and a click may miss.
    browser.find("#code-editor-box .cm-content").await;
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
