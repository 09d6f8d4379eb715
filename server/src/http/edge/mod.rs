//! The first check of a request: which host it is for and where it comes from.
//!
//! Afterwards the request is in origin form, has exactly one known `Host`, and keeps of `X-Forwarded-…` and `Forwarded`
//! only what trusted proxies wrote.

mod hosts;
mod proxies;

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header, uri::PathAndQuery};

pub use hosts::{Hosts, Named, own_names};
pub use proxies::{Proxies, is_https};

use super::problem::{Problem, ProblemCode};

/// Served under any name: monitoring may use other names, and these responses reveal nothing.
const UNDER_ANY_NAME: [&str; 2] = ["/healthz", "/readyz"];

/// Longest label of a host's name (RFC 1035, 2.3.4).
const MAX_LABEL: usize = 63;

/// Which names and which proxies there are.
#[derive(Debug, Default)]
pub struct Edge {
    /// The names.
    pub hosts: Hosts,
    /// The proxies.
    pub proxies: Proxies,
    /// Port of the listener that belongs to functions.
    pub functions_port: Option<u16>,
}

/// Whom a request is for.
#[derive(Debug, PartialEq, Eq)]
pub enum For {
    /// The console, the API, and functions below `/fn/`.
    Console,
    /// The function of this name, whose host it is.
    Function(String),
}

impl Edge {
    /// Looks at a request of `peer`. Its client's address becomes its [`ConnectInfo`].
    ///
    /// # Errors
    /// 400 when it does not name exactly one host, 421 when it names one that is not ours.
    pub fn receive(&self, request: &mut Request, peer: SocketAddr) -> Result<For, Problem> {
        let host = self.receive_any(request, peer)?;
        let mut named = self.hosts.named(the_host(request.headers())?.as_bytes());
        // A function's own host is not left by a header that its page could send.
        if let Some(host) = host
            && !matches!(named, Named::Function(_))
        {
            named = self.hosts.named(host.as_bytes());
            request.headers_mut().insert(header::HOST, host);
        }
        match named {
            Named::Console => Ok(For::Console),
            Named::Function(name) => Ok(For::Function(name)),
            Named::Foreign if UNDER_ANY_NAME.contains(&request.uri().path()) => Ok(For::Console),
            Named::Foreign => Err(misdirected(request.headers())),
            Named::Invalid => Err(invalid("the Host header is not a valid host and port")),
        }
    }

    /// The same for a request on a function's own port, which may name any one host. Returns the one that trusted proxies
    /// name.
    ///
    /// # Errors
    /// 400 when it does not name exactly one host.
    pub fn receive_any(
        &self,
        request: &mut Request,
        peer: SocketAddr,
    ) -> Result<Option<HeaderValue>, Problem> {
        let source = self.proxies.settle(peer.ip(), request.headers_mut());
        let client = proxies::at(source.client, peer);
        request.extensions_mut().insert(ConnectInfo(client));
        if request.method() == Method::CONNECT {
            return Err(invalid(
                "this server is not a proxy and does not support CONNECT",
            ));
        }
        the_host(request.headers())?;
        to_origin_form(request)?;
        Ok(source.host)
    }

    /// The URL of a function for the sender of these headers: its own host, the functions' listener, or its path on
    /// this server.
    pub fn address_of(&self, function: &str, headers: &HeaderMap) -> String {
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let (name, port) = host.map_or(("localhost", ""), hosts::split);
        let scheme = if is_https(headers) { "https" } else { "http" };
        match (self.hosts.functions(), self.functions_port) {
            // A name of more characters is no label.
            (Some(functions), _) if function.len() <= MAX_LABEL => {
                format!("{scheme}://{function}.{functions}{port}/")
            }
            (_, Some(port)) => format!("http://{name}:{port}/fn/{function}"),
            _ => format!("/fn/{function}"),
        }
    }

    /// A shortcut for the hot path, which needs neither the client's address nor proxy headers: whether the request
    /// names exactly one host, the console's. If not, [`Self::receive`] decides.
    pub fn is_plainly_for_the_console(&self, request: &Request) -> bool {
        request.uri().authority().is_none()
            && the_host(request.headers())
                .is_ok_and(|host| self.hosts.named(host.as_bytes()) == Named::Console)
    }
}

/// The one `Host` of a request.
fn the_host(headers: &HeaderMap) -> Result<&HeaderValue, Problem> {
    let mut all = headers.get_all(header::HOST).iter();
    match (all.next(), all.next()) {
        (Some(host), None) => Ok(host),
        (None, _) => Err(invalid("the request has no Host header")),
        (Some(_), Some(_)) => Err(invalid("the request has more than one Host header")),
    }
}

/// Turns `GET http://host/path` into `GET /path` with that host, which then counts instead of the header (RFC 9112, 3.2.2).
fn to_origin_form(request: &mut Request) -> Result<(), Problem> {
    let Some(authority) = request.uri().authority() else {
        return Ok(());
    };
    let host = HeaderValue::try_from(authority.as_str())
        .map_err(|_| invalid("the request target names no host"))?;
    let path = request.uri().path_and_query().cloned();
    let path = path.unwrap_or(PathAndQuery::from_static("/"));
    request.headers_mut().insert(header::HOST, host);
    *request.uri_mut() = Uri::from(path);
    Ok(())
}

