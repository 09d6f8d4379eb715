//! Copies of versions: with code, variables and secrets, and for themselves alone. The lab measures with them.
//!
//! What a copy holds is no more readable than what it was made of: values of variables and secrets are write-only, and nobody
//! can give it other code ([`Engine::may_change`]) or another handler.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::rules::{Claim, merged};
use crate::engine::{Engine, EngineError};
use crate::model::{CopyOf, FunctionSpec, FunctionView, InvalidField, Meant, NewCopy, PortLimits};
use crate::store::StoredVersion;

/// How often copies are looked for whose time is over.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    /// Makes a copy of a function's version: a function of its own with the network that is asked for, without ports or callers
    /// without a token, which is removed when its time is over. Returns once its template is up.
    ///
    /// # Errors
    /// As for [`Engine::create`]; [`EngineError::IsCopy`] of a copy.
    pub async fn copy(&self, name: &str, asked: NewCopy) -> Result<FunctionView, EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move { engine.copy_now(&name, asked).await })
            .await
    }

    async fn copy_now(self, name: &str, asked: NewCopy) -> Result<FunctionView, EngineError> {
        let function = self.function(name)?;
        // Not deleted meanwhile.
        let _change = function.change.lock().await;
        self.may_change(name, &function)?;
        let versions = self.inner.store.versions(function.id()).await?;
        let number = asked.version;
        let number = number.unwrap_or_else(|| function.stored().active.version);
        let newest = versions.first().map_or(0, |newest| newest.version);
        let mut versions = versions.into_iter();
        let Some(source) = versions.find(|version| version.version == number) else {
            return Err(EngineError::Invalid(InvalidField {
                field: "version".to_owned(),
                value: number.to_string(),
                rule: format!("must be a version of function {name:?}, whose newest is {newest}"),
            }));
        };
        let spec = copied(&source, asked);
        self.check(&spec)?;
        self.inner.resources.runtimes.check(spec.runtime)?;
        let _claim = Claim::take(&self, &spec.name)?;
        let package = self.inner.packages.hold(&source.code_sha256);
        let code = (source.code_sha256.as_str(), source.code_bytes);
        let copy = self.put_in_service(&spec, code, package).await?;
        tracing::info!(
            function = name,
            version = number,
            copy = spec.name,
            "copied"
        );
        Ok(copy.view())
    }

    /// Removes copies whose time is over, until the server ends. What is under way in them finishes.
    pub(in crate::engine) async fn remove_expired(self) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_draining() {
            ticks.tick().await;
            let now = Timestamp::now();
            for function in self.inner.registry.all() {
                let spec = &function.stored().active.spec;
                let is_over = |copy: &Arc<CopyOf>| copy.expires_at <= now;
                if !spec.copy_of.as_ref().is_some_and(is_over) {
                    continue;
                }
                // Another function may have its name by now.
                let meant = Meant::Only(vec![function.revision()]);
                match self.delete(&spec.name, meant).await {
                    Ok(()) => tracing::info!(function = spec.name, "the copy's time is over"),
                    Err(EngineError::NotFound(_) | EngineError::Changed(_)) => {}
                    Err(error) => {
                        tracing::warn!(function = spec.name, %error, "cannot remove a copy");
                    }
                }
            }
        }
    }
}

/// The settings of a version's copy.
fn copied(source: &StoredVersion, asked: NewCopy) -> FunctionSpec {
    let spec = &source.spec;
    let (given, lacks): (Vec<_>, Vec<_>) = spec
        .secrets
        .iter()
        .cloned()
        .partition(|binding| binding.brokered().is_none());
    let expires_at = Timestamp::now().saturating_add(asked.lifetime);
    let copy_of = CopyOf {
        function: spec.name.clone(),
        version: source.version,
        expires_at: expires_at.unwrap_or(Timestamp::MAX),
        lacks: lacks.iter().map(ToString::to_string).collect(),
    };
    let alone = FunctionSpec {
        name: asked.name,
        min_instances: 0,
        keep_warm: false,
        network: asked.network,
        public: false,
        triggers: Vec::new(),
        port_limits: PortLimits::default(),
        cors: None,
        secrets: given,
        copy_of: Some(Arc::new(copy_of)),
        ..spec.clone()
    };
    merged(&alone, asked.settings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{FunctionPatch, Network};

    #[test]
    fn a_copy_has_variables_and_secrets_and_its_own_network() {
        let spec = json!({"name": "f", "runtime": "python3", "handler": "main.handler", "memory_mb": 128,
            "timeout_ms": 30_000, "max_concurrency": 8, "idle_timeout_s": 300, "min_instances": 2, "keep_warm": true,
            "network": "internet", "public": true, "env": {"MODE": "slow", "KEY": "s3cr3t"},
            "triggers": [{"protocol": "tcp", "port": 9000, "mode": "http"}],
            "secrets": [{"secret": "login", "env": "LOGIN"},
                {"secret": "stripe", "host": "api.example.com", "header": "Authorization", "format": "Bearer {}"}]});
        let source = StoredVersion {
            version: 3,
            spec: serde_json::from_value(spec).expect("settings"),
            code_sha256: "00".to_owned(),
            code_bytes: 1,
            created_at: Timestamp::UNIX_EPOCH,
            notes: Vec::new(),
        };
        let env = [("MODE".to_owned(), Some("fast".to_owned()))];
        let asked = NewCopy {
            name: "copy".to_owned(),
            version: None,
            lifetime: Duration::from_secs(60),
            network: Network::None,
            settings: FunctionPatch {
                memory_mb: Some(256),
                env: Some(env.into()),
                ..FunctionPatch::default()
            },
        };
        let replica = json!({"allow": ["api.example.com"]});
        let replica: Network = serde_json::from_value(replica).expect("a policy");
        let reaching = NewCopy {
            network: replica.clone(),
            ..asked.clone()
        };
        let reaching = copied(&source, reaching);
        assert_eq!(reaching.network, replica);
        // Also where it reaches their host.
        assert_eq!(reaching.secrets.len(), 1);
        let spec = copied(&source, asked);
        assert_eq!((spec.name.as_str(), spec.memory_mb), ("copy", 256));
        assert_eq!(spec.env["KEY"], "s3cr3t");
        assert_eq!(spec.env["MODE"], "fast");
        assert_eq!(spec.network, Network::None);
        assert!(!spec.public && !spec.keep_warm && spec.triggers.is_empty());
        assert_eq!((spec.min_instances, spec.timeout_ms), (0, 30_000));
        assert_eq!(spec.secrets.len(), 1);
        assert_eq!(spec.secrets[0].env(), Some("LOGIN"));
        let copy_of = spec.copy_of.expect("a copy");
        assert_eq!((copy_of.function.as_str(), copy_of.version), ("f", 3));
        assert!(copy_of.expires_at > Timestamp::now());
        assert_eq!(
            copy_of.lacks,
            ["stripe in Authorization to api.example.com"]
        );
    }
}
