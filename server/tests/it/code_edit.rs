//! Code edited file by file: reviewed, deployed as one version, refused whole.

use std::time::Duration;

use reqwest::multipart::Form;
use serde_json::{Value, json};

use crate::support::{Answer, Browser, Server, TOKEN, eventually};

/// For what the server does in its own time; it asserts nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

const MAIN: &[u8] =
    b"from pkg import words\n\ndef handler(event, context):\n    return words.greet(event)\n";
const WORDS: &[u8] = b"def greet(name):\n    return 'Hello, ' + str(name)\n";

/// A function of several files, one of them no text.
async fn deploy(server: &Server) {
    let files: [(&str, &[u8]); 4] = [
        ("main.py", MAIN),
        ("pkg/__init__.py", b""),
        ("pkg/words.py", WORDS),
        ("data/table.bin", b"\xff\x00\x01"),
    ];
    server.client().deploy_files("files", &files).await;
}

async fn edit(browser: &Browser, path: &str, base: u32, edits: Value) -> Answer {
    let form = Form::new()
        .text("csrf", browser.csrf().to_owned())
        .text("base", base.to_string())
        .text("edits", edits.to_string());
    browser.send(browser.post(path).multipart(form)).await
}

async fn result(server: &Server, event: Value) -> Value {
    server
        .client()
        .invoke("files", &event)
        .await
        .expect(200)
        .json()
}

#[tokio::test]
async fn several_files_become_one_version() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let edits = json!([
        {"from": "main.py", "to": "main.py", "text": "from pkg import phrases\n\ndef handler(event, context):\n    return phrases.greet(event)\n"},
        {"from": "pkg/words.py", "to": "pkg/phrases.py", "text": "def greet(name):\n    return 'Good day, ' + open('/var/task/note.txt').read() + str(name)\n"},
        {"to": "note.txt", "text": "dear "},
    ]);
    let review = edit(&browser, "/functions/files/code/review", 1, edits.clone())
        .await
        .expect(200)
        .text();
    for part in [
        "this changes 3 files",
        "pkg/words.py → ",
        "Good day, ",
        "id=\"deploy-button\"",
    ] {
        assert!(review.contains(part), "{part} in {review}");
    }
    assert_eq!(result(&server, json!("Ada")).await, "Hello, Ada");

    edit(&browser, "/functions/files/code", 1, edits)
        .await
        .expect(303);
    assert_eq!(result(&server, json!("Ada")).await, "Good day, dear Ada");
    let client = server.client();
    let function = client.get("/api/v1/functions/files").await.json();
    assert_eq!(function["active_version"], 2);

    // What is no text was kept, byte for byte.
    let zip = client
        .get("/api/v1/functions/files/versions/2/code")
        .await
        .expect(200);
    assert_eq!(zip.header("content-type"), "application/zip");
    let mut names = Vec::new();
    let mut unzipped = zip::ZipArchive::new(std::io::Cursor::new(zip.bytes)).expect("an archive");
    for index in 0..unzipped.len() {
        let entry = unzipped.by_index(index).expect("an entry");
        names.push(entry.name().expect("text").into_owned());
    }
    assert_eq!(
        names,
        [
            "data/table.bin",
            "main.py",
            "note.txt",
            "pkg/__init__.py",
            "pkg/phrases.py"
        ]
    );
    let mut table = Vec::new();
    let mut entry = unzipped.by_name("data/table.bin").expect("an entry");
    std::io::Read::read_to_end(&mut entry, &mut table).expect("its content");
    assert_eq!(table, b"\xff\x00\x01");
}

