//! Pre-warmed sandboxes: one for each runtime with a sleeping function that has an image. The evictor checks twice a
//! second, so a used one is replaced shortly after, when no start is under way.

use std::collections::HashSet;
use std::sync::Arc;

use super::Deployment;
use super::resources::Resources;
use crate::sandbox::PrewarmedSpec;

/// Keeps those and ends all others; keeps none while memory is short. `sleeping` are the deployments that the next call
/// restores.
pub(super) fn keep<'a>(
    resources: &Resources,
    all: &[Arc<Deployment>],
    sleeping: impl Iterator<Item = &'a Arc<Deployment>>,
    allowed: bool,
) {
    let wanted: HashSet<&'static str> = sleeping
        .filter(|_| resources.prewarm && allowed)
        .map(|deployment| resources.runtimes.get(deployment.spec.runtime).name)
        .collect();
    let host = &resources.host;
    for name in host.prewarmed().runtimes() {
        if !wanted.contains(name.as_str()) {
            host.end_prewarmed(&name);
        }
    }
    let missing: Vec<_> = wanted
        .into_iter()
        .filter(|name| !host.prewarmed().has(name))
        .collect();
    // The common case, which needs no look into any pool.
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
    for runtime_name in missing {
        host.keep_prewarmed(&PrewarmedSpec {
            uid_base: resources.uids.take(),
            runtime_name,
        });
    }
}
