//! Uploaded archives: good ones with packages and dependencies in them, and hostile ones, of which nothing stays.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Entry, Server, archive, deploy_form, eventually, handmade};

const ONE: &[u8] = b"def handler(event, context):\n    return 1\n";

async fn upload(client: &Client, name: &str, zip: Vec<u8>) -> Answer {
    let form = deploy_form(name, "code.zip", zip);
    client
        .send(
            client
                .request(Method::POST, "/api/v1/functions")
                .multipart(form),
        )
        .await
}

#[tokio::test]
async fn a_zip_holds_nested_packages_dependencies_and_data_files() {
    let server = Server::start();
    let client = server.client();
    let zip = archive(&[
        ("main.py", b"import json, pathlib\nfrom app.core import answer\nimport dep\n\
            HERE = pathlib.Path(__file__).parent\n\
            def handler(event, context):\n    \
                return [answer(event), dep.VERSION, json.loads((HERE / 'data/table.json').read_text()), str(HERE)]\n"),
        ("app/__init__.py", b""),
        ("app/core/__init__.py", b"from ..util import double\ndef answer(n):\n    return double(n)\n"),
        ("app/util.py", b"def double(n):\n    return 2 * n\n"),
        ("dep/__init__.py", b"VERSION = '1.2'\n"),
        ("dep-1.2.dist-info/METADATA", b"Name: dep\n"),
        ("data/table.json", b"[1, 2]"),
        ("data/über.txt", b"x"),
    ]);
    let sent = json!({"name": "nested", "runtime": "python3", "code": {"zip_base64": STANDARD.encode(&zip)}});
    let function = client.post("/api/v1/functions", &sent).await.expect(201);
    assert_eq!(function.json()["state"], "ready");
    assert_eq!(
        client.invoke("nested", &json!(21)).await.expect(200).json(),
        json!([42, "1.2", [1, 2], "/var/task"])
    );
    // The same archive with wrapped base64, as the command line makes it.
    let wrapped: Vec<String> = STANDARD
        .encode(&zip)
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let code = json!({"code": {"zip_base64": wrapped.join("\n")}});
    client
        .put("/api/v1/functions/nested/code", &code)
        .await
        .expect(200);
    assert_eq!(server.packages(), 1, "the same code is kept once");
}

#[tokio::test]
async fn a_zip_may_have_its_handler_in_a_package() {
    let server = Server::start();
    let client = server.client();
    let zip = archive(&[
        ("pkg/__init__.py", b""),
        ("pkg/deep/__init__.py", b""),
        ("pkg/deep/mod.py", ONE),
    ]);
    for (name, handler) in [
        ("dotted", "pkg.deep.mod.handler"),
        ("slashed", "pkg/deep/mod.handler"),
    ] {
        let sent = json!({
            "name": name, "runtime": "python3", "handler": handler, "code": {"zip_base64": STANDARD.encode(&zip)},
        });
        client.post("/api/v1/functions", &sent).await.expect(201);
        assert_eq!(client.invoke(name, &json!(0)).await.expect(200).json(), 1);
    }
    // Inline source is one file at the root: it cannot be a module of a package.
    let sent = json!({"handler": "pkg.mod.handler"});
    let problem = client
        .try_deploy("inline", "def handler(e, c): pass\n", sent)
        .await
        .problem(422, "invalid_package");
    assert_eq!(problem["reason"], "bad_module_name", "{problem}");
}

