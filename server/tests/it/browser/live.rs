//! Pages that change while they are open: under load, when the connection breaks, when the server is started again, when
//! nobody looks.

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::{Proxy, Server, TOKEN};

const ECHO: &str = "def handler(event, context): return event\n";

/// Watches the counter of the overview from inside the page: how often it changed, and whether it ever fell. Also the
/// longest task, and what the page noted, while it was watched.
const WATCH: &str = "
    const counter = document.getElementById('invocations');
    const seen = window.seen = { first: Number(counter.dataset.value), last: 0, changes: 0, fell: false, longest: 0, notes: '' };
    seen.last = seen.first;
    new MutationObserver(() => {
        const now = Number(counter.textContent.replaceAll(',', ''));
        seen.fell ||= now < seen.last;
        seen.changes += 1;
        seen.last = now;
    }).observe(counter, { childList: true, characterData: true, subtree: true });
    new MutationObserver((changes) => {
        for (const change of changes) for (const note of change.addedNodes) seen.notes += note.textContent;
    }).observe(document.getElementById('notes'), { childList: true });
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) seen.longest = Math.max(seen.longest, entry.duration);
    }).observe({ type: 'longtask', buffered: false });";

impl Browser {
    async fn seen(&self) -> Value {
        let script = "return window.seen;";
        self.client.execute(script, vec![]).await.expect("a script")
    }

    /// Waits until the counter says at least this.
    async fn wait_for_count(&self, count: u64) {
        let script = format!(
            "return Number(document.getElementById('invocations').dataset.value) >= {count};"
        );
        self.wait_until(&format!("{count} invocations are shown"), &script)
            .await;
    }

    /// Whether the page's stream is `open`, `paused` or `lost`.
    async fn wait_for_live(&self, state: &str) {
        let script = format!("return document.body.dataset.liveState === '{state}';");
        self.wait_until(&format!("the stream is {state}"), &script)
            .await;
    }

    /// Tells the page that it is hidden, or seen again.
    pub(super) async fn hide(&self, hidden: bool) {
        let script = "Object.defineProperty(document, 'hidden', { configurable: true, value: arguments[0] }); \
            document.dispatchEvent(new Event('visibilitychange'));";
        self.client
            .execute(script, vec![json!(hidden)])
            .await
            .expect("a script");
    }

    async fn wait_for_mark(&self, shown: bool) {
        let script = format!(
            "return document.getElementById('live-status').hidden === {};",
            !shown
        );
        self.wait_until("the mark of the connection", &script).await;
    }
}

#[tokio::test]
async fn a_page_follows_thousands_of_requests_without_a_stutter() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("busy", ECHO, json!({"max_concurrency": 2}))
        .await;
    client.invoke("busy", &json!(1)).await.expect(200);
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.wait_for_count(1).await;
    browser
        .client
        .execute(WATCH, vec![])
        .await
        .expect("a script");
    // As much as this machine gives, for as long as it takes the page to be updated ten times.
    let load: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                loop {
                    client.invoke("busy", &json!({"n": 1})).await.expect(200);
                }
            })
        })
        .collect();
    browser
        .wait_until("ten changes", "return window.seen.changes >= 10;")
        .await;
    for task in load {
        task.abort();
    }
    browser.wait_for_text("#overview", "busy").await;
    let seen = browser.seen().await;
    assert_eq!(seen["fell"], false, "{seen}");
    assert!(seen["last"].as_u64() > seen["first"].as_u64(), "{seen}");
    // Not a promise of speed: a page that did its work once a request would block for whole seconds here.
    let longest = seen["longest"].as_f64().expect("a number");
    assert!(longest < 1_000.0, "the page was blocked for {longest} ms");
    browser.look("overview-under-load-desktop-light").await;

    // The counter ends where the server's does.
    let finished = client.get("/api/v1/functions/busy/stats?window=1h").await;
    let finished = finished.json()["count"].as_u64().expect("a count");
    browser.wait_for_count(finished).await;
    browser.close().await;
}

#[tokio::test]
async fn a_connection_that_breaks_is_marked_and_made_again() {
    let server = Server::start();
    let client = server.client();
    client.deploy("one", ECHO, json!({})).await;
    client.invoke("one", &json!(1)).await.expect(200);
    let proxy = Proxy::start(&server.url).await;
    let browser = Browser::start(DESKTOP, false).await;
    browser.log_in_at(&proxy.url).await;
    browser.wait_for_count(1).await;
    browser
        .client
        .execute(WATCH, vec![])
        .await
        .expect("a script");
    for round in 0..2 {
        proxy.close();
        browser.wait_for_mark(true).await;
        let text = browser.text("#live-status").await;
        assert_eq!(text, "Reconnecting…");
        browser.picture("reconnecting-desktop-light").await;
        client.invoke("one", &json!(2)).await.expect(200);
        proxy.reopen();
        browser.wait_for_mark(false).await;
        browser.wait_for_count(2 + round).await;
    }
    assert_eq!(browser.seen().await["fell"], false);
    browser.close().await;
}

