//! The object store, and clients that do not keep the rules.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TOKEN: &str = "a-token-of-a-test";

/// A store that runs, and its address.
struct Store {
    child: Child,
    address: String,
    directory: tempfile::TempDir,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Store {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_hearth-lab"))
            .args(["store", "--listen", "127.0.0.1:0", "--directory"])
            .arg(directory.path())
            .env("HEARTH_STORE_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("http://").expect("an address");
        let (address, bucket) = address.split_once('/').expect("a bucket");
        assert_eq!(bucket, "stellar");
        Self {
            child,
            address: address.to_owned(),
            directory,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("connected");
        let long = Some(Duration::from_secs(60));
        stream.set_read_timeout(long).expect("a time limit");
        stream
    }

    /// Sends a request with the token, and reads the answer's head and body.
    fn ask(&self, method: &str, path: &str, body: Option<&[u8]>) -> (String, Vec<u8>) {
        let mut stream = self.connect();
        let length = body.map_or_else(String::new, |body| {
            format!("content-length: {}\r\n", body.len())
        });
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n{length}\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(body.unwrap_or_default()).expect("sent");
        answer(&mut stream)
    }
}

fn answer(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut said = Vec::new();
    // Who sends what nobody wants may get a reset after the answer.
    let _ = stream.read_to_end(&mut said);
    let end = said.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("a head: {:?}", String::from_utf8_lossy(&said)));
    let body = said.split_off(end + 4);
    (String::from_utf8_lossy(&said).into_owned(), body)
}

fn is(head: &str, status: &str) -> bool {
    head.starts_with(&format!("HTTP/1.1 {status}"))
}

#[test]
fn objects_are_put_got_headed_and_deleted() {
    let store = Store::start();
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    let (head, body) = store.ask("PUT", "/stellar/a/b", Some(&content));
    assert!(
        is(&head, "200") && head.contains("etag: \"") && body.is_empty(),
        "{head}"
    );
    let (head, body) = store.ask("GET", "/stellar/a/b", None);
    assert!(
        is(&head, "200") && head.contains("content-length: 3000000"),
        "{head}"
    );
    assert!(body == content);
    let (head, body) = store.ask("HEAD", "/stellar/a/b", None);
    assert!(
        head.contains("content-length: 3000000") && body.is_empty(),
        "{head}"
    );
    // Files have no names, so nothing is left of them whatever ends the store.
    let files = std::fs::read_dir(store.directory.path()).expect("read");
    assert_eq!(files.count(), 0);
    for _ in 0..2 {
        let (head, _) = store.ask("DELETE", "/stellar/a/b", None);
        assert!(is(&head, "204"), "{head}");
    }
    let (head, body) = store.ask("GET", "/stellar/a/b", None);
    assert!(is(&head, "404"), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("<Code>NoSuchKey</Code>"));
    let (head, _) = store.ask("PUT", "/stellar/empty", Some(b""));
    assert!(is(&head, "200"), "{head}");
    let (head, body) = store.ask("GET", "/stellar/empty", None);
    assert!(is(&head, "200") && body.is_empty(), "{head}");
}

#[test]
fn who_has_not_the_token_gets_nothing_and_changes_nothing() {
    let store = Store::start();
    store.ask("PUT", "/stellar/a", Some(b"kept"));
    let wrong = TOKEN.replace('a', "b");
    for header in [
        String::new(),
        format!("authorization: Bearer {wrong}\r\n"),
        format!("authorization: Bearer {TOKEN}x\r\n"),
        format!("authorization: {TOKEN}\r\n"),
        "authorization: Bearer \u{fffd}\r\n".to_owned(),
    ] {
        for (method, body) in [("GET", ""), ("PUT", "x"), ("DELETE", ""), ("POST", "x")] {
            let mut stream = store.connect();
            let length = body.len();
            let request = format!(
                "{method} /stellar/a HTTP/1.1\r\nhost: x\r\n{header}content-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(request.as_bytes()).expect("sent");
            let (head, body) = answer(&mut stream);
            assert!(is(&head, "403"), "{method} {header}: {head}");
            assert!(!String::from_utf8_lossy(&body).contains(TOKEN));
        }
    }
    assert_eq!(store.ask("GET", "/stellar/a", None).1, b"kept");
}

#[test]
fn what_stops_half_way_is_not_kept_and_what_is_too_large_is_refused() {
    let store = Store::start();
    let begin = |length: u64, content: &[u8]| {
        let mut stream = store.connect();
        let head = format!(
            "PUT /stellar/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(content).expect("sent");
        stream
    };
    let mut stream = begin(1_000_000, &[1; 500_000]);
    stream.shutdown(Shutdown::Write).expect("half closed");
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(
        !said.starts_with(b"HTTP/1.1 200"),
        "{:?}",
        String::from_utf8_lossy(&said)
    );
    drop(begin(1_000_000, &[1; 10]));
    assert!(is(&store.ask("GET", "/stellar/a", None).0, "404"));

    let (head, body) = answer(&mut begin((1 << 30) + 1, b""));
    assert!(is(&head, "400"), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("EntityTooLarge"));
    // Announced objects share the store's room, and give it back when they are not sent after all.
    let held: Vec<TcpStream> = (0..4).map(|_| begin(1 << 30, b"x")).collect();
    let until = |status: &str| {
        let mut tries = 0;
        while !is(&answer(&mut begin(1, b"x")).0, status) {
            tries += 1;
            assert!(tries < 1_000, "never {status}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("503");
    drop(held);
    until("200");
}

#[test]
fn requests_that_are_none_of_an_object_are_refused() {
    let store = Store::start();
    for (method, path, status) in [
        ("GET", "/", "405"),
        ("GET", "/stellar", "405"),
        ("POST", "/stellar/a", "405"),
        ("GET", "/other/a", "404"),
        ("GET", "/stellar/a?versions", "501"),
        ("GET", "/stellar/../etc", "404"),
        ("GET", "/stellar/a%00b", "400"),
        ("PUT", "/stellar/a", "411"),
    ] {
        let (head, _) = store.ask(method, path, None);
        assert!(is(&head, status), "{method} {path}: {head}");
    }
    let mut stream = store.connect();
    let chunked = format!(
        "PUT /stellar/a HTTP/1.1\r\nauthorization: Bearer {TOKEN}\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    );
    stream.write_all(chunked.as_bytes()).expect("sent");
    assert!(is(&answer(&mut stream).0, "501"));
    let mut stream = store.connect();
    // The store closes at its limit, whether it has answered or not.
    let endless = stream.write_all(&[b'x'; 1 << 20]);
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(endless.is_err() || !said.starts_with(b"HTTP/1.1 200"));
    assert!(is(&store.ask("GET", "/stellar/a", None).0, "404"));
}

#[test]
fn a_short_token_of_ones_own_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_hearth-lab"))
        .args(["store", "--listen", "127.0.0.1:0"])
        .env("HEARTH_STORE_TOKEN", "short")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("at least 16"), "{said}");
}
