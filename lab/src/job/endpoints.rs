//! Which addresses an agent sends requests to.

use std::str::FromStr;

use super::run::JobRunError;
use crate::load::origin;

/// Addresses that experiments may name. Whoever may create experiments is not whoever owns the network that an agent is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoints {
    /// All.
    Any,
    /// Those with one of these origins.
    Of(Vec<String>),
}

/// An origin as a flag has it, or `any`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed(Option<String>);

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "any" => Ok(Self(None)),
            url => Ok(Self(Some(origin(url)?))),
        }
    }
}

impl FromIterator<Allowed> for Endpoints {
    fn from_iter<T: IntoIterator<Item = Allowed>>(all: T) -> Self {
        let origins: Option<Vec<String>> = all.into_iter().map(|one| one.0).collect();
        origins.map_or(Self::Any, Self::Of)
    }
}

impl Endpoints {
    /// Fails unless an experiment may have requests sent to this address.
    ///
    /// # Errors
    /// [`JobRunError::Endpoint`].
    pub fn check(&self, url: &str) -> Result<(), JobRunError> {
        let Self::Of(origins) = self else {
            return Ok(());
        };
        match origin(url) {
            Ok(origin) if origins.contains(&origin) => Ok(()),
            Ok(origin) => Err(JobRunError::Endpoint(origin)),
            Err(_) => Err(JobRunError::Endpoint(url.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(flags: &[&str]) -> Endpoints {
        let flags = flags.iter().map(|flag| flag.parse::<Allowed>());
        flags.collect::<Result<_, _>>().expect("addresses")
    }

    #[test]
    fn only_named_origins_are_measured() {
        let some = endpoints(&["http://a.b/x", "https://c.d:8443"]);
        for (url, is_allowed) in [
            ("http://A.b:80/y?z", true),
            ("https://c.d:8443/", true),
            ("http://c.d:8443/", false),
            ("http://a.b:81/", false),
            ("http://a.b.evil/", false),
            ("http://a.b@evil/", false),
            ("a.b", false),
        ] {
            assert_eq!(some.check(url).is_ok(), is_allowed, "{url}");
        }
        assert!(endpoints(&[]).check("http://a.b/").is_err());
        assert!(
            endpoints(&["http://a.b/", "any"])
                .check("http://x/")
                .is_ok()
        );
        assert!("a.b".parse::<Allowed>().is_err());
    }
}
