//! Who stops half-way is given up, on either side, and what the other one has open with it; and bounds on what is taken.

use std::time::Duration;

use hearth::network::broker::{Deadlines, Trust};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Host, NAME, NONE, SECRET, Setting, begin, ends, head, rest};

const SHORT: Duration = Duration::from_millis(100);
const REQUEST: &str = "GET /v1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
const UPLOAD: &str =
    "POST /v1 HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 10\r\n\r\nhello";
const ENDLESS: &str =
    "POST /v1 HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 1000000000\r\n\r\n";
/// Connections of one sandbox (`server/src/network/broker/serve.rs`).
const CONNECTIONS: usize = 256;

/// Sends a request, and returns the whole answer.
async fn answer(setting: &Setting, request: &str) -> String {
    let mut client = setting.client().await;
    client.write_all(request.as_bytes()).await.expect("sent");
    rest(&mut client).await
}

/// Whether the broker itself has answered so.
fn is_refusal(answer: &str, status: u16, detail: &str) -> bool {
    answer.starts_with(&format!("HTTP/1.1 {status} "))
        && answer.contains("secret_broker")
        && answer.contains(detail)
        && !answer.contains(SECRET)
}

#[tokio::test]
async fn a_function_that_says_nothing() {
    let host = Host::start().await;
    let handshake = SHORT;
    let setting = Setting::new(&host, Deadlines { handshake, ..NONE }).await;
    let mut client = setting.connect().await;
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn a_function_that_sends_half_a_head() {
    let host = Host::start().await;
    let request_head = SHORT;
    let deadlines = Deadlines {
        request_head,
        ..NONE
    };
    let setting = Setting::new(&host, deadlines).await;
    for half in ["", "GET /v1 HTTP/1.1\r\nHost: api.exam"] {
        let answer = answer(&setting, half).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    let accepted = timeout(Duration::ZERO, host.listener.accept()).await;
    assert!(accepted.is_err(), "the host was connected to");
}

#[tokio::test]
async fn a_function_that_sends_half_a_body() {
    let host = Host::start().await;
    let request_body = SHORT;
    let deadlines = Deadlines {
        request_body,
        ..NONE
    };
    let setting = Setting::new(&host, deadlines).await;
    let (answer, sent) = tokio::join!(answer(&setting, UPLOAD), async {
        let mut stream = host.accept().await;
        let head = head(&mut stream).await;
        assert!(head.contains(SECRET), "{head}");
        rest(&mut stream).await
    });
    assert_eq!(sent, "hello");
    assert!(is_refusal(&answer, 502, NAME), "{answer}");
}

#[tokio::test]
async fn a_function_that_reads_nothing() {
    let host = Host::start().await;
    let write = SHORT;
    let setting = Setting::new(&host, Deadlines { write, ..NONE }).await;
    let mut client = setting.client().await;
    client.write_all(REQUEST.as_bytes()).await.expect("sent");
    let mut stream = host.accept().await;
    head(&mut stream).await;
    let endless = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    stream.write_all(endless.as_bytes()).await.expect("sent");
    // Until the broker has closed this side, too.
    ends(async { while stream.write_all(&[b'x'; 65_536]).await.is_ok() {} }).await;
    drop(client);
}

#[tokio::test]
async fn a_host_that_does_not_accept() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    rustix::net::listen(&listener, 0).expect("no backlog");
    let address = listener.local_addr().expect("an address");
    // The kernel drops further attempts to connect.
    let _waiting = [(); 8].map(|()| begin(address).expect("begun"));
    let connect = SHORT;
    let deadlines = Deadlines { connect, ..NONE };
    let setting = Setting::towards(address, Trust::default(), deadlines).await;
    let answer = answer(&setting, REQUEST).await;
    assert!(is_refusal(&answer, 502, "no connection within"), "{answer}");
}

#[tokio::test]
async fn a_host_that_is_not_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let setting = Setting::towards(address, Trust::default(), NONE).await;
    let answer = answer(&setting, REQUEST).await;
    assert!(is_refusal(&answer, 502, "Connection refused"), "{answer}");
}

#[tokio::test]
async fn a_host_that_says_nothing() {
    let host = Host::start().await;
    // Time enough for the function's own handshake, which the same deadline is for.
    let handshake = SHORT * 20;
    let setting = Setting::new(&host, Deadlines { handshake, ..NONE }).await;
    let answer = answer(&setting, REQUEST).await;
    assert!(is_refusal(&answer, 502, "no handshake within"), "{answer}");
}

