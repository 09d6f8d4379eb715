//! Experiments that the server keeps, and agents that run them.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::{Client, Server, TOKEN, eventually, signal, stop};

/// Of each row of a tail table: the fewest that there may be.
const SAMPLES: u64 = 100;
const EXPERIMENTS: &str = "/api/v1/experiments";

/// An agent of the server's, which ends with the test.
pub fn agent(server: &Server) -> Child {
    agent_with(server, &[])
}

/// The same with more arguments.
pub fn agent_with(server: &Server, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    command
        .args(["lab", "agent"])
        .args(arguments)
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN)
        // One that is killed removes nothing.
        .env("TMPDIR", server.data_dir())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command.spawn().expect("it starts")
}

/// Creates an experiment, which an agent runs, and returns it when it is over.
pub async fn ended(client: &Client, config: &Value) -> Value {
    let address = create(client, config).await;
    eventually("it ends", Duration::from_secs(120), || async {
        let found = client.get(&address).await.expect(200).json();
        let state = found["state"].as_str().expect("a state").to_owned();
        (!["queued", "running"].contains(&state.as_str())).then_some(found)
    })
    .await
}

/// A configuration is refused, by words that have these in them.
pub async fn refused(client: &Client, config: &Value, expected: &str) {
    let answer = client.post(EXPERIMENTS, config).await;
    let problem = answer.problem(422, "invalid_experiment");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains(expected), "{config}: {detail}");
}

/// Names of all functions.
pub async fn functions(client: &Client) -> Vec<String> {
    let list = client.get("/api/v1/functions").await.expect(200).json();
    let items = list["items"].as_array().expect("a list");
    let names = items.iter().map(|one| one["name"].as_str());
    names.map(|name| name.expect("a name").to_owned()).collect()
}

async fn create(client: &Client, config: &Value) -> String {
    let made = client.post(EXPERIMENTS, config).await.expect(201);
    let location = made.header("location").to_owned();
    let made = made.json();
    // An agent that has waited for it may have it by then.
    let state = made["state"].as_str();
    assert!(matches!(state, Some("queued" | "running")), "{made}");
    assert_eq!(location, format!("{EXPERIMENTS}/{}", made["id"]));
    location
}

/// The experiment once it is in this state.
async fn in_state(client: &Client, address: &str, state: &str) -> Value {
    eventually(state, Duration::from_secs(60), || async {
        let found = client.get(address).await.expect(200).json();
        (found["state"] == state).then_some(found)
    })
    .await
}

async fn lab_functions(client: &Client) -> usize {
    let all = functions(client).await;
    all.iter().filter(|name| name.starts_with("lab-")).count()
}

fn stellar(bursts: u32, pause: u32) -> Value {
    json!({"SubExperiments": [
        {"Title": "warm & short", "Bursts": bursts, "BurstSizes": [2], "IATSeconds": pause}
    ]})
}

#[tokio::test]
async fn an_agent_makes_the_tail_table() {
    let server = Server::start();
    let client = server.client();
    let _agent = agent(&server);
    let config = json!({"kind": "tail", "samples": SAMPLES, "factors": ["node-warm"]});
    let found = ended(&client, &config).await;
    assert_eq!(found["state"], "succeeded", "{found}");
    let rows = found["result"]["rows"].as_array().expect("rows");
    let titles: Vec<&Value> = rows.iter().map(|row| &row["title"]).collect();
    assert_eq!(titles, ["warm", "node-warm"], "{found}");
    for row in rows {
        assert_eq!(row["failed"], 0, "{row}");
        assert!(
            row["latency_ns"]["count"].as_u64() >= Some(SAMPLES),
            "{row}"
        );
        assert!(row["ratios"]["mr"].as_f64() > Some(0.0), "{row}");
    }
    let yardstick = &found["result"]["noise"]["yardstick_ns"];
    assert!(yardstick[0].as_f64() > Some(0.0), "{found}");
    let files = found["files"].as_array().expect("files");
    for file in [
        "table.json",
        "table.csv",
        "cdf.svg",
        "histogram.svg",
        "percentiles.svg",
    ] {
        assert!(
            files.iter().any(|one| one["path"] == file),
            "{file}: {files:?}"
        );
    }
    let address = format!("{EXPERIMENTS}/{}/files/table.csv", found["id"]);
    let table = client.get(&address).await.expect(200).text();
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.starts_with("factor,samples,median_ms"), "{table}");
    assert!(functions(&client).await.is_empty());
}

