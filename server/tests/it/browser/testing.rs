//! The test panel: saved events, samples, calls by URL, the command for what is in the form; and the keyboard alone.

use fantoccini::key::Key;
use serde_json::json;

use super::driver::{Browser, DESKTOP, PHONE};
use super::log_in;
use crate::support::{Server, TOKEN};

const ECHO: &str = "def handler(event, context):\n    print('asked')\n    return event\n";

#[tokio::test]
async fn an_event_is_saved_and_had_again() {
    let server = Server::start();
    server.client().deploy("echo", ECHO, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/echo").await;
    browser.find("#event-box .cm-content").await;
    browser.paste("#event", "{\"name\": \"it's Ada\"}").await;
    let command = browser.text("#curl-command").await;
    assert!(
        command.ends_with("-d '{\"name\": \"it'\\''s Ada\"}'"),
        "{command}"
    );
    browser.click("#event-save summary").await;
    browser.click("#save-event").await;
    browser
        .wait_for_text("#error-event-name", "Give the event a name")
        .await;
    browser.console().await;
    browser.fill("#event-name", "Ada").await;
    browser.click("#save-event").await;
    browser.wait_for_text("#event-said", "Saved as").await;
    // The key in the editor invokes, whatever button was used last.
    let keys = [Key::Control, Key::Enter, Key::Null].map(char::from);
    browser
        .find("#event-box .cm-content")
        .await
        .send_keys(&String::from_iter(keys))
        .await
        .expect("keys");
    browser.wait_for_text("#result-body", "it's Ada").await;

    // A sample takes its place, and the saved one comes back.
    let choose = |value: &'static str| {
        let browser = &browser;
        async move {
            let select = browser.find("#pick").await;
            select.select_by_value(value).await.expect("an option");
        }
    };
    choose("sample-list").await;
    browser
        .wait_until(
            "the sample is in the editor",
            "return document.getElementById('event').value.includes('Grace') \
             && document.querySelector('#event-box .cm-content').textContent.includes('Grace');",
        )
        .await;
    browser.click("#invoke-button").await;
    browser.wait_for_text("#result-body", "Edsger").await;
    browser.wait_for_text("#result-started", "warm").await;
    browser.look("test-result-desktop-light").await;
    browser.resize(PHONE).await;
    browser.prefer(true).await;
    browser.look("test-result-phone-dark").await;
    browser.resize(DESKTOP).await;
    browser.open(&server, "/functions/echo?pick=saved-1").await;
    browser
        .wait_until("the page is wide again", "return window.innerWidth > 1000;")
        .await;
    browser
        .wait_until(
            "the saved event is in the editor",
            "return document.getElementById('event').value.includes(\"it's Ada\");",
        )
        .await;
    browser.click("#event-save summary").await;
    browser.click("#delete-event").await;
    browser.find("#confirm-dialog[open]").await;
    browser.look("confirm-desktop-dark").await;
    browser.click("#confirm-yes").await;
    browser.wait_for_text("#event-said", "is deleted").await;
    browser.close().await;
}

#[tokio::test]
async fn a_function_is_called_by_its_url() {
    let server = Server::start();
    let code = "import json\ndef handler(event, context):\n    return {'statusCode': 201, 'headers': {'content-type': 'application/json'}, \
        'body': json.dumps({'query': event.get('queryStringParameters'), 'body': event.get('body')})}\n";
    server.client().deploy("tea", code, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/tea").await;
    browser.click("#mode-http").await;
    let select = browser.find("#call-method").await;
    select.select_by_value("POST").await.expect("a method");
    browser.fill("#call-query", "size=2").await;
    browser
        .fill("#call-headers", "content-type: text/plain")
        .await;
    browser.fill("#call-body", "hot").await;
    let command = browser.text("#curl-command").await;
    for part in [
        "-X POST",
        "/fn/tea?size=2'",
        "-H 'content-type: text/plain'",
        "--data-raw 'hot'",
    ] {
        assert!(command.contains(part), "{part} in {command}");
    }
    browser.click("#call-button").await;
    browser.wait_for_text("#result-body", "\"hot\"").await;
    browser.wait_for_text("#result", "HTTP 201").await;
    browser.look("test-http-desktop-light").await;
    browser.close().await;
}

/// From the overview's empty state to a deployed function that answered, without a mouse.
#[tokio::test]
async fn the_keyboard_is_enough() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, true).await;
    log_in(&browser, &server).await;
    browser
        .find("#create-first")
        .await
        .send_keys(&Key::Enter)
        .await
        .expect("a key");
    browser
        .find("#starter-json-transform")
        .await
        .send_keys(&Key::Enter)
        .await
        .expect("a key");
    browser.find("#starter-json-transform[aria-current]").await;
    browser.find("#code-editor-box .cm-content").await;
    // Ctrl+S in the editor deploys.
    let press = |css: &'static str, keys: String| {
        let browser = &browser;
        async move {
            browser
                .find(css)
                .await
                .send_keys(&keys)
                .await
                .expect("keys");
        }
    };
    press(
        "#code-editor-box .cm-content",
        format!("{}s{}", char::from(Key::Control), char::from(Key::Null)),
    )
    .await;
    browser.wait_for_text("#function-state", "ready").await;
    browser.find("#event-box .cm-content").await;
    let enter = char::from(Key::Enter);
    press(
        "#event-box .cm-content",
        format!(
            "{}{enter}{}",
            char::from(Key::Control),
            char::from(Key::Null)
        ),
    )
    .await;
    browser.wait_for_text("#result-body", "13998").await;
    // Escape, then Tab, leaves the editor.
    press(
        "#event-box .cm-content",
        format!("{}{}", char::from(Key::Escape), char::from(Key::Tab)),
    )
    .await;
    browser
        .wait_until(
            "the focus left the editor",
            "return document.activeElement?.closest('#event-box') === null;",
        )
        .await;
    // A dialog takes the focus, Escape closes it, and the focus is where it was.
    browser
        .open(&server, "/functions/json-transform/settings")
        .await;
    browser.fill("#confirm", "json-transform").await;
    press("#confirm", enter.to_string()).await;
    browser.find("#confirm-dialog[open]").await;
    browser
        .wait_until(
            "the careful answer has the focus",
            "return document.activeElement?.id === 'confirm-no';",
        )
        .await;
    press("#confirm-no", char::from(Key::Escape).to_string()).await;
    browser
        .wait_until(
            "the dialog is closed",
            "return !document.getElementById('confirm-dialog').open && document.activeElement?.id === 'confirm';",
        )
        .await;
    server
        .client_with(Some(TOKEN))
        .get("/api/v1/functions/json-transform")
        .await
        .expect(200);
    browser.close().await;
}
