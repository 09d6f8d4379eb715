//! Sandboxes made ahead for restores: one for each runtime of which some function sleeps and has an image. The evictor
//! decides twice a second, and so one that a restore has taken is replaced some moments later, when no start is under way.

use std::collections::HashMap;
use std::sync::Arc;

use super::Deployment;
use super::deployment::Resources;
use crate::runtimes::RuntimeFiles;
use crate::sandbox::PrewarmedSpec;

/// Keeps those, and ends all others; none is kept while memory is short. `sleeping` are the deployments that the next call
/// restores.
pub(super) fn keep<'a>(
    resources: &Resources,
    all: &[Arc<Deployment>],
    sleeping: impl Iterator<Item = &'a Arc<Deployment>>,
    allowed: bool,
) {
    let wanted: HashMap<&'static str, &RuntimeFiles> = sleeping
        .filter(|_| resources.prewarm && allowed)
        .map(|deployment| resources.runtimes.get(deployment.spec.runtime))
        .map(|files| (files.name, files))
        .collect();
    let host = &resources.host;
    let kept = host.prewarmed().runtimes();
    for name in kept.iter().filter(|name| !wanted.contains_key(*name)) {
        host.end_prewarmed(name);
    }
    let missing: Vec<_> = wanted
        .into_iter()
        .filter(|(name, _)| !kept.contains(name))
        .collect();
    // The usual case, for which no function's pool need be looked into.
    if missing.is_empty() {
        return;
    }
    let starting = |deployment: &Arc<Deployment>| {
        let counts = deployment.counts();
        counts.starting + counts.queued > 0
    };
    if all.iter().any(starting) {
        return;
    }
    for (name, files) in missing {
        let uid_base = resources.uids.take();
        host.keep_prewarmed(PrewarmedSpec {
            id: format!("prewarmed-{uid_base}"),
            uid_base,
            runtime_dir: files.dir.clone(),
            runtime_name: name,
        });
    }
}
