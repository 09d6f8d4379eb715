//! Where a request comes from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, header};

use crate::http::request_id::RequestId;

/// A client, as far as a server can tell.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Its address.
    pub address: IpAddr,
    /// What it calls itself; may be empty.
    pub agent: String,
    /// The request's id.
    pub request_id: String,
}

impl Default for Origin {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            agent: String::new(),
            request_id: String::new(),
        }
    }
}

impl Origin {
    /// Of a request.
    pub fn of(request: &Request) -> Self {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let text = |name| {
            let value = request.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            address: peer.map_or(Self::default().address, |ConnectInfo(peer)| {
                address(peer.ip(), request.headers())
            }),
            agent: text(header::USER_AGENT).unwrap_or_default(),
            request_id: request
                .extensions()
                .get::<RequestId>()
                .map_or_else(String::new, |id| id.as_str().to_owned()),
        }
    }
}

/// The peer's address; of a proxy on this host, the one that it forwards for. From elsewhere the header is not believed:
/// anybody can send it.
fn address(peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let peer = peer.to_canonical();
    if !peer.is_loopback() {
        return peer;
    }
    headers
        .get_all("x-forwarded-for")
        .iter()
        .next_back()
        .and_then(|value| value.to_str().ok())
        // The last one is what the proxy saw; those before it are what the client claims.
        .and_then(|value| value.rsplit(',').next())
        .and_then(|last| last.trim().parse::<IpAddr>().ok())
        .map_or(peer, |address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_proxy_on_this_host_is_believed() {
        let mut headers = HeaderMap::new();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(address(ip("::ffff:127.0.0.1"), &headers), ip("127.0.0.1"));
        let claimed = HeaderValue::from_static("6.6.6.6, 10.0.0.7");
        headers.insert("x-forwarded-for", claimed);
        assert_eq!(address(ip("127.0.0.1"), &headers), ip("10.0.0.7"));
        assert_eq!(address(ip("::1"), &headers), ip("10.0.0.7"));
        assert_eq!(address(ip("192.0.2.1"), &headers), ip("192.0.2.1"));
        headers.insert("x-forwarded-for", HeaderValue::from_static("unknown"));
        assert_eq!(address(ip("127.0.0.1"), &headers), ip("127.0.0.1"));
    }
}
