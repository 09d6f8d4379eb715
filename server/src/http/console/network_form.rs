//! The form of the network setting: a choice, and a list of destinations.

use hearth_web::pages::NetworkForm;
use serde_json::{Value, json};

use super::form::Form;
use crate::model::Network;

const RULES: &str = "rules";

/// The form as it was typed. Destinations count only with the choice that uses them.
pub(super) fn typed(form: &Form) -> NetworkForm {
    let mode = form.trimmed("network");
    let uses_rules = mode == RULES;
    NetworkForm {
        allow: match uses_rules {
            true => entries(&form.lines("network_allow")).join("\n"),
            false => String::new(),
        },
        dry_run: uses_rules && !form.text("network_dry_run").is_empty(),
        mode,
    }
}

/// The form of the present setting.
pub(super) fn present(network: &Network) -> NetworkForm {
    let mode = |mode: &str| NetworkForm {
        mode: mode.to_owned(),
        ..NetworkForm::default()
    };
    match network {
        Network::None => mode("none"),
        network if *network == Network::internet() => mode("internet"),
        Network::Policy(policy) => {
            let rules: Vec<String> = policy.rules.iter().map(ToString::to_string).collect();
            NetworkForm {
                allow: rules.join("\n"),
                dry_run: policy.dry_run,
                ..mode(RULES)
            }
        }
    }
}

/// The setting as the API expects it, with the limits of the present one, for which the form has no fields.
pub(super) fn value(typed: &NetworkForm, now: &Network) -> Value {
    match typed.mode.as_str() {
        "" => "none".into(),
        RULES => {
            let mut value = json!({
                "allow": entries(&typed.allow),
                "dry_run": typed.dry_run,
            });
            if let Some(policy) = now.policy() {
                let limits = policy.limits;
                value["limits"] = json!({
                    "connections": limits.connections,
                    "connections_per_second": limits.connections_per_second,
                    "bytes_per_second": limits.bytes_per_second,
                });
            }
            value
        }
        other => other.into(),
    }
}

fn entries(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect()
}