/// Hostile and broken archives with the reason each is refused for.
fn refused() -> Vec<(&'static str, String, Vec<u8>)> {
    let main = Entry::file("main.py", ONE);
    let beside = |entry: Entry| handmade(&[main.clone(), entry]);
    let mut all = Vec::new();
    for name in [
        "../evil.py",
        "a/../../evil.py",
        "..",
        "/etc/cron.d/evil",
        "//evil.py",
        "C:\\evil.py",
        "c:evil.py",
        "a\\b.py",
        "a//b.py",
        "nul\0.py",
        "line\n.py",
        "",
    ] {
        all.push((
            "unsafe_name",
            format!("name {name:?}"),
            beside(Entry::file(name, b"x")),
        ));
    }
    let deep = "d/".repeat(40) + "x.py";
    all.push((
        "unsafe_name",
        "deep".into(),
        beside(Entry::file(&deep, b"x")),
    ));
    let long = "l".repeat(300) + ".py";
    all.push((
        "unsafe_name",
        "long".into(),
        beside(Entry::file(&long, b"x")),
    ));
    for (mode, what) in [
        (0o120_777, "symbolic link"),
        (0o010_644, "named pipe"),
        (0o140_644, "socket"),
        (0o020_644, "character device"),
        (0o060_644, "block device"),
    ] {
        let special = Entry {
            mode,
            ..Entry::file("special", b"/etc/shadow")
        };
        all.push(("special_file", what.into(), beside(special)));
    }
    let encrypted = Entry {
        flags: 1,
        ..Entry::file("secret.py", b"............")
    };
    all.push(("encrypted", "encrypted".into(), beside(encrypted)));
    for method in [9, 12, 14, 93, 95, 4242] {
        let entry = Entry {
            method,
            ..Entry::file("packed.py", b"xx")
        };
        all.push((
            "unsupported_compression",
            format!("method {method}"),
            beside(entry),
        ));
    }
    all.push(("duplicate_name", "twice".into(), beside(main.clone())));
    let parent = Entry::file("main.py/inside.py", b"x");
    all.push((
        "duplicate_name",
        "file and directory".into(),
        beside(parent),
    ));
    let other = archive(&[("project/main.py", ONE), ("project/util.py", b"")]);
    all.push(("missing_module", "one level too deep".into(), other));
    all.push((
        "missing_module",
        "another module".into(),
        archive(&[("app.py", ONE)]),
    ));

    let good = archive(&[("main.py", ONE), ("more.py", &[b'x'; 4096])]);
    all.push((
        "damaged_archive",
        "cut".into(),
        good[..good.len() - 30].to_vec(),
    ));
    all.push((
        "damaged_archive",
        "half".into(),
        good[..good.len() / 2].to_vec(),
    ));
    let mut flipped = handmade(std::slice::from_ref(&main));
    let at = flipped.windows(6).position(|six| six == b"return").unwrap();
    flipped[at] ^= 1;
    all.push(("damaged_archive", "checksum".into(), flipped));
    all.push(("not_a_zip", "text".into(), ONE.to_vec()));
    all.push(("not_a_zip", "empty file".into(), Vec::new()));
    all.push(("not_a_zip", "no entries".into(), handmade(&[])));
    all
}

