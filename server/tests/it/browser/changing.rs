//! What asks before it is done: going back to a version, leaving what is not saved, deleting; and the create page.

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::ports::free;
use crate::support::Server;

#[tokio::test]
async fn a_version_is_gone_back_to_after_an_answer() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "counted",
            "def handler(event, context):\n    return 1\n",
            json!({}),
        )
        .await;
    let code = json!({"code": {"inline": "def handler(event, context):\n    return 2\n"}});
    client
        .put("/api/v1/functions/counted/code", &code)
        .await
        .expect(200);
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/counted/versions").await;
    browser.click("#diff-2").await;
    browser.wait_for_text("#diff", "return 2").await;
    browser.open(&server, "/functions/counted/versions").await;
    browser.click("#activate-1").await;
    browser
        .wait_for_text("#confirm-text", "No request fails")
        .await;
    browser.click("#confirm-no").await;
    assert_eq!(client.invoke("counted", &json!(0)).await.json(), 2);
    browser.click("#activate-1").await;
    browser.click("#confirm-yes").await;
    browser.wait_for_text("#notice", "Version 1 is live").await;
    assert_eq!(client.invoke("counted", &json!(0)).await.json(), 1);
    // What somebody else did meanwhile is shown before it is undone, and before the function is deleted.
    let others = json!({"memory_mb": 256});
    let function = "/api/v1/functions/counted";
    client.patch(function, &others).await.expect(200);
    browser.click("#activate-2").await;
    browser.click("#confirm-yes").await;
    browser
        .wait_for_text("#problem", "Version 3 became active in the meantime.")
        .await;
    assert_eq!(client.invoke("counted", &json!(0)).await.json(), 1);
    browser.click("#activate-button").await;
    browser.wait_for_text("#notice", "Version 2 is live").await;
    browser.open(&server, "/functions/counted/settings").await;
    client
        .patch(function, &json!({"memory_mb": 64}))
        .await
        .expect(200);
    browser.fill("#confirm", "counted").await;
    browser.click("#delete-button").await;
    browser
        .wait_for_text("#error-confirm", "Version 4 became active in the meantime.")
        .await;
    browser.click("#delete-button").await;
    browser.wait_for_text("#notice", "deleted").await;
    client.get(function).await.problem(404, "not_found");
    browser.close().await;
}

#[tokio::test]
async fn settings_that_are_not_saved_are_asked_about() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"env": {"SECRET": "s3cr3t"}});
    client
        .deploy("careful", "def handler(event, context): pass\n", settings)
        .await;
    let browser = Browser::start(DESKTOP, true).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/careful/settings").await;
    browser.fill("#memory_mb", "256").await;
    browser
        .wait_for_text("#unsaved-note", "Unsaved changes")
        .await;
    browser.click("#commands summary").await;
    let command = browser.text("#command-1").await;
    assert!(command.ends_with("-d '{\"memory_mb\":256}'"), "{command}");
    browser.click("#tab-code").await;
    browser
        .wait_for_text("#confirm-title", "Leave without saving?")
        .await;
    browser.look("settings-unsaved-desktop-dark").await;
    browser.click("#confirm-no").await;
    browser.click("#save-button").await;
    browser.wait_for_text("#notice", "saved as version 2").await;
    let function = client.get("/api/v1/functions/careful").await.json();
    assert_eq!(function["memory_mb"], 256);
    // Saved is saved: nothing asks any more.
    browser.click("#tab-versions").await;
    browser
        .wait_for_text("#version-rows", "Memory: 128 MiB → 256 MiB")
        .await;

    browser.open(&server, "/functions/careful/settings").await;
    browser.fill("#memory_mb", "1").await;
    browser.click("#save-button").await;
    browser.wait_for_text("#error-memory_mb", "32").await;
    browser.fill("#memory_mb", "256").await;
    browser.fill("#confirm", "careful").await;
    // The name that was typed is the question's answer: there is no second one.
    browser.click("#delete-button").await;
    browser.find("#no-functions").await;
    browser.close().await;
}

