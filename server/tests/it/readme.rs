//! What README.md shows is run as it stands there.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::Server;

const README: &str = include_str!("../../../README.md");
/// What README's commands call the server; a test's server has another port and directory.
const URL: &str = "http://127.0.0.1:8080";
const TOKEN_FILE: &str = "sudo cat data/admin-token";

/// The only block of a language.
fn block(language: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let mut found = README.split(&fence).skip(1);
    let text = found.next().expect("a block");
    assert!(
        found.next().is_none(),
        "README has more blocks of {language}"
    );
    text.split("```").next().expect("its end")
}

/// Runs README's shell commands and returns what each comment's commands printed, by the comment's first words.
fn run(server: &Server) -> Vec<(String, String)> {
    let block = block("sh");
    assert!(block.contains(URL) && block.contains(TOKEN_FILE));
    let token_file = server.data_dir().join("admin-token");
    let mut script = String::from("set -eu\n");
    for line in block.lines() {
        match line.strip_prefix("# ") {
            Some(comment) => {
                let quoted = comment.replace('\'', "'\\''");
                script.push_str(&format!("printf '\\n@@ %s\\n' '{quoted}'\n"));
            }
            None => {
                script.push_str(line);
                script.push('\n');
            }
        }
    }
    let script = script
        .replace(TOKEN_FILE, &format!("cat {}", token_file.display()))
        .replace(URL, &server.url);
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    assert_eq!(errors, "");
    printed
        .split("\n@@ ")
        .skip(1)
        .map(|part| {
            let (comment, printed) = part.split_once('\n').expect("a comment");
            (comment.to_owned(), printed.trim().to_owned())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_readme_print_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with_generated_token(&dir.path().join("data"));
    let parts = run(&server);
    let printed = |comment: &str| -> &str {
        let found = parts.iter().find(|(named, _)| named.starts_with(comment));
        &found.unwrap_or_else(|| panic!("{comment}: {parts:?}")).1
    };
    let json = |text: &str| -> Value { serde_json::from_str(text).expect(text) };

    let deployed = json(printed("deploy:"));
    assert_eq!(deployed["name"], "hello", "{deployed}");
    assert_eq!(deployed["state"], "ready", "{deployed}");

    let invoked = printed("invoke:");
    assert!(invoked.starts_with("HTTP/1.1 200"), "{invoked}");
    // The comment's promise: start kind, version and stage times.
    for header in ["x-hearth-start: ", "x-hearth-version: 1", "server-timing: "] {
        assert!(
            invoked.to_lowercase().contains(header),
            "{header}: {invoked}"
        );
    }
    let body = invoked.lines().last().expect("a body");
    assert_eq!(json(body), json!({"hello": "Ada"}));

    assert_eq!(json(printed("the same function")), json!({"hello": "Ada"}));

    let listed = json(printed("what happened:"));
    let calls = listed["items"].as_array().expect("calls");
    assert_eq!(calls.len(), 2, "{listed}");
    assert!(calls.iter().all(|call| call["status"] == "succeeded"));

    let log = printed("what it printed");
    assert_eq!(log.matches("hello from hello").count(), 2, "{log}");

    let call = json(printed("one call"));
    assert_eq!(call["logs"][0]["text"], "hello from hello", "{call}");
    assert!(call["event"].to_string().contains("Grace"), "{call}");
    assert!(call["result"].to_string().contains("Grace"), "{call}");
}

#[tokio::test]
async fn the_javascript_of_the_readme_runs() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"runtime": "node", "name": "hello", "code": {"inline": block("js")}});
    client
        .post("/api/v1/functions", &settings)
        .await
        .expect(201);
    let answer = client.invoke("hello", &json!({"name": "Ada"})).await;
    let answer = answer.expect(200);
    assert_eq!(answer.json(), json!({"hello": "Ada"}));
    let id = answer.header("x-hearth-invocation-id");
    let record = client.invocation(id).await;
    assert_eq!(record["logs"][0]["text"], "hello from hello", "{record}");
}
