//! What a function sends the broker: a fuzz target. Whatever it is, the host is sent whole requests only, each of them for
//! itself and with the secret once; and the function gets no secret.
//!
//! `cargo test` runs a bounded number of random cases; `cargo bolero test -p hearth --test broker arbitrary_requests` fuzzes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hearth::network::broker::Deadlines;
use parking_lot::Mutex;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::{Host, NAME, SECRET, Setting, rest};

/// Random cases in a run of the test suite: some seconds.
const CASES: usize = 1000;
const MAX: usize = 80;
/// For what comes half: nearly every case ends with it.
const SOON: Duration = Duration::from_millis(20);
const DEADLINES: Deadlines = Deadlines {
    handshake: Duration::from_secs(5),
    request_head: SOON,
    request_body: SOON,
    ..super::NONE
};
/// Ends what is before it, if that is well-formed, and the connection.
const END: &[u8] =
    b"\r\n\r\nGET /end HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n";

/// Of what requests are made, good ones and others: a byte of the input stands for each.
const PIECES: [&[u8]; 48] = [
    b"GET / HTTP/1.1\r\n",
    b"GET /a?b=c HTTP/1.1\r\n",
    b"POST /a HTTP/1.1\r\n",
    b"PUT /a HTTP/1.0\r\n",
    b"HEAD /a HTTP/1.1\r\n",
    b"OPTIONS * HTTP/1.1\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\n",
    b"GET https://api.example.com/a HTTP/1.1\r\n",
    b"GET https://evil.example/a HTTP/1.1\r\n",
    b"GET //evil.example/a HTTP/1.1\r\n",
    b"GET /a b HTTP/1.1\r\n",
    b"GET /\x7f HTTP/2\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"Host: api.example.com\r\n",
    b"Host: api.example.com\r\n",
    b"Host: API.example.com:443\r\n",
    b"Host: evil.example\r\n",
    b"host: api.example.com:8443\r\n",
    b"Host: api.example.com, evil.example\r\n",
    b"Authorization: Bearer mine\r\n",
    b"authorization : mine\r\n",
    b"Proxy-Authorization: mine\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 1\r\nContent-Length: 2\r\n",
    b"Content-Length: +5\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n",
    b"Trailer: Authorization\r\n",
    b"TE: trailers\r\n",
    b"Connection: keep-alive, authorization, host\r\n",
    b"Connection: content-length, transfer-encoding\r\n",
    b"Connection: upgrade\r\nUpgrade: websocket\r\n",
    b"Expect: 100-continue\r\n",
    b" folded\r\n",
    b"X: \xff\xfe\r\n",
    b"\r\n",
    b"\r\n",
    b"\r\n",
    b"\n",
    b"hello",
    b"5\r\nhello\r\n",
    b"5;x=\"\r\n\"\r\nhello\r\n",
    b"0\r\n\r\n",
    b"0\r\nAuthorization: Bearer mine\r\n\r\n",
];

/// A whole request that the input is put into.
fn like_one(input: &[u8]) -> Vec<u8> {
    let piece = |byte: &u8| PIECES.get(usize::from(*byte)).copied();
    let mut bytes = Vec::new();
    for byte in input {
        match piece(&(byte % 64)) {
            Some(piece) => bytes.extend_from_slice(piece),
            None => bytes.push(*byte),
        }
    }
    bytes
}

/// Name of the threads that tasks run on.
const TASKS: &str = "tasks";

/// Notes that a task has panicked, which nobody else would see.
fn watch_for_panics() -> impl Fn() -> bool {
    static PANICKED: AtomicBool = AtomicBool::new(false);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() == Some(TASKS) {
            PANICKED.store(true, Ordering::Relaxed);
        }
        before(info);
    }));
    || PANICKED.load(Ordering::Relaxed)
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(2)
        .thread_name(TASKS)
        .enable_all()
        .build();
    runtime.expect("a runtime")
}

#[test]
fn arbitrary_requests() {
    let has_panicked = watch_for_panics();
    let runtime = runtime();
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::new(Mutex::new(0_u64));
    let setting = runtime.block_on(async {
        let host = Host::start().await;
        let setting = Setting::new(&host, DEADLINES).await;
        tokio::spawn(serve(host, wrong.clone(), seen.clone()));
        setting
    });
    let send = async |bytes: &[u8]| {
        let mut client = setting.client().await;
        // It may be refused before it is sent.
        let _ = client.write_all(&[bytes, END].concat()).await;
        rest(&mut client).await
    };
    let check = AssertUnwindSafe(|bytes: &[u8]| {
        let answer = runtime.block_on(send(bytes));
        assert!(!answer.contains(SECRET), "{answer}");
        assert_eq!(*wrong.lock(), Vec::<String>::new());
        assert!(!has_panicked());
    });
    let check = &check;
    (**check)(b"");
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(MAX)
        .for_each(|input: &[u8]| {
            let check = &**check;
            check(input);
            check(&like_one(input));
            // One that is good so far.
            check(&[PIECES[2], PIECES[13], &like_one(input)].concat());
        });
    let seen = *seen.lock();
    assert!(seen > 100, "{seen} requests have reached the host");
}

