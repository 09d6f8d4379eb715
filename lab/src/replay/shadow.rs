//! Copies of versions that serve nobody else and reach nothing but what the replay's policy names. The server makes them: values of
//! variables and secrets cannot be read by a client.

use std::time::Duration;

use serde_json::json;

use super::network::Network;
use super::run::{ReplayError, Settings};
use super::variant::Variant;
use crate::duet::execution::numbered;
use crate::platform::hearth::Hearth;

/// Both versions, of which copies are made.
pub(super) struct Shadow<'a> {
    hearth: &'a Hearth,
    /// Begins the copies' names.
    prefix: &'a str,
    /// The first version, by its number.
    pub(super) first: Variant,
    /// The second version, by its number.
    pub(super) second: Variant,
    /// What all copies may reach.
    network: &'a Network,
    /// What the copies lack: secrets that are put into requests to hosts.
    pub(super) lacks: Vec<String>,
}

impl<'a> Shadow<'a> {
    /// Of the versions that are active now, where none is named, whatever is deployed later.
    ///
    /// # Errors
    /// The server knows no such function, or does not answer.
    pub(super) async fn new(
        hearth: &'a Hearth,
        settings: &'a Settings,
    ) -> Result<Self, ReplayError> {
        let mut shadow = Self {
            hearth,
            prefix: &settings.prefix,
            first: settings.first.clone(),
            second: settings.second.clone(),
            network: &settings.network,
            lacks: Vec::new(),
        };
        let first = numbered(hearth.client(), &settings.first.subject).await?;
        // Looked up once where both are the same: another version activated in between would make two of an A/A.
        let second = match settings.second.subject == settings.first.subject {
            true => first.clone(),
            false => numbered(hearth.client(), &settings.second.subject).await?,
        };
        (shadow.first.subject, shadow.second.subject) = (first, second);
        Ok(shadow)
    }

    /// Has new copies made of the first version, the second, and the first once more. The server removes them after `lifetime`, should nobody be left
    /// to do it. Returns their names, by role.
    ///
    /// # Errors
    /// There is no such version, it does not start with these settings, or the server refuses.
    pub(super) async fn copy(
        &mut self,
        part: usize,
        lifetime: Duration,
    ) -> Result<[String; 3], ReplayError> {
        let name = |role| format!("{}-{role}-{part}", self.prefix);
        let names = ["first", "second", "control"].map(name);
        let mut lacks = std::mem::take(&mut self.lacks);
        for (name, variant) in names.iter().zip([&self.first, &self.second, &self.first]) {
            lacks.extend(self.copy_one(name, variant, lifetime).await?);
        }
        lacks.sort();
        lacks.dedup();
        self.lacks = lacks;
        Ok(names)
    }

    async fn copy_one(
        &self,
        name: &str,
        Variant { subject, changes }: &Variant,
        lifetime: Duration,
    ) -> Result<Vec<String>, ReplayError> {
        let mut asked = changes.settings().clone();
        asked.insert("name".to_owned(), name.into());
        asked.insert("lifetime_s".to_owned(), lifetime.as_secs().into());
        if !self.network.is_none() {
            asked.insert("network".to_owned(), self.network.setting().clone());
        }
        if let Some(version) = subject.version {
            asked.insert("version".to_owned(), version.into());
        }
        let copy = self
            .hearth
            .copy(&subject.function, name, &json!(asked))
            .await?;
        let lacks = copy["copy_of"]["lacks"].as_array().into_iter().flatten();
        let lacks = lacks.filter_map(|one| Some(format!("secret {}", one.as_str()?)));
        Ok(lacks.collect())
    }

    /// Removes copies. Those that stay are removed at the end, or by the server.
    pub(super) async fn remove(&self, names: &[String]) {
        for name in names {
            let _ = self.hearth.remove(name).await;
        }
    }
}
