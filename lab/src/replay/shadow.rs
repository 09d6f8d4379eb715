//! Copies of versions that serve nobody else and reach nothing.

use hyper::Method;
use serde_json::{Value, json};

use super::run::ReplayError;
use crate::duet::Subject;
use crate::platform::hearth::Hearth;

/// Settings that a copy has of its version, beside those that are given.
const COPIED: [&str; 7] = [
    "handler",
    "memory_mb",
    "timeout_ms",
    "max_concurrency",
    "idle_timeout_s",
    "start",
    "body",
];

/// Deploys a copy. Returns what it lacks: values of variables and secrets cannot be read.
///
/// # Errors
/// There is no such version, it is not taken without its variables, or the server refuses.
pub async fn deploy(
    hearth: &Hearth,
    name: &str,
    subject: &Subject,
) -> Result<Vec<String>, ReplayError> {
    let client = hearth.client();
    let base = format!("/api/v1/functions/{}", subject.function);
    let function = client.send(Method::GET, &base, None).await?.json();
    let number = match subject.version {
        Some(number) => json!(number),
        None => function["active_version"].clone(),
    };
    let path = format!("{base}/versions");
    let versions = client.send(Method::GET, &path, None).await?.json();
    let mut items = versions["items"].as_array().into_iter().flatten();
    let version = items.find(|one| one["version"] == number);
    let version = version.ok_or_else(|| ReplayError::NoVersion(subject.to_string()))?;
    let path = format!("{base}/versions/{number}/code");
    let code = client.send(Method::GET, &path, None).await?.body;
    let mut settings = json!({
        "name": name,
        "runtime": function["runtime"],
        "network": "none",
    });
    for field in COPIED {
        settings[field] = version[field].clone();
    }
    hearth.deploy_code(name, &settings, &code).await?;
    Ok(lacks(version))
}

fn lacks(version: &Value) -> Vec<String> {
    let variables = version["env"].as_object().into_iter().flatten();
    let variables = variables.map(|(name, _)| format!("env.{name}"));
    let secrets = version["secrets"].as_array().into_iter().flatten();
    let secrets = secrets.filter_map(|one| Some(format!("secret {}", one["secret"].as_str()?)));
    variables.chain(secrets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        let version = json!({"env": {"KEY": null}, "secrets": [{"secret": "stripe", "host": "x"}]});
        assert_eq!(lacks(&version), ["env.KEY", "secret stripe"]);
        assert!(lacks(&json!({"env": {}, "secrets": []})).is_empty());
    }
}
