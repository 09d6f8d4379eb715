//! Each form of the lab makes the experiment that it says, and its page shows what came of it.

use std::time::Duration;

use serde_json::json;

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::experiments::agent;
use crate::support::{Client, Server, eventually};

const CODE: &str = "def handler(event, context):\n    return sum(range(2000))\n";

/// Of the boxes of this name only these are checked.
async fn choose(browser: &Browser, name: &str, values: &[&str]) {
    let script = format!(
        "const boxes = [...document.querySelectorAll('[name={name}]')]; const wanted = {}; \
         boxes.forEach((box) => {{ box.checked = wanted.includes(box.value); }}); \
         return boxes.filter((box) => box.checked).length === wanted.length;",
        json!(values)
    );
    browser.wait_until(name, &script).await;
}

/// So many plots are drawn.
async fn plots(browser: &Browser, count: usize) {
    let script = format!(
        "return Array.from(document.querySelectorAll('.experiment-plot img')) \
         .filter((image) => image.complete && image.naturalWidth > 0).length === {count};"
    );
    browser.wait_until("the plots are drawn", &script).await;
}

fn is_shown(css: &str) -> String {
    format!("return document.querySelector('{css}').checkVisibility();")
}

fn is_hidden(css: &str) -> String {
    format!("return !document.querySelector('{css}').checkVisibility();")
}

/// The experiment that the page is of ends, and the page says how.
pub async fn ends(browser: &Browser, client: &Client) {
    let page = browser.path().await;
    let address = format!("/api/v1/experiments/{}", page.trim_start_matches("/lab/"));
    eventually("the experiment ends", Duration::from_secs(180), || async {
        let found = client.get(&address).await.expect(200).json();
        let is_open = found["state"] == "queued" || found["state"] == "running";
        (!is_open).then_some(())
    })
    .await;
    // Where something is compared, the first version differs from itself by chance.
    browser
        .wait_for_any_text("#experiment-state", &["done", "fell short"])
        .await;
}

