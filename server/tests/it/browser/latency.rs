//! The Latency tab.

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::Server;

/// Sleeps for as many milliseconds as its event says.
const SLEEP: &str = "import time\ndef handler(event, context):\n    time.sleep(event / 1000)\n    if event < 0: raise ValueError(event)\n";

impl Browser {
    /// Sum of the counts that the bars of a chart tell of.
    async fn bars(&self, chart: &str) -> u64 {
        let script = "return Array.from(document.querySelectorAll(`[data-chart=${arguments[0]}] rect title`), \
            (title) => Number(title.textContent.split(': ')[1].replaceAll(',', ''))).reduce((a, b) => a + b, 0);";
        let sum = self.client.execute(script, vec![json!(chart)]).await;
        sum.expect("a script").as_u64().expect("a number")
    }

    /// The figures at the top of the page, by their keys.
    async fn figures(&self) -> Value {
        let script = "return Object.fromEntries(Array.from(document.querySelectorAll('.figures [data-live]'), \
            (figure) => [figure.dataset.live, figure.textContent]));";
        let figures = self.client.execute(script, vec![]).await;
        figures.expect("a script")
    }

    async fn wait_for_bars(&self, chart: &str, count: u64) {
        let script = format!(
            "return Array.from(document.querySelectorAll('[data-chart={chart}] rect title'), \
             (title) => Number(title.textContent.split(': ')[1].replaceAll(',', ''))).reduce((a, b) => a + b, 0) >= {count};"
        );
        self.wait_until(&format!("{chart} shows {count}"), &script)
            .await;
    }
}

#[tokio::test]
async fn the_histogram_moves_as_requests_arrive_and_tells_cold_from_warm() {
    let server = Server::start();
    let client = server.client();
    client.deploy("spread", SLEEP, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/spread/latency").await;
    browser.wait_for_text("#latency-count", "0").await;
    browser.look("latency-empty-desktop-light").await;

    for ms in [0, 0, 1, 1, 2, 2, 5, 5, 20, 50] {
        client.invoke("spread", &json!(ms)).await.expect(200);
    }
    client.invoke("spread", &json!(-1)).await.expect(502);
    browser.wait_for_text("#latency-count", "11").await;
    browser.wait_for_bars("histogram", 11).await;
    assert_eq!(
        browser.bars("cold").await,
        1,
        "the first one needed a start"
    );
    assert_eq!(browser.bars("warm").await, 10);
    let stats = client
        .get("/api/v1/functions/spread/latency?window=5m")
        .await
        .expect(200)
        .json();
    assert_eq!(stats["count"], 11);
    let heat: u64 = stats["heat_map"]["columns"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|column| column["counts"].as_array().cloned().unwrap_or_default())
        .map(|cell: Value| cell[1].as_u64().unwrap_or(0))
        .sum();
    assert_eq!(heat, 11);

    // The table says the same, and the keyboard finds every cell.
    browser.click("#histogram-details summary").await;
    browser.find("#histogram-rows tr").await;
    let script = "return Array.from(document.querySelectorAll('#histogram-rows tr'), \
        (row) => Number(row.children[1].textContent)).reduce((a, b) => a + b, 0);";
    let sum = browser
        .client
        .execute(script, vec![])
        .await
        .expect("a script");
    assert_eq!(sum, 11);
    browser
        .client
        .execute("document.getElementById('heat').focus();", vec![])
        .await
        .expect("a script");
    let keys = browser.find("#heat").await;
    keys.send_keys("\u{e012}").await.expect("an arrow key");
    browser.wait_for_text("#heat-readout", "invocation").await;
    let before = browser.text("#heat-readout").await;
    keys.send_keys("\u{e013}").await.expect("an arrow key");
    browser
        .wait_until(
            "another cell is described",
            &format!("return document.getElementById('heat-readout').textContent !== {before:?};"),
        )
        .await;

    browser.click("#window-7d").await;
    browser.wait_for_bars("histogram", 11).await;
    browser.click("#window-1m").await;
    browser.find("#window-1m[aria-current]").await;
    let pages: Vec<(&str, String)> = ["1m", "5m", "1h", "24h", "7d"]
        .into_iter()
        .map(|window| (window, format!("/functions/spread/latency?window={window}")))
        .collect();
    let pages: Vec<(String, &str)> = pages
        .iter()
        .map(|(window, path)| (format!("latency-{window}"), path.as_str()))
        .collect();
    let pages: Vec<(&str, &str)> = pages
        .iter()
        .map(|(name, path)| (name.as_str(), *path))
        .collect();
    browser.pictures(&server.url, &pages[1..2]).await;
    browser.close().await;
}

#[tokio::test]
async fn the_figures_at_the_top_follow_the_stream() {
    let server = Server::start();
    let client = server.client();
    client.deploy("spread", SLEEP, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    let page = "/functions/spread/latency";
    browser.open(&server, page).await;
    browser.wait_for_text("#latency-count", "0").await;
    let mut before = browser.figures().await;
    let keys: Vec<String> = before
        .as_object()
        .expect("figures")
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        keys,
        [
            "cold-share",
            "count",
            "errors",
            "ratio",
            "total/p50",
            "total/p99"
        ]
    );

    // Enough of them for percentiles; the second time slower ones, so that none stays as it was.
    for (count, ms) in [(120, 0), (260, 20)] {
        let already = if ms == 0 { 0 } else { 120 };
        for _ in already..count - 1 {
            client.invoke("spread", &json!(ms)).await.expect(200);
        }
        client.invoke("spread", &json!(-1)).await.expect(502);
        browser
            .wait_for_text("#latency-count", &count.to_string())
            .await;
        let streamed = browser.figures().await;
        for key in &keys {
            assert_ne!(streamed[key], before[key], "{key} after {count} calls");
        }
        // What a page says that is loaded now.
        browser.open(&server, page).await;
        assert_eq!(streamed, browser.figures().await);
        before = streamed;
    }
    browser.close().await;
}

#[tokio::test]
async fn a_busy_functions_spread_is_drawn_at_every_window() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("spread", SLEEP, json!({"max_concurrency": 4}))
        .await;
    let calls: Vec<_> = (0..4_u64)
        .map(|caller| {
            let client = client.clone();
            tokio::spawn(async move {
                for n in 0..60 {
                    // Mostly quick, sometimes not.
                    let ms = match (n * 7 + caller * 13) % 20 {
                        0 => 60,
                        1..=4 => 12,
                        5..=9 => 3,
                        _ => 0,
                    };
                    client.invoke("spread", &json!(ms)).await.expect(200);
                }
            })
        })
        .collect();
    for call in calls {
        call.await.expect("all answered");
    }
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    for window in ["1m", "1h", "24h", "7d"] {
        browser
            .open(
                &server,
                &format!("/functions/spread/latency?window={window}"),
            )
            .await;
        browser.wait_for_bars("histogram", 240).await;
        browser
            .look(&format!("latency-{window}-desktop-light"))
            .await;
    }
    browser.close().await;
}
