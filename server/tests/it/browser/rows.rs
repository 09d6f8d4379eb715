//! Live lists of calls under somebody's hand: no row moves away from the pointer, from a pressed button or from the focus.

use std::time::Duration;

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::{Client, Server};

const ECHO: &str = "def handler(event, context): return event\n";
/// How many clicks are aimed at a row.
const CLICKS: usize = 24;
/// How long a person aims, and how long the button is down. What is waited for are the calls that come meanwhile.
const AIM: Duration = Duration::from_millis(250);
const DOWN: Duration = Duration::from_millis(110);
/// Between two calls: some 14 a second.
const BETWEEN_CALLS: Duration = Duration::from_millis(70);

/// Calls that come all the time, until they are stopped.
struct Traffic(tokio::task::JoinHandle<()>);

impl Traffic {
    fn start(client: &Client) -> Self {
        let client = client.clone();
        Self(tokio::spawn(async move {
            loop {
                client.invoke("busy", &json!(1)).await.expect(200);
                tokio::time::sleep(BETWEEN_CALLS).await;
            }
        }))
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Browser {
    async fn script(&self, script: &str) -> Value {
        self.client.execute(script, vec![]).await.expect("a script")
    }

    /// Waits until the first row is another one.
    async fn wait_for_new_rows(&self) {
        self.script(&format!("window.first = {FIRST};")).await;
        self.wait_until(
            "new rows",
            &format!("return {FIRST} !== undefined && {FIRST} !== window.first;"),
        )
        .await;
    }

    /// Points at the row of this number, from 1, and tells where it is and which it is.
    async fn aim(&self, row: usize) -> (f64, f64, String) {
        let script = format!(
            "const row = document.querySelectorAll('tr[data-invocation]')[{}]; \
             row.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const box = row.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2];",
            row - 1
        );
        let place = self.script(&script).await;
        let x = place[0].as_f64().expect("a number");
        let y = place[1].as_f64().expect("a number");
        self.point(x, y).await;
        let under = self
            .script(&format!(
                "return document.elementFromPoint({x}, {y}).closest('tr')?.dataset.invocation ?? '';"
            ))
            .await;
        (x, y, under.as_str().unwrap_or_default().to_owned())
    }
}

const FIRST: &str = "document.querySelector('tr[data-invocation]')?.dataset.invocation";

/// Says which row each click arrived at, and goes nowhere.
const CATCH: &str = "window.hits = []; document.addEventListener('click', (event) => { \
    window.hits.push(event.target.closest('tr')?.dataset.invocation ?? 'beside'); event.preventDefault(); }, true);";

async fn busy() -> (Server, Client, Browser) {
    let server = Server::start();
    let client = server.client();
    client.deploy("busy", ECHO, json!({})).await;
    for _ in 0..60 {
        client.invoke("busy", &json!(1)).await.expect(200);
    }
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    (server, client, browser)
}

#[tokio::test]
async fn every_aimed_click_hits_its_row_while_calls_come() {
    let (server, client, browser) = busy().await;
    let _traffic = Traffic::start(&client);
    for page in ["/functions/busy/invocations", "/functions/busy"] {
        browser.open(&server, page).await;
        browser.find("tr[data-invocation]").await;
        browser.script(CATCH).await;
        let mut aimed = Vec::new();
        for _ in 0..CLICKS / 2 {
            // Live again: what follows is not a list that stands still.
            browser.point(1.0, 1.0).await;
            browser.script("document.activeElement.blur();").await;
            browser.wait_for_new_rows().await;
            let (x, y, row) = browser.aim(5).await;
            tokio::time::sleep(AIM).await;
            browser.press(true, x, y).await;
            tokio::time::sleep(DOWN).await;
            browser.press(false, x, y).await;
            aimed.push(row);
        }
        let hits = browser.script("return window.hits;").await;
        assert_eq!(hits, json!(aimed), "{page}");
    }
    browser.close().await;
}

#[tokio::test]
async fn what_comes_waits_while_somebody_is_at_the_rows() {
    let (server, client, browser) = busy().await;
    browser.open(&server, "/functions/busy/invocations").await;
    let (.., row) = browser.aim(3).await;
    for _ in 0..7 {
        client.invoke("busy", &json!(1)).await.expect(200);
    }
    browser
        .wait_for_text("#invocations [data-calls-new]", "7 new calls")
        .await;
    let third = "return document.querySelectorAll('tr[data-invocation]')[2].dataset.invocation;";
    assert_eq!(browser.script(third).await, json!(row));
    browser.look("invocations-held-desktop-light").await;
    // The way to older rows stays the same element, and leads on from the last row that is shown.
    browser
        .script("window.older = document.getElementById('invocations-older');")
        .await;
    browser.point(1.0, 1.0).await;
    browser
        .wait_until(
            "the seven, and the pager as it was",
            "const rows = Array.from(document.querySelectorAll('tr[data-invocation]')); \
             const older = document.getElementById('invocations-older'); \
             return rows.length === 50 && older === window.older \
                 && older.href.endsWith('before=' + rows[49].dataset.invocation) \
                 && getComputedStyle(document.querySelector('[data-calls-new]')).visibility === 'hidden';",
        )
        .await;
    // A row that has the focus keeps it, and stays where it is.
    browser
        .script("document.querySelectorAll('.row-link')[4].focus(); window.focused = document.activeElement;")
        .await;
    for _ in 0..3 {
        client.invoke("busy", &json!(1)).await.expect(200);
    }
    browser
        .wait_for_text("#invocations [data-calls-new]", "3 new calls")
        .await;
    let kept = "return document.activeElement === window.focused && window.focused.isConnected;";
    assert_eq!(browser.script(kept).await, json!(true));
    browser.click("#invocations [data-calls-new]").await;
    browser
        .wait_until(
            "the three, and the row that had the focus is still the same",
            "return window.focused.isConnected \
                 && document.querySelectorAll('.row-link')[7] === window.focused;",
        )
        .await;
    // Paused, nothing comes by itself.
    browser.point(1.0, 1.0).await;
    browser.click("#invocations [data-calls-pause]").await;
    browser
        .wait_for_text("#invocations [data-calls-state]", "Paused")
        .await;
    let first = browser.script(&format!("return {FIRST};")).await;
    client.invoke("busy", &json!(1)).await.expect(200);
    browser
        .wait_for_text("#invocations [data-calls-new]", "1 new call")
        .await;
    assert_eq!(browser.script(&format!("return {FIRST};")).await, first);
    browser.click("#invocations [data-calls-pause]").await;
    browser
        .wait_until(
            "the newest",
            &format!("return {FIRST} !== '{}';", first.as_str().expect("an id")),
        )
        .await;
    browser.close().await;
}
