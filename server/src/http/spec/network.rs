//! The rules of the `network` setting.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::fields::{Fields, Input, invalid, type_of};
use crate::model::{
    InvalidField, InvalidRule, MAX_BYTES_PER_SECOND, MAX_CONNECTIONS, MAX_RULES, Network,
    NetworkLimits, NetworkPolicy,
};

const RULE: &str = "must be \"none\", \"internet\", or an object with \"allow\", such as \
                    {\"allow\": [\"api.example.com:443\"]}";
const KNOWN: [&str; 3] = ["allow", "dry_run", "limits"];
const KNOWN_LIMITS: [&str; 3] = ["connections", "connections_per_second", "bytes_per_second"];

/// The setting, if it is given.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<Network>, InvalidField> {
    let value = match fields.remove("network") {
        None => return Ok(None),
        Some(Input::Json(value)) => value,
        Some(Input::Text(text)) if text.trim_start().starts_with('{') => {
            let read = serde_json::from_str(&text);
            read.map_err(|_| {
                invalid(
                    "network",
                    &text.into(),
                    format!("{RULE}; this is not valid JSON"),
                )
            })?
        }
        Some(Input::Text(text)) => text.into(),
        Some(file) => return Err(file.invalid("network", RULE)),
    };
    match &value {
        Value::String(word) => match word.as_str() {
            "none" => Ok(Some(Network::None)),
            // `outbound` is the old name.
            "internet" | "outbound" => Ok(Some(Network::internet())),
            _ => Err(invalid("network", &value, RULE)),
        },
        Value::Object(object) => {
            policy(object).map(|policy| Some(Network::Policy(Arc::new(policy))))
        }
        other => {
            let rule = format!("{RULE}; this is {}", type_of(other));
            Err(invalid("network", other, rule))
        }
    }
}

fn policy(object: &Map<String, Value>) -> Result<NetworkPolicy, InvalidField> {
    only(object, "network", &KNOWN)?;
    let entries = allow(object)?;
    let mut policy =
        NetworkPolicy::parse(entries.iter().copied()).map_err(|error| invalid_entry(&error))?;
    policy.dry_run = match object.get("dry_run") {
        None => false,
        Some(Value::Bool(flag)) => *flag,
        Some(other) => return Err(invalid("network.dry_run", other, "must be true or false")),
    };
    policy.limits = match object.get("limits") {
        None => NetworkLimits::default(),
        Some(Value::Object(limits)) => read_limits(limits)?,
        Some(other) => {
            let rule = format!("must be an object with any of {}", KNOWN_LIMITS.join(", "));
            return Err(invalid("network.limits", other, rule));
        }
    };
    Ok(policy)
}

fn allow(object: &Map<String, Value>) -> Result<Vec<&str>, InvalidField> {
    let rule = format!(
        "must be a list of at most {MAX_RULES} entries such as \"api.example.com:443\", \"*.example.com\" or \
         \"198.51.100.0/24:5432/tcp\""
    );
    let value = object.get("allow").unwrap_or(&Value::Null);
    let Value::Array(entries) = value else {
        return Err(invalid("network.allow", value, rule));
    };
    if entries.len() > MAX_RULES {
        let rule = format!("{rule}; these are {}", entries.len());
        return Err(invalid("network.allow", value, rule));
    }
    let text = |(index, entry): (usize, &'_ Value)| match entry {
        Value::String(_) => Ok(()),
        other => {
            let rule = format!("must be a string; this is {}", type_of(other));
            Err(invalid(&place(index), other, rule))
        }
    };
    entries.iter().enumerate().try_for_each(text)?;
    Ok(entries.iter().filter_map(Value::as_str).collect())
}

fn place(index: usize) -> String {
    format!("network.allow[{index}]")
}

/// A refusal of one entry.
pub fn invalid_entry(error: &InvalidRule) -> InvalidField {
    let rule = error.error.to_string();
    invalid(&place(error.index), &error.text.as_str().into(), rule)
}

