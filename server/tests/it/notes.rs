//! What a deploy tells the author of a version, although it deploys: random bytes that the import drew.

use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Browser, Server, TOKEN};

const PYTHON: &str = "import random, secrets, time\n\
    token = secrets.token_hex(8)\n\
    mine = random.Random()\n\
    def handler(event, context):\n    \
        time.sleep(0.2)\n    \
        return [token, mine.random()]\n";
const NODE: &str = "const crypto = require('node:crypto');\n\
    const token = crypto.randomBytes(8).toString('hex');\n\
    const pool = crypto.getRandomValues(new Uint8Array(64));\n\
    exports.handler = async () => {\n  \
        await new Promise((resolve) => setTimeout(resolve, 200));\n  \
        return [token, Buffer.from(pool).toString('hex')];\n\
    };\n";

#[tokio::test]
async fn a_version_that_drew_random_bytes_at_import_says_so_and_what_can_be_renewed_is() {
    let mut server = Server::start();
    for (name, runtime, code, bytes, place) in [
        ("python", "python3", PYTHON, 8, "main.py:2"),
        ("node", "node", NODE, 72, "main.js:2"),
    ] {
        let client = server.client();
        let deployed = client.deploy(name, code, json!({"runtime": runtime})).await;
        let notes = deployed["notes"].clone();
        assert_eq!(notes[0]["code"], "random_at_import", "{deployed}");
        let message = notes[0]["message"].as_str().expect("text");
        let drew = format!("The import drew {bytes} random bytes ({place}");
        assert!(message.starts_with(&drew), "{message}");
        assert!(message.contains("register_after_restore"), "{message}");

        let mut calls = JoinSet::new();
        for _ in 0..4 {
            let client = client.clone();
            calls.spawn(async move { client.invoke(name, &Value::Null).await.expect(200).json() });
        }
        let answers = calls.join_all().await;
        let values = |at: usize| -> HashSet<String> {
            let each = answers.iter().map(|answer| answer[at].to_string());
            each.collect()
        };
        assert_eq!(values(0).len(), 1, "the note is true: {answers:?}");
        assert_eq!(values(1).len(), 4, "{answers:?}");

        // A version without draws has no notes; the first keeps its own, after a restart, too.
        let quiet = match runtime {
            "node" => "exports.handler = async () => 1;\n",
            _ => "def handler(event, context):\n    return 1\n",
        };
        let path = format!("/api/v1/functions/{name}");
        let put = json!({"code": {"inline": quiet}});
        let second = client.put(&format!("{path}/code"), &put).await.expect(200);
        assert_eq!(second.json()["notes"], json!([]));
        server = server.restart();
        let client = server.client();
        let listed = client.get(&format!("{path}/versions")).await.expect(200);
        assert_eq!(listed.json()["items"][0]["notes"], json!([]));
        assert_eq!(listed.json()["items"][1]["notes"], notes);
        let back = format!("{path}/versions/1/activate");
        let active = client.post(&back, &json!({})).await.expect(200).json();
        assert_eq!(active["notes"], notes);
    }
}

#[tokio::test]
async fn instances_that_boot_by_themselves_share_nothing() {
    let server = Server::start_with(&[("HEARTH_NODE_FORK", "off")]);
    let client = server.client();
    let settings = json!({"runtime": "node"});
    let deployed = client.deploy("booted", NODE, settings).await;
    assert_eq!(deployed["notes"], json!([]));
}

#[tokio::test]
async fn the_console_shows_what_a_version_drew() {
    let server = Server::start();
    let client = server.client();
    client.deploy("shown", PYTHON, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    for page in ["/functions/shown", "/functions/shown/versions"] {
        let text = browser.get(page).await.expect(200).text();
        assert!(
            text.contains("The import drew 8 random bytes (main.py:2)"),
            "{page}"
        );
    }
}