#[tokio::test]
async fn agents_run_experiments_and_a_restart_leaves_none_stuck() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return sum(range(2000))\n";
    client.deploy("summed", code, json!({})).await;

    // What waits can be cancelled before an agent is there.
    let waiting = create(&client, &stellar(1, 0)).await;
    let cancelled = client
        .post(&format!("{waiting}/cancel"), &Value::Null)
        .await;
    assert_eq!(cancelled.expect(200).json()["state"], "cancelled");
    let again = client
        .post(&format!("{waiting}/cancel"), &Value::Null)
        .await;
    again.problem(409, "experiment_state");

    let duet = json!({"kind": "duet", "first": "summed", "calls": 4, "invocations": 1, "events": [{"a": 1}]});
    let (short, duet) = (
        create(&client, &stellar(3, 0)).await,
        create(&client, &duet).await,
    );
    let _agent = agent(&server);
    let short = in_state(&client, &short, "succeeded").await;
    assert_eq!(
        short["result"]["rows"][0]["latency_ns"]["count"], 6,
        "{short}"
    );
    let paths: Vec<&str> = short["files"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    assert!(paths.contains(&"experiment.json"), "{paths:?}");
    let plot = paths
        .iter()
        .find(|path| path.ends_with("empirical_CDF.svg"))
        .expect("a plot");
    let plot = plot
        .replace('/', "%2F")
        .replace(' ', "%20")
        .replace('&', "%26");
    let id = &short["id"];
    let plot = client
        .get(&format!("{EXPERIMENTS}/{id}/files/{plot}"))
        .await
        .expect(200);
    assert!(plot.text().starts_with("<svg") && plot.header("content-type") == "image/svg+xml");
    client
        .get(&format!("{EXPERIMENTS}/{id}/files/nothing"))
        .await
        .problem(404, "not_found");

    // Few trials of an equal version: nothing differs, or by chance something does.
    let duet = eventually("the duet ends", Duration::from_secs(60), || async {
        let found = client.get(&duet).await.expect(200).json();
        let is_over =
            ["succeeded", "fell_short"].contains(&found["state"].as_str().unwrap_or_default());
        is_over.then_some(found)
    })
    .await;
    assert_eq!(duet["result"]["benchmarks"][0]["trials"], 12, "{duet}");

    // One that runs is cancelled by its agent, which removes its functions.
    let long = create(&client, &stellar(50, 20)).await;
    eventually("its function is there", Duration::from_secs(60), || async {
        (lab_functions(&client).await == 1).then_some(())
    })
    .await;
    client.delete(&long).await.problem(409, "experiment_state");
    client
        .post(&format!("{long}/cancel"), &Value::Null)
        .await
        .expect(200);
    in_state(&client, &long, "cancelled").await;
    assert_eq!(lab_functions(&client).await, 0);

    // A server that is killed meanwhile: the experiment fails, and its functions go.
    let lost = create(&client, &stellar(50, 20)).await;
    eventually("its function is there", Duration::from_secs(60), || async {
        (lab_functions(&client).await == 1).then_some(())
    })
    .await;
    let server = server.restart();
    let client = server.client();
    let lost = in_state(&client, &lost, "failed").await;
    assert_eq!(lost["error"], "the server was restarted while it ran");
    eventually("its function is gone", Duration::from_secs(60), || async {
        (lab_functions(&client).await == 0).then_some(())
    })
    .await;

    let list = client
        .get(&format!("{EXPERIMENTS}?limit=2"))
        .await
        .expect(200)
        .json();
    assert_eq!(list["items"][0]["id"], lost["id"]);
    let next = list["next"].as_str().expect("another page");
    let rest = client
        .get(&format!("{EXPERIMENTS}?before={next}"))
        .await
        .expect(200)
        .json();
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(3));
    client
        .delete(&format!("{EXPERIMENTS}/{}", lost["id"]))
        .await
        .expect(204);
}

#[tokio::test]
async fn bad_experiments_and_reports_are_refused() {
    let server = Server::start();
    let client = server.client();
    for (bad, expected) in [
        (json!({}), "SubExperiments"),
        (
            json!({"kind": "picture"}),
            "none of load, tail, overhead, duet",
        ),
        (json!({"kind": "tail", "samples": 7}), "samples"),
        (json!({"kind": "duet", "first": "No!"}), "first"),
        (
            json!({"kind": "duet", "first": "nobody"}),
            "first: there is no function \"nobody\"",
        ),
        (
            json!({"Provider": "lambda", "SubExperiments": []}),
            "known are: hearth, aws",
        ),
    ] {
        let problem = client
            .post(EXPERIMENTS, &bad)
            .await
            .problem(422, "invalid_experiment");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(expected), "{detail}");
    }
    for missing in ["7", "0", "x", "-1"] {
        let address = format!("{EXPERIMENTS}/{missing}");
        client.get(&address).await.problem(404, "not_found");
        let cancel = client
            .post(&format!("{address}/cancel"), &Value::Null)
            .await;
        cancel.problem(404, "not_found");
    }
    let waiting = create(&client, &stellar(1, 0)).await;
    let report = client.put(&format!("{waiting}/progress"), &json!({})).await;
    report.problem(409, "experiment_state");
    let end = client
        .put(&format!("{waiting}/end"), &json!({"state": "succeeded"}))
        .await;
    end.problem(409, "experiment_state");
    let taken = client
        .post(&format!("{EXPERIMENTS}/next"), &Value::Null)
        .await
        .expect(200)
        .json();
    assert_eq!(format!("{EXPERIMENTS}/{}", taken["id"]), waiting);
    for bad in [
        json!({"state": "running"}),
        json!({"state": "x"}),
        json!({"state": "failed", "x": 1}),
    ] {
        let end = client.put(&format!("{waiting}/end"), &bad).await;
        assert!(end.status.is_client_error(), "{bad}");
    }
    let told = client
        .put(&format!("{waiting}/progress"), &json!({"done": 1}))
        .await;
    assert_eq!(told.expect(200).json(), json!({"cancel": false}));
    let file = client
        .put(&format!("{waiting}/files/..%2Fx"), &json!(1))
        .await;
    file.problem(422, "invalid_experiment");
    client
        .put(&format!("{waiting}/files/a.json"), &json!(1))
        .await
        .expect(204);
    let end = json!({"state": "succeeded", "result": {"rows": []}});
    client
        .put(&format!("{waiting}/end"), &end)
        .await
        .expect(204);
    let found = client.get(&waiting).await.expect(200).json();
    assert_eq!(
        (&found["state"], &found["progress"]),
        (&json!("succeeded"), &Value::Null)
    );
    assert_eq!(found["files"], json!([{"path": "a.json", "bytes": 1}]));
}

