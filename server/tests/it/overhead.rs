//! The overhead study: what each layer has of an invocation's time.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::experiments::{agent, ended, functions, refused};
use crate::support::{Server, TOKEN, eventually, signal};

/// Names of all functions that are there.
/// Whether a row's layers are none negative and add up to the client's time.
fn check_layers(row: &Value) {
    let layers = row["layers"].as_array().expect("layers");
    let names: Vec<&str> = layers
        .iter()
        .filter_map(|layer| layer["name"].as_str())
        .collect();
    assert_eq!(names, ["function", "worker", "server", "client"]);
    let sum = |pick: &dyn Fn(&Value) -> Option<f64>| {
        let all = layers.iter().map(|layer| pick(layer).expect("a number"));
        all.inspect(|one| assert!(*one >= 0.0, "{row}"))
            .sum::<f64>()
    };
    assert!((sum(&|layer| layer["share"].as_f64()) - 1.0).abs() < 1e-6);
    let total = layers[3]["through"]["mean_ns"].as_f64().expect("a mean");
    let means = sum(&|layer| layer["own"]["mean_ns"].as_f64());
    assert!((means / total - 1.0).abs() < 1e-6, "{row}");
}

#[tokio::test]
async fn layers_of_all_workloads_add_up() {
    let server = Server::start();
    let client = server.client();
    let _agent = agent(&server);
    let config = json!({"kind": "overhead", "samples": 10, "cold": 2});
    let found = ended(&client, &config).await;
    assert_eq!(found["state"], "succeeded", "{found}");
    let rows = found["result"]["overhead"].as_array().expect("rows");
    let left_out = found["result"]["left_out"].as_array().expect("a list");
    let mut values = Vec::new();
    let mut cold = 0;
    for runtime in ["python3", "node", "provided"] {
        for workload in ["empty", "math", "sleep", "image"] {
            for start in ["warm", "cold"] {
                let title = format!("{workload}, {runtime}, {start}");
                let Some(row) = rows.iter().find(|row| row["title"] == title) else {
                    // On a busy host an instance may live on for some seconds.
                    let is_told =
                        |one: &Value| one.as_str().is_some_and(|one| one.starts_with(&title));
                    assert!(
                        start == "cold" && left_out.iter().any(is_told),
                        "{title}: {found}"
                    );
                    continue;
                };
                let count = |of: &Value| of.as_u64().expect("a number");
                let (samples, other) = (
                    count(&row["samples"]),
                    count(&row["uncounted"]["other_start"]),
                );
                assert_eq!(
                    samples + other,
                    if start == "cold" { 2 } else { 10 },
                    "{row}"
                );
                cold += if start == "cold" { samples } else { 0 };
                check_layers(row);
                values.push((workload, row["value"].as_f64().expect("a value")));
                // A function's sleep is the function's. Node's timer may be 1 ms early.
                let function = row["layers"][0]["own"]["p50_ns"].as_f64();
                assert!(workload != "sleep" || function >= Some(9e6), "{row}");
            }
        }
    }
    assert!(cold > 0, "{found}");
    let of = |name: &str| {
        let own = values.iter().filter(|(workload, _)| *workload == name);
        own.map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    assert!(of("math").iter().all(|pi| (2.7..3.6).contains(pi)));
    let image = of("image");
    assert!(
        image[0] > 0.0 && image.iter().all(|sum| *sum == image[0]),
        "{image:?}"
    );

    let id = &found["id"];
    for (file, expected) in [
        ("overhead.json", "\"began_at\""),
        ("overhead.csv", "workload,runtime,start,samples"),
        ("samples.csv", "empty,python3,warm,"),
        ("overhead.svg", "<svg"),
    ] {
        let path = format!("/api/v1/experiments/{id}/files/{file}");
        let text = client.get(&path).await.expect(200).text().to_owned();
        assert!(text.contains(expected), "{text}");
    }
    assert!(functions(&client).await.is_empty());

    for (bad, expected) in [
        (json!({"kind": "overhead", "samples": 1}), "samples: 1"),
        (
            json!({"kind": "overhead", "runtimes": ["cobol"]}),
            "runtimes: \"cobol\" is none of python3, node, provided",
        ),
    ] {
        refused(&client, &bad, expected).await;
    }
}

#[tokio::test]
async fn the_command_prints_the_table_and_a_cancel_leaves_nothing() {
    let server = Server::start();
    let client = server.client();
    let directory = tempfile::tempdir().expect("a directory");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
        command
            .args([
                "lab",
                "overhead",
                "--runtimes",
                "python3",
                "--workloads",
                "empty",
            ])
            .args(arguments)
            .arg("--out")
            .arg(directory.path())
            .env("HEARTH_URL", &server.url)
            .env("HEARTH_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    };
    let mut short = command(&["--samples", "10"]);
    let done = tokio::time::timeout(Duration::from_secs(60), short.output());
    let done = done.await.expect("it ends").expect("it runs");
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        told.contains("in the function") && told.contains("python3   warm"),
        "{told}"
    );
    assert!(functions(&client).await.is_empty());

    // Ten minutes of cold starts.
    let long = command(&["--samples", "10", "--cold", "200"])
        .spawn()
        .expect("it starts");
    eventually("it is at work", Duration::from_secs(60), || async {
        (!functions(&client).await.is_empty()).then_some(())
    })
    .await;
    let pid = long.id().expect("it runs");
    signal(pid, rustix::process::Signal::INT).expect("it runs");
    let done = tokio::time::timeout(Duration::from_secs(60), long.wait_with_output());
    let done = done.await.expect("it ends").expect("it ran");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{told}");
    assert!(told.contains("hearth lab: cancelled"), "{told}");
    assert!(functions(&client).await.is_empty());
}
