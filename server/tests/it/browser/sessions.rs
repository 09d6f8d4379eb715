//! A session that ends under an open page takes nothing away that was typed there, and drafts outlive the page.

use serde_json::json;

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::{Server, TOKEN};

const CODE: &str = "def handler(event, context):\n    return 'deployed'\n";
const EDITED: &str = "def handler(event, context):\n    return 'edited'\n";

impl Browser {
    /// Ends the session as its expiry does: the next request comes without one.
    async fn lose_session(&self) {
        self.client
            .delete_all_cookies()
            .await
            .expect("no cookies any more");
    }

    async fn code(&self) -> String {
        let area = self.find("#code-editor").await;
        let value = area.prop("value").await.expect("a value");
        value.unwrap_or_default()
    }
}

/// A function whose code is being edited.
async fn edited() -> (Server, Browser) {
    let server = Server::start();
    server.client().deploy("kept", CODE, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/kept/code").await;
    browser.find("#code-editor-box .cm-content").await;
    browser.paste("#code-editor", EDITED).await;
    (server, browser)
}

#[tokio::test]
async fn an_expired_session_is_renewed_over_the_page() {
    let (server, browser) = edited().await;
    browser.lose_session().await;
    browser.click("#review-button").await;
    browser.find("#session-dialog[open]").await;
    browser.fill("#session-secret", "wrong").await;
    browser.click("#session-submit").await;
    browser
        .wait_for_text("#session-error", "Unknown token")
        .await;
    // The refusals are what was asked for.
    browser.console().await;
    browser.look("session-dialog-desktop-light").await;
    browser.fill("#session-secret", TOKEN).await;
    browser.click("#session-submit").await;
    browser
        .wait_until(
            "the dialog is closed",
            "return !document.getElementById('session-dialog').open;",
        )
        .await;
    assert_eq!(browser.code().await, EDITED);
    // The same page goes on, with the new session's token.
    browser.click("#review-button").await;
    browser.find("#review[open]").await;
    browser.lose_session().await;
    browser.click("#deploy-button").await;
    browser.find("#session-dialog[open]").await;
    browser.fill("#session-secret", TOKEN).await;
    browser.click("#session-submit").await;
    browser
        .wait_until(
            "the dialog is closed again",
            "return !document.getElementById('session-dialog').open;",
        )
        .await;
    browser.click("#review-button").await;
    browser.click("#review[open] #deploy-button").await;
    browser.wait_for_text("#notice", "Version 2 is live").await;
    let result = server.client().invoke("kept", &json!(1)).await;
    assert_eq!(result.expect(200).json(), "edited");
    browser.close().await;
}

#[tokio::test]
async fn a_draft_is_offered_after_a_reload_and_a_log_in() {
    let (server, browser) = edited().await;
    browser.click("#new-file").await;
    browser.fill("#path", "notes.txt").await;
    browser.paste("#code-editor", "a note\n").await;
    browser
        .wait_until(
            "the draft is kept",
            "return Object.entries(sessionStorage).some(([key, value]) => key.startsWith('draft:') && value.includes('a note'));",
        )
        .await;
    // Past the browser's own question, as somebody who is not asked, and with no session any more.
    browser.lose_session().await;
    let away = "addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), true); location.reload();";
    browser
        .client
        .execute(away, vec![])
        .await
        .expect("a script");
    browser.fill("#login-token", TOKEN).await;
    browser.click("#login-submit").await;
    browser
        .wait_for_text("#draft-restore", "Restore draft from ")
        .await;
    browser.look("draft-desktop-light").await;
    assert_eq!(browser.code().await, CODE);
    browser.click("#draft-restore").await;
    browser
        .wait_for_text("#edit-summary", "2 files changed: main.py, notes.txt")
        .await;
    assert_eq!(browser.code().await, EDITED);
    browser.click("#review-button").await;
    browser
        .wait_for_text("#review-content", "changes 2 files")
        .await;
    browser.click("#review[open] #deploy-button").await;
    browser.wait_for_text("#notice", "Version 2 is live").await;
    // Deployed, it is no draft any more.
    browser.open(&server, "/functions/kept/code").await;
    let none = "return document.getElementById('draft').hidden && !Object.keys(sessionStorage).some((key) => key.startsWith('draft:'));";
    browser.wait_until("no draft", none).await;
    browser.close().await;
}
