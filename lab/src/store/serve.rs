//! Connections and their requests. A connection has one request, and a deadline that its peer cannot move: it depends on the
//! length that the request was announced with, not on when bytes come.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming as Body};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use super::files::{raise_open_files, shares};
use super::objects::{Incoming, Limits, Object, Objects};
use super::request::{Refusal, check_token, key, length};

/// Connections at a time, at most: as many requests as an experiment has at a time, and some that end. More wait in the kernel.
pub(super) const CONNECTIONS_MAX: usize = 1_100;

/// Longest head of a request, in bytes.
const HEAD_MAX: usize = 16 << 10;

/// Time for a request's head, from accepting the connection.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Time for what follows, and for each byte of it: a peer that is slower than 1 MiB/s is cut off.
const SLACK: Duration = Duration::from_secs(30);
const BYTES_PER_SECOND: u64 = 1 << 20;

/// Bytes that are collected before they are written.
const WRITE_AT: usize = 256 << 10;

/// Pause after a connection that could not be accepted, as when descriptors are used up.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// How long peers may take.
#[derive(Debug, Clone, Copy)]
struct Patience {
    head: Duration,
    slack: Duration,
    bytes_per_second: u64,
}

/// A store.
#[derive(Debug)]
pub struct Store {
    objects: Objects,
    token: String,
    patience: Patience,
    connections: Arc<Semaphore>,
}

impl Store {
    /// One without objects, whose files are in this directory, for whoever has the token. Raises the process's limit of open files
    /// as far as it may; where that is low, there are fewer objects and connections.
    pub fn new(directory: PathBuf, token: String) -> Self {
        // Each connection that writes has a file, too.
        let files = Limits::default().count + 2 * CONNECTIONS_MAX;
        let (count, connections) = shares(raise_open_files(files));
        let limits = Limits {
            count,
            ..Limits::default()
        };
        let patience = Patience {
            head: HEAD_WITHIN,
            slack: SLACK,
            bytes_per_second: BYTES_PER_SECOND,
        };
        Self {
            objects: Objects::new(directory, limits),
            token,
            patience,
            connections: Arc::new(Semaphore::new(connections)),
        }
    }

    /// Serves connections until the future is dropped; those that are open go on.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            // Never closed.
            let Ok(permit) = self.connections.clone().acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let store = self.clone();
                    tokio::spawn(async move {
                        store.connection(stream).await;
                        drop(permit);
                    });
                }
                Err(_) => sleep(ACCEPT_AGAIN).await,
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        // One that is reset already has nothing to say.
        let _ = stream.set_nodelay(true);
        let (deadline, passes) = watch::channel(Instant::now() + self.patience.head);
        let service = service_fn(|request| {
            let (store, deadline) = (self.clone(), deadline.clone());
            async move { Ok::<_, Infallible>(store.answer(request, &deadline).await) }
        });
        let connection = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(HEAD_MAX)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            // A broken connection is its peer's affair.
            _ = connection => {}
            () = passed(passes) => {}
        }
    }

    async fn answer(&self, request: Request<Body>, deadline: &watch::Sender<Instant>) -> Answer {
        match self.handle(request, deadline).await {
            Ok(answer) => answer,
            Err(refusal) => refused(&refusal),
        }
    }

    async fn handle(
        &self,
        request: Request<Body>,
        deadline: &watch::Sender<Instant>,
    ) -> Result<Answer, Refusal> {
        let (head, body) = request.into_parts();
        let allow = |bytes: u64| {
            let time = Duration::from_secs(bytes / self.patience.bytes_per_second);
            deadline.send_replace(Instant::now() + self.patience.slack + time);
        };
        check_token(&head.headers, &self.token)?;
        let key = key(&head.uri)?;
        match head.method {
            Method::PUT => {
                let length = length(&head.headers)?;
                let incoming = self.objects.begin(length)?;
                allow(length);
                let incoming = receive(body, incoming).await?;
                let object = self.objects.finish(key, incoming);
                let object = object.map_err(|_| Refusal::incomplete())?;
                Ok(described(StatusCode::OK, &object, 0, empty()))
            }
            Method::GET | Method::HEAD => {
                let object = self.objects.get(key).ok_or_else(Refusal::no_such_key)?;
                let length = object.length();
                allow(length);
                let body = match head.method {
                    Method::GET => contents(object.clone()),
                    _ => empty(),
                };
                Ok(described(StatusCode::OK, &object, length, body))
            }
            Method::DELETE => {
                self.objects.remove(key);
                let mut answer = Response::new(empty());
                *answer.status_mut() = StatusCode::NO_CONTENT;
                Ok(answer)
            }
            _ => Err(Refusal::method()),
        }
    }
}

