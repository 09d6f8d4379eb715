//! From a broker's URL to a byte stream: its addresses, TCP and TLS, all within one deadline.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Reach;
use crate::config::Broker;
use crate::network::Trust;
use crate::network::resolver::{Answer, Kind, Upstream};

/// How long all of it may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;
/// Names that the host knows itself (hosts(5)).
const HOSTS: &str = "/etc/hosts";

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("the name {0} has no address")]
    NoAddress(String),
    #[error("cannot connect to {0}: {1}")]
    Connect(SocketAddr, io::Error),
    #[error("no connection within {0:?}")]
    Late(Duration),
    #[error("TLS: {0}")]
    Tls(io::Error),
    #[error("TLS: {0} is no name of a host")]
    Name(String),
}

/// A stream to a broker.
pub(super) struct Dialed {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) peer: SocketAddr,
}

/// Whose certificates are good for a broker; none without TLS.
///
/// # Errors
/// When its own certificates are none.
pub(super) fn tls(
    reach: &Reach,
    broker: &Broker,
) -> Result<Option<Arc<ClientConfig>>, rustls::pki_types::pem::Error> {
    if !broker.tls {
        return Ok(None);
    }
    let trust = match &broker.ca {
        None => reach.trust.clone(),
        Some(pem) => {
            let all = CertificateDer::pem_slice_iter(pem.as_bytes());
            Trust::of(all.collect::<Result<_, _>>()?)
        }
    };
    Ok(Some(trust.without_alpn()))
}

/// Connects to a broker.
pub(super) async fn dial(
    reach: &Reach,
    broker: &Broker,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Dialed, DialError> {
    let dialed = timeout(CONNECT, async {
        let (stream, peer) = connect(&reach.upstream, broker).await?;
        // A packet is written whole: waiting for more would only delay it.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else {
            let (reader, writer) = stream.into_split();
            return Ok(Dialed {
                reader: Box::new(reader),
                writer: Box::new(writer),
                peer,
            });
        };
        let name = ServerName::try_from(broker.host.clone());
        let name = name.map_err(|_| DialError::Name(broker.host.clone()))?;
        let connector = TlsConnector::from(tls.clone());
        let stream = connector.connect(name, stream).await;
        let (reader, writer) = tokio::io::split(stream.map_err(DialError::Tls)?);
        Ok(Dialed {
            reader: Box::new(reader),
            writer: Box::new(writer),
            peer,
        })
    });
    dialed.await.unwrap_or(Err(DialError::Late(CONNECT)))
}

async fn connect(
    upstream: &Upstream,
    broker: &Broker,
) -> Result<(TcpStream, SocketAddr), DialError> {
    let mut failed = DialError::NoAddress(broker.host.clone());
    for address in addresses(upstream, &broker.host).await {
        let to = SocketAddr::new(address, broker.port);
        match TcpStream::connect(to).await {
            Ok(stream) => return Ok((stream, to)),
            Err(error) => failed = DialError::Connect(to, error),
        }
    }
    Err(failed)
}

async fn addresses(upstream: &Upstream, host: &str) -> Vec<IpAddr> {
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    let known = tokio::fs::read_to_string(HOSTS).await.unwrap_or_default();
    let mut found = of_hosts(&known, host);
    if found.is_empty() {
        let (four, six) = tokio::join!(upstream.ask(host, Kind::A), upstream.ask(host, Kind::Aaaa));
        for answer in [four, six] {
            if let Ok(Answer::Addresses(addresses, _)) = answer {
                found.extend(addresses);
            }
        }
    }
    found.truncate(ADDRESSES_MAX);
    found
}

/// The addresses of a name in the text of hosts(5).
fn of_hosts(text: &str, host: &str) -> Vec<IpAddr> {
    let of_line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words
            .any(|name| name.eq_ignore_ascii_case(host))
            .then_some(address)
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_file_is_read_as_a_c_library_reads_it() {
        let text = "127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # here\n192.0.2.7 plant Plant.example.com\n#192.0.2.8 plant\nx y\n";
        let found = |host| {
            of_hosts(text, host)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("localhost"), ["127.0.0.1", "::1"]);
        assert_eq!(found("plant.example.com"), ["192.0.2.7"]);
        assert!(found("here").is_empty() && found("example.com").is_empty());
    }
}
