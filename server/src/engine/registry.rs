//! The functions in service, by name, and how the API shows them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::RwLock;

use super::summary;
use crate::instance::FunctionKey;
use crate::model::{FunctionView, Revision, StartChoice, VersionView};
use crate::scheduler::{Deployment, Lease, LeaseError};
use crate::store::{StoredFunction, StoredVersion};

/// A function: what is stored of it and what serves it.
pub(super) struct Function {
    pub(super) key: FunctionKey,
    stored: ArcSwap<StoredFunction>,
    active: ArcSwap<Deployment>,
    /// How often another deployment took over.
    switches: AtomicU64,
    /// Changes of one function happen one after the other.
    pub(super) change: tokio::sync::Mutex<()>,
}

impl Function {
    pub(super) fn new(
        key: FunctionKey,
        stored: StoredFunction,
        active: Arc<Deployment>,
    ) -> Arc<Self> {
        Arc::new(Self {
            key,
            stored: ArcSwap::from_pointee(stored),
            active: ArcSwap::new(active),
            switches: AtomicU64::new(0),
            change: tokio::sync::Mutex::new(()),
        })
    }

    pub(super) fn id(&self) -> i64 {
        self.key.get()
    }

    /// What was asked for of it.
    pub(super) fn revision(&self) -> Revision {
        Revision::of_function(self.id(), self.stored().active.version)
    }

    pub(super) fn stored(&self) -> Arc<StoredFunction> {
        self.stored.load_full()
    }

    /// How often another deployment took over.
    pub(super) fn switches(&self) -> u64 {
        self.switches.load(Ordering::Acquire)
    }

    /// What answers now.
    pub(super) fn active(&self) -> Arc<Deployment> {
        self.active.load_full()
    }

    /// Leases an instance of what answers now, which is returned too.
    pub(super) async fn lease(
        &self,
        received: Instant,
    ) -> (Arc<Deployment>, Result<Lease, LeaseError>) {
        let lease = |deployment: Arc<Deployment>| async move { deployment.lease(received).await };
        ask(|| self.active(), lease).await
    }

    /// Puts another version in service and takes the former out: new requests go to the new one at once, requests under
    /// way end where they are.
    pub(super) fn switch(&self, stored: StoredFunction, active: Arc<Deployment>) {
        let network = stored.active.spec.network.clone();
        self.stored.store(Arc::new(stored));
        let former = self.active.swap(active);
        self.switches.fetch_add(1, Ordering::Release);
        former.network.function().apply(&network);
        former.retire();
    }

    /// Goes on with another version, of which what is in service differs only in what it may reach over the network.
    pub(super) fn go_on(&self, stored: StoredFunction) {
        let StoredVersion { version, spec, .. } = &stored.active;
        self.active().become_version(*version, &spec.network);
        self.stored.store(Arc::new(stored));
    }

    pub(super) fn view(&self) -> FunctionView {
        let stored = self.stored();
        let deployment = self.active();
        let counts = deployment.counts();
        let status = deployment.template_status();
        let template = deployment.has_template();
        let choice = deployment.start_choice();
        let (state, state_reason) = summary::state(status);
        let spec = &stored.active.spec;
        FunctionView {
            id: stored.id,
            name: spec.name.clone(),
            runtime: spec.runtime,
            handler: spec.handler.clone(),
            active_version: stored.active.version,
            state,
            state_reason,
            instances: summary::instances(counts),
            queued: counts.queued,
            template,
            image: deployment.image_view(),
            memory_mb: spec.memory_mb,
            timeout_ms: spec.timeout_ms,
            max_concurrency: spec.max_concurrency,
            idle_timeout_s: spec.idle_timeout_s,
            min_instances: spec.min_instances,
            keep_warm: spec.keep_warm,
            template_idle_timeout_s: spec.template_idle_timeout_s,
            start: spec.start,
            starts_by: choice.by,
            start_reason: choice.reason,
            network: spec.network.clone(),
            body: spec.body,
            public: spec.public,
            triggers: spec.triggers.clone(),
            port_limits: spec.port_limits,
            cors: spec.cors.clone(),
            secrets: spec.secrets.clone(),
            env: masked(&spec.env),
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            url: format!("/fn/{}", spec.name),
            decisions: deployment.decisions(),
            notes: stored.active.notes.clone(),
            copy_of: spec.copy_of.clone(),
        }
    }
}

