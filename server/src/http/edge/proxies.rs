//! Headers of reverse proxies: the client's address, whether it used TLS, and the requested host.
//!
//! Anybody can send `X-Forwarded-For`, so it is trusted only from configured addresses. The list is read from the
//! right, where the nearest proxy appended its entry, and ends at the first address that is not trusted.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use ipnet::IpNet;
use parking_lot::Mutex;

use crate::limits::network;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Holds `https` or `http` for the request that the outermost proxy got, once a request has passed [`Proxies::settle`].
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// Most entries that are walked: no honest request has passed as many proxies.
const MAX_HOPS: usize = 32;

/// Most peers of which the log says that their word does not count: anybody can send the headers, from many addresses.
const MAX_WARNED: usize = 32;

/// Whose word counts.
#[derive(Debug, Default)]
pub struct Proxies {
    trusted: Vec<IpNet>,
    /// Peers whose word did not, as far as the log says so.
    warned: Mutex<HashSet<IpAddr>>,
}

/// What is known of where a request comes from.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// The client, or the nearest proxy that is not trusted.
    pub client: IpAddr,
    /// The host it asked a proxy for, if that says so.
    pub host: Option<HeaderValue>,
}

impl Proxies {
    /// Those in these networks.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self {
            trusted: networks,
            warned: Mutex::default(),
        }
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Determines where a request comes from, and removes untrusted proxy headers so that nothing later uses them.
    pub fn settle(&self, peer: IpAddr, headers: &mut HeaderMap) -> Source {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            let mut said = None;
            for name in [
                X_FORWARDED_FOR,
                X_FORWARDED_PROTO,
                X_FORWARDED_HOST,
                header::FORWARDED,
            ] {
                if headers.remove(&name).is_some() {
                    said = said.or(Some(name));
                }
            }
            if let Some(header) = said
                && self.is_news(peer)
            {
                tracing::warn!(
                    %peer,
                    %header,
                    "ignoring proxy headers of this peer; if it is your proxy, add it to HEARTH_TRUSTED_PROXIES"
                );
            }
            return Source {
                client: peer,
                host: None,
            };
        }
        let by_list = self.walk(peer, headers, &X_FORWARDED_FOR, address);
        let by_forwarded = self.walk(peer, headers, &header::FORWARDED, |entry| {
            address(&parameter(entry, "for")?)
        });
        let (client, hops) = match (by_list, by_forwarded) {
            (Some(found), None) | (None, Some(found)) => found,
            // A proxy that writes one of them passes the other on as the client sent it.
            (Some(one), Some(other)) if one == other => one,
            (Some(_), Some(_)) | (None, None) => (peer, 1),
        };
        let elements = entries(headers, &header::FORWARDED);
        let forwarded = |name| {
            let element = at_hop(&elements, hops)?;
            parameter(element, name)
        };
        let listed = |name: &HeaderName| {
            let values = entries(headers, name);
            at_hop(&values, hops).map(str::to_owned)
        };
        let agreed = |one: Option<String>, other: Option<String>| match (one, other) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(&other).then_some(one),
            (one, other) => one.or(other),
        };
        let scheme = agreed(listed(&X_FORWARDED_PROTO), forwarded("proto"));
        let host = agreed(listed(&X_FORWARDED_HOST), forwarded("host"));
        let is_https = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let scheme = HeaderValue::from_static(if is_https { "https" } else { "http" });
        headers.insert(X_FORWARDED_PROTO, scheme);
        Source {
            client,
            host: host.and_then(|host| HeaderValue::try_from(host).ok()),
        }
    }

    /// Whether to log that this peer is not trusted: once per peer, for a limited number of peers.
    fn is_news(&self, peer: IpAddr) -> bool {
        let mut warned = self.warned.lock();
        warned.len() < MAX_WARNED && warned.insert(network(peer))
    }

    /// The first address from the right that is not a trusted proxy, and the number of trusted entries; `None` without
    /// the header.
    fn walk(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        name: &HeaderName,
        read: impl Fn(&str) -> Option<IpAddr>,
    ) -> Option<(IpAddr, usize)> {
        let entries = entries(headers, name);
        let (mut client, mut hops) = (peer, 0);
        for entry in entries.iter().rev().take(MAX_HOPS) {
            if !self.trusts(client) {
                break;
            }
            hops += 1;
            // One that hides whom it forwards for is as far as can be seen.
            let Some(next) = read(entry) else { break };
            client = next;
        }
        (hops > 0).then_some((client, hops))
    }
}

