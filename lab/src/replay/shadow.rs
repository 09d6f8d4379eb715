//! Copies of versions that serve nobody else and reach nothing. The server makes them: values of variables and secrets cannot be
//! read by a client.

use std::time::Duration;

use serde_json::json;

use super::run::ReplayError;
use super::variant::Variant;
use crate::platform::hearth::Hearth;

/// Has a copy made that the server removes after `lifetime`, should nobody be left to do it. Returns what it lacks: secrets
/// that are put into requests to hosts, which it does not reach.
///
/// # Errors
/// There is no such version, it does not start with these settings, or the server refuses.
pub async fn deploy(
    hearth: &Hearth,
    name: &str,
    variant: &Variant,
    lifetime: Duration,
) -> Result<Vec<String>, ReplayError> {
    let Variant { subject, changes } = variant;
    let mut asked = changes.settings().clone();
    asked.insert("name".to_owned(), name.into());
    asked.insert("lifetime_s".to_owned(), lifetime.as_secs().into());
    if let Some(version) = subject.version {
        asked.insert("version".to_owned(), version.into());
    }
    let copy = hearth.copy(&subject.function, name, &json!(asked)).await?;
    let lacks = copy["copy_of"]["lacks"].as_array().into_iter().flatten();
    let lacks = lacks.filter_map(|one| Some(format!("secret {}", one.as_str()?)));
    Ok(lacks.collect())
}
