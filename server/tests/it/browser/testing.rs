//! The test panel: saved events, samples, calls by URL, the command for what is in the form; and the keyboard alone.

use fantoccini::key::Key;
use serde_json::json;

use super::driver::{Browser, DESKTOP, PHONE};
use super::log_in;
use crate::support::{Server, TOKEN, archive, deploy_form};

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
    browser.wait_for_text("#event-said", "event deleted").await;
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
    // What is shown is a command as it stands: a shell runs it, spaces, quotes and all.
    browser
        .fill("#call-query", "size=2&name=Ada Lovelace's ü[1]&done=50%25")
        .await;
    browser
        .fill("#call-headers", "content-type: text/plain")
        .await;
    browser.fill("#call-body", "hot").await;
    let command = browser.text("#curl-command").await;
    for part in [
        "-X POST",
        "/fn/tea?size=2&name=Ada%20Lovelace",
        "-H 'content-type: text/plain'",
        "--data-raw 'hot'",
    ] {
        assert!(command.contains(part), "{part} in {command}");
    }
    let printed = shell(&command, std::path::Path::new("/")).await;
    let answer: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        answer,
        json!({"query": {"size": "2", "name": "Ada Lovelace's ü[1]", "done": "50%"}, "body": "hot"}),
        "{command}"
    );
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
    // Tab leaves the short editor and changes nothing in it, as the hint below it says.
    assert!(browser.text("#event-hint").await.contains("Tab to leave"));
    let before = browser
        .find("#event")
        .await
        .prop("value")
        .await
        .expect("a value");
    press("#event-box .cm-content", char::from(Key::Tab).to_string()).await;
    browser
        .wait_until(
            "the focus left the editor",
            "return document.activeElement?.closest('#event-box') === null;",
        )
        .await;
    let after = browser
        .find("#event")
        .await
        .prop("value")
        .await
        .expect("a value");
    assert_eq!(before, after);
    // The button that was pressed has the focus again when the answer is there.
    press("#invoke-button", enter.to_string()).await;
    browser.wait_for_text("#result-start", "warm").await;
    browser
        .wait_until(
            "the button has the focus",
            "return document.activeElement?.id === 'invoke-button';",
        )
        .await;
    // A dialog takes the focus, Escape closes it, and the focus is where it was.
    browser
        .open(&server, "/functions/json-transform/settings")
        .await;
    browser.fill("#memory_mb", "256").await;
    press("#tab-code", enter.to_string()).await;
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
            "return !document.getElementById('confirm-dialog').open && document.activeElement?.id === 'tab-code';",
        )
        .await;
    server
        .client_with(Some(TOKEN))
        .get("/api/v1/functions/json-transform")
        .await
        .expect(200);
    browser.close().await;
}

/// Runs a command as it is shown, in a shell, and gives what it printed.
async fn shell(command: &str, directory: &std::path::Path) -> String {
    let output = tokio::process::Command::new("sh")
        .args(["-c", command])
        .current_dir(directory)
        .env("HEARTH_TOKEN", TOKEN)
        .output()
        .await
        .expect("a shell");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn the_upload_that_is_shown_keeps_a_version_of_several_files_whole() {
    let server = Server::start();
    let client = server.client();
    let zip = archive(&[
        (
            "main.py",
            b"import words\ndef handler(event, context):\n    return words.HELLO\n",
        ),
        ("words.py", b"HELLO = 'hello'\n"),
    ]);
    let form = deploy_form("whole", "whole.zip", zip.clone());
    let request = client.request(reqwest::Method::POST, "/api/v1/functions");
    client.send(request.multipart(form)).await.expect(201);
    client.deploy("single", ECHO, json!({})).await;
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("package.zip"), zip).expect("a file");
    std::fs::write(directory.path().join("main.py"), ECHO).expect("a file");
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    for (name, file, answer) in [
        ("whole", "code=@package.zip", json!("hello")),
        ("single", "code=@main.py", json!({"a": 1})),
    ] {
        browser
            .open(&server, &format!("/functions/{name}/code"))
            .await;
        browser.click("#commands summary").await;
        let command = browser.text("#command-1").await;
        assert!(command.ends_with(file), "{command}");
        shell(&command, directory.path()).await;
        let function = client.get(&format!("/api/v1/functions/{name}")).await;
        assert_eq!(function.json()["active_version"], 2);
        let result = client.invoke(name, &json!({"a": 1})).await.expect(200);
        assert_eq!(result.json(), answer, "{name}");
    }
    browser.close().await;
}

#[tokio::test]
async fn invalid_json_breaks_no_policy_and_no_runtime_goes_by_two_names() {
    let server = Server::start();
    server.client().deploy("echo", ECHO, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions").await;
    assert_eq!(browser.text(".runtime").await, "Python");
    browser.open(&server, "/functions/echo").await;
    browser.find("#event-box .cm-content").await;
    browser.paste("#event", "{\"a\": nonsense}").await;
    browser.find("#event-box .cm-lint-marker-error").await;
    browser.look("invalid-json-desktop-light").await;
    browser.close().await;
}
