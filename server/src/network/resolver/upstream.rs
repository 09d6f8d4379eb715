//! Queries the host's DNS servers: over UDP, from a new port for each query, and over TCP if the answer was truncated.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::rr::Name;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{self, Answer, Asked};
use super::question::Kind;

/// Longest time a function waits for an answer: as long as libraries wait for one server.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long one server may take before the next is asked.
const TRY: Duration = Duration::from_millis(1500);
/// Concurrent queries of all functions: each has a socket.
const IN_FLIGHT_MAX: usize = 256;
/// Datagrams that are not the answer after which a server is given up: somebody is guessing.
const WRONG_MAX: usize = 16;
/// Rounds through the servers.
const ROUNDS: usize = 2;
/// Largest answer over UDP (RFC 9715).
const PAYLOAD: u16 = 1232;
/// Larger than that, so that a longer datagram is recognised.
const DATAGRAM: usize = 4096;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// No server answered.
    #[error("no DNS server answered")]
    NoAnswer,
    /// Too many queries are in progress.
    #[error("too many DNS queries are in progress")]
    Busy,
    /// The host has no DNS server.
    #[error("the host has no DNS server")]
    NoServer,
}

/// The DNS servers.
#[derive(Debug)]
pub struct Upstream {
    servers: Vec<SocketAddr>,
    in_flight: Semaphore,
}

impl Upstream {
    /// Asks these, in this order.
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self {
            servers,
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
        }
    }

    /// Resolves a name to its addresses.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn ask(&self, name: &str, kind: Kind) -> Result<Answer, UpstreamError> {
        if self.servers.is_empty() {
            return Err(UpstreamError::NoServer);
        }
        let Ok(_place) = self.in_flight.try_acquire() else {
            return Err(UpstreamError::Busy);
        };
        timeout(DEADLINE, self.ask_all(name, kind))
            .await
            .unwrap_or(Err(UpstreamError::NoAnswer))
    }

    async fn ask_all(&self, name: &str, kind: Kind) -> Result<Answer, UpstreamError> {
        let mut said = Err(UpstreamError::NoAnswer);
        let name = Name::from_ascii(format!("{name}.")).map_err(|_| UpstreamError::NoAnswer)?;
        for server in std::iter::repeat_n(&self.servers, ROUNDS).flatten() {
            match timeout(TRY, ask_one(*server, &name, kind)).await {
                Ok(Ok(Answer::Failed)) => said = Ok(Answer::Failed),
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => tracing::debug!(%server, %error, "a DNS server did not answer"),
                Err(_) => tracing::debug!(%server, "a DNS server did not answer in time"),
            }
        }
        said
    }
}

async fn ask_one(server: SocketAddr, name: &Name, kind: Kind) -> std::io::Result<Answer> {
    let asked = Asked {
        id: random_id()?,
        name: name.clone(),
        kind,
    };
    let question = encode(&asked)?;
    match by_udp(server, &question, &asked).await? {
        Answer::Truncated => by_tcp(server, &question, &asked).await,
        answer => Ok(answer),
    }
}

/// An unpredictable id.
fn random_id() -> std::io::Result<u16> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(u16::from_ne_bytes(bytes))
}

fn encode(asked: &Asked) -> std::io::Result<Vec<u8>> {
    let record_type = asked
        .kind
        .record_type()
        .ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut message = Message::new(asked.id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(asked.name.clone(), record_type));
    let mut edns = Edns::new();
    edns.set_max_payload(PAYLOAD);
    message.set_edns(edns);
    message.to_vec().map_err(std::io::Error::other)
}

async fn by_udp(server: SocketAddr, question: &[u8], asked: &Asked) -> std::io::Result<Answer> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // The kernel chooses a random port and accepts datagrams from this server only.
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut buffer = [0; DATAGRAM];
    for _ in 0..WRONG_MAX {
        let length = socket.recv(&mut buffer).await?;
        if let Ok(answer) = answer::read(&buffer[..length], asked) {
            return Ok(answer);
        }
    }
    Err(std::io::Error::other("answers to other questions"))
}

async fn by_tcp(server: SocketAddr, question: &[u8], asked: &Asked) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(std::io::Error::other)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend_from_slice(question);
    stream.write_all(&framed).await?;
    let mut buffer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut buffer).await?;
    match answer::read(&buffer, asked) {
        // An answer over TCP is never truncated.
        Ok(Answer::Truncated) | Err(_) => Err(std::io::Error::other("not an answer")),
        Ok(answer) => Ok(answer),
    }
}
