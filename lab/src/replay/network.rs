//! What the copies of a replay may reach.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What `network` of a copy may be.
pub const RULE: &str = "must be \"none\", or an object whose \"allow\" names what copies may reach, such as \
                        {\"allow\": [\"replica.example.com:5432\"]}; all that is public (\"internet\", \"dry_run\") \
                        is not for copies";

/// A copy that reaches nothing.
const NONE: &str = "none";

/// The setting `network` that all copies of a replay have, in the API's words: `"none"`, or an object with `allow`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Network(Value);

impl Default for Network {
    fn default() -> Self {
        Self(NONE.into())
    }
}

impl Network {
    /// What these entries allow, written as those of a function's policy; nothing without one.
    pub fn allowing(entries: Vec<String>) -> Self {
        match entries.is_empty() {
            true => Self::default(),
            false => Self(json!({ "allow": entries })),
        }
    }

    /// Whether copies reach nothing, because they have no network.
    pub fn is_none(&self) -> bool {
        self.0 == NONE
    }

    /// The setting.
    pub fn setting(&self) -> &Value {
        &self.0
    }

    /// The entries of `allow`.
    pub fn allowed(&self) -> Vec<&str> {
        let entries = self.0["allow"].as_array().into_iter().flatten();
        entries.filter_map(Value::as_str).collect()
    }

    /// Whether this is a network for copies. Its entries are the server's to judge.
    ///
    /// # Errors
    /// What would be right.
    pub fn check(&self) -> Result<(), String> {
        let is_public = |entry: &&str| {
            let entry = entry.trim();
            entry.eq_ignore_ascii_case("internet") || entry.eq_ignore_ascii_case("outbound")
        };
        let names_all = self.0["allow"].is_array()
            && !self.allowed().iter().any(is_public)
            && self.0["dry_run"] != true;
        match self.is_none() || names_all {
            true => Ok(()),
            false => Err(RULE.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(value: Value) -> Network {
        serde_json::from_value(value).expect("any JSON")
    }

    #[test]
    fn copies_reach_nothing_or_what_is_named() {
        assert!(Network::default().is_none() && Network::allowing(Vec::new()).is_none());
        let replica = Network::allowing(vec!["replica.example.com:5432".to_owned()]);
        assert_eq!(
            *replica.setting(),
            json!({"allow": ["replica.example.com:5432"]})
        );
        assert_eq!(replica.allowed(), ["replica.example.com:5432"]);
        assert!(!replica.is_none());
        let limits = json!({"allow": ["10.0.0.7:5432"], "limits": {"connections": 4}});
        let written = json!({"allow": [], "dry_run": false});
        for good in [
            Network::default(),
            replica,
            network(json!("none")),
            network(limits),
            network(written),
        ] {
            assert_eq!(good.check(), Ok(()), "{good:?}");
            let shown = serde_json::to_value(&good).expect("JSON");
            assert_eq!(network(shown), good);
        }
    }

    #[test]
    fn all_that_is_public_is_refused_with_what_would_be_right() {
        for bad in [
            json!("internet"),
            json!("outbound"),
            json!("replica.example.com"),
            json!(null),
            json!({}),
            json!({"allow": "replica.example.com"}),
            json!({"allow": ["replica.example.com", "Internet"]}),
            json!({"allow": [], "dry_run": true}),
            json!(["replica.example.com"]),
        ] {
            let refused = network(bad.clone()).check().expect_err("refused");
            assert!(refused.contains("must be \"none\", or an object"), "{bad}");
        }
    }
}
