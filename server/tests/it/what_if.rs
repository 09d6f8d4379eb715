//! What other settings of the scheduler would have made of recorded calls.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use crate::experiments::{agent, ended};
use crate::support::{Browser, Server, TOKEN};

#[tokio::test]
async fn recorded_calls_run_through_other_settings() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return 1\n";
    client
        .deploy("asked", code, json!({"idle_timeout_s": 1}))
        .await;
    let path = "/api/v1/functions/asked/what-if";
    client.get(path).await.problem(404, "not_found");
    for _ in 0..3 {
        client.invoke("asked", &json!({})).await.expect(200);
        tokio::time::sleep(Duration::from_millis(2500)).await;
    }

    let query = format!("{path}?window=1h&idle_timeout_s=1,600&min_instances=0");
    let found = client.get(&query).await.expect(200).json();
    assert_eq!(found["calls"], 3, "{found}");
    let curve = &found["curves"][0];
    let points = curve["points"].as_array().expect("points");
    assert_eq!(points.len(), 2);
    // Each call finds nothing, or the first only.
    assert_eq!(points[0]["cold"], 3, "{found}");
    assert_eq!(points[1]["cold"], 1, "{found}");
    let memory = |index: usize| points[index]["memory_mib"].as_f64().expect("MiB");
    assert!(memory(0) < memory(1), "{found}");
    assert_eq!(found["today"]["points"][0]["idle_timeout_s"], 1);
    assert_eq!(found["today"]["points"][0]["cold"], 3);
    // Several at once are simulated one after the other.
    let several = [client.get(&query), client.get(&query), client.get(&query)];
    for found in futures_util::future::join_all(several).await {
        assert_eq!(found.expect(200).json()["calls"], 3);
    }
    // A limit of memory limits the instances.
    let tight = format!("{path}?memory_mib=1&max_concurrency=9&min_instances=5");
    let tight = client.get(&tight).await.expect(200).json();
    assert!(tight["curves"][0]["points"][0]["most_instances"].as_u64() < Some(9));

    for bad in [
        "idle_timeout_s=0",
        "idle_timeout_s=1,",
        "min_instances=x",
        "window=8d",
        "min_instances=0,1,2,3,4,5,6,7,8,9,10,11,12,13",
        "speed=1",
    ] {
        let answer = client.get(&format!("{path}?{bad}")).await;
        answer.problem(422, "invalid_field");
    }
    client
        .get("/api/v1/functions/nobody/what-if")
        .await
        .problem(404, "not_found");

    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get("/functions/asked/what-if").await.expect(200);
    let page = page.text();
    assert!(
        page.contains("id=\"what-if-plot\"") && page.contains("today: 1 s, at least 0"),
        "{page}"
    );

    let directory = tempfile::tempdir().expect("a directory");
    let svg = directory.path().join("curve.svg");
    let done = Command::new(env!("CARGO_BIN_EXE_hearth"))
        .args([
            "lab",
            "what-if",
            "asked",
            "--idle-timeout",
            "1,600",
            "--svg",
        ])
        .arg(&svg)
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .await
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("3 calls"), "{said}");
    let svg = std::fs::read_to_string(svg).expect("a file");
    assert!(svg.starts_with("<svg") && svg.contains(">today<"));

    // The same as an experiment, by an agent and from a file.
    let config =
        json!({"kind": "whatif", "function": "asked", "window": "1h", "idle_timeout_s": [1, 600]});
    let agent = agent(&server);
    let found = ended(&client, &config).await;
    drop(agent);
    assert_eq!(found["state"], "succeeded", "{found}");
    assert_eq!(found["result"]["what_if"]["calls"], 3, "{found}");
    let files = found["files"].to_string();
    for name in ["curve.svg", "what-if.csv", "what-if.json"] {
        assert!(files.contains(name), "{files}");
    }
    let page = browser
        .get(&format!("/lab/{}", found["id"]))
        .await
        .expect(200);
    assert!(page.text().contains("Which settings keep asked warm?"));
    for (config, code, expected) in [
        (config, 0, "3 calls"),
        (json!({"kind": "whatif", "function": "nobody"}), 2, "nobody"),
        (json!({"kind": "whatif", "window": "1h"}), 2, "function: "),
        (
            json!({"kind": "picture"}),
            2,
            "is none of load, tail, overhead",
        ),
    ] {
        let file = directory.path().join("experiment.json");
        std::fs::write(&file, config.to_string()).expect("written");
        let done = Command::new(env!("CARGO_BIN_EXE_hearth"))
            .args(["lab", "run"])
            .arg(&file)
            .arg("--out")
            .arg(directory.path().join("runs"))
            .env("HEARTH_URL", &server.url)
            .env("HEARTH_TOKEN", TOKEN)
            .output();
        let done = done.await.expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout).into_owned()
            + &String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
