//! Invocations, logs and retention.

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::{Client, Server};

/// Fails for negative numbers; prints as many lines as the event says.
const CODE: &str = "import sys\n\
    def handler(event, context):\n    \
        n = event['n']\n    \
        if n < 0: raise ValueError('negative')\n    \
        for i in range(event.get('lines', 0)): print('line', i, 'of a long <b>story</b>')\n    \
        print('warning: nearly lost connection', n, file=sys.stderr)\n    \
        return {'n': n}\n";

async fn deployed() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("story", CODE, json!({})).await;
    (server, client)
}

async fn invoke(client: &Client, event: Value) -> String {
    let answer = client.invoke("story", &event).await;
    answer.header("x-hearth-invocation-id").to_owned()
}

/// How many rows the table has.
fn rows(count: usize) -> String {
    format!("return document.querySelectorAll('#invocations tbody tr').length === {count}")
}

async fn address(browser: &Browser) -> String {
    browser
        .client
        .current_url()
        .await
        .expect("an address")
        .to_string()
}

#[tokio::test]
async fn invocations_are_filtered_paged_opened_and_come_by_themselves() {
    let (server, client) = deployed().await;
    let first = invoke(&client, json!({"n": 0, "lines": 2})).await;
    let failed = invoke(&client, json!({"n": -1})).await;
    for n in 0..53 {
        invoke(&client, json!({ "n": n })).await;
    }
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/story/invocations").await;
    browser.wait_until("a whole page", &rows(50)).await;
    browser.click("#invocations-older").await;
    browser.wait_until("the rest", &rows(5)).await;
    assert!(address(&browser).await.contains("?before="));
    browser.click("#invocations-newest").await;
    browser.wait_until("a whole page again", &rows(50)).await;

    browser.click("#filter-status option[value=failed]").await;
    browser.wait_until("the one that failed", &rows(1)).await;
    assert!(
        address(&browser)
            .await
            .ends_with("/invocations?status=failed")
    );
    browser.client.refresh().await.expect("a reload");
    browser
        .wait_until("the same after a reload", &rows(1))
        .await;
    let chosen = browser.find("#filter-status").await.prop("value").await;
    assert_eq!(chosen.expect("a value").as_deref(), Some("failed"));

    // *Back* leads to what was there before the filter, with one press.
    browser.client.back().await.expect("back");
    browser
        .wait_until("all without the filter", &rows(50))
        .await;

    browser.fill("#filter-min", "soon\n").await;
    browser
        .wait_for_text("#filter-error", "Min ms must be a number")
        .await;
    browser.look("invocations-wrong-filter-desktop-light").await;
    browser.click("#filter-clear").await;
    browser.wait_until("all of them", &rows(50)).await;

    // The newest page refreshes itself, also with what finishes while the page is on its way.
    for n in 0..5 {
        let newest = invoke(&client, json!({ "n": n })).await;
        let row = format!("tr[data-invocation='{newest}']");
        browser.find(&row).await;
        let address = "/functions/story/invocations";
        let (newest, ()) = tokio::join!(
            invoke(&client, json!({ "n": n })),
            browser.open(&server, address)
        );
        let row = format!("tr[data-invocation='{newest}']");
        browser.find(&row).await;
    }

    browser
        .open(&server, &format!("/functions/story/invocations/{failed}"))
        .await;
    browser.wait_for_text("#traceback", "main.py").await;
    browser
        .wait_for_text("#invocation-event", "\"n\": -1")
        .await;
    browser.wait_for_text("#curl-command", &failed).await;
    let again = browser
        .find("#run-again")
        .await
        .attr("href")
        .await
        .expect("a link");
    assert_eq!(again, Some(format!("/functions/story?event={failed}")));
    browser
        .open(&server, &format!("/functions/story/invocations/{first}"))
        .await;
    browser
        .wait_for_text("#invocation-result", "\"n\": 0")
        .await;

    let (failed, first) = (
        format!("/functions/story/invocations/{failed}"),
        format!("/functions/story/invocations/{first}"),
    );
    let pages = [
        ("invocations", "/functions/story/invocations"),
        (
            "invocations-none",
            "/functions/story/invocations?start=boot",
        ),
        ("invocation-failed", failed.as_str()),
        ("invocation", first.as_str()),
    ];
    browser.pictures(&server.url, &pages).await;
    browser.close().await;
}

