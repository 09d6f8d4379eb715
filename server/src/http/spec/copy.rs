//! The body of `POST /api/v1/functions/{name}/copies`.

use std::time::Duration;

use hearth_lab::replay::network::RULE as NETWORK_RULE;
use serde_json::{Map, Value};

use crate::model::{InvalidField, Network, NewCopy, Runtime};

use super::fields::{Fields, Input, IntegerRule, invalid};
use super::{network, own_settings, rules};

/// Its fields.
pub const COPY_FIELDS: &[&str] = &[
    "name",
    "version",
    "lifetime_s",
    "memory_mb",
    "timeout_ms",
    "max_concurrency",
    "idle_timeout_s",
    "min_instances",
    "keep_warm",
    "template_idle_timeout_s",
    "start",
    "network",
    "body",
    "env",
];

/// Settings of functions that a copy cannot have otherwise.
const FIXED: [(&str, &str); 8] = [
    ("runtime", "is the version's"),
    ("code", "is the version's"),
    // By a name in the standard library it would tell what its variables are.
    ("handler", "is the version's"),
    ("secrets", "are the version's"),
    ("public", "of a copy is false"),
    ("triggers", "of a copy are none"),
    ("port_limits", "of a copy are none"),
    ("cors", "of a copy is none"),
];

/// A version's number.
const VERSION: IntegerRule = IntegerRule {
    field: "version",
    min: 1,
    max: u32::MAX,
};
/// How long a copy stays: at most a day, so that nothing stays of a client that is gone.
const LIFETIME_S: IntegerRule = IntegerRule {
    field: "lifetime_s",
    min: 10,
    max: 86_400,
};
/// The same where it is not said.
const DEFAULT_LIFETIME_S: u32 = 600;

/// The version's limit is not known here: the engine looks at `min_instances` beside it.
const ANY_CONCURRENCY: u32 = rules::MAX_CONCURRENCY.max;

/// Reads the fields. `runtime` is the function's.
pub fn copy(mut fields: Fields, runtime: Runtime) -> Result<NewCopy, InvalidField> {
    for (fixed, rule) in FIXED {
        if let Some(input) = fields.get(fixed) {
            return Err(input.invalid(fixed, format!("{rule}, and cannot be set")));
        }
    }
    fields.only(COPY_FIELDS)?;
    let lifetime = fields.integer(&LIFETIME_S)?.unwrap_or(DEFAULT_LIFETIME_S);
    Ok(NewCopy {
        name: rules::name(&mut fields)?,
        version: fields.integer(&VERSION)?,
        lifetime: Duration::from_secs(lifetime.into()),
        network: reached(&mut fields)?,
        settings: own_settings(&mut fields, runtime, ANY_CONCURRENCY)?,
    })
}

/// What a copy may reach: nothing, or what is named. It runs once more what was meant for its function, so that whoever asks for it is
/// to say where that may have effects.
fn reached(fields: &mut Fields) -> Result<Network, InvalidField> {
    let network = network::setting(fields)?.unwrap_or_default();
    let policy = network.policy();
    match policy.is_some_and(|policy| policy.is_internet() || policy.dry_run) {
        true => {
            let value = serde_json::to_value(&network).unwrap_or_default();
            Err(invalid("network", &value, NETWORK_RULE))
        }
        false => Ok(network),
    }
}

/// The network of copies, by the rules of its field.
pub fn copy_network(value: Value) -> Result<Network, InvalidField> {
    reached(&mut Fields::single("network", Input::Json(value)))
}

/// Whether a copy of a function with this runtime can have these settings, by their own rules.
pub fn copy_settings(changed: Map<String, Value>, runtime: Runtime) -> Result<(), InvalidField> {
    let mut fields = Fields::from_json(changed);
    fields.only(COPY_FIELDS)?;
    own_settings(&mut fields, runtime, ANY_CONCURRENCY).map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<NewCopy, InvalidField> {
        let Value::Object(object) = body else {
            panic!("an object")
        };
        copy(Fields::from_json(object), Runtime::Python3)
    }

    #[test]
    fn a_copy_is_named_and_may_differ_in_some_settings() {
        let asked = read(
            json!({"name": "x", "version": 2, "memory_mb": 256, "env": {"A": "b", "B": null}}),
        );
        let asked = asked.expect("a copy");
        assert_eq!((asked.name.as_str(), asked.version), ("x", Some(2)));
        assert_eq!(asked.lifetime, Duration::from_secs(600));
        assert_eq!(asked.settings.fields(), ["memory_mb", "env.A", "env.B"]);
        assert_eq!(asked.network, Network::None);
        for (bad, field) in [
            (json!({}), "name"),
            (json!({"name": "x", "lifetime_s": 9}), "lifetime_s"),
            (json!({"name": "x", "lifetime_s": 86_401}), "lifetime_s"),
            (json!({"name": "x", "version": 0}), "version"),
            (json!({"name": "x", "network": "internet"}), "network"),
            (json!({"name": "x", "network": null}), "network"),
            (json!({"name": "x", "secrets": []}), "secrets"),
            (json!({"name": "x", "public": true}), "public"),
            (json!({"name": "x", "handler": "os.getenv"}), "handler"),
            (json!({"name": "x", "memory": 64}), "memory"),
            (
                json!({"name": "x", "env": {"HEARTH_X": "1"}}),
                "env.HEARTH_X",
            ),
        ] {
            assert_eq!(read(bad.clone()).expect_err("bad").field, field, "{bad}");
        }
    }

    #[test]
    fn a_copy_reaches_what_is_named_and_never_all_that_is_public() {
        let replica = json!({"allow": ["replica.example.com:5432"], "dry_run": false});
        let asked = read(json!({"name": "x", "network": replica})).expect("a copy");
        let shown = serde_json::to_value(&asked.network).expect("JSON");
        assert_eq!(shown, replica);
        assert_eq!(copy_network(replica), Ok(asked.network));
        assert_eq!(copy_network(json!("none")), Ok(Network::None));
        for (bad, field, rule) in [
            (
                json!("internet"),
                "network",
                "must be \"none\", or an object",
            ),
            (
                json!("outbound"),
                "network",
                "must be \"none\", or an object",
            ),
            (json!({"allow": ["internet"]}), "network", "not for copies"),
            (
                json!({"allow": [], "dry_run": true}),
                "network",
                "not for copies",
            ),
            (
                json!({"allow": ["a.example", "b c"]}),
                "network.allow[1]",
                "not a host name",
            ),
            (json!({}), "network.allow", "a list"),
        ] {
            let refused = copy_network(bad.clone()).expect_err("bad");
            assert_eq!(refused.field, field, "{bad}");
            assert!(refused.rule.contains(rule), "{bad}: {refused}");
        }
    }

    #[test]
    fn a_replay_offers_the_settings_that_a_copy_takes() {
        // All its copies have the same network.
        let own = ["name", "version", "lifetime_s", "network"];
        let settings: Vec<&str> = COPY_FIELDS
            .iter()
            .copied()
            .filter(|field| !own.contains(field))
            .collect();
        assert_eq!(settings, hearth_lab::replay::variant::SETTINGS);
    }
}
