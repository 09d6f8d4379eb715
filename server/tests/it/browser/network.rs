//! The network page: what was refused is there by its name and is allowed with one click, and a dry run writes the policy.

use serde_json::json;

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::network::world::{OTHER, PRIVATE, WEB, WEB6, World};
use crate::support::{Client, Server};

/// Fetches what it is told to.
const CODE: &str = r#"
import urllib.request
def handler(event, context):
    said = []
    for url in event:
        try: said.append(urllib.request.urlopen(url, timeout=8).read().decode())
        except OSError: said.append("refused")
    return said
"#;

async fn fetch(client: &Client, urls: &[&str]) -> serde_json::Value {
    client.invoke("f", &json!(urls)).await.expect(200).json()
}

fn world() -> (World, Server) {
    let world = World::enter();
    world.name("api.example.com", &[WEB, WEB6]);
    world.name("other.example.com", &[OTHER]);
    let server = world.server();
    (world, server)
}

#[tokio::test]
async fn a_refused_name_is_allowed_with_one_click() {
    let (_world, server) = world();
    let client = server.client();
    let settings = json!({"network": {"allow": ["other.example.com"]}});
    client.deploy("f", CODE, settings).await;
    let urls = ["http://api.example.com/", "http://other.example.com/"];
    let reached = |address: &str| format!("reached {address}");
    let private = format!("http://{PRIVATE}/");
    let said = fetch(&client, &[urls[0], urls[1], &private]).await;
    assert_eq!(said, json!(["refused", reached(OTHER), "refused"]));
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/f/network").await;
    browser.wait_for_text("#refused", "api.example.com").await;
    // What no policy allows has no button.
    let buttons = browser
        .client
        .find_all(fantoccini::Locator::Css("#refused form button"));
    assert_eq!(buttons.await.expect("buttons").len(), 1);
    browser
        .pictures(&server.url, &[("network", "/functions/f/network")])
        .await;
    browser.open(&server, "/functions/f/network").await;
    browser.click("#refused form button").await;
    browser.wait_for_text("#notice", "version 2").await;
    browser
        .wait_for_text("#network-policy", "api.example.com")
        .await;
    let said = fetch(&client, &urls).await;
    assert_ne!(said[0], "refused", "{said}");
    assert_eq!(said[1], reached(OTHER));
    browser.close().await;
}

#[tokio::test]
async fn a_dry_run_is_ended_with_the_policy_that_it_writes() {
    let (_world, server) = world();
    let client = server.client();
    let settings = json!({"network": {"allow": [], "dry_run": true}});
    client.deploy("f", CODE, settings).await;
    let urls = ["http://api.example.com/", "http://other.example.com:8080/"];
    fetch(&client, &urls).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/f/network").await;
    browser
        .wait_for_text("#suggested", "other.example.com:8080")
        .await;
    browser
        .pictures(&server.url, &[("network-dry-run", "/functions/f/network")])
        .await;
    browser.open(&server, "/functions/f/network").await;
    browser.click("#end-dry-run").await;
    browser.wait_for_text("#notice", "version 2").await;
    let said = fetch(&client, &[urls[0], urls[1], "http://other.example.com/"]).await;
    assert!(said[0] != "refused" && said[1] != "refused", "{said}");
    assert_eq!(said[2], "refused");
    browser.close().await;
}