#[tokio::test]
async fn a_log_is_followed_paused_and_searched() {
    let (server, client) = deployed().await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/story/logs").await;
    browser.wait_for_text("#log-empty", "No output yet").await;
    browser.wait_for_text("#tail-state", "Live").await;
    browser
        .pictures(&server.url, &[("logs-empty", "/functions/story/logs")])
        .await;

    browser.wait_for_text("#tail-state", "Live").await;
    let id = invoke(&client, json!({"n": 1, "lines": 2})).await;
    browser
        .wait_for_text("#log-list", "nearly lost connection 1")
        .await;
    let link = format!("#log-list a[href='/functions/story/invocations/{id}']");
    browser.find(&link).await;
    browser.find("#log-list .log-stderr").await;

    // Paused, nothing is added; what came meanwhile is there when it goes on.
    browser.click("#tail-pause").await;
    browser.wait_for_text("#tail-state", "Paused").await;
    invoke(&client, json!({"n": 2})).await;
    assert!(!browser.text("#log-list").await.contains("connection 2"));
    browser.click("#tail-pause").await;
    browser
        .wait_for_text("#log-list", "nearly lost connection 2")
        .await;
    browser
        .pictures(&server.url, &[("logs", "/functions/story/logs")])
        .await;

    // However much is printed, the page stays small and at the end.
    browser.wait_for_text("#tail-state", "Live").await;
    invoke(&client, json!({"n": 3, "lines": 3000})).await;
    browser
        .wait_until(
            "the last line",
            "const list = document.getElementById('log-list'); \
             return list.lastElementChild.textContent.includes('connection 3') \
                 && list.childElementCount <= 1000 && list.childElementCount > 100 \
                 && list.scrollHeight - list.scrollTop - list.clientHeight < 5",
        )
        .await;

    browser.fill("#log-query", "\"lost connection\"").await;
    browser.click("#log-search-button").await;
    browser
        .wait_until(
            "three lines with both words marked",
            "return document.querySelectorAll('#log-list li:not(.log-day)').length === 3 \
                 && document.querySelectorAll('#log-list mark').length === 3",
        )
        .await;
    assert!(
        address(&browser)
            .await
            .contains("/logs?q=%22lost%20connection%22")
    );
    browser.client.refresh().await.expect("a reload");
    browser
        .wait_for_text("#log-list mark", "lost connection")
        .await;
    browser.fill("#log-query", "\"open").await;
    browser.click("#log-search-button").await;
    browser
        .wait_for_text("#log-error", "unclosed quotation mark")
        .await;
    let of_one = format!("/functions/story/logs?q=story&invocation={id}");
    let pages = [
        ("logs-search", "/functions/story/logs?q=stor*"),
        ("logs-search-wrong", "/functions/story/logs?q=%22open"),
        ("logs-search-none", "/functions/story/logs?q=nowhere"),
        ("logs-of-one", of_one.as_str()),
    ];
    browser.pictures(&server.url, &pages).await;
    // Leaving the search follows again.
    browser.click("#log-clear").await;
    browser.wait_for_text("#tail-state", "Live").await;
    browser.close().await;
}

/// What programs write to logs: colours for a terminal, JSON, one endless line, warnings on standard error.
const WORDY: &str = "import json, sys\n\
    def handler(event, context):\n    \
        print('\\x1b[1;31mERROR\\x1b[0m disk \\x1b]0;title\\x07full')\n    \
        print(json.dumps({'level': 'warning', 'message': 'slow <b>query</b>', 'ms': 1234, 'tags': ['a']}))\n    \
        print('word ' * 600)\n    \
        print('deprecated', file=sys.stderr)\n";