fn invalid(detail: &str) -> Problem {
    Problem::new(ProblemCode::InvalidHost, detail)
}

fn misdirected(headers: &HeaderMap) -> Problem {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let host: String = String::from_utf8_lossy(host.unwrap_or_default())
        .chars()
        .take(253)
        .collect();
    Problem::new(
        ProblemCode::MisdirectedRequest,
        format!("this server does not serve {host:?}; add the host to HEARTH_HOSTS"),
    )
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn edge() -> Edge {
        let names = ["console.example".to_owned()];
        let proxy = "10.0.0.1/32".parse().expect("a network");
        Edge {
            hosts: Hosts::new(names, Some("fn.example".to_owned())),
            proxies: Proxies::new(vec![proxy]),
            functions_port: None,
        }
    }

    fn received(target: &str, headers: &[(&str, &str)]) -> Result<(For, String, String), u16> {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::empty()).expect("a request");
        let whom = edge()
            .receive(&mut request, SocketAddr::from(([10, 0, 0, 1], 9)))
            .map_err(|problem| problem.code().status().as_u16())?;
        let host = request.headers()["host"].to_str().expect("text").to_owned();
        Ok((whom, request.uri().to_string(), host))
    }

    #[test]
    fn a_request_names_one_host_and_that_is_ours() {
        let ok = |whom, uri: &str, host: &str| Ok((whom, uri.to_owned(), host.to_owned()));
        let console = || For::Console;
        let function = || For::Function("a".to_owned());
        for (target, headers, expected) in [
            (
                "/x?y",
                &[("host", "console.example:1")][..],
                ok(console(), "/x?y", "console.example:1"),
            ),
            (
                "/",
                &[("host", "a.fn.example")],
                ok(function(), "/", "a.fn.example"),
            ),
            ("/", &[], Err(400)),
            (
                "/",
                &[("host", "localhost"), ("host", "localhost")],
                Err(400),
            ),
            ("/", &[("host", "")], Err(400)),
            ("/", &[("host", "localhost, localhost")], Err(400)),
            ("/", &[("host", "evil.example")], Err(421)),
            // The target counts, where it names a host; the header has to be there all the same.
            (
                "http://localhost:8/x?y",
                &[("host", "evil.example")],
                ok(console(), "/x?y", "localhost:8"),
            ),
            ("http://evil.example/", &[("host", "localhost")], Err(421)),
            (
                "http://a.fn.example/b",
                &[("host", "localhost")],
                ok(function(), "/b", "a.fn.example"),
            ),
            ("http://u:p@localhost/", &[("host", "localhost")], Err(400)),
            ("http://localhost/", &[], Err(400)),
            // Monitoring may use any host name, but not an empty one.
            (
                "/healthz",
                &[("host", "evil.example")],
                ok(console(), "/healthz", "evil.example"),
            ),
            (
                "/readyz",
                &[("host", "evil.example")],
                ok(console(), "/readyz", "evil.example"),
            ),
            ("/healthz", &[], Err(400)),
            ("/healthz/x", &[("host", "evil.example")], Err(421)),
            // A proxy's word.
            (
                "/",
                &[("host", "inner"), ("x-forwarded-host", "console.example")],
                ok(console(), "/", "console.example"),
            ),
            (
                "/",
                &[("host", "inner"), ("x-forwarded-host", "a.fn.example")],
                ok(function(), "/", "a.fn.example"),
            ),
            (
                "/",
                &[("host", "localhost"), ("x-forwarded-host", "evil.example")],
                Err(421),
            ),
            (
                "/",
                &[("host", "a.fn.example"), ("x-forwarded-host", "localhost")],
                ok(function(), "/", "a.fn.example"),
            ),
        ] {
            assert_eq!(received(target, headers), expected, "{target} {headers:?}");
        }
    }

    #[test]
    fn a_functions_address_is_the_best_there_is() {
        let address = |functions: Option<&str>, functions_port, host: &str, scheme: &str| {
            let edge = Edge {
                hosts: Hosts::new([], functions.map(str::to_owned)),
                functions_port,
                ..Edge::default()
            };
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::try_from(host).expect("a host"));
            headers.insert(
                "x-forwarded-proto",
                HeaderValue::try_from(scheme).expect("one"),
            );
            edge.address_of("hello", &headers)
        };
        let fn_host = Some("fn.example");
        for (functions, port, host, scheme, expected) in [
            (None, None, "localhost:8080", "http", "/fn/hello"),
            (
                None,
                Some(81),
                "localhost:8080",
                "http",
                "http://localhost:81/fn/hello",
            ),
            (None, Some(81), "[::1]", "http", "http://[::1]:81/fn/hello"),
            (
                fn_host,
                None,
                "localhost:8080",
                "http",
                "http://hello.fn.example:8080/",
            ),
            (
                fn_host,
                Some(81),
                "c.example",
                "https",
                "https://hello.fn.example/",
            ),
        ] {
            assert_eq!(address(functions, port, host, scheme), expected);
        }
    }

    #[test]
    fn connect_is_for_proxies() {
        let request = Request::builder().method("CONNECT").uri("localhost:80");
        let mut request = request
            .header("host", "localhost")
            .body(Body::empty())
            .expect("one");
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        let problem = edge().receive(&mut request, peer).expect_err("refused");
        assert_eq!(problem.code(), ProblemCode::InvalidHost);
    }
}
