//! Where requests go, and what they are as bytes.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};

use hyper::Uri;

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    authority: String,
    path: String,
}

impl Endpoint {
    /// Of an address. Fails with what would be right.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("not an address: {error}"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("must begin with http:// or https://".to_owned()),
        };
        let authority = uri.authority().ok_or("must have a host")?;
        if authority.as_str().contains('@') {
            return Err("must have no user".to_owned());
        }
        let host = authority.host();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            // Of an IPv6 address what is between the brackets.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: authority
                .port_u16()
                .unwrap_or(if is_tls { 443 } else { 80 }),
            is_tls,
            authority: authority.to_string(),
            path: path.to_owned(),
        })
    }

    /// Its scheme, host and port.
    fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let host = self.host.to_ascii_lowercase();
        match host.contains(':') {
            true => format!("{scheme}://[{host}]:{}", self.port),
            false => format!("{scheme}://{host}:{}", self.port),
        }
    }

    /// The first address of the host.
    pub(super) fn resolve(&self) -> io::Result<SocketAddr> {
        let mut addresses = (self.host.as_str(), self.port).to_socket_addrs()?;
        addresses
            .next()
            .ok_or_else(|| io::Error::from(ErrorKind::AddrNotAvailable))
    }

    /// A request to it as bytes.
    pub(super) fn request(
        &self,
        method: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> Vec<u8> {
        let mut text = format!(
            "{method} {} HTTP/1.1\r\nhost: {}\r\n",
            self.path, self.authority
        );
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if method != "GET" || !body.is_empty() {
            text += &format!("content-length: {}\r\n", body.len());
        }
        text += "\r\n";
        text += body;
        text.into_bytes()
    }
}

/// Scheme, host and port of an address, the port always there. Fails with what would be right.
pub(crate) fn origin(url: &str) -> Result<String, String> {
    Ok(Endpoint::parse(url)?.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parts = |url: &str| {
            let endpoint = Endpoint::parse(url).expect(url);
            (endpoint.host, endpoint.port, endpoint.path)
        };
        let expect = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(parts("http://a.b/x?y=[z]"), expect("a.b", 80, "/x?y=[z]"));
        assert_eq!(parts("https://a.b/x"), expect("a.b", 443, "/x"));
        assert_eq!(parts("http://[::1]:8080"), expect("::1", 8080, "/"));
        for bad in [
            "",
            "a.b",
            "/x",
            "ftp://a.b/",
            "http://",
            "http://u:p@a.b/",
            "http://a b/",
        ] {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_origin_has_its_port_whether_written_or_not() {
        for (url, expected) in [
            ("http://A.b/x?y", "http://a.b:80"),
            ("http://a.b:80", "http://a.b:80"),
            ("https://a.b/x", "https://a.b:443"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
        ] {
            assert_eq!(origin(url).as_deref(), Ok(expected));
        }
        assert!(origin("a.b").is_err());
    }

    #[test]
    fn a_request_has_a_length_only_where_it_may_have_a_body() {
        let endpoint = Endpoint::parse("http://h:81/p").expect("an address");
        let headers = [("x-a".to_owned(), "1".to_owned())];
        assert_eq!(
            endpoint.request("GET", &headers, ""),
            b"GET /p HTTP/1.1\r\nhost: h:81\r\nx-a: 1\r\n\r\n"
        );
        assert_eq!(
            endpoint.request("POST", &[], "{}"),
            b"POST /p HTTP/1.1\r\nhost: h:81\r\ncontent-length: 2\r\n\r\n{}"
        );
    }
}
