//! The connections of the Runtime API's clients, on the sandbox's loopback.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::api::Api;
use crate::requests;

/// The port on AWS Lambda. The sandbox has a network of its own, and this is the first process in it.
const PORT: u16 = 9001;
/// Most connections at a time: a client has one, or one for each of its threads. Protects this process's memory and
/// descriptors; others wait.
const CONNECTIONS_MAX: u32 = 32;
/// Most header fields of a request, and bytes of all of them.
const HEADERS_MAX: usize = 64;
const HEAD_BYTES: usize = 64 * 1024;
/// How long what a bootstrap has sent before its end may take to be read: it is in this host's memory.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Pause before what the client has left is looked at. On a busy host the kernel hands packets over some milliseconds late, those of
/// a loopback, too.
const AFTER_THE_END: Duration = Duration::from_millis(20);
/// Pause after a connection that could not be accepted.
const AFTER_A_FAILURE: Duration = Duration::from_millis(10);

/// What listens.
#[derive(Debug)]
pub(crate) struct Connections {
    places: Arc<Semaphore>,
}

impl Connections {
    /// Listens on the loopback, from now on whenever this thread waits in the runtime.
    ///
    /// # Errors
    /// The kernel refused the port.
    pub(crate) async fn listen(api: &Api) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await?;
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
        tokio::spawn(accept(listener, places.clone(), api.clone()));
        Ok(Self { places })
    }

    /// Where they come in.
    pub(crate) fn address() -> String {
        format!("{}:{PORT}", Ipv4Addr::LOCALHOST)
    }

    /// Waits until all that was sent is read: after the client's end.
    pub(crate) async fn heard_out(&self) {
        // A connection may not even be accepted yet: the first pause has the kernel asked, the second lets it take its place.
        pause_twice().await;
        // One place is that of the next connection.
        let all_closed = self.places.acquire_many(CONNECTIONS_MAX - 1);
        let _ = tokio::time::timeout(LAST_WORDS, all_closed).await;
        // What has come out of them is being passed on.
        pause_twice().await;
    }
}

async fn pause_twice() {
    for _ in 0..2 {
        tokio::time::sleep(AFTER_THE_END).await;
    }
}

async fn accept(listener: TcpListener, places: Arc<Semaphore>, api: Api) {
    // It is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // A client that has gone, or no descriptors left: others are closed in time.
            tokio::time::sleep(AFTER_A_FAILURE).await;
            continue;
        };
        // Answers are small and waited for. Where it cannot be set, they take a little longer.
        let _ = stream.set_nodelay(true);
        let api = api.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| requests::serve(api.clone(), request));
            let connection = http1::Builder::new()
                .max_headers(HEADERS_MAX)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // What is wrong with a request, its client has been told.
            let _ = connection.await;
            drop(place);
        });
    }
}
