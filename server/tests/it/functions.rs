//! `/api/v1/functions`: create, list, get, change, new code, versions, delete.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::support::{Server, archive, deploy_form, eventually};

const ONE: &str = "def handler(event, context):\n    return 1\n";
const TWO: &str = "def handler(event, context):\n    return 2\n";

fn without_times(mut function: Value) -> Value {
    let object = function.as_object_mut().unwrap();
    let decisions = object.remove("decisions").unwrap();
    assert!(decisions.as_object().is_some_and(|all| all.len() > 10));
    for field in ["created_at", "updated_at"] {
        let time = object.remove(field).unwrap();
        let time: jiff::Timestamp = time.as_str().unwrap().parse().expect("RFC 3339");
        assert!(time.as_second() > 1_700_000_000);
    }
    function
}

#[tokio::test]
async fn a_function_with_only_what_is_required_has_the_documented_defaults() {
    let server = Server::start();
    let client = server.client();
    let created = client.try_deploy("hello", ONE, json!({})).await.expect(201);
    assert_eq!(created.header("location"), "/api/v1/functions/hello");
    assert_eq!(created.header("content-type"), "application/json");
    let expected = json!({
        "name": "hello",
        "runtime": "python3",
        "handler": "main.handler",
        "active_version": 1,
        "state": "ready",
        "state_reason": null,
        "instances": {"idle": 0, "busy": 0, "starting": 0},
        "queued": 0,
        "template": true,
        "image": {
            "bytes": null, "restores": 0, "restore_failures": 0, "dumps": 0, "dump_failures": 0, "note": null,
        },
        "memory_mb": 128,
        "timeout_ms": 30000,
        "max_concurrency": 8,
        "idle_timeout_s": 300,
        "min_instances": 0,
        "keep_warm": false,
        "template_idle_timeout_s": 3600,
        "start": "auto",
        "starts_by": "fork",
        "start_reason": null,
        "network": "none",
        "body": "base64",
        "public": false,
        "triggers": [],
        "port_limits": {"per_source": null, "total": null},
        "secrets": [],
        "cors": null,
        "env": {},
        "notes": [],
        "url": "/fn/hello",
    });
    assert_eq!(without_times(created.json()), expected);

    let mut got = client
        .get("/api/v1/functions/hello")
        .await
        .expect(200)
        .json();
    let versions = got.as_object_mut().unwrap().remove("versions").unwrap();
    assert_eq!(without_times(got), expected);
    assert_eq!(versions.as_array().unwrap().len(), 1);
    assert_eq!(versions[0]["version"], 1);
    assert_eq!(versions[0]["active"], true);
    assert_eq!(versions[0]["code_bytes"], ONE.len());
    assert_eq!(versions[0]["code_sha256"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn every_setting_is_kept_and_no_answer_shows_a_value_of_the_environment() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({
        "handler": "app.run", "memory_mb": 64, "timeout_ms": 1500, "max_concurrency": 3, "idle_timeout_s": 7,
        "min_instances": 1, "keep_warm": true, "template_idle_timeout_s": 60, "start": "boot",
        "network": "none", "public": true, "env": {"KEY": "s3cr3t-value", "EMPTY": ""},
    });
    let code = "import os\ndef run(event, context):\n    return [os.environ['KEY'], os.environ['EMPTY']]\n";
    let created = client.deploy("full", code, settings.clone()).await;
    let shown = client.get("/api/v1/functions/full").await.expect(200);
    let list = client.get("/api/v1/functions").await.expect(200);
    let versions = client
        .get("/api/v1/functions/full/versions")
        .await
        .expect(200);
    for (field, value) in settings.as_object().unwrap() {
        if field != "env" {
            assert_eq!(created[field], *value, "{field}");
            assert_eq!(shown.json()[field], *value, "{field}");
            assert_eq!(list.json()["items"][0][field], *value, "{field}");
            assert_eq!(versions.json()["items"][0][field], *value, "{field}");
        }
    }
    for answer in [shown, list, versions] {
        assert!(!answer.text().contains("s3cr3t"), "{}", answer.text());
        assert!(
            answer.text().contains("\"KEY\":null"),
            "its name is shown: {}",
            answer.text()
        );
    }
    assert_eq!(
        client.invoke("full", &json!({})).await.expect(200).json(),
        json!(["s3cr3t-value", ""])
    );
}

#[tokio::test]
async fn curl_f_deploys_files_zips_and_settings() {
    let server = Server::start();
    let client = server.client();
    let post = |form: Form| {
        client.send(
            client
                .request(Method::POST, "/api/v1/functions")
                .multipart(form),
        )
    };
    let form = deploy_form("from-file", "hello.py", ONE.into())
        .text("memory_mb", "64")
        .text("public", "true")
        .text("env", r#"{"A":"1"}"#)
        .text("env.B", "2");
    let function = post(form).await.expect(201).json();
    assert_eq!(function["memory_mb"], 64);
    assert_eq!(function["public"], true);
    assert_eq!(function["env"], json!({"A": null, "B": null}));
    assert_eq!(
        client
            .invoke("from-file", &json!(0))
            .await
            .expect(200)
            .json(),
        1
    );

    let zip = archive(&[("main.py", TWO.as_bytes())]);
    post(deploy_form("from-zip", "code.zip", zip))
        .await
        .expect(201);
    assert_eq!(
        client
            .invoke("from-zip", &json!(0))
            .await
            .expect(200)
            .json(),
        2
    );

    // A text field works as well: `-F code='def handler…'`.
    let form = Form::new()
        .text("name", "from-text")
        .text("runtime", "python3")
        .text("code", ONE);
    post(form).await.expect(201);

    for file in ["hello.js", "hello.txt", "hello"] {
        let problem = post(deploy_form("wrong", file, ONE.into()))
            .await
            .problem(422, "invalid_field");
        assert_eq!(problem["field"], "code", "{problem}");
        assert_eq!(problem["value"], file, "{problem}");
    }
    let binary = Part::bytes(vec![0xff, 0xfe, 0]).file_name("hello.py");
    let form = Form::new()
        .text("name", "wrong")
        .text("runtime", "python3")
        .part("code", binary);
    assert_eq!(
        post(form).await.problem(422, "invalid_field")["field"],
        "code"
    );
}

#[tokio::test]
async fn the_list_is_sorted_by_name_and_shows_live_state() {
    let server = Server::start();
    let client = server.client();
    let empty = client.get("/api/v1/functions").await.expect(200).json();
    assert_eq!(empty, json!({"items": [], "next": null}));
    for name in ["b", "a", "c-1"] {
        client.deploy(name, ONE, json!({})).await;
    }
    client.invoke("b", &json!(0)).await.expect(200);
    let list = client.get("/api/v1/functions").await.expect(200).json();
    let idle: BTreeMap<_, _> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|function| {
            (
                function["name"].clone().to_string(),
                function["instances"]["idle"].clone(),
            )
        })
        .collect();
    let names: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|function| function["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c-1"]);
    assert_eq!(
        idle.into_values().collect::<Vec<_>>(),
        [json!(0), json!(1), json!(0)]
    );
    assert_eq!(list["next"], Value::Null);
}

#[tokio::test]
async fn a_patch_makes_a_version_with_nothing_else_changed() {
    let server = Server::start();
    let client = server.client();
    let code = "import os\ndef handler(event, context):\n    \
        return [context.memory_limit_in_mb, os.environ.get('A'), os.environ.get('B'), os.environ.get('C')]\n";
    let settings = json!({"env": {"A": "a", "B": "b"}, "timeout_ms": 2000, "public": true});
    let before = client.deploy("patched", code, settings).await;
    let change = json!({"memory_mb": 96, "env": {"A": null, "C": "c"}});
    let after = client
        .patch("/api/v1/functions/patched", &change)
        .await
        .expect(200)
        .json();
    assert_eq!(after["active_version"], 2);
    assert_eq!(after["env"], json!({"B": null, "C": null}));
    for (field, value) in before.as_object().unwrap() {
        if !["memory_mb", "env", "active_version", "updated_at"].contains(&field.as_str()) {
            assert_eq!(after[field], *value, "{field}");
        }
    }
    assert_eq!(
        client.invoke("patched", &json!(0)).await.expect(200).json(),
        json!([96, null, "b", "c"])
    );
    let same = client
        .patch("/api/v1/functions/patched", &json!({"memory_mb": 96}))
        .await
        .expect(200)
        .json();
    assert_eq!(
        same["active_version"], 2,
        "a change that changes nothing makes no version"
    );
    let versions = client
        .get("/api/v1/functions/patched/versions")
        .await
        .expect(200)
        .json();
    assert_eq!(
        versions["items"][0]["code_sha256"], versions["items"][1]["code_sha256"],
        "settings alone leave the code as it was"
    );
    assert_eq!(
        versions["items"][1]["memory_mb"], 128,
        "versions are immutable"
    );
}

#[tokio::test]
async fn code_is_uploaded_as_json_as_a_form_or_as_it_is() {
    let server = Server::start();
    let client = server.client();
    let created = client
        .deploy("coded", ONE, json!({"timeout_ms": 2000}))
        .await;
    let put = || client.request(Method::PUT, "/api/v1/functions/coded/code");
    let zip = archive(&[("main.py", TWO.as_bytes())]);
    let uploads = [
        put().json(&json!({"code": {"inline": TWO}})),
        put().multipart(Form::new().part("code", Part::text(ONE).file_name("x.py"))),
        put().header("content-type", "text/x-python").body(TWO),
        put()
            .header("content-type", "application/octet-stream")
            .body(ONE),
        put().header("content-type", "application/zip").body(zip),
    ];
    for (index, upload) in uploads.into_iter().enumerate() {
        let function = client.send(upload).await.expect(200).json();
        assert_eq!(function["active_version"], index + 2);
        assert_eq!(function["timeout_ms"], 2000, "settings stay");
        assert_eq!(function["created_at"], created["created_at"]);
        let expected = if index % 2 == 0 { 2 } else { 1 };
        let answer = client.invoke("coded", &json!(0)).await.expect(200);
        assert_eq!(answer.json(), expected, "upload {index}");
        assert_eq!(answer.header("x-hearth-version"), (index + 2).to_string());
    }
    let versions = client
        .get("/api/v1/functions/coded/versions")
        .await
        .expect(200)
        .json();
    let hash = |version: usize| &versions["items"][6 - version]["code_sha256"];
    assert_eq!(hash(1), hash(3));
    assert_eq!(
        hash(2),
        hash(6),
        "the same code has the same hash however it came"
    );
    assert_ne!(hash(1), hash(2));
    eventually("code is kept once", Duration::from_secs(5), || async {
        (server.packages() == 2).then_some(())
    })
    .await;
}
