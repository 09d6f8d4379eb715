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
