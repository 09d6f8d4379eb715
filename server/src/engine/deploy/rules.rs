//! Rules for a change beyond those of its fields: this node, the other fields, earlier changes.

use std::sync::Arc;

use crate::engine::registry::Function;
use crate::engine::{Engine, EngineError};
use crate::model::{Code, FunctionPatch, FunctionSpec, InvalidField, Network, PortOwner};
use crate::ports;

impl Engine {
    /// Rules that need more than one field, or this node's capabilities.
    pub(super) fn check(&self, spec: &FunctionSpec) -> Result<(), InvalidField> {
        if spec.min_instances > spec.max_concurrency {
            return Err(InvalidField {
                field: "min_instances".into(),
                value: spec.min_instances.to_string(),
                rule: format!(
                    "must not be larger than max_concurrency, which is {}",
                    spec.max_concurrency
                ),
            });
        }
        self.check_network(&spec.network)?;
        self.check_port_limits(spec.port_limits)?;
        self.check_secrets(spec)
    }

    /// Whether a function of this node can have this network.
    ///
    /// # Errors
    /// The setting where there is no way out, or the first entry that only the administrator can open.
    pub fn check_network(&self, network: &Network) -> Result<(), InvalidField> {
        let Some(policy) = network.policy() else {
            return Ok(());
        };
        let resources = &self.inner.resources;
        let outbound = resources.host.capability("network_outbound");
        if let Some(reason) = outbound.and_then(|capability| capability.reason.as_deref()) {
            return Err(InvalidField {
                field: "network".into(),
                value: network.to_string(),
                rule: format!("must be \"none\" on this node: {reason}"),
            });
        }
        let checked = policy.check_ranges(resources.network.open());
        checked.map_err(|invalid| InvalidField {
            field: format!("network.allow[{}]", invalid.index),
            value: format!("\"{}\"", invalid.text),
            rule: invalid.error.to_string(),
        })
    }

    /// Claims the ports of a version that is about to serve.
    pub(super) async fn claim_ports(
        &self,
        spec: &FunctionSpec,
    ) -> Result<ports::Claim, InvalidField> {
        let owner = PortOwner::function(spec.name.as_str());
        self.claim_ports_of(&owner, &spec.triggers, spec.port_limits)
            .await
    }

    /// Whether a change of settings is one of what a handler's time depends on.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn changes_work(&self, name: &str, patch: &FunctionPatch) -> Result<bool, EngineError> {
        let spec = &self.function(name)?.stored().active.spec;
        Ok(works_otherwise(spec, &merged(spec, patch.clone())))
    }

    /// As [`Self::still_there`], and no copy: who may change only the copy would get at the variables and secrets of what it
    /// was made of.
    pub(in crate::engine) fn may_change(
        &self,
        name: &str,
        function: &Arc<Function>,
    ) -> Result<(), EngineError> {
        self.still_there(name, function)?;
        match function.stored().active.spec.copy_of {
            Some(_) => Err(EngineError::IsCopy(name.to_owned())),
            None => Ok(()),
        }
    }

    /// A change that waited may find that the one before it deleted the function.
    pub(in crate::engine) fn still_there(
        &self,
        name: &str,
        function: &Arc<Function>,
    ) -> Result<(), EngineError> {
        let current = self.function(name)?;
        if Arc::ptr_eq(&current, function) {
            Ok(())
        } else {
            Err(EngineError::NotFound(format!(
                "function \"{name}\" any more; it was replaced in the meantime"
            )))
        }
    }
}

/// Whether two versions can share sandboxes: they differ at most in their ports, their limits and, if both have a network, in its
/// policy.
pub(super) fn share_sandboxes(one: &FunctionSpec, other: &FunctionSpec) -> bool {
    let with = FunctionSpec {
        network: other.network.clone(),
        triggers: other.triggers.clone(),
        port_limits: other.port_limits,
        ..one.clone()
    };
    let same_network =
        one.network == other.network || one.network.is_open() && other.network.is_open();
    same_network && with == *other
}

/// Whether a handler's time may differ between two versions with the same code.
fn works_otherwise(one: &FunctionSpec, other: &FunctionSpec) -> bool {
    one.handler != other.handler || one.memory_mb != other.memory_mb || one.env != other.env
}

/// Reserves a name while a function is being created.
pub(super) struct Claim {
    engine: Engine,
    name: String,
}

impl Claim {
    pub(super) fn take(engine: &Engine, name: &str) -> Result<Self, EngineError> {
        let mut creating = engine.inner.creating.lock();
        if engine.inner.registry.get(name).is_some() || !creating.insert(name.to_owned()) {
            return Err(EngineError::AlreadyExists(name.to_owned()));
        }
        Ok(Self {
            engine: engine.clone(),
            name: name.to_owned(),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.engine.inner.creating.lock().remove(&self.name);
    }
}

/// Edits of a version that is no longer active would undo later deploys.
pub(super) fn still_edits(code: &Code, active: u32) -> Result<(), InvalidField> {
    match code {
        Code::Edits { base, .. } if *base != active => Err(InvalidField {
            field: "base".into(),
            value: base.to_string(),
            rule: format!("must be the active version, which is {active} now"),
        }),
        _ => Ok(()),
    }
}

/// The settings with a patch applied.
pub(super) fn merged(spec: &FunctionSpec, patch: FunctionPatch) -> FunctionSpec {
    let mut env = spec.env.clone();
    for (name, value) in patch.env.unwrap_or_default() {
        match value {
            Some(value) => drop(env.insert(name, value)),
            None => drop(env.remove(&name)),
        }
    }
    FunctionSpec {
        name: spec.name.clone(),
        runtime: spec.runtime,
        handler: patch.handler.unwrap_or_else(|| spec.handler.clone()),
        memory_mb: patch.memory_mb.unwrap_or(spec.memory_mb),
        timeout_ms: patch.timeout_ms.unwrap_or(spec.timeout_ms),
        max_concurrency: patch.max_concurrency.unwrap_or(spec.max_concurrency),
        idle_timeout_s: patch.idle_timeout_s.unwrap_or(spec.idle_timeout_s),
        min_instances: patch.min_instances.unwrap_or(spec.min_instances),
        keep_warm: patch.keep_warm.unwrap_or(spec.keep_warm),
        template_idle_timeout_s: patch
            .template_idle_timeout_s
            .unwrap_or(spec.template_idle_timeout_s),
        start: patch.start.unwrap_or(spec.start),
        network: patch.network.unwrap_or_else(|| spec.network.clone()),
        body: patch.body.unwrap_or(spec.body),
        public: patch.public.unwrap_or(spec.public),
        triggers: patch.triggers.unwrap_or_else(|| spec.triggers.clone()),
        port_limits: patch.port_limits.unwrap_or(spec.port_limits),
        cors: match patch.cors {
            Some(cors) => cors.map(Arc::new),
            None => spec.cors.clone(),
        },
        secrets: patch.secrets.unwrap_or_else(|| spec.secrets.clone()),
        env,
        copy_of: spec.copy_of.clone(),
    }
}
