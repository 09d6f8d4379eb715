//! Which host a request is for: the console's, a function's, or an unknown one.
//!
//! Any site can point a name of its own to this server's address (DNS rebinding) and read the responses as same-origin.
//! Therefore only configured names are served. IP addresses are always served, because they cannot be rebound.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::model::normal_host_name;

/// The names that are ours.
#[derive(Debug, Default)]
pub struct Hosts {
    console: HashSet<String>,
    functions: Option<String>,
}

/// What a `Host` names.
#[derive(Debug, PartialEq, Eq)]
pub enum Named {
    /// The console and the API.
    Console,
    /// The function of this name.
    Function(String),
    /// A host that is not ours.
    Foreign,
    /// No host and port.
    Invalid,
}

impl Hosts {
    /// The console answers to `localhost` and `names`; functions have hosts of their own below `functions`. All of them
    /// in lower case and without a final dot.
    pub fn new(names: impl IntoIterator<Item = String>, functions: Option<String>) -> Self {
        let mut console: HashSet<String> = names.into_iter().collect();
        console.insert("localhost".to_owned());
        Self { console, functions }
    }

    /// The name below which functions have hosts of their own.
    pub fn functions(&self) -> Option<&str> {
        self.functions.as_deref()
    }

    /// What the value of a `Host` header names. Its port says nothing: a proxy in front may have another.
    pub fn named(&self, host: &[u8]) -> Named {
        let Some(name) = std::str::from_utf8(host).ok().and_then(without_port) else {
            return Named::Invalid;
        };
        if let Some(literal) = name.strip_prefix('[') {
            let literal = literal.strip_suffix(']').unwrap_or_default();
            return match literal.parse::<Ipv6Addr>() {
                Ok(_) => Named::Console,
                Err(_) => Named::Invalid,
            };
        }
        if name.parse::<Ipv4Addr>().is_ok() {
            return Named::Console;
        }
        match normal_host_name(name) {
            Some(name) => self.name(&name),
            None => Named::Invalid,
        }
    }

    fn name(&self, name: &str) -> Named {
        let below = self
            .functions
            .as_deref()
            .and_then(|functions| name.strip_suffix(functions)?.strip_suffix('.'));
        match below {
            // Names below a function's host are unknown.
            Some(function) if !function.contains('.') => Named::Function(function.to_owned()),
            Some(_) => Named::Foreign,
            None if self.console.contains(name) => Named::Console,
            None => Named::Foreign,
        }
    }
}

/// A good `host:port` as `host` and `:port`, of which the latter may be empty.
pub(super) fn split(host: &str) -> (&str, &str) {
    let name = without_port(host).unwrap_or(host);
    host.split_at(name.len())
}

/// `host` of `host:port`; the port may be empty.
fn without_port(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let digits = match port.strip_prefix(':') {
        Some(digits) => digits,
        None if port.is_empty() => port,
        None => return None,
    };
    (digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// The names of this machine: its host name, and what `/etc/hosts` calls it besides.
pub fn own_names() -> Vec<String> {
    let uname = rustix::system::uname();
    let node = uname.nodename().to_string_lossy();
    let file = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    names_of(&node, &file)
}

fn names_of(node: &str, hosts_file: &str) -> Vec<String> {
    let mut names = vec![node.to_owned()];
    for line in hosts_file.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        if words.iter().any(|word| word.eq_ignore_ascii_case(node)) {
            names.extend(words.into_iter().map(str::to_owned));
        }
    }
    names
        .iter()
        .filter_map(|name| normal_host_name(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        Hosts::new(
            ["console.example.com".to_owned()],
            Some("fn.example.com".to_owned()),
        )
    }

    #[test]
    fn hosts_are_told_apart_by_name_and_not_by_port() {
        for (host, named) in [
            ("localhost", Named::Console),
            ("LOCALHOST.:1", Named::Console),
            ("Console.Example.com:8443", Named::Console),
            ("console.example.com.", Named::Console),
            ("127.0.0.1:8080", Named::Console),
            ("203.0.113.7", Named::Console),
            ("[::1]:8080", Named::Console),
            ("[2001:db8::1]", Named::Console),
            ("127.0.0.1:", Named::Console),
            ("a.fn.example.com", Named::Function("a".into())),
            ("A-1.FN.example.com.:80", Named::Function("a-1".into())),
            ("fn.example.com", Named::Foreign),
            ("b.a.fn.example.com", Named::Foreign),
            ("afn.example.com", Named::Foreign),
            ("example.com", Named::Foreign),
            ("evil.console.example.com", Named::Foreign),
            ("console.example.com.evil.example", Named::Foreign),
            ("localhost.evil.example", Named::Foreign),
            ("127.0.0.1.evil.example", Named::Foreign),
            ("x.localhost", Named::Foreign),
            // No browser sends these as they are: they are names.
            ("2130706433", Named::Foreign),
        ] {
            assert_eq!(hosts().named(host.as_bytes()), named, "{host}");
        }
        for host in [
            "",
            ".",
            ":80",
            "a..b",
            "a b",
            "localhost, localhost",
            "user@localhost",
            "localhost:80:80",
            "localhost:x",
            "localhost:123456",
            "[::1",
            "[::1]x",
            "[localhost]",
            "::1",
            "http://localhost",
            "localhost/",
        ] {
            assert_eq!(hosts().named(host.as_bytes()), Named::Invalid, "{host:?}");
        }
        assert_eq!(hosts().named(b"\xff"), Named::Invalid);
        assert_eq!(Hosts::default().named(b"a.fn.example.com"), Named::Foreign);
    }

    #[test]
    fn the_machines_names_are_those_it_is_called_by() {
        let file =
            "127.0.0.1 localhost\n127.0.1.1 node.example.org node # here\n0.0.0.0 ads.example\n";
        let names = names_of("node", file);
        assert_eq!(names, ["node", "node.example.org", "node"]);
    }
}
