//! Where a request comes from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::header;

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
    /// The origin of a request.
    pub fn of(request: &Request) -> Self {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let text = |name| {
            let value = request.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            address: peer.map_or(Self::default().address, |peer| peer.0.ip().to_canonical()),
            agent: text(header::USER_AGENT).unwrap_or_default(),
            request_id: request
                .extensions()
                .get::<RequestId>()
                .map_or_else(String::new, |id| id.as_str().to_owned()),
        }
    }
}