/// Returns once a deadline has passed.
async fn passed(mut deadline: watch::Receiver<Instant>) {
    loop {
        let until = *deadline.borrow_and_update();
        tokio::select! {
            () = sleep_until(until) => return,
            // The connection, which has the sender, ends first.
            changed = deadline.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// Takes a body. What has come is written some at a time, by a thread that may wait for the disk.
async fn receive(mut body: Body, mut incoming: Incoming) -> Result<Incoming, Refusal> {
    let mut waiting = Vec::new();
    let mut bytes = 0;
    loop {
        let frame = body.frame().await;
        let is_over = frame.is_none();
        if let Some(frame) = frame {
            let frame = frame.map_err(|_| Refusal::incomplete())?;
            if let Ok(data) = frame.into_data() {
                bytes += data.len();
                waiting.push(data);
            }
        }
        if bytes >= WRITE_AT || is_over {
            incoming = write(std::mem::take(&mut waiting), incoming).await?;
            bytes = 0;
        }
        if is_over {
            return Ok(incoming);
        }
    }
}

async fn write(parts: Vec<Bytes>, mut incoming: Incoming) -> Result<Incoming, Refusal> {
    let written = spawn_blocking(move || {
        for part in parts {
            incoming.write(&part)?;
        }
        Ok::<_, io::Error>(incoming)
    });
    let written = written.await.map_err(io::Error::other).flatten();
    written.map_err(|error| {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Refusal::new(status, "InternalError", error.to_string())
    })
}

/// An object's bytes, read as the peer takes them.
fn contents(object: Arc<Object>) -> UnsyncBoxBody<Bytes, io::Error> {
    let parts = stream::try_unfold(0, move |at| {
        let object = object.clone();
        async move {
            if at >= object.length() {
                return Ok(None);
            }
            let read = spawn_blocking(move || object.read(at)).await;
            let part = read.map_err(io::Error::other)??;
            let next = at + part.len() as u64;
            Ok(Some((Frame::data(Bytes::from(part)), next)))
        }
    });
    StreamBody::new(parts).boxed_unsync()
}

fn empty() -> UnsyncBoxBody<Bytes, io::Error> {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

fn described(
    status: StatusCode,
    object: &Object,
    length: u64,
    body: UnsyncBoxBody<Bytes, io::Error>,
) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_LENGTH, length.into());
    // Digits only.
    if let Ok(tag) = object.tag().try_into() {
        headers.insert(ETAG, tag);
    }
    answer
}

fn refused(refusal: &Refusal) -> Answer {
    let body = Full::new(Bytes::from(refusal.xml()));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = refusal.status;
    let media_type = hyper::header::HeaderValue::from_static("application/xml");
    answer.headers_mut().insert(CONTENT_TYPE, media_type);
    answer
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::yield_now;
    use tokio::time::{interval, timeout};

    use super::*;

    /// A store that is impatient, and its address. It waits for a connection.
    async fn impatient() -> (Arc<Store>, SocketAddr) {
        let mut store = Store::new(std::env::temp_dir(), "secret".to_owned());
        store.patience = Patience {
            head: Duration::from_millis(300),
            slack: Duration::from_millis(300),
            bytes_per_second: u64::MAX,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let store = Arc::new(store);
        let all = store.connections.available_permits();
        tokio::spawn(store.clone().serve(listener));
        while store.connections.available_permits() == all {
            yield_now().await;
        }
        (store, address)
    }

    /// Sends this, and a byte now and then for as long as the store takes it. What it answers before it closes the connection.
    async fn drip(address: SocketAddr, begin: &str) -> String {
        let stream = TcpStream::connect(address).await.expect("connected");
        let (mut input, mut output) = stream.into_split();
        output.write_all(begin.as_bytes()).await.expect("sent");
        let dripping = tokio::spawn(async move {
            let mut ticks = interval(Duration::from_millis(20));
            loop {
                ticks.tick().await;
                if output.write_all(b"x").await.is_err() {
                    return;
                }
            }
        });
        let mut said = Vec::new();
        let closed = timeout(Duration::from_secs(30), input.read_to_end(&mut said)).await;
        dripping.abort();
        // A reset ends it as well.
        let _ = closed.expect("it is closed");
        String::from_utf8_lossy(&said).into_owned()
    }

    #[tokio::test]
    async fn a_peer_cannot_move_its_deadline() {
        let (_, address) = impatient().await;
        assert_eq!(drip(address, "GET /stellar/").await, "");
        let put = "PUT /stellar/a HTTP/1.1\r\nauthorization: Bearer secret\r\ncontent-length: 100000\r\n\r\n";
        assert_eq!(drip(address, put).await, "");
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_cut_off() {
        let (store, address) = impatient().await;
        // More than the buffers of both ends hold.
        let content = vec![b'x'; 64 << 20];
        let mut incoming = store.objects.begin(content.len() as u64).expect("room");
        incoming.write(&content).expect("written");
        store.objects.finish("a", incoming).expect("complete");
        let free = store.connections.available_permits();
        let mut get = TcpStream::connect(address).await.expect("connected");
        let head = b"GET /stellar/a HTTP/1.1\r\nauthorization: Bearer secret\r\n\r\n";
        get.write_all(head).await.expect("sent");
        // Until it has begun to answer.
        get.readable().await.expect("an answer");
        let is_over = async {
            while store.connections.available_permits() < free {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), is_over)
            .await
            .expect("it is cut off");
        let mut read = Vec::new();
        let _ = get.read_to_end(&mut read).await;
        assert!(read.starts_with(b"HTTP/1.1 200 OK") && read.len() < content.len());
    }
}
