//! The HTTP server's loop: accepts connections and serves each on its own task, under its limits. [`Answers`] decides the
//! responses.

mod answer;
mod connections;
mod in_place;
pub(crate) mod refusals;
mod stream;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::limits::Limits;

use answer::Answer;
use connections::{Part, Seat};
use in_place::InPlace;
use stream::Guarded;

pub use connections::{Connections, Part as RequestPart};

/// Pause after a failed accept: the process may be out of descriptors for a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers the requests of connections. Each connection has a clone of its own.
pub trait Answers: Clone + Send + Sync + 'static {
    /// Answers one request of a client at this address. `part` lives as long as the request's body.
    fn answer(
        &self,
        request: hyper::Request<Incoming>,
        part: RequestPart,
        peer: SocketAddr,
    ) -> impl Future<Output = Response> + Send;
}

/// Accepts connections until `stop` completes. Those that are open then stay with `connections`.
pub async fn serve<A: Answers>(
    listeners: Vec<(TcpListener, A)>,
    connections: Connections,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            (accepted, answers) = accept(&listeners) => match accepted {
                Ok((stream, peer)) => connection(&connections, stream, peer, answers.clone()),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // It may be descriptors that lack.
                    connections.make_room();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = &mut stop => break,
        }
    }
}

/// The next connection, and what it talks to.
async fn accept<A>(listeners: &[(TcpListener, A)]) -> (io::Result<(TcpStream, SocketAddr)>, &A) {
    poll_fn(|context| {
        for (listener, answers) in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready((accepted, answers));
            }
        }
        Poll::Pending
    })
    .await
}

/// Serves a connection on a task of its own, or refuses it.
pub fn connection(
    connections: &Connections,
    stream: TcpStream,
    peer: SocketAddr,
    answers: impl Answers,
) {
    match connections.admit(peer) {
        Some(seat) => serve_connection(stream, seat, answers),
        None => refuse(stream, peer),
    }
}

fn serve_connection(stream: TcpStream, seat: Seat, answers: impl Answers) {
    // An answer is written whole: waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    let connection = seat.0.clone();
    let service = service_fn({
        let connection = connection.clone();
        move |request| {
            let (answers, part) = (answers.clone(), Part::of(&connection));
            let (peer, body_part) = (connection.peer, Part::of(&connection));
            async move {
                let mut response = answers.answer(request, body_part, peer).await;
                if part.is_last() {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                Ok::<_, Infallible>(response.map(|body| Answer::new(body, part)))
            }
        }
    });
    let io = TokioIo::new(Guarded::new(stream, seat, Limits::get()));
    // Heads and idle connections have their limits in `Guarded`, which distinguishes them. hyper's own limit of 100
    // header lines stays: setting one, even the same, makes it allocate them anew for each request.
    let served = http1::Builder::new().serve_connection(io, service);
    let peer = connection.peer;
    let task = tokio::spawn(async move {
        // A client that breaks its connection is not the server's problem.
        if let Err(error) = InPlace::new(served).await {
            tracing::debug!(%error, %peer, "a connection failed");
        }
    });
    connection.runs_in(task.abort_handle());
}

/// Says why, as far as that takes no time.
fn refuse(stream: TcpStream, peer: SocketAddr) {
    tracing::debug!(%peer, "too many connections");
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(refusals::FULL);
    }
}