/// Whether a request came by TLS, after [`Proxies::settle`].
pub fn is_https(headers: &HeaderMap) -> bool {
    headers
        .get(X_FORWARDED_PROTO)
        .is_some_and(|scheme| scheme.as_bytes() == b"https")
}

/// The peer as the client's address, whose port is not known.
pub fn at(client: IpAddr, peer: SocketAddr) -> SocketAddr {
    match client == peer.ip().to_canonical() {
        true => peer,
        false => SocketAddr::new(client, 0),
    }
}

/// All entries of a header that is a list, those of several lines after each other. Commas in quotes belong to the entry.
fn entries<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Vec<&'h str> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|line| split(line.to_str().unwrap_or("?"), ','))
        .map(str::trim)
        .collect()
}

/// The entry of the hop that the client talked to; of a shorter list the outermost.
fn at_hop<'e>(entries: &[&'e str], hops: usize) -> Option<&'e str> {
    let from_right = hops.min(entries.len()).checked_sub(1)?;
    entries.iter().rev().nth(from_right).copied()
}

fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

/// A parameter of an element of `Forwarded` (RFC 7239, 4).
fn parameter(element: &str, name: &str) -> Option<String> {
    split(element, ';').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = value.trim();
        let bare = value
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        key.trim()
            .eq_ignore_ascii_case(name)
            .then(|| bare.unwrap_or(value).to_owned())
    })
}

