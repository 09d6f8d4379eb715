//! Byte code: made when code is deployed, of large packages, and never taken from an upload.

use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::support::{Browser, Client, Server, TOKEN, archive};

/// Tells which of the function's modules Python had to compile.
const MAIN: &str = "\
from importlib import _bootstrap_external as external
compiled = []
real = external.SourceLoader.source_to_code
def source_to_code(self, data, path, **settings):
    compiled.append(path)
    return real(self, data, path, **settings)
external.SourceLoader.source_to_code = source_to_code
from pkg import large, small
for name in ('broken', 'deep', 'vast'):
    try:
        __import__('pkg.' + name)
    except (SyntaxError, RecursionError, MemoryError):
        pass
def handler(event, context):
    return [large.ANSWER, small.__cached__, compiled]
";

/// A module that is worth compiling ahead.
fn large(answer: u32) -> String {
    let mut source = format!("ANSWER = {answer}\n");
    for number in 0..4000 {
        source += &format!(
            "def function_{number}(a, b):\n    return [a * {number}, b, 'a string of {number}']\n"
        );
    }
    source
}

fn package(answer: u32) -> Vec<u8> {
    let deep = format!("x = {}1{}\n", "(".repeat(5000), ")".repeat(5000));
    // As much as fits, and more than a compiler gets.
    let vast = "x = (".to_owned() + &"[1, 2, {}],".repeat(150_000) + ")\n";
    archive(&[
        ("main.py", MAIN.as_bytes()),
        ("pkg/__init__.py", b""),
        ("pkg/large.py", large(answer).as_bytes()),
        (
            "pkg/small.py",
            b"import warnings\nassert (1, 'always true')\n",
        ),
        ("pkg/broken.py", b"def broken(:\n"),
        ("pkg/deep.py", deep.as_bytes()),
        ("pkg/vast.py", vast.as_bytes()),
        ("pkg/latin.py", b"x = '\xff'\n"),
    ])
}

async fn deploy(client: &Client, name: &str, zip: Vec<u8>, settings: &[(&str, &str)]) {
    let mut form = Form::new()
        .text("name", name.to_owned())
        .text("runtime", "python3")
        .part("code", Part::bytes(zip).file_name("code.zip"));
    for (field, value) in settings {
        form = form.text((*field).to_owned(), (*value).to_owned());
    }
    let request = client.request(Method::POST, "/api/v1/functions");
    client.send(request.multipart(form)).await.expect(201);
}

