//! What a function may reach over the network: a policy in the API's words, and what each of them means.
//!
//! - [`rule`]: one entry of `allow`. [`name`]: host names and wildcards. [`prefix`]: addresses and networks.
//! - [`special`]: addresses that no policy opens unless the administrator does.

mod error;
mod json;
mod name;
mod prefix;
mod rule;
mod special;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

pub use error::RuleError;
pub use json::NetworkOfCopies;
pub use name::NamePattern;
pub use prefix::parse_prefix;
pub use rule::{Ports, Protocol, Rule, Target};
pub use special::special_range;

/// Most entries of one policy: each is compared with every name that the function asks for, and each network is an element
/// of a set in the kernel.
pub const MAX_RULES: usize = 128;
/// Connections at one time if the policy says nothing: each takes an entry of the kernel's connection table.
pub const DEFAULT_CONNECTIONS: u32 = 4096;
/// New connections a second if the policy says nothing: more than a client needs, less than a flood.
pub const DEFAULT_CONNECTIONS_PER_SECOND: u32 = 5000;
/// Largest limit of connections: what the kernel's connection table holds by default.
pub const MAX_CONNECTIONS: u32 = 262_144;
/// Largest limit of bytes a second: a terabit, far above any network card.
pub const MAX_BYTES_PER_SECOND: u64 = 125_000_000_000;

/// The setting `network` of a function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// No network: an empty network namespace.
    #[default]
    None,
    /// A way out, for what the policy allows.
    Policy(Arc<NetworkPolicy>),
}

impl Network {
    /// All public addresses.
    pub fn internet() -> Self {
        Self::Policy(Arc::new(NetworkPolicy {
            rules: vec![Rule::Internet],
            ..NetworkPolicy::default()
        }))
    }

    /// The policy, if there is a way out.
    pub fn policy(&self) -> Option<&Arc<NetworkPolicy>> {
        match self {
            Self::None => None,
            Self::Policy(policy) => Some(policy),
        }
    }

    /// Whether there is a way out at all.
    pub fn is_open(&self) -> bool {
        self.policy().is_some()
    }
}

/// What may be reached, and how much of it. Everything else is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkPolicy {
    /// In the order in which they were written, none twice.
    pub rules: Vec<Rule>,
    /// Allow everything public, and record what the rules would have refused.
    pub dry_run: bool,
    /// Of the function: its sandboxes share them.
    pub limits: Limits,
}

/// Limits of one function, enforced by the kernel; 0 means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time.
    pub connections: u32,
    /// New connections a second.
    pub connections_per_second: u32,
    /// Bytes a second, in and out each.
    pub bytes_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: DEFAULT_CONNECTIONS,
            connections_per_second: DEFAULT_CONNECTIONS_PER_SECOND,
            bytes_per_second: 0,
        }
    }
}

/// An entry of a policy that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct InvalidRule {
    /// Its place, from 0.
    pub index: usize,
    /// As it was written.
    pub text: String,
    /// What is wrong, and what would be right.
    pub error: RuleError,
}

impl NetworkPolicy {
    /// A policy of these entries. Those that are there twice count once.
    ///
    /// # Errors
    /// The first invalid entry.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidRule> {
        let mut rules: Vec<Rule> = Vec::new();
        for (index, text) in entries.into_iter().enumerate() {
            let invalid = |error| InvalidRule {
                index,
                text: text.to_owned(),
                error,
            };
            let rule: Rule = text.parse().map_err(invalid)?;
            if rules.contains(&rule) {
                continue;
            }
            if rules.len() == MAX_RULES {
                return Err(invalid(RuleError::TooMany));
            }
            rules.push(rule);
        }
        Ok(Self {
            rules,
            ..Self::default()
        })
    }

    /// Refuses networks that only the administrator can open. `open` are those that are.
    ///
    /// # Errors
    /// The first entry within a special range.
    pub fn check_ranges(&self, open: &[IpNet]) -> Result<(), InvalidRule> {
        for (index, rule) in self.rules.iter().enumerate() {
            let Rule::Allow {
                target: Target::Network(network),
                ..
            } = rule
            else {
                continue;
            };
            if let Some((range, what)) = special::within_special(network)
                && !open.iter().any(|open| open.contains(network))
            {
                return Err(InvalidRule {
                    index,
                    text: rule.to_string(),
                    error: RuleError::Special { range, what },
                });
            }
        }
        Ok(())
    }

    /// Whether all public addresses are allowed, at every port.
    pub fn is_internet(&self) -> bool {
        self.rules.contains(&Rule::Internet)
    }

    /// Whether a rule allows to ask for this name. It is in lower case, without a dot at its end.
    pub fn allows_name(&self, name: &str) -> bool {
        self.is_internet() || self.of_name(name).next().is_some()
    }

    /// At which ports a name's addresses may be reached, by the rules that name it.
    pub fn of_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (Ports, Protocol)> + 'a {
        self.rules.iter().filter_map(move |rule| match rule {
            Rule::Allow {
                target: Target::Name(pattern),
                ports,
                protocol,
            } if pattern.matches(name) => Some((*ports, *protocol)),
            _ => None,
        })
    }

    /// Networks that may be reached.
    pub fn networks(&self) -> impl Iterator<Item = (IpNet, Ports, Protocol)> + '_ {
        self.rules.iter().filter_map(|rule| match rule {
            Rule::Allow {
                target: Target::Network(network),
                ports,
                protocol,
            } => Some((*network, *ports, *protocol)),
            _ => None,
        })
    }

    /// Whether a rule allows this, `names` being those that the address is known by. Says nothing of special ranges.
    pub fn allows(
        &self,
        address: IpAddr,
        names: &BTreeSet<Arc<str>>,
        port: u16,
        protocol: Protocol,
    ) -> bool {
        let covers = |ports: Ports, of: Protocol| of == protocol && ports.contain(port);
        self.is_internet() && special_range(address).is_none()
            || self
                .networks()
                .any(|(network, ports, of)| network.contains(&address) && covers(ports, of))
            || names
                .iter()
                .any(|name| self.of_name(name).any(|(ports, of)| covers(ports, of)))
    }

    /// In one line, for users: "internet", "api.example.com, 198.51.100.0/24:5432; dry run".
    pub fn in_words(&self) -> String {
        let rules: Vec<String> = self.rules.iter().map(ToString::to_string).collect();
        let mut words = match rules.is_empty() {
            true => "nothing allowed".to_owned(),
            false => rules.join(", "),
        };
        if self.dry_run {
            words.push_str("; dry run");
        }
        let own = Limits::default();
        let Limits {
            connections,
            connections_per_second,
            bytes_per_second,
        } = self.limits;
        for (given, usual, what) in [
            (connections.into(), own.connections.into(), "connections"),
            (
                connections_per_second.into(),
                own.connections_per_second.into(),
                "connections per second",
            ),
            (bytes_per_second, own.bytes_per_second, "bytes per second"),
        ] {
            if given != usual {
                let given = match given {
                    0 => "unlimited".to_owned(),
                    limit => format!("at most {limit}"),
                };
                words.push_str(&format!("; {given} {what}"));
            }
        }
        words
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Policy(policy) => f.write_str(&policy.in_words()),
        }
    }
}