#[tokio::test]
async fn a_host_that_sends_no_whole_head() {
    let host = Host::start().await;
    let response_head = SHORT;
    let deadlines = Deadlines {
        response_head,
        ..NONE
    };
    let setting = Setting::new(&host, deadlines).await;
    for half in ["", "HTTP/1.1 200 OK\r\nContent-Len"] {
        let (answer, ()) = tokio::join!(answer(&setting, REQUEST), async {
            let mut stream = host.accept().await;
            head(&mut stream).await;
            stream.write_all(half.as_bytes()).await.expect("sent");
            assert_eq!(rest(&mut stream).await, "", "it is closed");
        });
        assert!(is_refusal(&answer, 504, "no response within"), "{answer}");
    }
}

#[tokio::test]
async fn a_host_that_sends_half_a_body() {
    let host = Host::start().await;
    let response_body = SHORT;
    let deadlines = Deadlines {
        response_body,
        ..NONE
    };
    let setting = Setting::new(&host, deadlines).await;
    let (answer, ()) = tokio::join!(answer(&setting, REQUEST), async {
        let mut stream = host.accept().await;
        head(&mut stream).await;
        let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
        stream.write_all(half).await.expect("sent");
        assert_eq!(rest(&mut stream).await, "", "it is closed");
    });
    // The connection is closed before its end, by which a function knows.
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nhello"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_host_that_reads_nothing() {
    let host = Host::start().await;
    let write = SHORT;
    let setting = Setting::new(&host, Deadlines { write, ..NONE }).await;
    let client = setting.client().await;
    let (mut reader, mut writer) = tokio::io::split(client);
    writer.write_all(ENDLESS.as_bytes()).await.expect("sent");
    let mut stream = host.accept().await;
    head(&mut stream).await;
    let flood = async { while writer.write_all(&[b'x'; 65_536]).await.is_ok() {} };
    let (answer, ()) = ends(async { tokio::join!(rest(&mut reader), flood) }).await;
    // It may be lost, since the function goes on sending.
    assert!(
        answer.is_empty() || is_refusal(&answer, 502, NAME),
        "{answer}"
    );
}

#[tokio::test]
async fn a_host_that_closes_a_kept_connection() {
    let host = Host::start().await;
    let setting = Setting::new(&host, NONE).await;
    let mut client = setting.client().await;
    for _ in 0..3 {
        let (answer, ()) = tokio::join!(
            async {
                client.write_all(REQUEST.as_bytes()).await.expect("sent");
                let answer = head(&mut client).await;
                let mut body = [0; 2];
                ends(client.read_exact(&mut body)).await.expect("a body");
                assert_eq!(&body, b"ok");
                answer
            },
            async {
                let mut stream = host.accept().await;
                head(&mut stream).await;
                let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                stream.write_all(whole).await.expect("sent");
                // Without a word: it did not say `Connection: close`.
                drop(stream);
            }
        );
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}

#[tokio::test]
async fn more_connections_than_a_sandbox_may_have_wait() {
    let host = Host::start().await;
    let setting = Setting::new(&host, NONE).await;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.push(setting.client().await);
    }
    let mut next = Box::pin(setting.client());
    assert!(timeout(SHORT, &mut next).await.is_err(), "one too many");
    open.pop();
    let mut client = next.await;
    let (answer, ()) = tokio::join!(
        async {
            client.write_all(REQUEST.as_bytes()).await.expect("sent");
            head(&mut client).await
        },
        async {
            let mut stream = host.accept().await;
            head(&mut stream).await;
            let empty = b"HTTP/1.1 204 No Content\r\n\r\n";
            stream.write_all(empty).await.expect("sent");
        }
    );
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

#[tokio::test]
async fn heads_that_are_too_large() {
    let host = Host::start().await;
    let setting = Setting::new(&host, NONE).await;
    let begin = "GET / HTTP/1.1\r\nHost: api.example.com\r\n";
    for more in [
        format!("A: {}\r\n", "a".repeat(200_000)),
        "A: a\r\n".repeat(128),
    ] {
        let answer = answer(&setting, &format!("{begin}{more}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    let accepted = timeout(Duration::ZERO, host.listener.accept()).await;
    assert!(accepted.is_err(), "the host was connected to");
    let (answer, ()) = tokio::join!(answer(&setting, REQUEST), async {
        let mut stream = host.accept().await;
        head(&mut stream).await;
        let large = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(200_000));
        let _ = stream.write_all(large.as_bytes()).await;
        rest(&mut stream).await;
    });
    assert!(is_refusal(&answer, 502, NAME), "{answer}");
}

/// When a sandbox ends, so does all that it has open.
#[tokio::test]
async fn nothing_outlives_the_sandbox() {
    let host = Host::start().await;
    let setting = Setting::new(&host, NONE).await;
    let mut idle: TcpStream = setting.connect().await;
    let mut client = setting.client().await;
    client.write_all(REQUEST.as_bytes()).await.expect("sent");
    let mut stream = host.accept().await;
    head(&mut stream).await;
    drop(setting);
    assert_eq!(rest(&mut idle).await, "");
    assert_eq!(rest(&mut client).await, "");
    assert_eq!(rest(&mut stream).await, "");
}