/// A host that is as strict as can be: a request in another form than the one is noted.
async fn serve(host: Host, wrong: Arc<Mutex<Vec<String>>>, seen: Arc<Mutex<u64>>) {
    while let Ok((stream, _)) = host.listener.accept().await {
        let (tls, wrong, seen) = (host.tls.clone(), wrong.clone(), seen.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let mut stream = BufReader::new(stream);
            loop {
                match request(&mut stream).await {
                    Ok(true) => *seen.lock() += 1,
                    // The broker gave up half-way, as it may.
                    Ok(false) => return,
                    Err(error) => return wrong.lock().push(error),
                }
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                if stream.get_mut().write_all(answer).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// Reads one request. False if it does not come to its end.
async fn request(stream: &mut BufReader<TlsStream<TcpStream>>) -> Result<bool, String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_until(b'\n', &mut head).await {
            Ok(1..) => {}
            _ => return Ok(false),
        }
    }
    let said = head.escape_ascii().to_string();
    let bad = |what: &str| Err(format!("{what}: {said}"));
    // Only names and values are a function's; those of bytes beyond ASCII are not looked at.
    let text = String::from_utf8_lossy(&head);
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let is_token = |text: &str| {
        let is_sign = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
        let good = |byte: u8| byte.is_ascii_alphanumeric() || is_sign(byte);
        !text.is_empty() && text.bytes().all(good)
    };
    match words[..] {
        [method, target, "HTTP/1.1"] if is_token(method) && target.starts_with(['/', '*']) => {}
        _ => return bad("no request"),
    }
    let mut headers = Vec::new();
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else {
            return bad("no header");
        };
        if !is_token(name) || line.contains(['\r', '\n', '\0']) {
            return bad("a header in another form");
        }
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let all = |name: &str| -> Vec<&str> {
        let of_name = headers.iter().filter(|header| header.0 == name);
        of_name.map(|header| header.1.as_str()).collect()
    };
    if all("host") != [NAME] || all("authorization") != [format!("Bearer {SECRET}")] {
        return bad("another host, or not the secret");
    }
    for name in [
        "connection",
        "upgrade",
        "te",
        "trailer",
        "proxy-authorization",
    ] {
        if !all(name).is_empty() {
            return bad(name);
        }
    }
    match (&all("content-length")[..], &all("transfer-encoding")[..]) {
        ([], []) => Ok(true),
        ([length], []) => {
            let Ok(length) = length.parse::<u64>() else {
                return bad("no length");
            };
            let mut body = Vec::new();
            let read = stream.take(length).read_to_end(&mut body).await;
            Ok(read.is_ok_and(|read| read as u64 == length))
        }
        ([], ["chunked"]) => chunks(stream).await,
        _ => bad("two ends"),
    }
}

async fn chunks(stream: &mut BufReader<TlsStream<TcpStream>>) -> Result<bool, String> {
    loop {
        let mut line = Vec::new();
        match stream.read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return Ok(false),
        }
        let length = std::str::from_utf8(&line).ok();
        let length = length.and_then(|line| line.strip_suffix("\r\n"));
        let length = length.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let Some(length) = length else {
            return Err(format!("no chunk: {}", line.escape_ascii()));
        };
        let mut chunk = Vec::new();
        let read = (&mut *stream)
            .take(length + 2)
            .read_to_end(&mut chunk)
            .await;
        if !read.is_ok_and(|read| read as u64 == length + 2) {
            return Ok(false);
        }
        if !chunk.ends_with(b"\r\n") {
            return Err(format!("a chunk goes on: {}", chunk.escape_ascii()));
        }
        if length == 0 {
            return Ok(true);
        }
    }
}

/// Before there is any TLS.
#[test]
fn arbitrary_greetings() {
    let has_panicked = watch_for_panics();
    let runtime = runtime();
    let (host, setting) = runtime.block_on(async {
        let host = Host::start().await;
        let deadlines = Deadlines {
            handshake: SOON,
            ..super::NONE
        };
        let setting = Setting::new(&host, deadlines).await;
        (host, setting)
    });
    let name = ServerName::try_from(NAME).expect("a name");
    let mut hello = Vec::new();
    let connection = ClientConnection::new(setting.function.clone(), name);
    let mut connection = connection.expect("a connection");
    connection.write_tls(&mut hello).expect("a greeting");
    let check = AssertUnwindSafe(|bytes: &[u8]| {
        let answer = runtime.block_on(async {
            let mut client = setting.connect().await;
            let _ = client.write_all(bytes).await;
            rest(&mut client).await
        });
        assert!(!answer.contains(SECRET) && !has_panicked());
    });
    let check = &check;
    bolero::check!()
        .with_iterations(CASES / 4)
        .with_max_len(MAX)
        .for_each(|input: &[u8]| {
            let check = &**check;
            check(input);
            let mut changed = hello.clone();
            for pair in input.chunks_exact(2) {
                let at = usize::from(pair[0]) * 2 % changed.len();
                changed[at] ^= pair[1];
            }
            check(&changed);
        });
    let accepted = async { tokio::time::timeout(Duration::ZERO, host.listener.accept()).await };
    let accepted = runtime.block_on(accepted);
    assert!(accepted.is_err(), "the host was connected to");
}