#[tokio::test]
async fn what_cannot_be_done_changes_nothing() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let code = "/functions/files/code";
    for (edits, said) in [
        (json!([]), "no changes to deploy"),
        (
            json!([{"from": "main.py", "to": "main.py", "text": std::str::from_utf8(MAIN).expect("text")}]),
            "no changes to deploy",
        ),
        (json!([{"from": "nope.py", "to": "a.py"}]), "does not exist"),
        (json!([{"to": "../evil.py", "text": ""}]), "leaves the root"),
        (json!([{"to": "main.py", "text": ""}]), "already exists"),
        (
            json!([{"to": "main.py/x.py", "text": ""}]),
            "both a file and a directory",
        ),
        (json!([{"to": "", "text": "x"}]), "Give the file a name"),
        (json!([{"from": "main.py"}]), "has no main.py"),
        (json!([{"to": "b.py"}]), "is new but has no text"),
        (json!({"to": "b.py"}), "must be a list"),
        (
            json!([{"from": "main.py", "to": "main.py", "text": "import nope_nope\n"}]),
            "ModuleNotFoundError",
        ),
    ] {
        let page = edit(&browser, code, 1, edits.clone())
            .await
            .expect(422)
            .text();
        assert!(page.contains(said), "{said} for {edits} in {page}");
    }
    assert_eq!(result(&server, json!("Ada")).await, "Hello, Ada");
    let versions = server
        .client()
        .get("/api/v1/functions/files/versions")
        .await
        .json();
    assert_eq!(versions["items"].as_array().expect("a list").len(), 1);
    // What did not import is removed in the background.
    eventually("nothing half-done is left", TIMEOUT, || async {
        (server.packages() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_import_that_fails_tells_the_line() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    for (edits, place) in [
        (
            json!([{"from": "pkg/words.py", "to": "pkg/words.py", "text": "x = 1\n\nraise KeyError('no')\n"}]),
            "data-path=\"pkg/words.py\" data-line=\"3\"",
        ),
        (
            json!([{"from": "main.py", "to": "main.py", "text": "x = 1\ndef handler(:\n"}]),
            "data-path=\"main.py\" data-line=\"2\"",
        ),
    ] {
        let page = edit(&browser, "/functions/files/code", 1, edits)
            .await
            .expect(422)
            .text();
        assert!(page.contains(place), "{place} in {page}");
    }
}

#[tokio::test]
async fn an_import_that_fails_tells_the_line_in_node_as_well() {
    let server = Server::start();
    let client = server.client();
    let node = client.get("/api/v1/node").await.expect(200).text();
    let code = "export const handler = async () => 1;\n";
    let body = json!({"name": "files", "runtime": "node", "code": {"inline": code}});
    let made = client.post("/api/v1/functions", &body).await;
    // A host without Node.js says so where its runtimes are listed.
    if made.status == 422 {
        assert!(node.contains("\"node\""), "{node}");
        return;
    }
    made.expect(201);
    let browser = Browser::logged_in(&server, TOKEN).await;
    for (text, line) in [
        (
            "const a = 1;\n\nthrow new Error('no');\nexport const handler = async () => a;\n",
            3,
        ),
        (
            "const a = 1;\nconst = 2;\nexport const handler = async () => a;\n",
            2,
        ),
    ] {
        let edits = json!([{"from": "main.js", "to": "main.js", "text": text}]);
        let page = edit(&browser, "/functions/files/code", 1, edits)
            .await
            .expect(422)
            .text();
        let place = format!("data-path=\"main.js\" data-line=\"{line}\"");
        assert!(page.contains(&place), "{place} in {page}");
    }
}

#[tokio::test]
async fn nobody_undoes_what_somebody_else_deployed() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let edits = |text: &str| json!([{"from": "pkg/words.py", "to": "pkg/words.py", "text": text}]);
    let first = edits("def greet(name):\n    return 'first'\n");
    let second = edits("def greet(name):\n    return 'second'\n");
    edit(&browser, "/functions/files/code", 1, first)
        .await
        .expect(303);
    for path in ["/functions/files/code", "/functions/files/code/review"] {
        let page = edit(&browser, path, 1, second.clone())
            .await
            .expect(422)
            .text();
        assert!(
            page.contains("Version 2 was deployed in the meantime"),
            "{page}"
        );
    }
    assert_eq!(result(&server, json!(1)).await, "first");
}

#[tokio::test]
async fn one_file_is_edited_without_a_script() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser
        .get("/functions/files/code?path=pkg%2Fwords.py")
        .await
        .expect(200)
        .text();
    for part in [
        "name=\"opened\" value=\"pkg/words.py\"",
        "return &#39;Hello, &#39;",
        "data-file=\"pkg/words.py\" aria-current",
        "data-file=\"main.py\"",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let fields = [
        ("base", "1"),
        ("opened", "pkg/words.py"),
        ("path", "pkg/words.py"),
        ("code", "def greet(name):\r\n    return 'Hi'\r\n"),
    ];
    let review = browser
        .submit("/functions/files/code/review", &fields)
        .await
        .expect(200)
        .text();
    // The review sends the edits again.
    let sent = review
        .split_once("name=\"edits\" value=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(edits, _)| edits.replace("&#34;", "\"").replace("&#39;", "'"))
        .expect("the edits");
    let edits = serde_json::from_str(&sent).expect("JSON");
    edit(&browser, "/functions/files/code", 1, edits)
        .await
        .expect(303);
    assert_eq!(result(&server, json!(1)).await, "Hi");

    // A file that is no text is offered as such, and goes when it is asked to.
    let page = browser
        .get("/functions/files/code?path=data%2Ftable.bin")
        .await
        .expect(200)
        .text();
    assert!(page.contains("This file is not text."), "{page}");
    let fields = [
        ("base", "2"),
        ("opened", "data/table.bin"),
        ("path", "data/table.bin"),
        ("remove", "true"),
    ];
    browser
        .submit("/functions/files/code", &fields)
        .await
        .expect(303);
    browser
        .get("/functions/files/code?path=data%2Ftable.bin")
        .await
        .expect(404);
    browser
        .get("/functions/files/code?path=..%2F..%2Fhearth.db")
        .await
        .expect(404);
}

#[tokio::test]
async fn files_and_directories_are_read_one_at_a_time() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let file = |path: &str| format!("/functions/files/code/file?version=1&path={path}");
    let words = browser.get(&file("pkg/words.py")).await.expect(200).json();
    assert_eq!(words["kind"], "text");
    assert_eq!(words["text"], std::str::from_utf8(WORDS).expect("text"));
    let table = browser
        .get(&file("data/table.bin"))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&table["kind"], &table["text"]),
        (&json!("binary"), &json!(""))
    );
    for missing in [
        "",
        "pkg",
        "nope",
        "../../hearth.db",
        "/etc/passwd",
        "pkg/../main.py",
    ] {
        browser.get(&file(missing)).await.expect(404);
    }
    let directory = |dir: &str| {
        browser
            .request(
                reqwest::Method::GET,
                &format!("/functions/files/code/files?dir={dir}"),
            )
            .header("hx-request", "true")
    };
    let listed = browser.send(directory("pkg")).await.expect(200).text();
    assert!(
        listed.contains("data-file=\"pkg/words.py\"") && !listed.contains("main.py"),
        "{listed}"
    );
    for missing in ["nope", "main.py", "..", "../.."] {
        browser.send(directory(missing)).await.expect(404);
    }
}

#[tokio::test]
async fn an_upload_still_replaces_everything() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let alone = "def handler(event, context):\n    return 'alone'\n";
    browser.upload_code("files", "1", alone).await.expect(303);
    assert_eq!(result(&server, json!(1)).await, "alone");
    browser
        .get("/functions/files/code?path=pkg%2Fwords.py")
        .await
        .expect(404);
}
