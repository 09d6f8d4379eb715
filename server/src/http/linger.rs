//! Reads the rest of an unwanted body for a moment, and decides whether the connection stays open.
//!
//! If a server responds early and closes with unread data, a client that is still sending sees a reset instead of the
//! response (RFC 9112, 9.6). So a body that a handler drops is read on, within limits. The rest of a small body arrives
//! soon, often in a packet of its own after the head: the connection waits for it and stays open. A longer rest, or one
//! that may never come, closes the connection, and the response says so.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::runtime::Handle;

/// How much of a dropped body is still read, and for how long.
const LINGER_BYTES: usize = 64 << 20;
const LINGER: Duration = Duration::from_secs(2);
/// A rest up to this size is no reason to end a connection.
const SMALL_BYTES: u64 = 64 << 10;

/// Whether a request's body was abandoned, so that its connection cannot be reused.
pub(super) struct GivenUp(Option<Arc<AtomicBool>>);

impl GivenUp {
    /// Adds `Connection: close` to a response after which the connection ends.
    pub(super) fn tell(&self, answer: &mut Response, own: bool) {
        let given_up = self
            .0
            .as_ref()
            .is_some_and(|flag| flag.load(Ordering::Acquire));
        // After a timeout, the body is incomplete.
        if given_up || (!own && answer.status() == StatusCode::REQUEST_TIMEOUT) {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
    }
}

/// Wraps a request's body, if it has one.
pub(super) fn wrap(request: Request) -> (Request, GivenUp) {
    if request.body().is_end_stream() {
        return (request, GivenUp(None));
    }
    // A client that asked first has sent nothing yet, and will not if it is refused.
    let sending = !request.headers().contains_key(header::EXPECT);
    // The usual body is small and comes unasked, and does without.
    let given_up = (!sending || !is_small(request.body())).then(Arc::default);
    let request = request.map(|body| {
        Body::new(Lingering {
            inner: Some(body),
            sending,
            given_up: given_up.clone(),
        })
    });
    (request, GivenUp(given_up))
}

fn is_small(body: &Body) -> bool {
    let most = body.size_hint().upper();
    most.is_some_and(|most| most <= SMALL_BYTES)
}

struct Lingering {
    /// None once it has ended.
    inner: Option<Body>,
    /// Whether the client may be sending.
    sending: bool,
    /// See [`GivenUp`].
    given_up: Option<Arc<AtomicBool>>,
}

impl http_body::Body for Lingering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.sending = true;
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.inner = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(body) = self.inner.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        if let Some(given_up) = &self.given_up
            && !(self.sending && is_small(&body))
        {
            given_up.store(true, Ordering::Release);
        }
        if self.sending
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(LINGER, discard(body)));
        }
    }
}

async fn discard(mut body: Body) {
    let mut left = LINGER_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(less) => left = less,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{StreamExt, stream};

    use super::*;

    /// How many of ten pieces are read when the body is dropped after `taken` of them.
    async fn read_after_drop(taken: usize, expect: bool) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let pieces = stream::iter(0..10).map(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        let mut request = Request::new(Body::from_stream(pieces));
        if expect {
            let value = HeaderValue::from_static("100-continue");
            request.headers_mut().insert(header::EXPECT, value);
        }
        let (request, _) = wrap(request);
        let mut body = request.into_body();
        for _ in 0..taken {
            body.frame().await.unwrap().unwrap();
        }
        drop(body);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        count.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn a_dropped_body_is_read_on_unless_the_client_waits() {
        assert_eq!(read_after_drop(0, false).await, 10);
        assert_eq!(read_after_drop(3, false).await, 10);
        assert_eq!(read_after_drop(0, true).await, 0);
        assert_eq!(read_after_drop(3, true).await, 10);
    }

    /// Over a real connection: an upload that is refused unread, whose sender writes everything before it reads.
    #[tokio::test]
    async fn a_refused_upload_gets_its_answer() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let router: axum::Router = axum::Router::new().route(
            "/",
            axum::routing::post(|_: Request| async { axum::http::StatusCode::UNAUTHORIZED }),
        );
        let router = crate::http::router::wrap(router);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });

        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let length = 16 << 20;
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(&vec![b'x'; length]).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401");
    }

    #[test]
    fn sizes_are_kept_and_only_a_long_rest_ends_the_connection() {
        for (length, expect, ends) in [
            (0, false, false),
            (10, false, false),
            (10, true, true),
            (100_000, false, true),
        ] {
            let mut request = Request::new(Body::from(vec![0; length]));
            if expect {
                let value = HeaderValue::from_static("100-continue");
                request.headers_mut().insert(header::EXPECT, value);
            }
            let (request, given_up) = wrap(request);
            assert_eq!(request.body().size_hint().exact(), Some(length as u64));
            drop(request);
            let mut answer = Response::default();
            given_up.tell(&mut answer, false);
            let closes = answer.headers().contains_key(header::CONNECTION);
            assert_eq!(closes, ends, "{length} {expect}");
        }
    }
}
