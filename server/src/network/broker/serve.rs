//! Connections of a function to the bound hosts.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::forward::forward;
use super::timely::Draining;
use super::trust::Trust;
use super::upstream::Upstream;
use super::{Broker, Deadlines, Reach};
use crate::model::BoundHost;

/// Connections of one sandbox at a time, half-open ones included: each has a task and buffers. Others wait in the kernel.
const CONNECTIONS_MAX: usize = 256;
/// Largest head of a request, and the buffer of a body.
const HEAD_MAX: usize = 64 << 10;
/// Most headers of a request.
const HEADERS_MAX: usize = 128;
/// How long to wait when no connection can be accepted, for want of memory or descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A listener in the sandbox's network namespace.
pub struct Listener {
    /// Port of the bound hosts that it stands for.
    pub port: u16,
    /// Where the function's connections to them arrive.
    pub socket: std::net::TcpListener,
}

/// What the connections of one sandbox share.
struct Serving<R> {
    broker: Arc<Broker>,
    upstream: Arc<Upstream<R>>,
    tls: TlsAcceptor,
    places: Arc<Semaphore>,
}

/// Serves a sandbox until it has ended. Needs a runtime.
///
/// # Errors
/// When there is no certificate, or a listener cannot be polled.
pub fn serve<R: Reach>(
    broker: Arc<Broker>,
    reach: Arc<R>,
    trust: Trust,
    deadlines: Deadlines,
    listeners: Vec<Listener>,
    ended: &CancellationToken,
) -> io::Result<()> {
    let serving = Arc::new(Serving {
        tls: TlsAcceptor::from(broker.tls()?),
        broker,
        upstream: Upstream::new(reach, trust, deadlines, ended.clone()),
        places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
    });
    for Listener { port, socket } in listeners {
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from_std(socket)?;
        let accepting = accept(serving.clone(), port, listener);
        tokio::spawn(ended.clone().run_until_cancelled_owned(accepting));
    }
    Ok(())
}

async fn accept<R: Reach>(serving: Arc<Serving<R>>, port: u16, listener: TcpListener) {
    // Dropped with this future, and with it all that it holds.
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(place) = serving.places.clone().acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let serving = serving.clone();
                tasks.spawn(async move {
                    if let Err(error) = connection(serving, port, stream).await {
                        tracing::debug!(%error, "a connection to the broker of secrets");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "the broker of secrets accepts no connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection<R: Reach>(
    serving: Arc<Serving<R>>,
    port: u16,
    stream: TcpStream,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let _ = stream.set_nodelay(true);
    let deadlines = serving.upstream.deadlines;
    let stream = Draining::new(stream, deadlines.write);
    let stream = timeout(deadlines.handshake, serving.tls.accept(stream)).await??;
    let name = stream
        .get_ref()
        .1
        .server_name()
        .map(str::to_ascii_lowercase);
    let host = BoundHost {
        name: name.ok_or("no host is named")?,
        port,
    };
    if !serving.broker.bound.contains_key(&host) {
        return Err(format!("{host} is not bound").into());
    }
    let service = service_fn(|request| {
        let (serving, host) = (serving.clone(), host.clone());
        async move {
            let Serving {
                broker, upstream, ..
            } = &*serving;
            Ok::<_, Infallible>(forward(broker, upstream, &host, request).await)
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(deadlines.request_head)
        .max_buf_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}