#[tokio::test]
async fn the_command_beside_the_settings_sends_what_the_api_takes() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context): pass\n";
    client.deploy("told", code, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/told/settings").await;
    let (tcp, udp) = (free(), free());
    let ports = format!("tcp {tcp} raw\n\nUDP {udp} batch 64 wait 2");
    for (input, text) in [
        ("#triggers", ports.as_str()),
        ("#cors_origins", "https://a.example, https://b.example"),
        ("#cors_methods", "GET"),
        ("#cors_max_age_s", "600"),
    ] {
        browser.fill(input, text).await;
    }
    let command = browser.find("#command-1").await.prop("textContent").await;
    let command = command.expect("text").unwrap_or_default();
    let (_, body) = command.split_once(" -d '").expect("a body");
    let body: Value = serde_json::from_str(body.trim_end_matches('\'')).expect("JSON");
    let sent = json!({
        "triggers": [
            {"protocol": "tcp", "port": tcp, "mode": "raw"},
            {"protocol": "udp", "port": udp, "batch": {"max": 64, "wait_ms": 2}},
        ],
        "cors": {
            "allow_origins": ["https://a.example", "https://b.example"],
            "allow_methods": ["GET"],
            "allow_headers": [],
            "expose_headers": [],
            "allow_credentials": false,
            "max_age_s": 600,
        },
    });
    assert_eq!(body, sent);
    let function = "/api/v1/functions/told";
    client.patch(function, &body).await.expect(200);
    let set = client.get(function).await.json();
    assert_eq!(
        (&set["triggers"], &set["cors"]),
        (&sent["triggers"], &sent["cors"])
    );
    // Taken back, they are no change.
    browser.open(&server, "/functions/told/settings").await;
    browser.fill("#cors_origins", "").await;
    browser.fill("#cors_methods", "").await;
    browser.fill("#cors_max_age_s", "").await;
    browser.fill("#triggers", "").await;
    let command = browser.find("#command-1").await.prop("textContent").await;
    let command = command.expect("text").unwrap_or_default();
    assert!(
        command.ends_with(r#" -d '{"triggers":[],"cors":null}'"#),
        "{command}"
    );
    browser.close().await;
}

#[tokio::test]
async fn secrets_are_hidden_while_typed_and_come_from_a_file() {
    let server = Server::start();
    let client = server.client();
    let code = "import os\ndef handler(event, context): return {name: os.environ.get(name) for name in event}\n";
    let settings = json!({"env": {"KNOWN": "old"}});
    client.deploy("secretive", code, settings).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/secretive/settings").await;
    let kind = |css: &'static str| {
        let browser = &browser;
        async move {
            let field = browser.find(css).await;
            field
                .prop("type")
                .await
                .expect("a type")
                .unwrap_or_default()
        }
    };
    assert_eq!(kind("[name=env_value]").await, "password");
    assert_eq!(kind("[name=env_replace]").await, "password");
    browser.click(".env-row [data-reveal]").await;
    assert_eq!(kind("[name=env_value]").await, "text");
    browser.click(".env-row [data-reveal]").await;
    assert_eq!(kind("[name=env_value]").await, "password");

    browser.click(".env-paste summary").await;
    let wrong = "A=1\n\nno value\n2B=x\nC=\"open\nD='x' y\nE=\"a\\nb\"\n";
    browser.paste("#env-paste", wrong).await;
    browser.click("#env-paste-add").await;
    let errors = browser.text("#env-paste-error").await;
    for error in [
        "Line 3: expected NAME=value.",
        "Line 4: \"2B\" must be letters",
        "Line 5: missing closing \".",
        "Line 6: text after the closing quote.",
        "Line 7: the value has a line break",
    ] {
        assert!(errors.contains(error), "{error} in {errors}");
    }
    assert!(
        !errors.contains("Line 1") && !errors.contains("Line 2"),
        "{errors}"
    );
    browser.look("settings-env-wrong-desktop-light").await;
    let file = "# a comment\nPLAIN=a b # and why\nexport HASH=a#b\nSINGLE='it is $HOME'\nDOUBLE=\"say \\\"hi\\\" \\\\ # no comment\" # one\n\
        EMPTY=\nSPACED = x\nKNOWN=new\r\n";
    browser.paste("#env-paste", file).await;
    browser.click("#env-paste-add").await;
    browser
        .wait_for_text("#env-paste-said", "Added 7 variables")
        .await;
    browser.click("#save-button").await;
    browser.wait_for_text("#notice", "saved as version 2").await;
    let names = json!([
        "PLAIN", "HASH", "SINGLE", "DOUBLE", "EMPTY", "SPACED", "KNOWN"
    ]);
    let set = client.invoke("secretive", &names).await.expect(200).json();
    assert_eq!(
        set,
        json!({"PLAIN": "a b", "HASH": "a#b", "SINGLE": "it is $HOME", "DOUBLE": "say \"hi\" \\ # no comment",
            "EMPTY": "", "SPACED": "x", "KNOWN": "new"})
    );
    browser.close().await;
}

#[tokio::test]
async fn starters_are_chosen_by_their_cards() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser
        .pictures(
            &server.url,
            &[
                ("new", "/new"),
                ("new-image", "/new?template=image-thumbnail"),
            ],
        )
        .await;
    browser.open(&server, "/new").await;
    browser.click("#starter-image-thumbnail").await;
    browser.find("#starter-image-thumbnail[aria-current]").await;
    browser.click("#deploy-button").await;
    browser.wait_for_text("#function-state", "ready").await;
    browser.click("#invoke-button").await;
    browser
        .wait_for_text("#result-body", "\"height\": 16")
        .await;
    browser
        .pictures(&server.url, &[("test", "/functions/image-thumbnail")])
        .await;
    // What was written is not thrown away by a click on another card.
    browser.open(&server, "/new").await;
    browser.find("#code-editor-box .cm-content").await;
    browser.paste("#code-editor", "import nowhere\n").await;
    browser.click("#starter-hello").await;
    browser.click("#confirm-no").await;
    browser.click("#deploy-button").await;
    browser
        .wait_for_text("#form-outcome", "ModuleNotFoundError")
        .await;
    browser.find(".cm-lint-marker-error").await;
    browser.close().await;
}
