//! Human-readable differences between the settings of two versions. Values of `env` are secrets: only that they differ
//! is shown.

use std::fmt::Display;

use super::{Cors, FunctionSpec};

/// One setting that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The API's name for it; `env.NAME` for a variable.
    pub name: String,
    /// What it was, with its unit.
    pub before: String,
    /// What it is, with its unit.
    pub after: String,
}

/// What differs from `before` to `after`, in the order of the settings form. Name and runtime never do.
pub fn setting_changes(before: &FunctionSpec, after: &FunctionSpec) -> Vec<SettingChange> {
    let mut changes: Vec<SettingChange> = plain(before)
        .into_iter()
        .zip(plain(after))
        .filter(|((_, before), (_, after))| before != after)
        .map(|((name, before), (_, after))| SettingChange {
            name: name.to_owned(),
            before,
            after,
        })
        .collect();
    let names: std::collections::BTreeSet<&String> =
        before.env.keys().chain(after.env.keys()).collect();
    for name in names {
        let (before, after) = match (before.env.get(name), after.env.get(name)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(_), Some(_)) => ("set", "set to another value"),
            (Some(_), None) => ("set", "not set"),
            (None, _) => ("not set", "set"),
        };
        changes.push(SettingChange {
            name: format!("env.{name}"),
            before: before.to_owned(),
            after: after.to_owned(),
        });
    }
    changes
}

/// Every setting but the environment.
fn plain(spec: &FunctionSpec) -> [(&'static str, String); 16] {
    let yes_no = |flag| if flag { "yes" } else { "no" }.to_owned();
    [
        ("handler", spec.handler.clone()),
        ("memory_mb", format!("{} MiB", spec.memory_mb)),
        ("timeout_ms", format!("{} ms", spec.timeout_ms)),
        ("max_concurrency", spec.max_concurrency.to_string()),
        ("idle_timeout_s", format!("{} s", spec.idle_timeout_s)),
        ("min_instances", spec.min_instances.to_string()),
        ("keep_warm", yes_no(spec.keep_warm)),
        (
            "template_idle_timeout_s",
            format!("{} s", spec.template_idle_timeout_s),
        ),
        ("start", spec.start.as_str().to_owned()),
        ("network", spec.network.to_string()),
        ("body", spec.body.as_str().to_owned()),
        ("public", yes_no(spec.public)),
        ("triggers", listed(&spec.triggers)),
        ("port_limits", spec.port_limits.to_string()),
        (
            "cors",
            spec.cors
                .as_deref()
                .map_or_else(|| "none".to_owned(), in_words),
        ),
        ("secrets", listed(&spec.secrets)),
    ]
}

/// Ports, or secrets, in one line.
fn listed(items: &[impl Display]) -> String {
    let all: Vec<String> = items.iter().map(ToString::to_string).collect();
    match all.is_empty() {
        true => "none".to_owned(),
        false => all.join(", "),
    }
}

/// A setting in one line.
fn in_words(cors: &Cors) -> String {
    let list = |name: &str, items: &[String]| match items.is_empty() {
        true => String::new(),
        false => format!("{name} {}; ", items.join(" ")),
    };
    let credentials = if cors.allow_credentials {
        "credentials; "
    } else {
        ""
    };
    [
        &list("origins", &cors.allow_origins),
        &list("methods", &cors.allow_methods),
        &list("headers", &cors.allow_headers),
        &list("exposed", &cors.expose_headers),
        credentials,
        &format!("kept for {} s", cors.max_age_s),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> FunctionSpec {
        serde_json::from_str(
            r#"{"name":"a","runtime":"python3","handler":"main.handler","memory_mb":128,"timeout_ms":30000,
            "max_concurrency":8,"idle_timeout_s":300,"min_instances":0,"network":"none","public":false,
            "env":{"KEPT":"1","CHANGED":"s3cr3t-old","GONE":"s3cr3t"}}"#,
        )
        .expect("a spec")
    }

    #[test]
    fn what_is_the_same_is_not_told() {
        assert_eq!(setting_changes(&spec(), &spec()), []);
    }

    #[test]
    fn changes_are_told_without_any_secret() {
        let mut after = spec();
        after.memory_mb = 256;
        after.public = true;
        after.env.insert("CHANGED".into(), "s3cr3t-new".into());
        after.env.insert("NEW".into(), "s3cr3t".into());
        after.env.remove("GONE");
        let changes = setting_changes(&spec(), &after);
        let described: Vec<(&str, &str, &str)> = changes
            .iter()
            .map(|c| (c.name.as_str(), c.before.as_str(), c.after.as_str()))
            .collect();
        assert_eq!(
            described,
            [
                ("memory_mb", "128 MiB", "256 MiB"),
                ("public", "no", "yes"),
                ("env.CHANGED", "set", "set to another value"),
                ("env.GONE", "set", "not set"),
                ("env.NEW", "not set", "set"),
            ]
        );
        assert!(!format!("{changes:?}").contains("s3cr3t"));
    }
}
