//! Gates and What if: a slower version is refused with the figures, an admin overrides, and other settings are looked at.

use std::time::Duration;

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::experiments::agent;
use crate::support::{Server, eventually};

fn code(work: u32) -> Value {
    let text = format!("def handler(event, context):\n    return sum(range({work}))\n");
    json!({"code": {"inline": text}})
}

#[tokio::test]
async fn a_slower_version_is_refused_and_an_admin_overrides() {
    let server = Server::start();
    let client = server.client();
    let first = code(200)["code"]["inline"].clone();
    client
        .deploy("summed", first.as_str().expect("code"), json!({}))
        .await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;

    browser.open(&server, "/functions/summed/what-if").await;
    browser
        .wait_for_text("main", "No invocations in this window")
        .await;
    client.invoke("summed", &json!({})).await.expect(200);
    // What is recorded is written a moment later.
    eventually("it is recorded", Duration::from_secs(30), || async {
        let found = client.get("/api/v1/functions/summed/what-if?window=1h");
        (found.await.status == 200).then_some(())
    })
    .await;

    browser.open(&server, "/functions/summed/settings").await;
    browser.click("#gate-on").await;
    browser.fill("#threshold", "-1").await;
    browser.click("#gate-button").await;
    browser
        .wait_for_text("#gate-error", "Slower by: -1 is not valid")
        .await;
    // The browser tells of the answer's status.
    browser.console().await;
    browser.look("gate-refused").await;
    let kept = browser.find("#threshold").await.prop("value").await;
    assert_eq!(kept.expect("a field").as_deref(), Some("-1"));
    browser.fill("#threshold", "20").await;
    browser.click("#gate-button").await;
    eventually("the gate is there", Duration::from_secs(30), || async {
        let gate = client.get("/api/v1/functions/summed/gate").await;
        (gate.status == 200 && gate.json()["threshold_percent"] == 20.0).then_some(())
    })
    .await;
    let slower = code(50_000);
    let put = client.put("/api/v1/functions/summed/code", &slower).await;
    put.expect(202);
    browser.open(&server, "/functions/summed/versions").await;
    browser.find("#gate-2").await;
    let _agent = agent(&server);
    let versions = "/api/v1/functions/summed/versions";
    eventually("it is decided", Duration::from_secs(120), || async {
        let list = client.get(versions).await.expect(200).json();
        (list["items"][0]["gate"]["state"] == "refused").then_some(())
    })
    .await;
    browser.open(&server, "/functions/summed/versions").await;
    browser.wait_for_text("main", "is slower by").await;
    browser.check_accessibility("versions with a gate").await;
    browser
        .pictures(
            &server.url,
            &[
                ("gate-settings", "/functions/summed/settings"),
                ("gate-versions", "/functions/summed/versions"),
                ("what-if", "/functions/summed/what-if?window=1h"),
            ],
        )
        .await;
    browser.open(&server, "/functions/summed/versions").await;
    browser.click("#override-2").await;
    eventually("it is active", Duration::from_secs(30), || async {
        let view = client.get("/api/v1/functions/summed").await.expect(200);
        (view.json()["active_version"] == 2).then_some(())
    })
    .await;

    browser
        .open(&server, "/functions/summed/what-if?window=1h")
        .await;
    let png = browser.png("#what-if-plot [data-png]").await;
    assert!(png.0 >= 820 && png.1 >= 380, "{png:?}");
    let plot = "return Array.from(document.querySelectorAll('#what-if-plot img')) \
        .filter((image) => image.complete && image.naturalWidth > 0).length === 1;";
    browser.wait_until("the curve is drawn", plot).await;
    browser.wait_for_text("#what-if", "300").await;
    browser.check_accessibility("what if").await;
    browser.close().await;
}
