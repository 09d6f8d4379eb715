//! The server's start-up message, with addresses that a browser can open.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The first lines on stdout. Its `Display` ends with a line feed.
#[derive(Debug)]
pub struct Announcement<'a> {
    /// Where the listener is bound.
    pub listening: SocketAddr,
    /// Where functions' pages are ordinary pages: below this name.
    pub functions_host: Option<&'a str>,
    /// The same: on this listener.
    pub functions_listening: Option<SocketAddr>,
    /// The code for creating the first admin, while there is no user.
    pub setup_code: Option<&'a str>,
    /// The admin token, when it was generated just now.
    pub new_token: Option<&'a str>,
    /// The file that keeps the admin token.
    pub token_file: &'a Path,
}

impl fmt::Display for Announcement<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = to_open(self.listening);
        let version = env!("CARGO_PKG_VERSION");
        if self.listening.ip().is_unspecified() {
            writeln!(
                out,
                "Hearth {version} is listening on all addresses of this machine, port {}.",
                self.listening.port()
            )?;
            writeln!(
                out,
                "           from other machines, replace {} with this machine's name or address",
                address.ip()
            )?;
        } else {
            writeln!(out, "Hearth {version} is listening.")?;
        }
        writeln!(out, "  console  http://{address}/")?;
        writeln!(
            out,
            "  API      http://{address}/api/v1  (described by http://{address}/openapi.json)"
        )?;
        let port = self.listening.port();
        if let Some(host) = self.functions_host {
            writeln!(out, "  function http://NAME.{host}:{port}/")?;
        }
        if let Some(listening) = self.functions_listening {
            writeln!(out, "  function http://{}/fn/NAME", to_open(listening))?;
        }
        if let Some(code) = self.setup_code {
            writeln!(
                out,
                "  set-up   http://{address}/setup  creates the first admin; the code is {code}"
            )?;
        }
        let file = self.token_file.display();
        match self.new_token {
            Some(token) => {
                writeln!(out, "  token    {token}")?;
                writeln!(out, "           shown only once; stored in {file}")
            }
            None => writeln!(out, "  token    as configured, or in {file}"),
        }
    }
}

/// An address that a browser on this machine can open. `0.0.0.0` and `::` mean "all of them" to a listener and are no
/// address to connect to.
fn to_open(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(listening: &str) -> String {
        Announcement {
            listening: listening.parse().expect("an address"),
            functions_host: Some("fn.example.com"),
            functions_listening: Some(([0, 0, 0, 0], 8081).into()),
            setup_code: Some("CODE"),
            new_token: Some("hth_token"),
            token_file: Path::new("/data/admin-token"),
        }
        .to_string()
    }

    #[test]
    fn all_addresses_are_announced_as_one_that_can_be_opened() {
        for (listening, shown) in [("0.0.0.0:8080", "127.0.0.1:8080"), ("[::]:81", "[::1]:81")] {
            let printed = printed(listening);
            assert!(printed.contains("listening on all addresses"), "{printed}");
            for path in ["/", "/api/v1", "/openapi.json", "/setup"] {
                let url = format!("http://{shown}{path}");
                assert!(printed.contains(&url), "{url}: {printed}");
            }
            assert!(!printed.contains("//0.0.0.0"), "{printed}");
            assert!(!printed.contains("//[::]"), "{printed}");
            assert!(printed.contains("http://127.0.0.1:8081/fn/NAME\n"));
            assert!(printed.contains("http://NAME.fn.example.com:8"));
        }
    }

    #[test]
    fn a_chosen_address_is_announced_as_it_is() {
        let printed = printed("192.0.2.7:8080");
        assert!(
            printed.contains("  console  http://192.0.2.7:8080/\n"),
            "{printed}"
        );
        assert!(!printed.contains("all addresses"), "{printed}");
    }

    #[test]
    fn the_token_is_shown_once() {
        let announcement = |new_token| Announcement {
            listening: ([127, 0, 0, 1], 8080).into(),
            functions_host: None,
            functions_listening: None,
            setup_code: None,
            new_token,
            token_file: Path::new("/data/admin-token"),
        };
        let first = announcement(Some("hth_token")).to_string();
        assert!(first.contains("  token    hth_token\n") && first.contains("/data/admin-token"));
        let later = announcement(None).to_string();
        assert!(!later.contains("hth_token") && later.contains("/data/admin-token"));
        assert!(!later.contains("set-up"), "{later}");
    }
}
