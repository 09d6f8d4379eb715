//! Large uploads: what they cost the server in memory, what is left of those that end early, and a disk that is full.

use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use hearth_host::process::server::DATA_PLACE;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method, RequestBuilder};
use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::support::{
    Browser, Client, Server, TOKEN, eventually, exchange, figures, half_a_request,
};

const HANDLER: &str = "def handler(event, context):\n    return 1\n";
const TIMEOUT: Duration = Duration::from_secs(60);
/// What one large upload has.
const LARGE: usize = 100 << 20;
/// What the server may gain by several of them at a time: pieces that are under way, and what allocators keep.
const GAINED_KIB: u64 = 64 << 10;

/// An archive that stores a file of this many bytes uncompressed.
fn archive_with(bytes: usize) -> Bytes {
    let mut zip = ZipWriter::new(Cursor::new(Vec::with_capacity(bytes + 1000)));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    zip.start_file("main.py", stored).expect("a name");
    zip.write_all(HANDLER.as_bytes()).expect("memory");
    zip.start_file("data.bin", stored).expect("a name");
    zip.write_all(&vec![b'd'; bytes]).expect("memory");
    zip.finish().expect("an archive").into_inner().into()
}

fn put(client: &Client, name: &str) -> RequestBuilder {
    client.request(Method::PUT, &format!("/api/v1/functions/{name}/code"))
}

/// The bytes in pieces, so that their length is not known beforehand.
fn pieces(bytes: &Bytes) -> Body {
    let bytes = bytes.clone();
    let pieces = (0..bytes.len())
        .step_by(1 << 20)
        .map(move |at| Ok::<_, std::io::Error>(bytes.slice(at..bytes.len().min(at + (1 << 20)))));
    Body::wrap_stream(futures_util::stream::iter(pieces))
}

/// Files without a name that the server has open in its data directory, by its own name for that: uploads on their way in.
fn spooled(server: &Server) -> usize {
    let dir = Path::new(DATA_PLACE);
    let open = figures::descriptors(server.serve_pid()).expect("the server runs");
    open.iter()
        .filter(|link| link.parent() == Some(dir))
        .filter(|link| link.to_string_lossy().ends_with(" (deleted)"))
        .count()
}

fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn large_uploads_at_a_time_cost_little_memory() {
    let server = Server::start();
    let client = server.client();
    for name in ["raw", "form", "text", "page"] {
        client.deploy(name, HANDLER, json!({})).await;
    }
    let visitor = Browser::logged_in(&server, TOKEN).await;
    let zip = archive_with(LARGE);
    let part = || Part::stream(pieces(&zip)).file_name("code.zip");
    let text = base64::engine::general_purpose::STANDARD.encode(&zip);
    let text = Bytes::from(format!("{{\"code\": {{\"zip_base64\": \"{text}\"}}}}"));
    let peak = || figures::status(server.serve_pid(), "VmHWM").expect("the server runs");
    let before = peak();
    let raw = put(&client, "raw").header("content-type", "application/zip");
    let json = put(&client, "text").header("content-type", "application/json");
    let page = Form::new()
        .text("csrf", visitor.csrf.clone())
        .text("code_source", "file")
        .part("code_file", part());
    let (raw, form, json, page) = tokio::join!(
        client.send(raw.body(pieces(&zip))),
        client.send(put(&client, "form").multipart(Form::new().part("code", part()))),
        client.send(json.body(pieces(&text))),
        visitor.send(visitor.post("/functions/page/code").multipart(page)),
    );
    let gained = peak() - before;
    for answer in [raw, form, json] {
        answer.expect(200);
    }
    page.expect(303);
    assert!(gained < GAINED_KIB, "{gained} KiB more");
    // All of them are the same code, whichever way it came.
    let list = client.get("/api/v1/functions").await.expect(200).json();
    let items = list["items"].as_array().expect("functions");
    assert_eq!(items.len(), 4);
    for function in items {
        assert_eq!(function["active_version"], 2, "{function}");
        assert_eq!(function["code_sha256"], items[0]["code_sha256"]);
    }
    assert_eq!(spooled(&server), 0);
}