#[tokio::test]
async fn log_lines_are_coloured_folded_cut_and_dated() {
    let server = Server::start();
    let client = server.client();
    client.deploy("wordy", WORDY, json!({})).await;
    let answer = client.invoke("wordy", &json!({})).await;
    let id = answer.header("x-hearth-invocation-id").to_owned();
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    let of_one = format!("/functions/wordy/invocations/{id}");
    for page in ["/functions/wordy/logs", of_one.as_str()] {
        browser.open(&server, page).await;
        browser
            .wait_until(
                "all four lines, made readable",
                "const text = (css) => document.querySelector(css)?.textContent; \
                 const first = document.querySelector('.logs li:not(.log-day) .log-text'); \
                 return first?.textContent === 'ERROR disk full' && text('.sgr-bold.sgr-31') === 'ERROR' \
                     && text('.log-level') === 'warning' && text('.log-message') === 'slow <b>query</b>' \
                     && document.querySelectorAll('.log-fields dt').length === 4 \
                     && document.querySelector('.log-more') !== null \
                     && document.querySelector('.clamped').clientHeight < 80 \
                     && getComputedStyle(document.querySelector('.log-stderr .log-text')).color === getComputedStyle(document.body).color;",
            )
            .await;
        browser.click(".log-more").await;
        browser
            .wait_until(
                "the whole line",
                "return document.querySelector('.clamped') === null && document.querySelector('.log-more').textContent === 'less';",
            )
            .await;
        browser.click(".log-more").await;
        browser.click(".log-fields summary").await;
        browser.wait_for_text(".log-fields dl", "1234").await;
        // Each day has a heading; the zone is said, and can be the reader's own.
        let dated = "return /^\\d{4}-\\d\\d-\\d\\d$/.test(document.querySelector('.logs .log-day').textContent) \
             && document.querySelector('[data-zone]').textContent === 'UTC';";
        browser.wait_until("a date and a zone", dated).await;
    }
    browser.look("invocation-wordy-desktop-light").await;
    browser
        .devtools(
            "Emulation.setTimezoneOverride",
            json!({"timezoneId": "Pacific/Kiritimati"}),
        )
        .await;
    browser.open(&server, "/functions/wordy/logs").await;
    browser.find(".logs .log-day").await;
    browser.click("#user-menu summary").await;
    browser.click("[data-times] [value=local]").await;
    browser
        .wait_until(
            "times fourteen hours ahead",
            "const time = document.querySelector('.logs time'); \
             const ahead = new Date(Date.parse(time.dateTime) + 14 * 3600 * 1000).toISOString(); \
             return time.textContent === ahead.slice(11, 23) && time.title.endsWith('UTC+14') \
                 && document.querySelector('.logs .log-day').textContent === ahead.slice(0, 10) \
                 && document.querySelector('[data-zone]').textContent === 'Pacific/Kiritimati';",
        )
        .await;
    // Later lines are shown in the same zone, and the choice outlives the page.
    browser.wait_for_text("#tail-state", "Live").await;
    client.invoke("wordy", &json!({})).await;
    browser
        .wait_until(
            "later lines in the same zone",
            "const times = Array.from(document.querySelectorAll('.logs time')); \
             return times.length >= 8 && times.every((time) => \
                 new Date(Date.parse(time.dateTime) + 14 * 3600 * 1000).toISOString().slice(11, 23) === time.textContent);",
        )
        .await;
    browser.open(&server, &of_one).await;
    browser
        .wait_until(
            "the page in local time",
            "return Array.from(document.querySelectorAll('.facts time')).every((time) => time.textContent.endsWith('UTC+14'));",
        )
        .await;
    let pages = [
        ("logs-wordy", "/functions/wordy/logs"),
        ("invocation-wordy-local", of_one.as_str()),
    ];
    browser.pictures(&server.url, &pages).await;
    browser.close().await;
}

#[tokio::test]
async fn retention_is_previewed_and_saved() {
    let (server, client) = deployed().await;
    invoke(&client, json!({"n": 1, "lines": 20})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/retention").await;
    browser.wait_for_text("#kept-logs", "21").await;
    browser.fill("#logs_days", "7").await;
    browser
        .wait_for_text("#retention-preview", "Saving removes nothing now")
        .await;
    browser.fill("#invocations_mib", "1").await;
    browser.click("#retention-save").await;
    browser
        .wait_for_text("#error-invocations_mib", "from 16 to")
        .await;
    // The browser tells of every refusal: that one was asked for.
    browser.console().await;
    browser.look("retention-wrong-desktop-light").await;
    browser.fill("#invocations_mib", "16").await;
    browser.click("#retention-save").await;
    browser.wait_for_text("#notice", "Saved").await;
    let settings = client.get("/api/v1/retention").await.expect(200).json()["settings"].clone();
    assert_eq!(settings["logs_days"], 7);
    assert_eq!(settings["invocations_mib"], 16);
    browser
        .pictures(&server.url, &[("retention", "/retention")])
        .await;
    browser.close().await;
}
