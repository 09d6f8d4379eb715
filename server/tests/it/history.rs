//! What is known afterwards: invocations, statistics, logs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, Server, eventually};

/// Prints its event; fails when asked to.
const CODE: &str = "print('imported')\n\
    def handler(event, context):\n    \
        print('n', event)\n    \
        if event < 0: raise ValueError('negative')\n    \
        return event\n";

/// A function with seven invocations: 0 to 4 succeeded, -1 and -2 failed.
async fn seven() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("busy", CODE, json!({})).await;
    for event in [0, 1, -1, 2, 3, -2, 4] {
        let expected = if event < 0 { 502 } else { 200 };
        client.invoke("busy", &json!(event)).await.expect(expected);
    }
    (server, client)
}

async fn page(client: &Client, query: &str) -> Value {
    let path = format!("/api/v1/functions/busy/invocations{query}");
    client.get(&path).await.expect(200).json()
}

#[tokio::test]
async fn history_is_paged_newest_first_without_gap_or_repetition() {
    let (_server, client) = seven().await;
    let whole = page(&client, "").await;
    let whole_items = whole["items"].as_array().unwrap();
    assert_eq!(whole_items.len(), 7);
    assert_eq!(whole["next"], Value::Null);
    let ids: Vec<_> = whole_items
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert!(
        ids.is_sorted_by(|a, b| a > b),
        "UUIDv7, newest first: {ids:?}"
    );

    let mut paged = Vec::new();
    let mut query = "?limit=3".to_owned();
    let mut sizes = Vec::new();
    loop {
        let answer = page(&client, &query).await;
        let items = answer["items"].as_array().unwrap().clone();
        sizes.push(items.len());
        paged.extend(items);
        // What happens meanwhile does not shift the pages.
        client.invoke("busy", &json!(9)).await.expect(200);
        match answer["next"].as_str() {
            Some(next) => query = format!("?limit=3&before={next}"),
            None => break,
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(&paged, whole_items);
    let exact = page(&client, "?limit=10").await;
    assert_eq!(
        exact["next"],
        Value::Null,
        "no empty page follows a full last one"
    );
}

#[tokio::test]
async fn history_is_filtered_by_status() {
    let (_server, client) = seven().await;
    for (status, count) in [
        ("succeeded", 5),
        ("failed", 2),
        ("timed_out", 0),
        ("running", 0),
        ("dead", 0),
    ] {
        let answer = page(&client, &format!("?status={status}")).await;
        let items = answer["items"].as_array().unwrap();
        assert_eq!(items.len(), count, "{status}");
        assert!(items.iter().all(|item| item["status"] == status));
    }
    let first = page(&client, "?status=failed&limit=1").await;
    let next = first["next"].as_str().expect("a second page");
    let second = page(&client, &format!("?status=failed&limit=1&before={next}")).await;
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    assert_eq!(second["next"], Value::Null);
}

#[tokio::test]
async fn an_invocations_record_is_whole() {
    let (_server, client) = seven().await;
    let failed = client.invoke("busy", &json!(-3)).await;
    let record = client
        .invocation(failed.header("x-hearth-invocation-id"))
        .await;
    let fields: Vec<_> = record
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        // Only what takes 50 µs or longer is counted.
        .filter(|field| *field != "counters")
        .collect();
    for field in [
        "id",
        "function",
        "version",
        "trigger",
        "status",
        "start",
        "received_at",
        "finished_at",
        "stages_us",
        "request_bytes",
        "response_bytes",
        "attempts",
        "error",
        "logs",
        "event",
        "result",
    ] {
        assert!(fields.contains(&field), "{field} is missing: {record}");
    }
    assert_eq!(fields.len(), 16, "{record}");
    assert_eq!(record["function"], "busy");
    assert_eq!(record["version"], 1);
    assert_eq!(record["trigger"], "invoke");
    assert_eq!(record["status"], "failed");
    assert_eq!(record["start"], "warm");
    assert_eq!(record["attempts"], 1);
    assert_eq!(record["request_bytes"], 2);
    assert_eq!(record["error"]["errorType"], "ValueError");
    assert_eq!(record["error"]["errorMessage"], "negative");
    assert!(
        record["error"]["stackTrace"][0]
            .as_str()
            .unwrap()
            .contains("main.py")
    );
    assert_eq!(record["logs"].as_array().unwrap().len(), 1);
    let time = |field: &str| {
        record[field]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    assert!(time("received_at") <= time("finished_at"));
    let stage = |name: &str| record["stages_us"][name].as_u64().unwrap();
    let parts: u64 = ["queue", "start", "send", "run", "recv"]
        .map(stage)
        .iter()
        .sum();
    assert!(
        parts <= stage("total") + 5,
        "the stages are parts of the whole: {record}"
    );
    assert_eq!(stage("start"), 0, "a warm instance needs no start");
    let listed = page(&client, "?limit=1").await;
    assert_eq!(
        listed["items"][0]["logs"],
        json!([]),
        "lists leave the lines out"
    );

    let http = client.get("/fn/busy").await;
    let record = client
        .invocation(http.header("x-hearth-invocation-id"))
        .await;
    assert_eq!(record["trigger"], "http");
}

#[tokio::test]
async fn history_is_filtered_by_start_version_trigger_and_duration() {
    let (_server, client) = seven().await;
    client.get("/fn/busy").await.expect(502);
    let code = json!({ "inline": CODE.replace("'n'", "'m'") });
    let path = "/api/v1/functions/busy/code";
    client.put(path, &json!({ "code": code })).await.expect(200);
    client.invoke("busy", &json!(1)).await.expect(200);
    let whole = page(&client, "").await["items"].as_array().unwrap().clone();
    assert_eq!(whole.len(), 9);
    let total = |item: &Value| item["stages_us"]["total"].as_u64().unwrap();
    let mut totals: Vec<u64> = whole.iter().map(total).collect();
    totals.sort_unstable();
    let middle = totals[4];
    type Wanted<'a> = Box<dyn Fn(&Value) -> bool + 'a>;
    let cases: Vec<(String, Wanted)> = vec![
        (
            "start=warm".into(),
            Box::new(|item| item["start"] == "warm"),
        ),
        (
            "start=fork".into(),
            Box::new(|item| item["start"] == "fork"),
        ),
        (
            "start=boot".into(),
            Box::new(|item| item["start"] == "boot"),
        ),
        ("version=1".into(), Box::new(|item| item["version"] == 1)),
        ("version=2".into(), Box::new(|item| item["version"] == 2)),
        ("version=3".into(), Box::new(|_| false)),
        (
            "trigger=http".into(),
            Box::new(|item| item["trigger"] == "http"),
        ),
        (
            format!("min_us={middle}"),
            Box::new(|item| total(item) >= middle),
        ),
        (
            format!("max_us={middle}"),
            Box::new(|item| total(item) <= middle),
        ),
        (
            format!("min_us={middle}&max_us={middle}&version=1"),
            Box::new(|item| total(item) == middle && item["version"] == 1),
        ),
        (
            "status=failed&trigger=invoke".into(),
            Box::new(|item| item["status"] == "failed" && item["trigger"] == "invoke"),
        ),
    ];
    for (query, wanted) in cases {
        let expected: Vec<&Value> = whole.iter().filter(|item| wanted(item)).collect();
        let found = page(&client, &format!("?{query}")).await;
        let items: Vec<&Value> = found["items"].as_array().unwrap().iter().collect();
        assert_eq!(items, expected, "{query}");
        assert_eq!(found["next"], Value::Null, "{query}");
    }
    for (query, field) in [
        ("start=cold", "start"),
        ("version=zero", "version"),
        ("trigger=cron", "trigger"),
        ("min_us=x", "min_us"),
        ("min_us=5&max_us=4", "max_us"),
        ("before=x", "before"),
        ("start_kind=warm", "start_kind"),
    ] {
        let path = format!("/api/v1/functions/busy/invocations?{query}");
        let problem = client.get(&path).await.problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
    }
}

#[tokio::test]
async fn events_and_results_are_kept_up_to_a_size() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    \
        if event.get('fail'): raise ValueError('asked for')\n    \
        return {'got': event}\n";
    client.deploy("echo", code, json!({})).await;
    let detail = async |answer: &crate::support::Answer| {
        client
            .invocation(answer.header("x-hearth-invocation-id"))
            .await
    };
    let small = client.invoke("echo", &json!({"a": "ä"})).await.expect(200);
    let kept = detail(&small).await;
    assert_eq!(
        kept["event"],
        json!({"text": "{\"a\":\"ä\"}", "truncated": false, "binary": false})
    );
    let result: Value = serde_json::from_str(kept["result"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(result, json!({"got": {"a": "ä"}}));

    let large = json!({"a": "x".repeat(100_000)});
    let kept = detail(&client.invoke("echo", &large).await.expect(200)).await;
    for part in ["event", "result"] {
        assert_eq!(kept[part]["truncated"], true);
        assert_eq!(kept[part]["text"].as_str().unwrap().len(), 4096);
    }
    let failed = client
        .invoke("echo", &json!({"fail": true}))
        .await
        .expect(502);
    let kept = detail(&failed).await;
    assert_eq!(kept["event"]["text"], "{\"fail\":true}");
    assert_eq!(kept["result"], Value::Null);

    let code = "def handler(event, context):\n    \
        return {'statusCode': 201, 'headers': {'set-cookie': 'a=s3cr3t'}, 'body': 'made'}\n";
    client.deploy("site", code, json!({})).await;
    let request = client
        .request(reqwest::Method::POST, "/fn/site/path?q=1")
        .body("name=Ada");
    let answer = client.send(request).await.expect(201);
    let kept = detail(&answer).await;
    let text = |part: &str| kept[part]["text"].as_str().unwrap().to_owned();
    let (event, result) = (text("event"), text("result"));
    assert!(
        event.contains("\"rawPath\":\"/path\"") && event.contains("name=Ada"),
        "{event}"
    );
    assert!(!event.contains(crate::support::TOKEN), "{event}");
    assert!(
        result.contains("\"statusCode\":201") && result.contains("made"),
        "{result}"
    );
    assert!(!result.contains("s3cr3t"), "{result}");
}

#[tokio::test]
async fn statistics_count_what_happened() {
    let (_server, client) = seven().await;
    let stats = client
        .get("/api/v1/functions/busy/stats?window=10m")
        .await
        .expect(200)
        .json();
    assert_eq!(stats["window_s"], 600);
    assert_eq!(stats["count"], 7);
    assert_eq!(stats["errors"], 2);
    let function = client.get("/api/v1/functions/busy").await.expect(200);
    assert_eq!(
        stats["starts"],
        json!({"warm": 6, "fork": 1, "restore": 0, "boot": 0}),
        "{}",
        function.json()["decisions"]
    );
    let stages = stats["stages_us"].as_object().unwrap();
    assert_eq!(stages.len(), 5);
    for (name, percentiles) in stages
        .iter()
        .chain([(&"total".to_owned(), &stats["total_us"])])
    {
        // Seven samples: what p90 and the others would say is the maximum.
        for step in ["p90", "p99", "p999"] {
            assert!(percentiles[step].is_null(), "{name}: {percentiles}");
        }
        let [median, max] = ["p50", "max"].map(|step| percentiles[step].as_u64().unwrap());
        assert!(median <= max, "{name}: {percentiles}");
    }
    assert!(stats["total_us"]["p50"].as_u64().unwrap() > 0);
    assert!(stats["tail_to_median"].is_null(), "{stats}");
    for event in 0..93 {
        client.invoke("busy", &json!(event % 3)).await.expect(200);
    }
    let path = "/api/v1/functions/busy/stats?window=10m";
    let stats = client.get(path).await.expect(200).json();
    assert_eq!(stats["count"], 100);
    let total = |step: &str| stats["total_us"][step].as_f64();
    assert!(total("p90") <= total("p99") && total("p99") <= total("max"));
    assert!(total("p999").is_none(), "{stats}");
    let ratio = stats["tail_to_median"].as_f64().unwrap();
    let expected = total("p99").unwrap() / total("p50").unwrap();
    assert!((ratio - expected).abs() < 0.02 * ratio, "{stats}");
    let default = client.get("/api/v1/functions/busy/stats").await.expect(200);
    assert_eq!(default.json()["window_s"], 300);
    let quiet = client.deploy("quiet", CODE, json!({})).await;
    assert_eq!(quiet["state"], "ready");
    let stats = client.get("/api/v1/functions/quiet/stats").await.json();
    assert_eq!(stats["count"], 0);
    assert!(stats["tail_to_median"].is_null() && stats["total_us"]["max"].is_null());
}

#[tokio::test]
async fn logs_are_ndjson_oldest_first_with_their_invocations() {
    let (_server, client) = seven().await;
    let answer = client.get("/api/v1/functions/busy/logs").await.expect(200);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let lines: Vec<Value> = answer
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).expect("one object a line"))
        .collect();
    let texts: Vec<_> = lines
        .iter()
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "imported", "n 0", "n 1", "n -1", "n 2", "n 3", "n -2", "n 4"
        ]
    );
    assert_eq!(lines[0]["invocation"], Value::Null, "nobody had called yet");
    let record = client
        .invocation(lines[7]["invocation"].as_str().unwrap())
        .await;
    assert_eq!(record["logs"][0]["text"], "n 4");
    assert_eq!(lines[7]["stream"], "stdout");
    assert!(
        lines[7]["time"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .is_ok()
    );
    let newest = client
        .get("/api/v1/functions/busy/logs?limit=2")
        .await
        .text();
    assert_eq!(newest.lines().count(), 2);
    assert!(newest.lines().last().unwrap().contains("n 4"));
}

#[tokio::test]
async fn a_restart_keeps_history_statistics_and_logs() {
    let (server, client) = seven().await;
    let before = page(&client, "").await;
    let server = server.restart();
    let client = server.client();
    assert_eq!(page(&client, "").await, before);
    let stats = eventually(
        "the minutes are recounted",
        Duration::from_secs(10),
        || async {
            let stats = client.get("/api/v1/functions/busy/stats").await.json();
            (stats["count"] == 7).then_some(stats)
        },
    )
    .await;
    assert_eq!(stats["errors"], 2);
    assert_eq!(stats["starts"]["fork"], 1);
    let logs = client.get("/api/v1/functions/busy/logs").await.text();
    assert!(logs.contains("n -2") && logs.contains("n 4"), "{logs}");
}
