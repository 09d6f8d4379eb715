//! Secrets, and how functions are given them.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{NamePattern, NetworkPolicy, Protocol, normal_host_name};

/// Most secrets that a function is given.
pub const MAX_BINDINGS: usize = 32;
/// Longest value of a secret in bytes: a private key of any kind fits.
pub const MAX_SECRET_BYTES: usize = 32 << 10;
/// Longest name of a secret.
const MAX_NAME: usize = 64;
/// Port of a host that names none.
const HTTPS: u16 = 443;

/// Whether a secret may have this name: 1 to 64 of `[A-Za-z0-9._-]`, beginning with a letter or a digit.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_NAME).contains(&name.len())
        && name.as_bytes()[0].is_ascii_alphanumeric()
        && name.bytes().all(is_plain)
}

/// A host that requests with a secret go to, by HTTPS: `api.example.com`, `api.example.com:8443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoundHost {
    /// In lower case, without a dot at its end.
    pub name: String,
    /// 443 unless another one is named.
    pub port: u16,
}

/// It is no host by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be the name of one host, such as \"api.example.com\" or \"api.example.com:8443\": no scheme, no path, no \
     wildcard, no address"
)]
pub struct NotAHost;

impl FromStr for BoundHost {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let (name, port) = match text.split_once(':') {
            None => (text, HTTPS),
            Some((name, port)) => {
                let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse().ok().filter(|port| is_number && *port > 0);
                (name, port.ok_or(NotAHost)?)
            }
        };
        // Policies name hosts by the same rules, and know wildcards, too.
        let pattern = NamePattern::parse(name).map_err(|_| NotAHost)?;
        let name = normal_host_name(pattern.as_str()).ok_or(NotAHost)?;
        match name.contains('.') {
            true => Ok(Self { name, port }),
            false => Err(NotAHost),
        }
    }
}

impl fmt::Display for BoundHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            HTTPS => f.write_str(&self.name),
            port => write!(f, "{}:{port}", self.name),
        }
    }
}

impl BoundHost {
    /// Whether a policy lets a function connect there.
    #[must_use]
    pub fn is_allowed_by(&self, policy: &NetworkPolicy) -> bool {
        policy.dry_run
            || policy.is_internet()
            || policy
                .of_name(&self.name)
                .any(|(ports, protocol)| protocol == Protocol::Tcp && ports.contain(self.port))
    }
}

impl Serialize for BoundHost {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BoundHost {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// How a function is given a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SecretBinding {
    /// As an environment variable: the function has it.
    Env {
        /// Name of the secret.
        secret: String,
        /// Name of the variable.
        env: String,
    },
    /// Brokered: in a header of its requests to a host, where the function never sees it.
    Header {
        /// Name of the secret.
        secret: String,
        /// The host.
        host: BoundHost,
        /// The header's name in its usual spelling.
        header: String,
        /// The header's value, with `{}` for the secret.
        format: String,
    },
    /// Brokered: as the password of basic authentication.
    Basic {
        /// Name of the secret.
        secret: String,
        /// The host.
        host: BoundHost,
        /// The user's name.
        basic: String,
    },
}

impl SecretBinding {
    /// Name of the secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        match self {
            Self::Env { secret, .. } | Self::Header { secret, .. } | Self::Basic { secret, .. } => {
                secret
            }
        }
    }

    /// The environment variable that it becomes.
    #[must_use]
    pub fn env(&self) -> Option<&str> {
        match self {
            Self::Env { env, .. } => Some(env),
            Self::Header { .. } | Self::Basic { .. } => None,
        }
    }

    /// The host that requests with it go to, and the header that it is in.
    #[must_use]
    pub fn brokered(&self) -> Option<(&BoundHost, &str)> {
        match self {
            Self::Env { .. } => None,
            Self::Header { host, header, .. } => Some((host, header)),
            Self::Basic { host, .. } => Some((host, AUTHORIZATION)),
        }
    }

    /// Whether this value can be sent as it says: not every text can stand in a header.
    #[must_use]
    pub fn takes(&self, value: &str) -> bool {
        match self {
            Self::Env { .. } => !value.contains('\0'),
            Self::Header { .. } => value
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic()),
            Self::Basic { .. } => !value.chars().any(char::is_control),
        }
    }
}