#[tokio::test]
async fn a_function_is_loaded_from_a_form() {
    let server = Server::start();
    let client = server.client();
    client.deploy("summed", CODE, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/lab").await;
    browser.click("#new-load summary").await;

    // A loop has its own fields only.
    browser
        .wait_until("a duration", &is_shown("#load_duration"))
        .await;
    for other in ["#load_rate", "#load_burst"] {
        browser.wait_until(other, &is_hidden(other)).await;
    }
    browser.click("[name=load_loop][value=bursts]").await;
    browser.wait_until("bursts", &is_shown("#load_burst")).await;
    for other in ["#load_rate", "#load_duration"] {
        browser.wait_until(other, &is_hidden(other)).await;
    }

    // What is wrong is said at its field, and what was typed stays.
    browser.fill("#load_target", "nobody").await;
    browser.fill("#load_count", "20").await;
    browser.fill("#load_burst", "2000").await;
    browser.click("#load-button").await;
    browser
        .wait_for_text("#error-load_burst", "1 to 1000")
        .await;
    browser.console().await;
    browser.fill("#load_burst", "10").await;
    browser.click("#load-button").await;
    browser
        .wait_for_text("#error-load_target", "There is no function \"nobody\"")
        .await;
    browser.console().await;
    browser.looks("lab-load-refused").await;
    browser.check_accessibility("a load that is refused").await;
    browser.click("[name=load_loop][value=open]").await;
    browser.fill("#load_target", "/fn/summed?a=b").await;
    browser.fill("#load_rate", "many").await;
    browser.click("#load-button").await;
    browser
        .wait_for_text("#error-load_rate", "\"many\" is not a number")
        .await;
    browser.console().await;
    for (field, kept) in [("#load_target", "/fn/summed?a=b"), ("#load_burst", "10")] {
        let value = browser.find(field).await.prop("value").await;
        assert_eq!(value.expect("a field").as_deref(), Some(kept), "{field}");
    }
    browser.fill("#load_rate", "50").await;
    browser.fill("#load_duration", "3").await;
    browser.click("#new-load details.more summary").await;
    browser.fill("#load_headers", "x-lab: yes").await;
    browser.click("#load-button").await;
    let title = "How fast is summed at 50 requests per second?";
    browser.wait_for_text("h1", title).await;
    let _agent = agent(&server);
    browser
        .wait_for_text("#experiment-live", "requests, seconds")
        .await;
    browser.wait_for_text("#live-distribution", "p50").await;
    ends(&browser, &client).await;
    browser
        .wait_for_text("#result", "to the first byte, corrected")
        .await;
    browser
        .wait_for_text("main", "sent later than planned")
        .await;
    browser.wait_for_text("main", "Latency over time").await;
    browser.wait_for_text("#files", "samples.csv").await;
    plots(&browser, 4).await;
    let result = browser.path().await;
    browser
        .pictures(&server.url, &[("lab-load", &result)])
        .await;
    browser.close().await;
}

#[tokio::test]
async fn tail_overhead_and_replay_are_made_in_their_forms() {
    let server = Server::start();
    let client = server.client();
    client.deploy("summed", CODE, json!({})).await;
    for number in 0..30 {
        let event = json!({ "number": number });
        client.invoke("summed", &event).await.expect(200);
    }
    let saved = "/api/v1/functions/summed/saved-events/kept";
    client.put(saved, &json!({"a": 1})).await.expect(201);
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    let _agent = agent(&server);

    browser.open(&server, "/lab").await;
    browser.click("#new-overhead summary").await;
    browser.fill("#overhead-samples", "10").await;
    choose(&browser, "workload", &["empty"]).await;
    choose(&browser, "runtime", &["provided", "node"]).await;
    browser.click("#overhead-button").await;
    browser.wait_for_text("h1", "Where a small").await;
    ends(&browser, &client).await;
    browser.wait_for_text("#result", "empty, provided").await;
    plots(&browser, 1).await;
    browser.wait_for_text("#files", "overhead.csv").await;

    browser.open(&server, "/lab").await;
    browser.click("#new-replay summary").await;
    browser.fill("#replay-first", "summed").await;
    browser.fill("#replay-settings", "memory_mb=256").await;
    browser.fill("#speed", "1").await;

    // A source has its own fields only, and what is wrong is said at one of them.
    for (source, shown, hidden) in [
        ("trace", "#replay_trace", "#last"),
        ("window", "#replay_from", "#replay_trace"),
    ] {
        let choice = format!("[name=replay_source][value={source}]");
        browser.click(&choice).await;
        browser.wait_until(shown, &is_shown(shown)).await;
        browser.wait_until(hidden, &is_hidden(hidden)).await;
    }
    browser.click("#replay-button").await;
    browser
        .wait_for_text("#error-replay_from", "is not a time")
        .await;
    browser.console().await;
    browser.looks("lab-replay-refused").await;
    browser
        .check_accessibility("a replay that is refused")
        .await;
    browser.click("[name=replay_source][value=last]").await;
    browser.fill("#last", "5").await;
    browser.click("#replay-button").await;
    browser
        .wait_for_text(
            "h1",
            "Is summed with memory_mb=256 faster than summed, replayed?",
        )
        .await;
    ends(&browser, &client).await;
    browser.wait_for_text("#result", "Trials").await;
    browser.wait_for_text("main", "30 arrivals").await;
    plots(&browser, 1).await;

    browser.open(&server, "/lab").await;
    browser.click("#new-duet summary").await;
    browser.fill("#first", "summed").await;
    browser.paste("#duet-event", "").await;
    browser.fill("#duet-saved", "kept\nnowhere").await;
    browser.fill("#calls", "4").await;
    browser.click("#duet-button").await;
    browser
        .wait_for_text(
            "#error-duet-saved",
            "There is no saved event \"nowhere\" of summed",
        )
        .await;
    browser.console().await;
    browser.fill("#duet-saved", "kept").await;
    browser.click("#duet-button").await;
    browser.wait_for_text("h1", "differ from itself").await;
    ends(&browser, &client).await;
    browser.wait_for_text("#result", "kept").await;

    browser.open(&server, "/lab").await;
    browser.click("#new-tail summary").await;
    browser.fill("#samples", "100").await;
    choose(&browser, "factor", &["warm"]).await;
    browser.click("#tail-button").await;
    browser.wait_for_text("#experiment-live", "requests").await;
    ends(&browser, &client).await;
    browser.wait_for_text("#result", "warm").await;
    browser.wait_for_text("#result", "TMR in the paper").await;
    browser.wait_for_text("#files", "table.csv").await;
    browser.close().await;
}
