//! From a cell of the heat map to what explains an invocation in it; how versions run over time; charts as PNG.

use std::time::Duration;

use fantoccini::actions::{InputSource as _, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::{Server, eventually};

/// Sleeps for so many ms, and collects a graph of so many objects.
const CODE: &str = "
import gc
import time

def handler(event, context):
    time.sleep(event.get('ms', 0) / 1000)
    graph = [[] for _ in range(event.get('objects', 0))]
    for index, entry in enumerate(graph):
        entry.append(graph[index - 1])
    # Most of the time is the collector's.
    for _ in range(20 if graph else 0):
        gc.collect()
    return len(graph)
";

/// Reads what a click would have saved: its first bytes.
const CAPTURE: &str = "
const [selector, done] = arguments;
const before = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  URL.createObjectURL = before;
  blob.arrayBuffer().then((buffer) => done({ type: blob.type, size: blob.size, head: Array.from(new Uint8Array(buffer.slice(0, 24))) }));
  return before.call(URL, blob);
};
document.querySelector(selector).click();
";

/// Where in the window the highest cell is that holds something.
const HIGHEST: &str = "
const box = document.getElementById('heat');
box.scrollIntoView({ block: 'center' });
const frame = box.querySelector('canvas').getBoundingClientRect();
for (let y = 8; y < frame.height - 24; y += 2) {
  for (let x = frame.width - 12; x > 60; x -= 3) {
    const at = { clientX: frame.left + x, clientY: frame.top + y, bubbles: true };
    box.dispatchEvent(new PointerEvent('pointermove', at));
    if (box.classList.contains('heat-opens')) return [at.clientX - 2, at.clientY + 1];
  }
}
return null;";

impl Browser {
    /// Clicks a chart's PNG button; width and height of the PNG that comes of it.
    pub async fn png(&self, button: &str) -> (u64, u64) {
        let ready = format!("return !(document.querySelector({button:?})?.hidden ?? true);");
        self.wait_until("the button is there", &ready).await;
        let saved = self.client.execute_async(CAPTURE, vec![json!(button)]);
        let saved = saved.await.expect("a script");
        assert_eq!(saved["type"], "image/png", "{saved}");
        let head: Vec<u64> = saved["head"]
            .as_array()
            .expect("bytes")
            .iter()
            .filter_map(Value::as_u64)
            .collect();
        assert_eq!(head[..8], (*b"\x89PNG\r\n\x1a\n").map(u64::from), "{saved}");
        assert!(saved["size"].as_u64() > Some(2_000), "{saved}");
        let number = |at: usize| head[at..at + 4].iter().fold(0, |sum, byte| sum << 8 | byte);
        (number(16), number(20))
    }
}