#[tokio::test]
async fn an_upload_over_the_limit_is_refused() {
    let server = Server::start();
    let client = server.client();
    client.deploy("mine", HANDLER, json!({})).await;
    // One that says so is not read at all.
    for kind in [
        "application/zip",
        "application/json",
        "multipart/form-data; boundary=b",
    ] {
        let head = format!(
            "PUT /api/v1/functions/mine/code HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n\
             Authorization: Bearer {TOKEN}\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            400 << 20
        );
        let answer = exchange(&server.url, head.as_bytes()).await;
        answer.problem(413, "payload_too_large");
    }
    // One that does not is read as far as the limit, and leaves nothing.
    let long = Bytes::from(vec![b'x'; (256 << 20) + 1000]);
    let request = put(&client, "mine").header("content-type", "application/zip");
    let answer = client.send(request.body(pieces(&long))).await;
    answer.problem(413, "payload_too_large");
    eventually("it is gone", TIMEOUT, || async {
        (spooled(&server) == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let mut server = Server::start();
    let client = server.client();
    client.deploy("mine", HANDLER, json!({})).await;
    let before = names(server.data_dir());
    let heads = [
        "Content-Type: application/zip\r\n\r\n".to_owned(),
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n\
         content-disposition: form-data; name=\"code\"; filename=\"a.zip\"\r\n\r\n"
            .to_owned(),
        "Content-Type: application/json\r\n\r\n{\"code\": {\"zip_base64\": \"".to_owned(),
    ];
    let begin = async || {
        let mut half = Vec::new();
        for head in &heads {
            let mut first = format!(
                "PUT /api/v1/functions/mine/code HTTP/1.1\r\nHost: localhost\r\n\
                 Authorization: Bearer {TOKEN}\r\nContent-Length: {LARGE}\r\n{head}"
            )
            .into_bytes();
            first.extend(vec![b'x'; 3 << 20]);
            half.push(half_a_request(&server.url, &first).await);
        }
        eventually("they are on the disk", TIMEOUT, || async {
            (spooled(&server) == half.len()).then_some(())
        })
        .await;
        assert_eq!(names(server.data_dir()), before, "none has a name");
        half
    };
    drop(begin().await);
    eventually("they are gone", TIMEOUT, || async {
        (spooled(&server) == 0).then_some(())
    })
    .await;
    // Nor does one that the server does not survive leave anything.
    let half = begin().await;
    server.kill_9();
    drop(half);
    let left: Vec<_> = names(server.data_dir())
        .into_iter()
        .filter(|name| !before.contains(name))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A file system of its own, as small as it is said to be.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn of(mebibytes: usize) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("hearth-test-")
            .tempdir()
            .expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"])
            .arg(dir.path())
            .status();
        assert!(mounted.expect("mount").success(), "a tmpfs");
        Self(dir)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_leaves_nothing() {
    let disk = SmallDisk::of(40);
    let server = Server::start_in_with(disk.0.path(), &[("HEARTH_CRIU", "off")]);
    let client = server.client();
    client.deploy("mine", HANDLER, json!({})).await;
    let packages = server.packages();
    // Too much to keep, and too much to unpack beside what is kept.
    for bytes in [60 << 20, 25 << 20] {
        let zip = archive_with(bytes);
        let request = put(&client, "mine").header("content-type", "application/zip");
        let answer = client.send(request.body(pieces(&zip))).await;
        assert!(!answer.header("retry-after").is_empty());
        let problem = answer.problem(503, "host_exhausted");
        let detail = problem["detail"].as_str().expect("text");
        assert!(detail.contains("No space left on device"), "{detail}");
        assert_eq!(server.packages(), packages);
        eventually("the room is free", TIMEOUT, || async {
            (spooled(&server) == 0).then_some(())
        })
        .await;
    }
    let answer = client.invoke("mine", &json!(0)).await.expect(200);
    assert_eq!(answer.json(), 1);
    let small = archive_with(1 << 20);
    let request = put(&client, "mine").header("content-type", "application/zip");
    client.send(request.body(small)).await.expect(200);
}
