//! Chains: a workload in two clicks, its graph as requests pass, a request's waterfall, routes that are edited.

use serde_json::json;

use super::driver::{Browser, DESKTOP, PHONE};
use super::log_in;
use crate::support::Server;

#[tokio::test]
async fn a_workload_is_two_clicks_away_and_its_page_follows_its_requests() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.click(".main-nav a[href='/chains']").await;
    browser.find("#no-chains").await;
    browser.check_accessibility("chains").await;
    browser.click("#deploy-boutique").await;
    browser.wait_for_text("#chain-state", "ready").await;
    browser
        .wait_until(
            "the graph has all members",
            "return document.querySelectorAll('.chain-node').length === 11;",
        )
        .await;
    browser.check_accessibility("a chain").await;

    let client = server.client();
    let path = "/api/v1/chains/boutique/routes/shop/invoke";
    let answer = client
        .post(path, &json!({"task": "checkout"}))
        .await
        .expect(200);
    let id = answer.header("x-hearth-invocation-id").to_owned();
    // All of this comes to the page that is open.
    browser.wait_for_text("#request-rows", "shop").await;
    browser.wait_for_text("#chain-members tbody", "µs").await;
    browser.whole_picture("chain").await;
    browser
        .click(&format!("#request-rows a[href$='{id}']"))
        .await;
    browser.wait_for_text("#request-id", &id).await;
    browser
        .wait_for_text("#request-waterfall", "frontend")
        .await;
    browser.check_accessibility("a chain's request").await;
    browser.whole_picture("chain-request").await;
    browser.close().await;
}

#[tokio::test]
async fn routes_are_edited_and_a_wrong_one_says_why() {
    let server = Server::start();
    let client = server.client();
    let deploy = "/api/v1/chain-workloads/motion/deploy";
    client.post(deploy, &json!(null)).await.expect(201);
    let browser = Browser::start(PHONE, true).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/chains/motion").await;
    assert!(!browser.scrolls_sideways().await);
    browser.check_accessibility("a chain on a phone").await;
    browser.click("#edit-chain").await;
    browser.fill("#routes", "motion: sensor, nobody").await;
    browser.click("#save-button").await;
    browser
        .wait_for_text("#error-routes", "must be a member of the chain")
        .await;
    browser.check_accessibility("a chain's settings").await;
    browser
        .fill(
            "#routes",
            "motion: sensor, actuator\ntwice: sensor, gateway, actuator",
        )
        .await;
    browser.click("#save-button").await;
    browser
        .wait_for_text("#chain-routes", "sensor → gateway → actuator")
        .await;
    browser.wait_for_text("#chain-versions", "2").await;
    browser.close().await;
}
