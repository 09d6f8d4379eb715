//! The lab: experiments are created in its forms, watched, read, cancelled and deleted.

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP, PHONE};
use super::log_in;
use crate::experiments::agent;
use crate::support::Server;

const CODE: &str = "def handler(event, context):\n    return sum(range(2000))\n";

/// A title that would be markup.
const STELLAR: &str = r#"{"Sequential": true, "SubExperiments": [
  {"Title": "one <b>at a time<b>", "Bursts": 20, "BurstSizes": [1], "IATSeconds": 0},
  {"Title": "bursts", "Function": "hellonode", "Bursts": 3, "BurstSizes": [20], "IATSeconds": 0}
]}"#;

#[tokio::test]
async fn an_experiment_is_created_watched_and_read() {
    let server = Server::start();
    let client = server.client();
    client.deploy("summed", CODE, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.click(".main-nav a[href='/lab']").await;
    browser.find("#no-experiments").await;
    browser.check_accessibility("the lab").await;

    // What is wrong is said, and what was typed stays.
    browser.click("#new-stellar summary").await;
    browser.paste("#config", r#"{"SubExperiments": []}"#).await;
    browser.click("#stellar-button").await;
    browser.wait_for_text("#problem", "SubExperiments").await;
    // The browser tells of the answer's status.
    browser.console().await;
    browser.look("lab-refused").await;
    browser.click("#new-overhead summary").await;
    browser.fill("#overhead-samples", "9").await;
    browser.click("#overhead-button").await;
    browser
        .wait_for_text("#problem", "9 is not within 10 and 3000")
        .await;
    browser.console().await;
    browser.click("#new-duet summary").await;
    browser.fill("#first", "nobody").await;
    browser.click("#duet-button").await;
    browser
        .wait_for_text("#problem", "there is no function \"nobody\"")
        .await;
    let kept = browser.find("#first").await.prop("value").await;
    assert_eq!(kept.expect("a field").as_deref(), Some("nobody"));
    browser.console().await;
    browser.fill("#first", "summed").await;
    browser.fill("#calls", "4").await;
    browser.click("#duet-button").await;
    browser.wait_for_text("#experiment-state", "queued").await;
    let duet = browser.path().await;

    browser.open(&server, "/lab").await;
    browser.wait_for_text("#no-agent", "hearth lab agent").await;
    browser.click("#new-stellar summary").await;
    browser.paste("#config", STELLAR).await;
    browser.click("#stellar-button").await;
    browser.wait_for_text("#experiment-state", "queued").await;
    browser
        .check_accessibility("an experiment that waits")
        .await;

    // The page that is open follows it, and has the result at its end.
    let _agent = agent(&server);
    browser
        .wait_for_text("#result", "one <b>at a time<b>")
        .await;
    browser.wait_for_text("#experiment-state", "done").await;
    browser.wait_for_text("#files", "experiment.json").await;
    let plots = "return Array.from(document.querySelectorAll('.experiment-plot img')) \
        .filter((image) => image.complete && image.naturalWidth > 0).length === 2;";
    browser.wait_until("both plots are drawn", plots).await;
    let stellar = browser.path().await;
    browser
        .pictures(
            &server.url,
            &[
                ("lab", "/lab"),
                ("lab-result", &stellar),
                ("lab-duet", &duet),
            ],
        )
        .await;
    browser.open(&server, &duet).await;
    browser
        .wait_for_any_text("#experiment-state", &["done", "fell short"])
        .await;
    browser.wait_for_text("#result", "event 1").await;
    browser.close().await;
}

#[tokio::test]
async fn an_experiment_is_cancelled_and_deleted_on_a_phone() {
    let server = Server::start();
    let client = server.client();
    let _agent = agent(&server);
    let long = json!({"SubExperiments": [
        {"Title": "long", "Bursts": 1000, "BurstSizes": [1], "IATSeconds": 20}
    ]});
    let made = client.post("/api/v1/experiments", &long).await.expect(201);
    let path = format!("/lab/{}", made.json()["id"]);
    let browser = Browser::start(PHONE, true).await;
    log_in(&browser, &server).await;
    browser.open(&server, &path).await;
    browser
        .wait_for_text("#experiment-live", "requests: 0 of 1000")
        .await;
    assert!(!browser.scrolls_sideways().await);
    browser.look("lab-running-phone-dark").await;
    browser.click("#cancel-experiment").await;
    browser
        .wait_for_text("#experiment-state", "cancelled")
        .await;
    let left = client.get("/api/v1/functions").await.expect(200).json();
    assert_eq!(left["items"], json!([]), "what was deployed is removed");
    browser.click(".delete summary").await;
    browser.click("#delete-experiment").await;
    browser.find("#no-experiments").await;
    let list = client.get("/api/v1/experiments").await.expect(200).json();
    assert_eq!(list, json!({"items": [], "next": Value::Null}));
    browser.close().await;
}