/// An address as proxies write it: bare, in brackets, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let found = text
        .parse::<IpAddr>()
        .ok()
        .or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
        .or_else(|| {
            let inner = text.strip_prefix('[')?.strip_suffix(']')?;
            inner.parse().ok()
        })?;
    Some(found.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(
        trusted: &[&str],
        peer: &str,
        lines: &[(&'static str, &'static str)],
    ) -> (String, bool, Option<String>, usize) {
        let networks = trusted.iter().map(|text| text.parse().expect("a network"));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let proxies = Proxies::new(networks.collect());
        let source = proxies.settle(peer.parse().expect("an address"), &mut headers);
        let host = source
            .host
            .map(|host| host.to_str().expect("text").to_owned());
        let (https, left) = (is_https(&headers), headers.len());
        (source.client.to_string(), https, host, left)
    }

    #[test]
    fn nobody_is_believed_who_is_not_named() {
        let lines = [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "for=6.6.6.6;proto=https;host=evil.example"),
        ];
        for (trusted, peer) in [(&[][..], "127.0.0.1"), (&["10.0.0.0/8"], "192.0.2.1")] {
            let settled = settle(trusted, peer, &lines);
            assert_eq!(settled, (peer.to_owned(), false, None, 0));
        }
        let settled = settle(&["127.0.0.0/8"], "::ffff:127.0.0.1", &lines);
        assert_eq!((settled.0.as_str(), settled.1), ("6.6.6.6", true));
        assert_eq!(settled.2.as_deref(), Some("evil.example"));
    }

    #[test]
    fn a_peer_whose_word_does_not_count_is_told_of_once_and_not_too_many_are() {
        let proxies = Proxies::new(Vec::new());
        let news = |peer: &str| proxies.is_news(peer.parse().expect("an address"));
        assert!(news("192.0.2.1") && news("192.0.2.2"));
        assert!(!news("192.0.2.1"));
        // One customer's addresses are one.
        assert!(news("2001:db8::1") && !news("2001:db8::2"));
        let warned = (0..=255).filter(|n| news(&format!("198.51.100.{n}")));
        assert_eq!(warned.count(), MAX_WARNED - 3);
    }

    #[test]
    fn a_list_is_walked_from_the_right_while_proxies_of_ours_wrote_it() {
        let trusted = ["10.0.0.0/8", "fd00::/8"];
        let client = |line| settle(&trusted, "10.0.0.1", &[("x-forwarded-for", line)]).0;
        for (line, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("6.6.6.6, 203.0.113.7", "203.0.113.7"),
            ("6.6.6.6, 203.0.113.7, 10.2.3.4", "203.0.113.7"),
            ("203.0.113.7, fd00::2,10.2.3.4", "203.0.113.7"),
            ("203.0.113.7:4711, [fd00::2]:80, 10.2.3.4:1", "203.0.113.7"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            // All are ours: the first of them is where it began.
            ("10.2.3.4, 10.9.9.9", "10.2.3.4"),
            ("6.6.6.6, unknown", "10.0.0.1"),
            ("6.6.6.6, unknown, 10.2.3.4", "10.2.3.4"),
            ("6.6.6.6, ", "10.0.0.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(client(line), expected, "{line:?}");
        }
        let two = [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-for", "203.0.113.7"),
        ];
        assert_eq!(settle(&trusted, "10.0.0.1", &two).0, "203.0.113.7");
        let long = "10.0.0.9,".repeat(60) + "10.0.0.9";
        let long: &'static str = Box::leak(long.into_boxed_str());
        assert_eq!(client(long), "10.0.0.9");
    }

    #[test]
    fn forwarded_says_the_same_in_its_own_way() {
        let trusted = ["10.0.0.0/8"];
        let line = "for=6.6.6.6, for=\"[2001:db8::7]:4711\";Proto=HTTPS; host=\"shop.example\", for=10.0.0.2;proto=http";
        let settled = settle(&trusted, "10.0.0.1", &[("forwarded", line)]);
        assert_eq!(settled.0, "2001:db8::7");
        assert!(settled.1);
        assert_eq!(settled.2.as_deref(), Some("shop.example"));
        let hidden = settle(
            &trusted,
            "10.0.0.1",
            &[("forwarded", "for=_gazonk;proto=https")],
        );
        assert_eq!((hidden.0.as_str(), hidden.1), ("10.0.0.1", true));
        // A proxy that sets one header passes on the client's other one, so neither is trusted.
        let both = [
            ("x-forwarded-for", "203.0.113.7"),
            ("forwarded", "for=6.6.6.6"),
        ];
        assert_eq!(settle(&trusted, "10.0.0.1", &both).0, "10.0.0.1");
        let same = [
            ("x-forwarded-for", "203.0.113.7"),
            ("forwarded", "for=203.0.113.7"),
        ];
        assert_eq!(settle(&trusted, "10.0.0.1", &same).0, "203.0.113.7");
    }

    #[test]
    fn the_scheme_is_that_of_the_hop_the_client_talked_to() {
        let trusted = ["10.0.0.0/8"];
        let https = |addresses, schemes| {
            let lines = [
                ("x-forwarded-for", addresses),
                ("x-forwarded-proto", schemes),
            ];
            settle(&trusted, "10.0.0.1", &lines).1
        };
        assert!(https("203.0.113.7", "https"));
        assert!(https("203.0.113.7, 10.0.0.2", "https, http"));
        assert!(https("203.0.113.7, 10.0.0.2", "HTTPS"));
        assert!(
            !https("203.0.113.7", "https, http"),
            "the client said https"
        );
        assert!(!https("203.0.113.7", "http"));
        let alone = [("x-forwarded-proto", "https")];
        assert!(settle(&trusted, "10.0.0.1", &alone).1);
        assert!(!settle(&trusted, "10.0.0.1", &[]).1);
    }
}