#[tokio::test]
async fn an_agent_that_is_stopped_half_way_holds_up_nothing() {
    let server = Server::start();
    let client = server.client();
    let lost = create(&client, &stellar(50, 20)).await;
    let next = create(&client, &stellar(2, 0)).await;
    let stopped = agent(&server);
    eventually("its function is there", Duration::from_secs(60), || async {
        (lab_functions(&client).await == 1).then_some(())
    })
    .await;
    let pid = stopped.id().expect("it runs");
    stop(pid).expect("it runs");
    let found = in_state(&client, &lost, "failed").await;
    let error = found["error"].as_str().expect("an error");
    assert!(error.contains("does not report"), "{error}");
    eventually("its function is gone", Duration::from_secs(60), || async {
        (lab_functions(&client).await == 0).then_some(())
    })
    .await;
    // Another agent takes the next one, and the first one finds that its own is over.
    let _other = agent(&server);
    in_state(&client, &next, "succeeded").await;
    signal(pid, rustix::process::Signal::CONT).expect("it runs");
    let third = create(&client, &stellar(2, 0)).await;
    in_state(&client, &third, "succeeded").await;
    assert_eq!(in_state(&client, &lost, "failed").await["files"], json!([]));
    assert_eq!(lab_functions(&client).await, 0);
}

#[tokio::test]
async fn experiments_need_rights_and_take_no_limited_tokens() {
    let server = Server::start();
    let admin = server.client();
    let made = create(&admin, &stellar(1, 0)).await;
    let with = async |rights: &[&str], scope: Value| {
        let mut body = json!({"name": rights.join(" "), "rights": rights});
        if scope != Value::Null {
            body["scope"] = scope;
        }
        let token = admin.post("/api/v1/tokens", &body).await.expect(201);
        let token = token.json()["token"].as_str().expect("a secret").to_owned();
        server.client_with(Some(&token))
    };
    let reader = with(&["read"], Value::Null).await;
    reader.get(EXPERIMENTS).await.expect(200);
    reader.get(&made).await.expect(200);
    // What a limited token reaches is not what an agent reaches, who would run the experiment.
    let limited = with(&["read", "invoke", "write"], json!(["mine"])).await;
    limited.get(&made).await.problem(403, "forbidden");
    for client in [&reader, &limited] {
        for path in [
            EXPERIMENTS.to_owned(),
            format!("{EXPERIMENTS}/next"),
            format!("{made}/cancel"),
        ] {
            let answer = client.post(&path, &stellar(1, 0)).await;
            answer.problem(403, "forbidden");
        }
        for path in ["progress", "files/a.json", "end"] {
            let answer = client.put(&format!("{made}/{path}"), &json!({})).await;
            answer.problem(403, "forbidden");
        }
        client.delete(&made).await.problem(403, "forbidden");
    }
    let nobody = server.client_with(None);
    nobody.get(&made).await.problem(401, "unauthorized");
    assert_eq!(admin.get(&made).await.json()["state"], "queued");
}

#[tokio::test]
async fn a_chain_whose_agent_was_killed_goes_with_its_members() {
    let server = Server::start();
    let client = server.client();
    let agent = agent(&server);
    let mut config = stellar(50, 20);
    config["SubExperiments"][0]["DataTransferChainLength"] = json!(2);
    let lost = create(&client, &config).await;
    let chains = async |client: &Client| {
        let list = client.get("/api/v1/chains").await.expect(200).json();
        list["items"].as_array().map(Vec::len).expect("a list")
    };
    eventually("its chain is there", Duration::from_secs(60), || async {
        (chains(&client).await == 1).then_some(())
    })
    .await;
    drop(agent);
    let server = server.restart();
    let client = server.client();
    in_state(&client, &lost, "failed").await;
    eventually("nothing is left", Duration::from_secs(60), || async {
        let left = (chains(&client).await, lab_functions(&client).await);
        (left == (0, 0)).then_some(())
    })
    .await;
}
