//! What functions may reach over the network, and what was seen of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Engine, EngineError};
use crate::model::{FunctionPatch, FunctionView, Meant, Network, NetworkPolicy, Rule};
use crate::network::{DestinationView, Labelled, NetworkTotals, ReachedView};

/// A function's network since the server started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkView {
    /// What it may reach.
    pub network: Network,
    /// Its traffic.
    pub totals: NetworkTotals,
    /// What it has reached; the latest first, 256 at most.
    pub reached: Vec<ReachedView>,
    /// What was refused, or allowed because of a dry run; the latest first, 256 at most.
    pub destinations: Vec<DestinationView>,
    /// `allow` for everything that a dry run has seen, with what is allowed already.
    pub suggested_allow: Vec<String>,
}

/// A function's traffic, for metrics.
#[derive(Debug, Clone, Default)]
pub struct NetworkTraffic {
    /// Its name.
    pub function: Arc<str>,
    /// All of it.
    pub totals: NetworkTotals,
    /// By destination.
    pub by_destination: Vec<(Arc<str>, Labelled)>,
}

impl Engine {
    /// A function's network.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn network(&self, name: &str) -> Result<NetworkView, EngineError> {
        let function = self.function(name)?;
        let network = function.stored().active.spec.network.clone();
        let deployment = function.active();
        let seen = deployment.network.function();
        seen.refresh().await;
        let policy = network.policy().cloned().unwrap_or_default();
        let suggested = with_rules(&policy, seen.suggestions());
        Ok(NetworkView {
            network,
            totals: seen.totals(),
            reached: seen.reached(),
            destinations: seen.destinations(),
            suggested_allow: suggested.rules.iter().map(Rule::to_string).collect(),
        })
    }

    /// Traffic of every function that has had any; as far as it was read, which is some seconds ago.
    pub fn network_traffic(&self) -> Vec<NetworkTraffic> {
        let functions = self.inner.registry.all();
        let of = |function: Arc<super::registry::Function>| {
            let deployment = function.active();
            let seen = deployment.network.function();
            let totals = seen.totals();
            (totals != NetworkTotals::default()).then(|| NetworkTraffic {
                function: deployment.name.clone(),
                totals,
                by_destination: seen.labelled(),
            })
        };
        functions.into_iter().filter_map(of).collect()
    }

    /// Adds one entry to what a function may reach.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn allow(&self, name: &str, rule: Rule) -> Result<FunctionView, EngineError> {
        self.change_policy(name, |policy| with_rules(policy, [rule]))
            .await
    }

    /// Writes the policy from what a dry run has seen, and ends it.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn end_dry_run(&self, name: &str) -> Result<FunctionView, EngineError> {
        let deployment = self.function(name)?.active();
        let suggestions = deployment.network.function().suggestions();
        self.change_policy(name, |policy| NetworkPolicy {
            dry_run: false,
            ..with_rules(policy, suggestions)
        })
        .await
    }

    async fn change_policy(
        &self,
        name: &str,
        change: impl FnOnce(&NetworkPolicy) -> NetworkPolicy,
    ) -> Result<FunctionView, EngineError> {
        let now = self.get(name)?;
        let policy = now.network.policy().cloned().unwrap_or_default();
        let patch = FunctionPatch {
            network: Some(Network::Policy(Arc::new(change(&policy)))),
            ..FunctionPatch::default()
        };
        // What it is added to must be what was read.
        let meant = Meant::only(now.revision());
        self.update(name, patch, None, meant).await
    }
}

/// The policy with some more rules; one that allows no more of them has those that fit.
fn with_rules(policy: &NetworkPolicy, rules: impl IntoIterator<Item = Rule>) -> NetworkPolicy {
    let mut policy = policy.clone();
    for rule in rules {
        if !policy.rules.contains(&rule) && policy.rules.len() < crate::model::MAX_RULES {
            policy.rules.push(rule);
        }
    }
    policy
}