/// Asks the active version, and its successor if another took over in between. Returns the one asked last. The
/// successor may have the same version: one that was deactivated and activated again.
async fn ask<D, T, F>(
    active: impl Fn() -> Arc<D>,
    question: impl Fn(Arc<D>) -> F,
) -> (Arc<D>, Result<T, LeaseError>)
where
    F: Future<Output = Result<T, LeaseError>>,
{
    loop {
        let asked = active();
        match question(asked.clone()).await {
            Err(LeaseError::Retired) if !Arc::ptr_eq(&active(), &asked) => {}
            answer => return (asked, answer),
        }
    }
}

pub(super) fn version_view(
    version: &StoredVersion,
    active: u32,
    choice: StartChoice,
) -> VersionView {
    let spec = &version.spec;
    VersionView {
        version: version.version,
        active: version.version == active,
        code_sha256: version.code_sha256.clone(),
        code_bytes: version.code_bytes,
        handler: spec.handler.clone(),
        memory_mb: spec.memory_mb,
        timeout_ms: spec.timeout_ms,
        max_concurrency: spec.max_concurrency,
        idle_timeout_s: spec.idle_timeout_s,
        min_instances: spec.min_instances,
        keep_warm: spec.keep_warm,
        template_idle_timeout_s: spec.template_idle_timeout_s,
        start: spec.start,
        starts_by: choice.by,
        start_reason: choice.reason,
        network: spec.network.clone(),
        body: spec.body,
        public: spec.public,
        triggers: spec.triggers.clone(),
        port_limits: spec.port_limits,
        cors: spec.cors.clone(),
        secrets: spec.secrets.clone(),
        env: masked(&spec.env),
        created_at: version.created_at,
        notes: version.notes.clone(),
        gate: None,
    }
}

/// The names without the values: those are write-only.
fn masked(env: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    env.keys().map(|name| (name.clone(), None)).collect()
}

/// All functions by name. Reading takes a shared lock for the time of one look-up.
#[derive(Default)]
pub(super) struct Registry {
    functions: RwLock<HashMap<Arc<str>, Arc<Function>>>,
}

impl Registry {
    pub(super) fn get(&self, name: &str) -> Option<Arc<Function>> {
        self.functions.read().get(name).cloned()
    }

    pub(super) fn insert(&self, name: Arc<str>, function: Arc<Function>) {
        self.functions.write().insert(name, function);
    }

    pub(super) fn remove(&self, name: &str) -> Option<Arc<Function>> {
        self.functions.write().remove(name)
    }

    /// All, by name.
    pub(super) fn all(&self) -> Vec<Arc<Function>> {
        let mut all: Vec<_> = self
            .functions
            .read()
            .iter()
            .map(|(name, function)| (name.clone(), function.clone()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.into_iter().map(|(_, function)| function).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A version, and whether it was taken out of service.
    struct Version(u32, AtomicBool);

    impl Version {
        fn new(number: u32) -> Arc<Self> {
            Arc::new(Self(number, AtomicBool::new(false)))
        }
    }

    /// Asks for a version's number; when the first is asked, `meanwhile` has happened to what is active.
    async fn asked(meanwhile: impl Fn(&ArcSwap<Version>)) -> Result<u32, LeaseError> {
        let active = ArcSwap::new(Version::new(1));
        let first = active.load_full();
        let question = |version: Arc<Version>| {
            if Arc::ptr_eq(&version, &first) {
                meanwhile(&active);
            }
            let answer = match version.1.load(Ordering::Relaxed) {
                true => Err(LeaseError::Retired),
                false => Ok(version.0),
            };
            std::future::ready(answer)
        };
        ask(|| active.load_full(), question).await.1
    }

    fn switch(active: &ArcSwap<Version>, to: u32) {
        let former = active.swap(Version::new(to));
        former.1.store(true, Ordering::Relaxed);
    }

    #[tokio::test]
    async fn a_version_that_was_taken_off_and_put_back_is_asked_again() {
        let answer = asked(|active| {
            switch(active, 2);
            switch(active, 1);
        });
        assert_eq!(answer.await.ok(), Some(1));
        let answer = asked(|active| switch(active, 2));
        assert_eq!(answer.await.ok(), Some(2));
        let deleted = asked(|active| active.load().1.store(true, Ordering::Relaxed));
        assert!(matches!(deleted.await, Err(LeaseError::Retired)));
        assert_eq!(asked(|_| {}).await.ok(), Some(1));
    }
}