#[tokio::test]
async fn a_server_that_is_started_again_goes_on_counting() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut server = Server::start_in(&data);
    let client = server.client();
    client.deploy("one", ECHO, json!({})).await;
    for n in 1..=5 {
        client.invoke("one", &json!(n)).await.expect(200);
    }
    // Stored, not only answered.
    let listed = client
        .get("/api/v1/functions/one/invocations?limit=10")
        .await;
    assert_eq!(listed.json()["items"].as_array().map(Vec::len), Some(5));
    let proxy = Proxy::start(&server.url).await;
    let browser = Browser::start(DESKTOP, false).await;
    browser.log_in_at(&proxy.url).await;
    browser.wait_for_count(5).await;
    browser
        .client
        .execute(WATCH, vec![])
        .await
        .expect("a script");
    server.kill_9();
    browser.wait_for_mark(true).await;
    let server = Server::start_in(&data);
    proxy.to(&server.url);
    browser.wait_for_mark(false).await;
    // The note goes by itself: what counts is that it came.
    browser
        .wait_until(
            "a note of the new start",
            "return window.seen.notes.includes('restarted');",
        )
        .await;
    server.client().invoke("one", &json!(6)).await.expect(200);
    browser.wait_for_count(6).await;
    assert_eq!(browser.seen().await["fell"], false);
    browser.close().await;
}

#[tokio::test]
async fn a_page_nobody_looks_at_holds_no_connection() {
    let server = Server::start();
    let client = server.client();
    client.deploy("one", ECHO, json!({})).await;
    client.invoke("one", &json!(1)).await.expect(200);
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.wait_for_count(1).await;
    browser
        .client
        .execute(WATCH, vec![])
        .await
        .expect("a script");
    // A browser without a screen hides no tab: the page gets the event that a browser would send.
    browser.hide(true).await;
    browser.wait_for_live("paused").await;
    client.invoke("one", &json!(2)).await.expect(200);
    // What the server says now, it says to nobody: a stream of its own hears of it.
    let mut events = crate::support::Lines::open(
        client.request(reqwest::Method::GET, "/api/v1/functions/one/events"),
    )
    .await;
    for _ in 0..2 {
        events.event().await.expect("an event");
    }
    assert_eq!(browser.seen().await["last"], 1);
    browser.hide(false).await;
    browser.wait_for_count(2).await;
    browser.wait_for_live("open").await;
    browser.close().await;
}

#[tokio::test]
async fn a_list_follows_functions_that_come_and_go() {
    let server = Server::start();
    let client = server.client();
    client.deploy("alpha", ECHO, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions").await;
    client.deploy("beta", ECHO, json!({})).await;
    browser.find("#function-beta").await;
    client.invoke("beta", &json!(1)).await.expect(200);
    let row = "#function-list tr[data-function=beta]";
    browser.wait_for_text(row, "0%").await;
    browser.fill("#list-search", "alp").await;
    browser
        .wait_until(
            "beta is left out",
            "return document.getElementById('function-beta') === null && location.search === '?q=alp&state=';",
        )
        .await;
    client.delete("/api/v1/functions/alpha").await.expect(204);
    browser.find("#no-match").await;
    browser.close().await;
}

#[tokio::test]
async fn a_session_that_ends_ends_its_stream() {
    let server = Server::start();
    server.client().deploy("one", ECHO, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser
        .wait_until(
            "a stream",
            "return performance.getEntriesByType('resource').length > 0;",
        )
        .await;
    // Logged out in another tab.
    let script = "const csrf = document.querySelector('[name=csrf]').value; \
        return fetch('/logout', { method: 'POST', body: new URLSearchParams({ csrf }), redirect: 'manual' }).then(() => true);";
    browser
        .client
        .execute(script, vec![])
        .await
        .expect("a script");
    browser.wait_for_text("#live-status", "logged out").await;
    browser.click("#live-status a").await;
    browser.fill("#session-secret", TOKEN).await;
    browser.click("#session-submit").await;
    browser.wait_for_live("open").await;
    browser.close().await;
}
