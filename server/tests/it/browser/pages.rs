//! Every page by direct link, in every size and theme.

use serde_json::json;

use super::driver::{Browser, DESKTOP, PHONE};
use super::log_in;
use crate::support::Server;

#[tokio::test]
async fn every_page_is_sound_at_every_size_and_in_every_theme() {
    let server = Server::start();
    let client = server.client();
    let browser = Browser::start(DESKTOP, false).await;
    browser.pictures(&server.url, &[("login", "/login")]).await;
    log_in(&browser, &server).await;
    browser
        .pictures(
            &server.url,
            &[("overview-empty", "/"), ("functions-empty", "/functions")],
        )
        .await;
    client
        .deploy(
            "pocket",
            "def handler(event, context):\n    raise ValueError('a' * 200)\n",
            json!({}),
        )
        .await;
    client.invoke("pocket", &json!({})).await.expect(502);
    let pages = [("overview", "/"), ("functions", "/functions")];
    browser.pictures(&server.url, &pages).await;
    browser.close().await;
}

#[tokio::test]
async fn how_instances_start_and_why_is_shown() {
    let server = Server::start();
    let client = server.client();
    let code = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n\
                pool.submit(int).result()\ndef handler(event, context):\n    return pool.submit(int).result()\n";
    let deployed = client.deploy("threads", code, json!({})).await;
    let reason = deployed["start_reason"].as_str().expect("a reason");
    let browser = Browser::start(DESKTOP, true).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/threads").await;
    browser.wait_for_text("#starts", reason).await;
    browser.open(&server, "/functions/threads/versions").await;
    browser.wait_for_text("#version-rows", reason).await;
    let pages = [
        ("starts-function", "/functions/threads"),
        ("starts-versions", "/functions/threads/versions"),
        ("starts-settings", "/functions/threads/settings"),
    ];
    browser.pictures(&server.url, &pages).await;
    browser.close().await;
}

#[tokio::test]
async fn a_function_is_deleted_on_a_phone() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("pocket", "def handler(event, context): pass\n", json!({}))
        .await;
    let browser = Browser::start(PHONE, true).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/pocket/settings").await;
    browser.fill("#confirm", "pocket").await;
    browser.click("#delete-button").await;
    browser.find("#no-functions").await;
    client
        .get("/api/v1/functions/pocket")
        .await
        .problem(404, "not_found");
    browser.close().await;
}
