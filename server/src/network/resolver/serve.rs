//! The sockets that a sandbox queries: 127.0.0.1:53 in its own network namespace, UDP and TCP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::ask::{Asker, Names};
use super::question::{Received, read};

/// Largest query over UDP: header, name and EDNS options take less.
const DATAGRAM: usize = 1500;
/// Largest query over TCP.
const MESSAGE_MAX: u16 = 4096;
/// Concurrent connections of one sandbox: each has a task and a buffer.
const CONNECTIONS_MAX: usize = 16;
/// Timeout for each query, and for each reply, on a connection.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a socket error caused by a lack of memory or descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers queries until dropped. Needs a runtime.
///
/// # Errors
/// If the sockets cannot be polled.
pub(crate) async fn serve<N: Names>(
    asker: Arc<Asker<N>>,
    udp: std::net::UdpSocket,
    tcp: std::net::TcpListener,
) -> io::Result<()> {
    udp.set_nonblocking(true)?;
    tcp.set_nonblocking(true)?;
    let udp = Arc::new(UdpSocket::from_std(udp)?);
    let tcp = TcpListener::from_std(tcp)?;
    // Dropping this future ends all of its tasks.
    let mut tasks = tokio::task::JoinSet::new();
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut buffer = [0; DATAGRAM];
    loop {
        tokio::select! {
            received = udp.recv_from(&mut buffer) => match received {
                Ok((length, from)) => {
                    let (udp, asker) = (udp.clone(), asker.clone());
                    let question = read(&buffer[..length]);
                    // A query beyond the limit is dropped, as on a busy network; the client retries.
                    if let Some(place) = asker.enter() {
                        tasks.spawn(async move {
                            if let Some(answer) = answer(&asker, question, None).await {
                                // The client may have gone in the meantime.
                                let _ = udp.send_to(&answer, from).await;
                            }
                            drop(place);
                        });
                    }
                }
                Err(error) => failed(&error).await,
            },
            accepted = tcp.accept() => match accepted {
                Ok((stream, _)) => {
                    // Connections beyond the limit are closed at once.
                    if let Ok(place) = connections.clone().try_acquire_owned() {
                        let asker = asker.clone();
                        tasks.spawn(async move {
                            // The client has gone, or took too long.
                            let _ = connection(&asker, stream).await;
                            drop(place);
                        });
                    }
                }
                Err(error) => failed(&error).await,
            },
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn failed(error: &io::Error) {
    tracing::debug!(%error, "a resolver's socket");
    tokio::time::sleep(PAUSE).await;
}

/// The reply to a query: over TCP if there is a limit, else over UDP.
async fn answer<N: Names>(
    asker: &Asker<N>,
    received: Received,
    limit: Option<usize>,
) -> Option<Vec<u8>> {
    match received {
        Received::Question(question) => {
            let bytes = limit.unwrap_or_else(|| question.udp_bytes());
            asker.answer(&question, bytes).await
        }
        Received::Answer(answer) => Some(answer),
        Received::Nothing => None,
    }
}

async fn connection<N: Names>(asker: &Asker<N>, mut stream: TcpStream) -> io::Result<()> {
    let too_slow = |_| io::Error::from(io::ErrorKind::TimedOut);
    let mut buffer = Vec::new();
    loop {
        let length = timeout(QUERY_TIMEOUT, async {
            let length = stream.read_u16().await?;
            if length > MESSAGE_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            buffer.resize(usize::from(length), 0);
            stream.read_exact(&mut buffer).await
        });
        length.await.map_err(too_slow)??;
        let received = read(&buffer);
        let said = match (asker.enter(), received) {
            (Some(_place), received) => answer(asker, received, Some(u16::MAX.into())).await,
            (None, Received::Question(question)) => {
                question.answer(ResponseCode::ServFail, &[], Duration::ZERO, u16::MAX.into())
            }
            (None, _) => None,
        };
        let Some(said) = said else {
            return Ok(());
        };
        let length = u16::try_from(said.len()).map_err(io::Error::other)?;
        let mut framed = length.to_be_bytes().to_vec();
        framed.extend_from_slice(&said);
        timeout(QUERY_TIMEOUT, stream.write_all(&framed))
            .await
            .map_err(too_slow)??;
    }
}
