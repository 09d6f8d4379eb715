//! What the console's forms for duets and replays make of their fields.

use serde_json::json;

use crate::support::{Browser, Server, TOKEN};

const CODE: &str = "def handler(event, context):\n    return 1\n";

/// The console's form for a replay as it begins, with `others`, of which those that are among its fields count instead.
pub fn replay_form<'a>(others: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let begins = [
        ("kind", "replay"),
        ("second", ""),
        ("settings", ""),
        ("allow", ""),
        ("replay_source", "last"),
        ("last", "60"),
        ("replay_from", ""),
        ("replay_to", ""),
        ("replay_trace", ""),
        ("replay_function", ""),
        ("replay_from_s", "0"),
        ("replay_for_s", ""),
        ("speed", "1"),
        ("replay_stage", "run"),
        ("replay_confidence", "99"),
    ];
    let is_other = |name: &str| others.iter().any(|(other, _)| *other == name);
    let begins = begins.into_iter().filter(|(name, _)| !is_other(name));
    begins.chain(others.iter().copied()).collect()
}

#[tokio::test]
async fn the_forms_of_duets_and_replays_have_all_settings() {
    let server = Server::start();
    let client = server.client();
    client.deploy("plain", CODE, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let refused = async |form: &[(&str, &str)], field: &str, kept: &str| {
        let page = browser.submit("/lab", form).await.expect(422).text();
        let error = format!("id=\"error-{field}\"></p>");
        assert!(!page.contains(&error) && page.contains(kept), "{page}");
    };
    let made = async |form: &[(&str, &str)]| {
        let made = browser.submit("/lab", form).await.expect(303);
        let path = made
            .header("location")
            .replace("/lab", "/api/v1/experiments");
        client.get(&path).await.expect(200).json()
    };

    let window = [
        ("first", "plain"),
        ("replay_source", "window"),
        ("replay_from", "2026-01-02T03:04"),
        ("replay_to", "2026-01-02T03:00"),
    ];
    let kept = "value=\"2026-01-02T03:00\"";
    refused(&replay_form(&window), "replay_from", kept).await;
    let [first, source, from, _] = window;
    let window = [first, source, from, ("replay_to", "2026-01-02T04:00")];
    let found = made(&replay_form(&window)).await;
    assert_eq!(found["config"]["from"], "2026-01-02T03:04:00Z", "{found}");
    assert_eq!(found["config"]["to"], "2026-01-02T04:00:00Z", "{found}");

    // Larger than a form that is URL-encoded may be.
    let lines = "a,f,10.5,0.5\r\n".repeat(30_000);
    let text = format!("app,func,end_timestamp,duration\r\n{lines}");
    let trace = [
        ("first", "plain"),
        ("replay_source", "trace"),
        ("replay_trace", text.as_str()),
        ("replay_function", "g"),
        ("replay_stage", "total"),
        ("replay_confidence", "95"),
    ];
    refused(&replay_form(&trace), "replay_trace", "a,f,10.5,0.5").await;
    let all = trace.map(|(name, value)| match name {
        "replay_function" => (name, "f"),
        _ => (name, value),
    });
    let config = made(&replay_form(&all)).await["config"].take();
    assert_eq!(config["trace"]["text"], text.replace('\r', ""));
    assert_eq!(
        (&config["stage"], &config["confidence"]),
        (&json!("total"), &json!(0.95))
    );

    let duet = |threshold| {
        [
            ("kind", "duet"),
            ("first", "plain"),
            ("second", "plain@1"),
            ("event", "{}"),
            ("recorded", "0"),
            ("calls", "15"),
            ("duet_repeats", "4"),
            ("duet_invocations", "5"),
            ("duet_stage", "total"),
            ("duet_confidence", "95"),
            ("duet_width", "5"),
            ("duet_threshold", threshold),
            ("duet_control", "true"),
        ]
    };
    refused(&duet("1001"), "duet_threshold", "value=\"1001\"").await;
    let found = made(&duet("10")).await;
    assert_eq!(found["title"], "May plain@1 replace plain?", "{found}");
    let config = &found["config"];
    let expected = json!({"repeats": 4, "invocations": 5, "stage": "total", "confidence": 0.95, "width": 0.05, "threshold": 0.1});
    for (name, value) in expected.as_object().expect("settings") {
        assert_eq!(config[name], *value, "{name}");
    }
}