fn only(object: &Map<String, Value>, within: &str, known: &[&str]) -> Result<(), InvalidField> {
    let unknown = object
        .iter()
        .find(|(name, _)| !known.contains(&name.as_str()));
    match unknown {
        None => Ok(()),
        Some((name, value)) => {
            let name: String = name.chars().take(100).collect();
            let rule = format!("unknown field; expected one of {}", known.join(", "));
            Err(invalid(&format!("{within}.{name}"), value, rule))
        }
    }
}

fn read_limits(object: &Map<String, Value>) -> Result<NetworkLimits, InvalidField> {
    only(object, "network.limits", &KNOWN_LIMITS)?;
    let number = |name: &str, usual: u64, most: u64| match object.get(name) {
        None => Ok(usual),
        Some(value) => value
            .as_u64()
            .filter(|number| *number <= most)
            .ok_or_else(|| {
                let rule = format!("must be a whole number from 0 (no limit) to {most}");
                invalid(&format!("network.limits.{name}"), value, rule)
            }),
    };
    let count = |name: &str, usual: u32| {
        let number = number(name, usual.into(), MAX_CONNECTIONS.into())?;
        Ok(u32::try_from(number).unwrap_or(MAX_CONNECTIONS))
    };
    let usual = NetworkLimits::default();
    Ok(NetworkLimits {
        connections: count("connections", usual.connections)?,
        connections_per_second: count("connections_per_second", usual.connections_per_second)?,
        bytes_per_second: number(
            "bytes_per_second",
            usual.bytes_per_second,
            MAX_BYTES_PER_SECOND,
        )?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Option<Network>, InvalidField> {
        setting(&mut Fields::single("network", Input::Json(value)))
    }

    fn shown(value: Value) -> Value {
        serde_json::to_value(read(value).expect("valid").expect("given")).expect("JSON")
    }

    #[test]
    fn a_policy_is_shown_in_its_one_form() {
        assert_eq!(shown(json!("outbound")), json!("internet"));
        assert_eq!(shown(json!({"allow": ["internet"]})), json!("internet"));
        assert_eq!(
            shown(json!({"allow": ["API.example.com:443/tcp"]})),
            json!({"allow": ["api.example.com:443"], "dry_run": false})
        );
        let limits = json!({"allow": [], "limits": {"connections": 0}});
        assert_eq!(
            shown(limits),
            json!({"allow": [], "dry_run": false, "limits":
                {"connections": 0, "connections_per_second": 5000, "bytes_per_second": 0}})
        );
        let text = Input::Text(r#"{"allow": ["a.example"], "dry_run": true}"#.into());
        let read = setting(&mut Fields::single("network", text)).expect("valid");
        assert!(read.is_some_and(|network| network.policy().is_some_and(|policy| policy.dry_run)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, field, rule) in [
            (json!("all"), "network", "\"internet\""),
            (json!(null), "network", "this is null"),
            (json!(["a.example"]), "network", "this is an array"),
            (json!({}), "network.allow", "a list"),
            (json!({"allow": "a.example"}), "network.allow", "a list"),
            (json!({"allow": [1]}), "network.allow[0]", "a string"),
            (
                json!({"allow": ["a.example", "b c"]}),
                "network.allow[1]",
                "not a host name",
            ),
            (
                json!({"allow": vec!["a.example"; 300]}),
                "network.allow",
                "these are 300",
            ),
            (
                json!({"allow": [], "dry_run": 1}),
                "network.dry_run",
                "true or false",
            ),
            (
                json!({"allow": [], "dryRun": true}),
                "network.dryRun",
                "unknown field",
            ),
            (
                json!({"allow": [], "limits": 1}),
                "network.limits",
                "an object",
            ),
            (
                json!({"allow": [], "limits": {"connections": -1}}),
                "network.limits.connections",
                "from 0",
            ),
            (
                json!({"allow": [], "limits": {"bytes": 1}}),
                "network.limits.bytes",
                "unknown",
            ),
        ] {
            let error = read(value).expect_err("refused");
            assert_eq!(error.field, field);
            assert!(error.rule.contains(rule), "{error}");
        }
        let text = Input::Text("{oops".into());
        let error = setting(&mut Fields::single("network", text)).expect_err("refused");
        assert!(error.rule.contains("not valid JSON"), "{error}");
    }
}