/// All files with byte code in the server's packages, by their path in the package.
fn bytecode(server: &Server) -> Vec<String> {
    let root = server.data_dir().join("code");
    let mut directories = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "pyc") {
                let inside: PathBuf = path
                    .strip_prefix(&root)
                    .expect("below the root")
                    .components()
                    .skip(1)
                    .collect();
                found.push(inside.display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_large_package_is_compiled_when_it_is_deployed() {
    let mut server = Server::start();
    deploy(
        &server.client(),
        "large",
        package(1),
        &[("start", "boot"), ("memory_mb", "512")],
    )
    .await;
    let made = bytecode(&server);
    let names: Vec<_> = made
        .iter()
        .filter_map(|path| path.rsplit('/').next()?.split('.').next())
        .collect();
    for source in ["main", "large", "small", "__init__"] {
        assert!(names.contains(&source), "{source} in {made:?}");
    }
    for source in ["broken", "latin"] {
        assert!(!names.contains(&source), "{source} in {made:?}");
    }
    let check = |answer: Value, expected: u32| {
        assert_eq!(answer[0], expected);
        let cached = answer[1].as_str().unwrap_or_default();
        assert!(cached.starts_with("/var/task/pkg/__pycache__/small.cpython-"));
        // Only what had failed before.
        for path in answer[2].as_array().expect("paths") {
            let path = path.as_str().expect("a path");
            let name = Path::new(path).file_stem().expect("a name");
            assert!(
                ["broken", "deep", "vast"]
                    .iter()
                    .any(|failed| name == *failed),
                "{path} was compiled by the import"
            );
        }
    };
    let call = async |server: &Server| {
        let answer = server.client().invoke("large", &json!(0)).await;
        answer.expect(200).json()
    };
    check(call(&server).await, 1);
    server = server.restart();
    check(call(&server).await, 1);

    // Other code has byte code of its own, that of before is not shared.
    let form = Form::new().part("code", Part::bytes(package(2)).file_name("code.zip"));
    let client = server.client();
    let request = client.request(Method::PUT, "/api/v1/functions/large/code");
    client.send(request.multipart(form)).await.expect(200);
    check(call(&server).await, 2);
    assert_eq!(bytecode(&server).len(), 2 * made.len());
}

/// `ANSWER = 'byte code'` as the server's Python would have it, and what that file is called.
fn foreign() -> (String, Vec<u8>) {
    let script = "import sys, importlib._bootstrap_external as e\n\
        code = compile(\"ANSWER = 'byte code'\", '/var/task/helper.py', 'exec')\n\
        sys.stdout.buffer.write(sys.implementation.cache_tag.encode() + b'\\n')\n\
        sys.stdout.buffer.write(e._code_to_hash_pyc(code, bytes(8), False))\n";
    let output = Command::new("/usr/bin/python3")
        .args(["-I", "-c", script])
        .output()
        .expect("Python");
    let end = output.stdout.iter().position(|byte| *byte == b'\n');
    let (tag, code) = output.stdout.split_at(end.expect("a tag"));
    let tag = String::from_utf8(tag.to_vec()).expect("a tag");
    (format!("__pycache__/helper.{tag}.pyc"), code[1..].to_vec())
}

#[tokio::test]
async fn byte_code_of_an_upload_is_not_run() {
    let server = Server::start();
    let client = server.client();
    let (name, code) = foreign();
    let main = b"import helper, os\ndef handler(event, context):\n    \
        return [helper.ANSWER, sorted(os.listdir('/var/task'))]\n";
    let zip = archive(&[
        ("main.py", main),
        ("helper.py", b"ANSWER = 'source'\n"),
        (&name, &code),
    ]);
    deploy(&client, "foreign", zip, &[]).await;
    let answer = client.invoke("foreign", &json!(0)).await.expect(200).json();
    // A small package is not compiled ahead, either.
    assert_eq!(answer, json!(["source", ["helper.py", "main.py"]]));
}

#[tokio::test]
async fn byte_code_is_not_shown() {
    let server = Server::start();
    let client = server.client();
    let large = large(1);
    let main = b"import large\ndef handler(event, context):\n    return large.ANSWER\n";
    let zip = archive(&[("main.py", main), ("large.py", large.as_bytes())]);
    deploy(&client, "hidden", zip, &[]).await;
    assert_eq!(bytecode(&server).len(), 2);
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser
        .get("/functions/hidden/code")
        .await
        .expect(200)
        .text();
    assert!(
        page.contains("large.py") && !page.contains("pycache"),
        "{page}"
    );

    // Edited code is compiled like any other, and none gets where byte code is.
    let edit = async |path: &str, edits: Value| {
        let form = Form::new()
            .text("csrf", browser.csrf().to_owned())
            .text("base", "1")
            .text("edits", edits.to_string());
        browser.send(browser.post(path).multipart(form)).await
    };
    let path = "/functions/hidden/code";
    let inside = json!([{"to": "__pycache__/main.py", "text": "x = 1\n"}]);
    let refused = edit(path, inside).await;
    assert!(refused.status != 303 && refused.text().contains("__pycache__"));
    let text = "import large\ndef handler(event, context):\n    return -large.ANSWER\n";
    let edits = json!([{"from": "main.py", "to": "main.py", "text": text}]);
    edit(path, edits).await.expect(303);
    assert_eq!(
        client.invoke("hidden", &json!(0)).await.expect(200).json(),
        -1
    );
    assert_eq!(bytecode(&server).len(), 4);
}
