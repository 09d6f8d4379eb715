//! Functions and chains that subscribe to mosquitto.

use std::process::Command;

use serde_json::json;

use super::{Mosquitto, THINGS, file, is_connected, once, state, trigger};
use crate::support::{Browser, Server, TOKEN, eventually};

const OPEN: &str =
    "allow_anonymous true\npersistence true\npersistence_location {dir}/\nautosave_interval 1";

#[tokio::test]
async fn chains_and_functions_subscribe() {
    let broker = Mosquitto::start(OPEN).await;
    let brokers = json!({
        "plant": {"url": broker.url(), "client_id": "hearth-test"},
        "far": {"url": "mqtt://192.0.2.1"},
    });
    let path = file(broker.dir.path(), &brokers);
    let path = path.to_str().expect("text");
    let server = Server::start_with(&[("HEARTH_MQTT_BROKERS", path)]);
    let client = server.client();
    let topics = json!([{"filter": "function/#", "response_topic": "answers/{client}"}]);
    let own = json!({"triggers": trigger("plant", &topics)});
    client.deploy("things", THINGS, own).await;
    client.deploy("doors", THINGS, json!({})).await;

    // Only brokers of the node, and each once.
    let unknown = json!({"triggers": trigger("elsewhere", &topics)});
    let refused = client.patch("/api/v1/functions/things", &unknown).await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "triggers[0].broker");
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("one of far, plant"), "{problem}");

    let topics = json!([
        {"filter": "house/+/door", "route": "door", "response_topic": "answers/door"},
        {"filter": "house/#", "route": "motion"},
    ]);
    let body = json!({
        "name": "sensors",
        "members": {"one": {"function": "things"}, "two": {"function": "doors"}},
        "routes": {"motion": ["one"], "door": ["two"]},
        "triggers": trigger("plant", &topics),
    });
    let made = client.post("/api/v1/chains", &body).await.expect(201);
    assert_eq!(made.json()["triggers"][0]["broker"], "plant");
    assert_eq!(made.json()["triggers"][0].get("port"), None);
    let first = once(&client, "chains/sensors", "it subscribes", is_connected).await;
    assert_eq!(first["version"], "5");
    once(&client, "functions/things", "it subscribes", is_connected).await;

    // Where the message says, or the setting; of whichever version.
    let to_me = ["-e", "answers/me", "-m", "hi", "-q", "1"];
    let said = broker.asked(&[&["-V", "5", "-t", "house/hall/door"], &to_me[..]].concat());
    let wanted = json!({
        "topic": "house/hall/door", "qos": 1, "client": "hearth-test-chain-sensors", "port": null,
        "broker": "plant", "by": "doors", "said": "hi",
    });
    assert_eq!(said, wanted);
    let said = broker.asked(&[&["-V", "5", "-t", "house/hall"], &to_me[..]].concat());
    assert_eq!(said["by"], "things");
    let said = broker.asked(&[
        "-V",
        "311",
        "-q",
        "0",
        "-t",
        "house/hall/door",
        "-e",
        "answers/door",
        "-m",
        "hi",
    ]);
    assert_eq!((&said["by"], &said["qos"]), (&json!("doors"), &json!(0)));
    let said = broker.asked(&[
        "-V",
        "311",
        "-q",
        "1",
        "-t",
        "function/a",
        "-e",
        "answers/hearth-test-function-things",
        "-m",
        "hi",
    ]);
    assert_eq!(said["by"], "things");
    // Correlation data, and failures, as at a port.
    let said = super::super::mqtt::asked(
        broker.port,
        &[
            "-V",
            "5",
            "-q",
            "1",
            "-t",
            "function/a",
            "-e",
            "answers/me",
            "-m",
            "fail",
            "-D",
            "publish",
            "correlation-data",
            "of-mine",
            "-F",
            "%D %P",
        ],
    );
    assert!(
        said.contains("of-mine") && said.contains("function_error"),
        "{said}"
    );
    let now = once(&client, "chains/sensors", "nothing runs", |state| {
        state["in_flight"] == 0 && state["answers"] == 3
    })
    .await;
    assert_eq!(
        (&now["messages"]["accepted"], &now["answers"]),
        (&json!(3), &json!(3))
    );

    // The console shows and takes it.
    let browser = Browser::logged_in(&server, TOKEN).await;
    for (page, shown) in [
        ("/chains/sensors", "connected</span> MQTT 5"),
        ("/functions/things/network", "connected</span> MQTT 5"),
        (
            "/chains/sensors/settings",
            "mqtt broker plant topic house/+/door",
        ),
        (
            "/functions/things/settings",
            "mqtt broker plant topic function/#",
        ),
    ] {
        let text = browser.get(page).await.expect(200).text();
        assert!(text.contains(shown), "{page}");
    }

    // Another version with the same trigger keeps the connection, and so do other topics.
    let public = json!({"public": true});
    client
        .patch("/api/v1/chains/sensors", &public)
        .await
        .expect(200);
    let topics = json!([{"filter": "garden/#", "route": "motion"}]);
    let other = json!({"triggers": trigger("plant", &topics)});
    client
        .patch("/api/v1/chains/sensors", &other)
        .await
        .expect(200);
    let said = broker.asked(&[&["-V", "5", "-t", "garden/gate"], &to_me[..]].concat());
    assert_eq!(said["topic"], "garden/gate");
    assert_eq!(
        state(&client, "chains/sensors").await["since"],
        first["since"]
    );
    eventually("the former topics are given up", super::LIMIT, || async {
        let log = broker.log();
        log.contains("UNSUBACK to hearth-test-chain-sensors")
            .then_some(())
    })
    .await;

    // With the chain its session ends.
    client.delete("/api/v1/chains/sensors").await.expect(204);
    eventually("the chain has left", super::LIMIT, || async {
        let log = broker.log();
        log.contains("Received DISCONNECT from hearth-test-chain-sensors")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn messages_wait_while_either_side_is_away() {
    let mut broker = Mosquitto::start(OPEN).await;
    let brokers = json!({"plant": {"url": broker.url(), "client_id": "hearth-test"}});
    let path = file(broker.dir.path(), &brokers);
    let settings = [("HEARTH_MQTT_BROKERS", path.to_str().expect("text"))];
    let data = tempfile::tempdir().expect("a directory");
    let data = data.path().join("data");
    let of = "functions/things";
    let accepted = |count: u64| {
        move |state: &serde_json::Value| state["messages"]["accepted"].as_u64() >= Some(count)
    };
    let mut server = Server::start_in_with(&data, &settings);
    let own = json!({"triggers": trigger("plant", &json!([{"filter": "house/#"}]))});
    server.client().deploy("things", THINGS, own).await;
    once(&server.client(), of, "it subscribes", is_connected).await;

    // It stops, and is killed: both times the broker keeps what comes meanwhile.
    for is_killed in [false, true] {
        match is_killed {
            true => drop(server),
            false => {
                server.terminate();
                assert!(server.ended(super::LIMIT).await.success());
                drop(server);
            }
        }
        for number in 0..3 {
            broker.publish("house/hall", &number.to_string());
        }
        server = Server::start_in_with(&data, &settings);
        once(&server.client(), of, "what waited has come", accepted(3)).await;
    }

    // The broker goes and comes back.
    broker.program = None;
    let gone = once(&server.client(), of, "the broker is gone", |state| {
        !is_connected(state)
    })
    .await;
    assert!(gone["last_error"].is_string(), "{gone}");
    broker.run().await;
    once(&server.client(), of, "it is connected again", is_connected).await;
    broker.publish("house/hall", "again");
    once(&server.client(), of, "the message has come", accepted(4)).await;

    // Without the broker in the settings the function is still there, and says why it hears nothing.
    drop(server);
    let server = Server::start_in_with(&data, &[]);
    let client = server.client();
    let state = once(&client, of, "it says why", |state| {
        state["last_error"].is_string()
    })
    .await;
    let error = state["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("HEARTH_MQTT_BROKERS"), "{error}");
    let change = json!({"timeout_ms": 5000});
    client
        .patch("/api/v1/functions/things", &change)
        .await
        .expect(200);
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .expect(program);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn passwords_and_certificates_are_the_administrators() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    std::fs::write(
        place("openssl.cnf"),
        "[req]\ndistinguished_name = name\n[name]\n",
    )
    .expect("written");
    let certificate = |name: &str, more: &[&str]| {
        let new = [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ];
        let (config, out, key) = (
            place("openssl.cnf"),
            place(name),
            place(&format!("{name}.key")),
        );
        let subject = format!("/CN={name} of the test");
        let of = [
            "-days", "2", "-subj", &subject, "-config", &config, "-out", &out, "-keyout", &key,
        ];
        run("openssl", &[&new[..], &of, more].concat());
    };
    let authority = [
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,keyCertSign",
    ];
    certificate("ca", &["-addext", authority[0], "-addext", authority[1]]);
    certificate(
        "server",
        &[
            "-CA",
            &place("ca"),
            "-CAkey",
            &place("ca.key"),
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ],
    );
    run(
        "mosquitto_passwd",
        &["-b", "-c", &place("users"), "hearth", "of the plant"],
    );
    std::fs::write(place("password"), "of the plant\n").expect("written");
    std::fs::write(place("wrong"), "of another\n").expect("written");
    let broker = Mosquitto::start_at(
        dir,
        "allow_anonymous false\npassword_file {dir}/users\ncertfile {dir}/server\nkeyfile {dir}/server.key",
    )
    .await;
    let with = |password: &str, more: serde_json::Value| {
        let mut broker = json!({
            "url": format!("mqtts://localhost:{}", broker.port), "username": "hearth", "password_file": password,
            "client_id": "hearth-test",
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            broker[name] = value.clone();
        }
        broker
    };
    let ca = json!({"ca_file": "ca"});
    let path = file(
        broker.dir.path(),
        &json!({
            "right": with("password", ca.clone()),
            "wrong": with("wrong", ca),
            "strange": with("password", json!({})),
        }),
    );
    let server = Server::start_with(&[("HEARTH_MQTT_BROKERS", path.to_str().expect("text"))]);
    let client = server.client();
    for name in ["right", "wrong", "strange"] {
        let own = json!({"triggers": trigger(name, &json!([{"filter": "a"}]))});
        client.deploy(name, THINGS, own).await;
    }
    once(&client, "functions/right", "it subscribes", is_connected).await;
    for (name, words) in [
        ("wrong", "the broker refused the connection: NotAuthorized"),
        ("strange", "TLS: "),
    ] {
        let of = format!("functions/{name}");
        let state = once(&client, &of, "it fails", |state| {
            state["last_error"].is_string()
        })
        .await;
        let error = state["last_error"].as_str().unwrap_or_default();
        assert!(
            error.contains(words) && !is_connected(&state),
            "{name}: {state}"
        );
        assert!(!state.to_string().contains("of another"), "{state}");
    }
}
