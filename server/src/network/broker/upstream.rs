//! Connections to the bound hosts, made in the sandbox's network namespace and kept for a moment for the next request.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::timely::{Draining, Timely};
use super::trust::Trust;
use super::{Deadlines, Reach};
use crate::model::BoundHost;
use crate::sandbox::NetworkError;

/// Most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;
/// How long a connection is kept that nobody uses: less than the 5 s after which Node.js's servers, the least patient of
/// the usual ones, close it.
const KEPT: Duration = Duration::from_secs(4);
/// Connections of a sandbox that are kept.
const KEPT_MAX: usize = 32;
/// Largest head of a response.
const HEAD_MAX: usize = 64 << 10;

/// A connection that takes requests.
pub(super) type Sender = SendRequest<Timely>;

/// Why a host cannot be reached. The function reads this, so it contains no secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreachable {
    #[error("no address of it may be connected to")]
    NoAddress,
    #[error("{0}")]
    Network(#[from] NetworkError),
    #[error("cannot connect: {0}")]
    Connect(std::io::Error),
    #[error("no connection within {0:?}")]
    ConnectTime(Duration),
    #[error("TLS: {0}")]
    Tls(std::io::Error),
    #[error("TLS: no handshake within {0:?}")]
    TlsTime(Duration),
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
}

/// The connections of one sandbox.
pub(super) struct Upstream<R> {
    reach: Arc<R>,
    trust: Trust,
    pub(super) deadlines: Deadlines,
    kept: Mutex<HashMap<BoundHost, Vec<(Sender, Instant)>>>,
    ended: CancellationToken,
}

impl<R: Reach> Upstream<R> {
    pub(super) fn new(
        reach: Arc<R>,
        trust: Trust,
        deadlines: Deadlines,
        ended: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            reach,
            trust,
            deadlines,
            kept: Mutex::default(),
            ended,
        })
    }

    /// A kept connection that is still open.
    pub(super) fn kept(&self, host: &BoundHost) -> Option<Sender> {
        let mut kept = self.kept.lock();
        let of_host = kept.get_mut(host)?;
        while let Some((sender, since)) = of_host.pop() {
            if sender.is_ready() && since.elapsed() < KEPT {
                return Some(sender);
            }
        }
        None
    }

    /// Keeps a connection once its response has been read.
    pub(super) fn keep(self: &Arc<Self>, host: BoundHost, mut sender: Sender) {
        let upstream = self.clone();
        let kept = async move {
            // Ready once the response has been read; an error if the connection was closed.
            let ready = timeout(upstream.deadlines.response_body, sender.ready()).await;
            if !matches!(ready, Ok(Ok(()))) {
                return;
            }
            {
                let mut kept = upstream.kept.lock();
                if kept.values().map(Vec::len).sum::<usize>() >= KEPT_MAX {
                    return;
                }
                let of_host = kept.entry(host).or_default();
                of_host.push((sender, Instant::now()));
            }
            tokio::time::sleep(KEPT).await;
            let mut kept = upstream.kept.lock();
            for of_host in kept.values_mut() {
                of_host.retain(|(_, since)| since.elapsed() < KEPT);
            }
        };
        tokio::spawn(self.ended.clone().run_until_cancelled_owned(kept));
    }

    /// A new connection.
    pub(super) async fn connect(&self, host: &BoundHost) -> Result<Sender, Unreachable> {
        let stream = self.dial(host).await?;
        // Small requests and answers wait for nobody.
        let _ = stream.set_nodelay(true);
        let name = ServerName::try_from(host.name.clone()).map_err(|_| Unreachable::NoAddress)?;
        let connector = TlsConnector::from(self.trust.client());
        let Deadlines {
            write, handshake, ..
        } = self.deadlines;
        let stream = Draining::new(stream, write);
        let stream = timeout(handshake, connector.connect(name, stream))
            .await
            .map_err(|_| Unreachable::TlsTime(handshake))?
            .map_err(Unreachable::Tls)?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_MAX)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(self.ended.clone().run_until_cancelled_owned(async move {
            // Whoever waits for a response gets the error, too.
            let _ = connection.await;
        }));
        Ok(sender)
    }

    async fn dial(&self, host: &BoundHost) -> Result<TcpStream, Unreachable> {
        let addresses = self.reach.addresses(&host.name).await;
        let mut failed = Unreachable::NoAddress;
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            let to = SocketAddr::new(address, host.port);
            match timeout(self.deadlines.connect, self.dial_one(to)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failed = error,
                Err(_) => failed = Unreachable::ConnectTime(self.deadlines.connect),
            }
        }
        Err(failed)
    }

    async fn dial_one(&self, to: SocketAddr) -> Result<TcpStream, Unreachable> {
        let stream = self.reach.dial(to).await?;
        let stream = TcpStream::from_std(stream).map_err(Unreachable::Connect)?;
        // The host process has only started to connect.
        stream.writable().await.map_err(Unreachable::Connect)?;
        match stream.take_error().map_err(Unreachable::Connect)? {
            None => Ok(stream),
            Some(error) => Err(Unreachable::Connect(error)),
        }
    }
}
