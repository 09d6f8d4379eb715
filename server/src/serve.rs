//! The HTTP server's loop: accepts, serves each connection on a task of its own, stops in order.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use crate::http::Front;

/// Time for a client to send its request's headers: what holds a connection open without a request is cut off.
const HEADER_DEADLINE: Duration = Duration::from_secs(30);
/// Pause after a failed accept: the process may be out of descriptors for a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` completes, then calls `stopping`, lets the connections finish their requests and returns, after
/// `limit` at the latest.
pub async fn serve(
    doors: Vec<(TcpListener, Front)>,
    stop: impl Future<Output = ()>,
    limit: Duration,
    stopping: impl FnOnce(),
) {
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            (accepted, front) = accept(&doors) => match accepted {
                Ok((stream, peer)) => serve_connection(stream, peer, front.clone(), &graceful),
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = &mut stop => break,
        }
    }
    drop(doors);
    stopping();
    // Streams that have no end of their own (events, followed logs) end with the limit.
    let _ = tokio::time::timeout(limit, graceful.shutdown()).await;
}

/// The next connection, and what it talks to.
async fn accept(doors: &[(TcpListener, Front)]) -> (io::Result<(TcpStream, SocketAddr)>, &Front) {
    poll_fn(|context| {
        for (listener, front) in doors {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready((accepted, front));
            }
        }
        Poll::Pending
    })
    .await
}

fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    front: Front,
    graceful: &GracefulShutdown,
) {
    // An answer is written whole: waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let front = front.clone();
        async move { Ok::<_, Infallible>(front.answer(request, peer).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DEADLINE)
        .serve_connection(TokioIo::new(stream), service);
    let watched = graceful.watch(connection);
    tokio::spawn(async move {
        // A client that breaks its connection is not the server's problem.
        if let Err(error) = watched.await {
            tracing::debug!(%error, %peer, "a connection broke");
        }
    });
}
