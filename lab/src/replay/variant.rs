//! What a replay compares: a version, or one with other settings.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duet::Subject;

/// Settings that a copy can have otherwise than its version, by their names in the API.
pub const SETTINGS: [&str; 10] = [
    "memory_mb",
    "timeout_ms",
    "max_concurrency",
    "idle_timeout_s",
    "min_instances",
    "keep_warm",
    "template_idle_timeout_s",
    "start",
    "body",
    "env",
];

/// Settings of a function that none of its copies can have.
const FIXED: [(&str, &str); 11] = [
    ("name", "a copy has a name of its own"),
    ("runtime", "it is the version's"),
    (
        "code",
        "it is the version's: compare two versions, such as hello@1 and hello@2",
    ),
    ("handler", "it is the version's, as its code"),
    ("version", "it stands behind the function's name: hello@2"),
    (
        "network",
        "all copies of a replay have the same: set it beside settings as network, or with --allow",
    ),
    ("public", "nobody else calls a copy"),
    ("triggers", "copies have no ports"),
    ("port_limits", "copies have no ports"),
    ("cors", "no page calls a copy"),
    ("secrets", "they are the version's"),
];

/// Settings that differ from a version's, by their names in the API; none for the version as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Changes(Map<String, Value>);

/// A version, and what is set otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The version.
    pub subject: Subject,
    /// What differs from its settings.
    pub changes: Changes,
}

impl Changes {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn settings(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Adds one that is written as `memory_mb=256` or `env.MODE=fast`. Values of variables are text as it is written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!(
                "{text:?} is not NAME=VALUE, such as memory_mb=256 or env.MODE=fast"
            ));
        };
        let name = name.trim();
        let former = match name.strip_prefix("env.") {
            Some(variable) => {
                let env = self.0.entry("env").or_insert_with(|| Map::new().into());
                let env = env.as_object_mut();
                let env = env.ok_or("env: given twice, and once not as env.NAME=VALUE")?;
                env.insert(variable.to_owned(), value.into())
            }
            None => {
                let value = value.trim();
                let read = serde_json::from_str(value);
                let value = read.unwrap_or_else(|_| Value::from(value));
                self.0.insert(name.to_owned(), value)
            }
        };
        match former {
            Some(_) => Err(format!("{name} is given twice")),
            None => Ok(()),
        }
    }

    /// Whether a copy can have settings of these names. Their values are the server's to judge.
    ///
    /// # Errors
    /// The first one that it cannot.
    pub fn check(&self) -> Result<(), String> {
        for (name, value) in &self.0 {
            if let Some((_, why)) = FIXED.iter().find(|(fixed, _)| fixed == name) {
                return Err(format!("{name} cannot be set: {why}"));
            }
            if !SETTINGS.contains(&name.as_str()) {
                return Err(format!("{name:?} is none of {}", SETTINGS.join(", ")));
            }
            if name == "env" {
                let is_value = |value: &Value| value.is_string() || value.is_null();
                let values = value.as_object().map(|env| env.values().all(is_value));
                if values != Some(true) {
                    return Err(
                        "env must be an object of names and strings; null removes a variable"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(())
    }
}

impl From<Subject> for Variant {
    fn from(subject: Subject) -> Self {
        Self {
            subject,
            changes: Changes::default(),
        }
    }
}

impl fmt::Display for Changes {
    /// `memory_mb=256, env.MODE=fast`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut separator = "";
        for (name, value) in &self.0 {
            match value.as_object().filter(|_| name == "env") {
                None => {
                    write!(f, "{separator}{name}={}", plain(value))?;
                    separator = ", ";
                }
                Some(env) => {
                    for (variable, value) in env {
                        match value {
                            Value::Null => write!(f, "{separator}without env.{variable}")?,
                            value => write!(f, "{separator}env.{variable}={}", plain(value))?,
                        }
                        separator = ", ";
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Variant {
    /// `hello@2 with memory_mb=256`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changes.is_empty() {
            true => self.subject.fmt(f),
            false => write!(f, "{} with {}", self.subject, self.changes),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written_and_shown_so() {
        let mut changes = Changes::default();
        for text in ["memory_mb=256", "start=boot", "env.MODE=1=2", "env.A="] {
            changes.set(text).expect(text);
        }
        let read = json!({"memory_mb": 256, "start": "boot", "env": {"MODE": "1=2", "A": ""}});
        assert_eq!(Value::from(changes.0.clone()), read);
        changes.check().expect("settings of a copy");
        for twice in ["memory_mb=1", "env.MODE=x", "env=7"] {
            assert!(changes.clone().set(twice).is_err(), "{twice}");
        }
        assert!(changes.set("memory_mb").is_err());
        let variant = Variant {
            subject: "hello@2".parse().expect("a version"),
            changes: Changes(
                json!({"memory_mb": 256, "env": {"MODE": "fast", "OLD": null}})
                    .as_object()
                    .cloned()
                    .expect("an object"),
            ),
        };
        // In the order of the alphabet or as written, which is serde_json's to say.
        let shown = variant.to_string();
        assert!(shown.starts_with("hello@2 with "), "{shown}");
        for part in ["memory_mb=256", "env.MODE=fast", "without env.OLD"] {
            assert!(shown.contains(part), "{shown}");
        }
        let plain = Variant::from(variant.subject);
        assert_eq!(plain.to_string(), "hello@2");
    }

    #[test]
    fn what_makes_no_sense_of_a_copy_is_refused_by_name() {
        for (bad, expected) in [
            (
                json!({"network": "internet"}),
                "network cannot be set: all copies of a replay have the same",
            ),
            (json!({"triggers": []}), "triggers cannot be set"),
            (json!({"name": "x"}), "name cannot be set"),
            (json!({"memory": 1}), "\"memory\" is none of memory_mb"),
            (json!({"env": {"A": 1}}), "env must be an object"),
            (json!({"env": "A=1"}), "env must be an object"),
        ] {
            let changes: Changes = serde_json::from_value(bad.clone()).expect("an object");
            let refused = changes.check().expect_err("it makes no sense");
            assert!(refused.contains(expected), "{bad}: {refused}");
        }
    }
}