/// The header of basic authentication, and the usual one.
pub const AUTHORIZATION: &str = "Authorization";

impl fmt::Display for SecretBinding {
    /// In one line, for people: "stripe in Authorization to api.stripe.com".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env { secret, env } => write!(f, "{secret} as {env}"),
            Self::Header {
                secret,
                host,
                header,
                ..
            } => write!(f, "{secret} in {header} to {host}"),
            Self::Basic {
                secret,
                host,
                basic,
            } => write!(f, "{secret} as password of {basic} to {host}"),
        }
    }
}

/// A secret as the API shows it: never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretView {
    /// Its name.
    pub name: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last given a value.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// When a function was last given it, or a request was sent with it, accurate to about a second; null: never.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
    /// Names of the functions whose active version uses it.
    pub functions: Vec<String>,
}

/// What became of a secret that was given a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretChange {
    /// The secret.
    #[serde(flatten)]
    pub secret: SecretView,
    /// Functions that have it as an environment variable, and were started again with the new value.
    pub restarted: Vec<String>,
    /// Those of them that did not start with the new value: what runs of them still has the former one.
    pub not_restarted: Vec<NotRestarted>,
}

/// A function that did not start with a secret's new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotRestarted {
    /// Its name.
    pub function: String,
    /// Why.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_by_its_name() {
        let read = |text: &str| text.parse::<BoundHost>().map(|host| host.to_string());
        assert_eq!(read("API.Example.com.").as_deref(), Ok("api.example.com"));
        assert_eq!(
            read("api.example.com:443").as_deref(),
            Ok("api.example.com")
        );
        assert_eq!(
            read("api.example.com:8443").as_deref(),
            Ok("api.example.com:8443")
        );
        assert_eq!(
            read("bücher.example").as_deref(),
            Ok("xn--bcher-kva.example")
        );
        for wrong in [
            "",
            "*.example.com",
            "https://api.example.com",
            "api.example.com/v1",
            "api.example.com:",
            "api.example.com:0",
            "api.example.com:+443",
            "api.example.com:70000",
            "192.0.2.1",
            "[2001:db8::1]",
            "localhost",
            "intranet",
            "a b.example",
            "-a.example",
        ] {
            assert_eq!(read(wrong), Err(NotAHost), "{wrong}");
        }
    }

    #[test]
    fn a_binding_is_stored_as_the_api_has_it() {
        for text in [
            r#"{"secret":"stripe","env":"STRIPE_KEY"}"#,
            r#"{"secret":"stripe","host":"api.stripe.com","header":"Authorization","format":"Bearer {}"}"#,
            r#"{"secret":"s","host":"a.example:8443","basic":"user"}"#,
        ] {
            let binding: SecretBinding = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&binding).unwrap(), text);
        }
    }

    #[test]
    fn a_host_needs_a_policy_that_allows_its_port() {
        let host: BoundHost = "api.example.com".parse().unwrap();
        for (rules, allowed) in [
            (&["api.example.com"][..], true),
            (&["*.example.com:443"], true),
            (&["internet"], true),
            (&["api.example.com:80"], false),
            (&["api.example.com:443/udp"], false),
            (&["b.example.com"], false),
            (&["0.0.0.0/0:443"], false),
        ] {
            let policy = NetworkPolicy::parse(rules.iter().copied()).unwrap();
            assert_eq!(host.is_allowed_by(&policy), allowed, "{rules:?}");
        }
    }

    #[test]
    fn names_are_plain() {
        for good in ["stripe", "STRIPE_KEY", "a.b-c", "1"] {
            assert!(is_secret_name(good), "{good}");
        }
        let long = "a".repeat(65);
        for wrong in ["", ".a", "_a", "a/b", "a b", "é", &long] {
            assert!(!is_secret_name(wrong), "{wrong}");
        }
    }
}