#[tokio::test]
async fn hostile_and_broken_archives_are_refused_and_leave_nothing() {
    let server = Server::start();
    let client = server.client();
    for (reason, what, zip) in refused() {
        let problem = upload(&client, "hostile", zip)
            .await
            .problem(422, "invalid_package");
        assert_eq!(problem["reason"], reason, "{what}: {problem}");
        assert_eq!(server.packages(), 0, "{what} left something");
    }
    assert!(!server.data_dir().join("evil.py").exists());
    assert!(!server.data_dir().join("code/evil.py").exists());
    let list = client.get("/api/v1/functions").await.expect(200).json();
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn fifty_thousand_files_are_taken_and_one_more_is_not() {
    let server = Server::start();
    let client = server.client();
    let files = |count: usize| {
        let mut entries = vec![Entry::file("main.py", ONE)];
        entries.extend((1..count).map(|n| Entry::file(&format!("d{}/f{n}", n % 100), b"")));
        handmade(&entries)
    };
    upload(&client, "many", files(50_000)).await.expect(201);
    let answer = client.invoke("many", &json!(0)).await.expect(200);
    assert_eq!(answer.json(), 1);
    let problem = upload(&client, "more", files(50_001))
        .await
        .problem(422, "invalid_package");
    assert_eq!(problem["reason"], "too_many_entries", "{problem}");
    assert_eq!(server.packages(), 1);
}

#[tokio::test]
async fn bombs_are_refused_before_they_cost_anything() {
    let server = Server::start();
    let client = server.client();
    let crowd: Vec<Entry> = (0..100_000)
        .map(|number| Entry::file(&format!("f{number}"), b""))
        .collect();
    let problem = upload(&client, "crowd", handmade(&crowd))
        .await
        .problem(422, "invalid_package");
    assert_eq!(problem["reason"], "too_many_entries", "{problem}");

    // Deflate makes a thousandth of zeros.
    let zeros = vec![0; 64 << 20];
    let bomb = archive(&[("main.py", ONE), ("zeros", &zeros)]);
    assert!(bomb.len() * 900 < zeros.len());
    let problem = upload(&client, "bomb", bomb)
        .await
        .problem(422, "invalid_package");
    assert_eq!(problem["reason"], "decompression_bomb", "{problem}");

    // Many small ones together are one, too.
    let some = vec![0; 8 << 20];
    let swarm: Vec<(String, &[u8])> = (0..8).map(|n| (format!("z{n}"), &some[..])).collect();
    let mut files: Vec<(&str, &[u8])> = swarm
        .iter()
        .map(|(name, data)| (&name[..], *data))
        .collect();
    files.push(("main.py", ONE));
    let problem = upload(&client, "swarm", archive(&files))
        .await
        .problem(422, "invalid_package");
    assert_eq!(problem["reason"], "decompression_bomb", "{problem}");
    assert_eq!(server.packages(), 0);
}

#[tokio::test]
async fn a_refused_archive_leaves_the_present_version_serving() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "steady",
            "def handler(event, context):\n    return 'old'\n",
            json!({}),
        )
        .await;
    let zip = handmade(&[Entry::file("main.py", ONE), Entry::file("../evil.py", b"x")]);
    for (kind, body) in [
        ("application/zip", zip.clone()),
        ("application/octet-stream", zip),
        ("application/zip", ONE.to_vec()),
    ] {
        let put = client
            .request(Method::PUT, "/api/v1/functions/steady/code")
            .header("content-type", kind)
            .body(body);
        client.send(put).await.problem(422, "invalid_package");
    }
    assert_eq!(server.packages(), 1);
    let function = client.get("/api/v1/functions/steady").await.json();
    assert_eq!(function["active_version"], 1);
    assert_eq!(function["versions"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        client
            .invoke("steady", &Value::Null)
            .await
            .expect(200)
            .json(),
        "old"
    );
}

#[tokio::test]
async fn a_refused_upload_is_removed_although_another_deploy_is_under_way() {
    let server = Server::start();
    let client = server.client();
    let slow = tokio::spawn({
        let client = client.clone();
        let code = "import time\ntime.sleep(2)\ndef handler(event, context):\n    return 1\n";
        async move { client.deploy("slow", code, json!({})).await }
    });
    eventually("it is under way", Duration::from_secs(5), || async {
        (server.packages() == 1).then_some(())
    })
    .await;
    client
        .try_deploy("refused", "raise OSError('no')\n", json!({}))
        .await
        .problem(422, "import_failed");
    client
        .deploy("brief", "def handler(e, c): pass\n", json!({}))
        .await;
    client.delete("/api/v1/functions/brief").await.expect(204);
    slow.await.unwrap();
    assert_eq!(
        client.invoke("slow", &Value::Null).await.expect(200).json(),
        1
    );
    eventually("only one is left", Duration::from_secs(5), || async {
        (server.packages() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn code_stays_until_the_last_request_of_a_deleted_function_has_finished() {
    let server = Server::start();
    let client = server.client();
    let zip = archive(&[
        (
            "main.py",
            b"import time\ndef handler(event, context):\n    time.sleep(1.5)\n    import late\n    return late.WORD\n",
        ),
        ("late.py", b"WORD = 'found'\n"),
    ]);
    upload(&client, "leaving", zip).await.expect(201);
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.invoke("leaving", &Value::Null).await }
    });
    eventually("the call runs", Duration::from_secs(5), || async {
        let function = client.get("/api/v1/functions/leaving").await.json();
        (function["instances"]["busy"] == 1).then_some(())
    })
    .await;
    client.delete("/api/v1/functions/leaving").await.expect(204);
    assert_eq!(running.await.unwrap().expect(200).json(), "found");
    eventually("then it is removed", Duration::from_secs(5), || async {
        (server.packages() == 0).then_some(())
    })
    .await;
}
