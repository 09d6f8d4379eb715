//! The lab: experiments are created in its forms, watched, read, cancelled and deleted.

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP, PHONE};
use super::lab_forms::ends;
use super::log_in;
use crate::experiments::{agent, agent_with};
use crate::suites::{edit, unpacked};
use crate::support::Server;

const CODE: &str = "def handler(event, context):\n    return sum(range(2000))\n";

/// A title that would be markup.
const STELLAR: &str = r#"{"Sequential": true, "SubExperiments": [
  {"Title": "one <b>at a time<b>", "Bursts": 20, "BurstSizes": [1], "IATSeconds": 0},
  {"Title": "bursts", "Function": "hellonode", "Bursts": 3, "BurstSizes": [20], "IATSeconds": 0}
]}"#;

#[tokio::test]
async fn an_experiment_is_created_watched_and_read() {
    let server = Server::start();
    let client = server.client();
    client.deploy("summed", CODE, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.click(".main-nav a[href='/lab']").await;
    browser.find("#no-experiments").await;
    browser.check_accessibility("the lab").await;

    // What is wrong is said, and what was typed stays.
    browser.click("#new-stellar summary").await;
    browser.paste("#config", r#"{"SubExperiments": []}"#).await;
    browser.click("#stellar-button").await;
    browser.wait_for_text("#problem", "SubExperiments").await;
    // The browser tells of the answer's status.
    browser.console().await;
    browser.look("lab-refused").await;
    browser.click("#new-overhead summary").await;
    browser.fill("#overhead-samples", "9").await;
    browser.click("#overhead-button").await;
    browser
        .wait_for_text("#problem", "9 is not within 10 and 3000")
        .await;
    browser.console().await;
    browser.click("#new-duet summary").await;
    browser.fill("#first", "nobody").await;
    browser.click("#duet-button").await;
    browser
        .wait_for_text("#error-first", "There is no function \"nobody\"")
        .await;
    let kept = browser.find("#first").await.prop("value").await;
    assert_eq!(kept.expect("a field").as_deref(), Some("nobody"));
    browser.console().await;
    browser.fill("#first", "summed").await;
    browser.fill("#calls", "4").await;
    browser.click("#new-duet details.more summary").await;
    browser.fill("#duet_confidence", "100").await;
    browser.click("#duet-button").await;
    browser
        .wait_for_text("#error-duet_confidence", "from 50 to below 100")
        .await;
    browser.console().await;
    browser.looks("lab-duet-refused").await;
    browser.check_accessibility("a duet that is refused").await;
    browser.fill("#duet_confidence", "95").await;
    browser.fill("#duet_invocations", "5").await;
    browser.click("#duet-button").await;
    browser.wait_for_text("#experiment-state", "queued").await;
    let duet = browser.path().await;

    browser.open(&server, "/lab").await;
    browser.wait_for_text("#no-agent", "hearth lab agent").await;
    browser.click("#new-stellar summary").await;
    browser.paste("#config", STELLAR).await;
    browser.click("#stellar-button").await;
    browser.wait_for_text("#experiment-state", "queued").await;
    browser
        .check_accessibility("an experiment that waits")
        .await;

    // The page that is open follows it, and has the result at its end.
    let _agent = agent(&server);
    browser
        .wait_for_text("#result", "one <b>at a time<b>")
        .await;
    browser.wait_for_text("#experiment-state", "done").await;
    browser.wait_for_text("#files", "experiment.json").await;
    let plots = "return Array.from(document.querySelectorAll('.experiment-plot img')) \
        .filter((image) => image.complete && image.naturalWidth > 0).length === 4;";
    let both = "distributions and percentiles of both are drawn";
    browser.wait_until(both, plots).await;
    let stellar = browser.path().await;
    browser
        .pictures(
            &server.url,
            &[
                ("lab", "/lab"),
                ("lab-result", &stellar),
                ("lab-duet", &duet),
            ],
        )
        .await;
    browser.open(&server, &duet).await;
    browser
        .wait_for_any_text("#experiment-state", &["done", "fell short"])
        .await;
    browser.wait_for_text("#result", "event 1").await;
    browser.close().await;
}

#[tokio::test]
async fn two_runs_are_seen_as_they_come_and_side_by_side() {
    let server = Server::start();
    let client = server.client();
    let run = async |title: &str, bursts: u32, iat: u32| {
        let config = json!({"SubExperiments": [
            {"Title": title, "Bursts": bursts, "BurstSizes": [20], "IATSeconds": iat,
             "IATType": "deterministic", "Visualization": "all"}
        ]});
        let made = client.post("/api/v1/experiments", &config).await;
        made.expect(201).json()["id"].clone()
    };
    let (first, second) = (run("early", 5, 0).await, run("<i>late", 20, 1).await);
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    let path = format!("/lab/{second}");
    browser.open(&server, &path).await;
    let _agent = agent(&server);
    browser.wait_for_text("#live-distribution", "p99").await;
    browser.looks("lab-as-it-grows").await;
    browser.wait_for_text("#experiment-state", "done").await;
    for plot in ["histogram", "percentiles", "bursts"] {
        browser.wait_for_text("main", &format!(": {plot}")).await;
    }
    browser.wait_for_text("#compare-second", "early").await;
    browser.click("#compare-button").await;
    browser
        .wait_for_text("#differences", "<i>late / early")
        .await;
    let pairs = "return Array.from(document.querySelectorAll('.plot-pair')) \
        .filter((pair) => Array.from(pair.querySelectorAll('img')) \
            .filter((image) => image.complete && image.naturalWidth > 0).length === 2).length === 4;";
    browser
        .wait_until("each plot has the other's beside it", pairs)
        .await;
    // Its address can be shared.
    let compared = format!("/lab/compare?first={second}&second={first}");
    browser
        .pictures(
            &server.url,
            &[("lab-compared", &compared), ("lab-pictures", &path)],
        )
        .await;
    browser.open(&server, &path).await;
    let png = browser.png(".experiment-plot [data-png]").await;
    assert!(png.0 >= 820 && png.1 >= 280, "{png:?}");
    browser
        .open(&server, "/lab/compare?first=1&second=77")
        .await;
    browser
        .wait_for_text("main", "There is no experiment 77.")
        .await;
    browser.console().await;
    browser.close().await;
}

#[tokio::test]
async fn two_source_trees_are_compared_in_a_form_of_their_own() {
    let server = Server::start();
    let trees = tempfile::tempdir().expect("a directory");
    unpacked("suite-mitata", &trees.path().join("before"));
    let after = unpacked("suite-mitata", &trees.path().join("words/after"));
    edit(&after.join("words.js"), "ROUNDS = 1", "ROUNDS = 100");
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/lab").await;
    browser.click("#new-suite summary").await;

    // What is wrong is said at its field, and what was typed stays.
    let tool = browser.find("#suite_tool").await;
    tool.select_by_value("mitata").await.expect("an option");
    browser.fill("#suite_first", "/etc").await;
    browser.click("#suite-button").await;
    browser
        .wait_for_text("#error-suite_first", "below the agent's trees")
        .await;
    browser.console().await;
    browser.fill("#suite_first", "before").await;
    browser.fill("#suite_second", "words/after").await;
    browser.fill("#suite_time", "0.05").await;
    browser.fill("#suite_only", "count 1").await;
    browser.click("#new-suite details.more summary").await;
    browser.fill("#suite_parallel", "1000").await;
    browser.click("#suite-button").await;
    browser
        .wait_for_text("#error-suite_parallel", "1000 is not within 1 and")
        .await;
    browser.console().await;
    for (field, kept) in [("#suite_tool", "mitata"), ("#suite_second", "words/after")] {
        let value = browser.find(field).await.prop("value").await;
        assert_eq!(value.expect("a field").as_deref(), Some(kept), "{field}");
    }
    browser.looks("lab-suite-refused").await;
    browser.fill("#suite_parallel", "").await;
    browser.click("[name=suite_cgo]").await;
    browser.click("#suite-button").await;
    browser
        .wait_for_text("#error-suite_cgo", "Only for go, not for mitata")
        .await;
    browser.console().await;
    browser.click("[name=suite_cgo]").await;
    browser.fill("#suite_calls", "4").await;
    browser.click("#suite-button").await;
    browser.wait_for_text("#experiment-state", "queued").await;
    browser
        .wait_for_text(
            "h1",
            "Is words/after faster than before, by its benchmarks?",
        )
        .await;

    // The page follows what an agent does, and has the table and the forest plot at its end.
    let directory = trees.path().to_string_lossy();
    let _agent = agent_with(&server, &["--trees", &directory]);
    browser.wait_for_text("#experiment-live", "calls").await;
    let result = browser.path().await;
    // With so few trials the control differs from itself now and then: no verdict then.
    ends(&browser, &server.client()).await;
    browser
        .wait_for_text("#result", "bench/words.js > count 1000")
        .await;
    browser.wait_for_text("#result", "1 at a time").await;
    browser.wait_for_text("#files", "trials.csv").await;
    let plot = "return Array.from(document.querySelectorAll('.experiment-plot img')) \
        .filter((image) => image.complete && image.naturalWidth > 0).length === 1;";
    browser.wait_until("the forest plot is drawn", plot).await;
    browser
        .pictures(&server.url, &[("lab-suite", &result)])
        .await;
    browser.close().await;
}

#[tokio::test]
async fn an_experiment_is_cancelled_and_deleted_on_a_phone() {
    let server = Server::start();
    let client = server.client();
    let _agent = agent(&server);
    let long = json!({"SubExperiments": [
        {"Title": "long", "Bursts": 1000, "BurstSizes": [1], "IATSeconds": 20}
    ]});
    let made = client.post("/api/v1/experiments", &long).await.expect(201);
    let path = format!("/lab/{}", made.json()["id"]);
    let browser = Browser::start(PHONE, true).await;
    log_in(&browser, &server).await;
    browser.open(&server, &path).await;
    browser
        .wait_for_text("#experiment-live", "requests: 0 of 1000")
        .await;
    assert!(!browser.scrolls_sideways().await);
    browser.look("lab-running-phone-dark").await;
    browser.click("#cancel-experiment").await;
    browser
        .wait_for_text("#experiment-state", "cancelled")
        .await;
    let left = client.get("/api/v1/functions").await.expect(200).json();
    assert_eq!(left["items"], json!([]), "what was deployed is removed");
    browser.click(".delete summary").await;
    browser.click("#delete-experiment").await;
    browser.find("#no-experiments").await;
    let list = client.get("/api/v1/experiments").await.expect(200).json();
    assert_eq!(list, json!({"items": [], "next": Value::Null}));
    browser.close().await;
}
