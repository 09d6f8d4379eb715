//! A change of a chain's settings.

use std::collections::BTreeMap;

use super::{Cpu, CpuCores, CpuUs, Hop, Member, Pool, Spec, Transport, Trigger};
use crate::model::PortLimits;

/// `PATCH /api/v1/chains/{name}`: absent fields stay as they are, the others are replaced whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// See [`Spec::members`].
    pub members: Option<BTreeMap<String, Member>>,
    /// See [`Spec::routes`].
    pub routes: Option<BTreeMap<String, Vec<Hop>>>,
    /// See [`Spec::edges`].
    pub edges: Option<Vec<(String, String)>>,
    /// See [`Spec::pool`].
    pub pool: Option<Pool>,
    /// See [`Spec::transport`].
    pub transport: Option<Transport>,
    /// See [`Spec::timeout_ms`].
    pub timeout_ms: Option<u32>,
    /// See [`Spec::cpu`].
    pub cpu: Option<Cpu>,
    /// See [`Spec::cpu_us`]; all of them.
    pub cpu_us: Option<CpuUs>,
    /// See [`Spec::cpu_cores`]; all of them.
    pub cpu_cores: Option<CpuCores>,
    /// See [`Spec::public`].
    pub public: Option<bool>,
    /// See [`Spec::triggers`]; all of them.
    pub triggers: Option<Vec<Trigger>>,
    /// See [`Spec::port_limits`].
    pub port_limits: Option<PortLimits>,
}

impl Patch {
    /// Names of the fields it changes.
    #[must_use]
    pub fn fields(&self) -> Vec<&'static str> {
        // Taken apart whole, so that a new field cannot be forgotten here.
        let Self {
            members,
            routes,
            edges,
            pool,
            transport,
            timeout_ms,
            cpu,
            cpu_us,
            cpu_cores,
            public,
            triggers,
            port_limits,
        } = self;
        [
            ("members", members.is_some()),
            ("routes", routes.is_some()),
            ("edges", edges.is_some()),
            ("pool", pool.is_some()),
            ("transport", transport.is_some()),
            ("timeout_ms", timeout_ms.is_some()),
            ("cpu", cpu.is_some()),
            ("cpu_us", cpu_us.is_some()),
            ("cpu_cores", cpu_cores.is_some()),
            ("public", public.is_some()),
            ("triggers", triggers.is_some()),
            ("port_limits", port_limits.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, changed)| changed.then_some(name))
        .collect()
    }

    /// The settings with this change, unchecked.
    #[must_use]
    pub fn apply(self, to: &Spec) -> Spec {
        let Self {
            members,
            routes,
            edges,
            pool,
            transport,
            timeout_ms,
            cpu,
            cpu_us,
            cpu_cores,
            public,
            triggers,
            port_limits,
        } = self;
        Spec {
            name: to.name.clone(),
            members: members.unwrap_or_else(|| to.members.clone()),
            routes: routes.unwrap_or_else(|| to.routes.clone()),
            edges: edges.unwrap_or_else(|| to.edges.clone()),
            pool: pool.unwrap_or(to.pool),
            transport: transport.unwrap_or(to.transport),
            timeout_ms: timeout_ms.unwrap_or(to.timeout_ms),
            cpu: cpu.unwrap_or(to.cpu),
            cpu_us: cpu_us.unwrap_or_else(|| to.cpu_us.clone()),
            cpu_cores: cpu_cores.unwrap_or_else(|| to.cpu_cores.clone()),
            public: public.unwrap_or(to.public),
            triggers: triggers.unwrap_or_else(|| to.triggers.clone()),
            port_limits: port_limits.unwrap_or(to.port_limits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::boutique;
    use super::*;

    #[test]
    fn a_change_replaces_what_it_names_and_nothing_else() {
        let before = boutique();
        assert_eq!(Patch::default().apply(&before), before);
        let patch = Patch {
            routes: Some(BTreeMap::from([(
                "pay".into(),
                vec![Hop::Member("payment".into())],
            )])),
            public: Some(true),
            ..Patch::default()
        };
        assert_eq!(patch.fields(), ["routes", "public"]);
        let after = patch.apply(&before);
        assert_eq!(after.routes.keys().collect::<Vec<_>>(), ["pay"]);
        assert!(after.public && after.members == before.members && after.edges == before.edges);
    }
}