#[tokio::test]
async fn a_point_of_the_heat_map_leads_to_its_explanation() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("mixed", CODE, json!({"memory_mb": 256}))
        .await;
    for _ in 0..120 {
        client.invoke("mixed", &json!({})).await.expect(200);
    }
    let slow = json!({"objects": 300_000});
    let slow = client.invoke("mixed", &slow).await.expect(200);
    let id = slow.header("x-hearth-invocation-id").to_owned();

    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser
        .open(&server, "/functions/mixed/latency?window=1h")
        .await;
    browser.wait_for_text("#latency-count", "121").await;
    browser.look("latency-p99-desktop-light").await;
    // The highest cell is the slow one's: above the 99th percentile, of 121.
    let place = eventually("the map is drawn", Duration::from_secs(30), || async {
        let place = browser.client.execute(HIGHEST, vec![]).await.ok()?;
        Some((place[0].as_f64()?, place[1].as_f64()?))
    })
    .await;
    let (x, y) = place;
    let button = MOUSE_BUTTON_LEFT;
    let click = MouseActions::new("mouse".to_owned())
        .then(PointerAction::MoveTo {
            duration: None,
            x,
            y,
        })
        .then(PointerAction::Down { button })
        .then(PointerAction::Up { button });
    browser
        .client
        .perform_actions(click)
        .await
        .expect("a click");
    browser.find("#cell").await;
    browser.check_accessibility("a cell of the heat map").await;
    let cell = browser.client.current_url().await.expect("an address");
    assert!(cell.query().is_some_and(|query| query.contains("up_to=")));
    browser.click(&format!("#invocation-{id}")).await;

    browser.find("#stage-bar rect.stage-run").await;
    browser
        .wait_for_text("#explanation-summary", "the garbage collector")
        .await;
    let causes = browser.text("#causes").await;
    assert!(causes.contains("collection"), "{causes}");
    browser
        .wait_for_text("#instance-counters", "Page faults")
        .await;
    browser.wait_for_text("#host-counters", "Steal").await;
    browser.check_accessibility("an explanation").await;
    let path = format!("/functions/mixed/invocations/{id}");
    let cell = format!("{}?{}", cell.path(), cell.query().unwrap_or_default());
    browser
        .pictures(
            &server.url,
            &[
                ("explanation", path.as_str()),
                ("latency-cell", cell.as_str()),
                ("latency-p99", "/functions/mixed/latency?window=1h"),
            ],
        )
        .await;

    // The keyboard does the same, with the fullest cell first.
    browser
        .open(&server, "/functions/mixed/latency?window=1h")
        .await;
    browser.wait_for_text("#latency-count", "121").await;
    let focus = "document.getElementById('heat').focus(); return true;";
    browser.wait_until("the map is focused", focus).await;
    let keys = browser.find("#heat").await;
    keys.send_keys("\u{e013}").await.expect("an arrow key");
    browser.wait_for_text("#heat-readout", "invocation").await;
    keys.send_keys("\u{e007}").await.expect("Enter");
    browser.find("#cell #history-rows tr").await;
    browser
        .open(
            &server,
            "/functions/mixed/latency/cell?at=1000000000&seconds=5&above=100&up_to=133",
        )
        .await;
    browser.find("#cell-empty").await;
    browser.close().await;
}

#[tokio::test]
async fn versions_are_seen_over_time_and_a_slower_one_is_flagged() {
    let server = Server::start();
    let client = server.client();
    client.deploy("paced", CODE, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/paced/versions").await;
    browser.click("#to-performance").await;
    browser.find("#performance-empty").await;
    browser.look("performance-empty-desktop-light").await;

    for ms in [2, 6] {
        for _ in 0..60 {
            client
                .invoke("paced", &json!({ "ms": ms }))
                .await
                .expect(200);
        }
        if ms == 2 {
            let code = json!({"code": {"inline": format!("{CODE}\n# 2\n")}});
            let put = client.put("/api/v1/functions/paced/code", &code).await;
            put.expect(200);
        }
    }
    let path = "/api/v1/functions/paced/performance?days=1";
    let found = client.get(path).await.expect(200).json();
    let versions = &found["versions"];
    assert_eq!(versions[0]["version"], 2, "{found}");
    assert!(versions[1]["median_us"].as_u64() < versions[0]["median_us"].as_u64());
    let change = &versions[0]["change"];
    assert!(change["low"].as_f64() > Some(0.5), "{found}");
    assert!(change["low"].as_f64() <= change["estimate"].as_f64());
    assert!(
        found["points"]
            .as_array()
            .is_some_and(|points| points.len() >= 2)
    );
    assert_eq!(found["comparisons"], json!([]));

    browser
        .open(&server, "/functions/paced/performance?days=1")
        .await;
    browser.wait_for_text("#version-2", "slower").await;
    browser
        .wait_for_text("#comparisons", "None in this window")
        .await;
    let (width, height) = browser.png("[data-plot] [data-png]").await;
    assert_eq!((width, height), (1960, 760), "twice the SVG");
    browser.check_accessibility("performance of versions").await;
    browser
        .pictures(
            &server.url,
            &[("performance", "/functions/paced/performance?days=1")],
        )
        .await;
    browser.close().await;
}
