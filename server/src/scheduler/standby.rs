//! Sandboxes made ahead for restores: one for each runtime of which some function sleeps and has an image. The keeper
//! decides twice a second, and so one that a restore has taken is replaced some moments later, when no start is under way.

use std::collections::HashSet;
use std::sync::Arc;

use super::Deployment;
use super::deployment::Resources;
use crate::model::Runtime;
use crate::sandbox::StandbySpec;

/// Keeps them, or, while memory is short, none. `sleeping` are the deployments that the next call restores.
pub(super) fn keep<'a>(
    all: &[Arc<Deployment>],
    sleeping: impl Iterator<Item = &'a Arc<Deployment>>,
    allowed: bool,
) {
    let Some(resources) = all.first().map(|deployment| &deployment.resources) else {
        return;
    };
    let wanted: HashSet<Runtime> = sleeping.map(|deployment| deployment.spec.runtime).collect();
    if !resources.standbys || !allowed || wanted.is_empty() {
        if resources.host.standbys().ready() > 0 {
            resources.host.end_standbys();
        }
        return;
    }
    let starting = |deployment: &Arc<Deployment>| {
        let counts = deployment.counts();
        counts.starting + counts.queued > 0
    };
    if all.iter().any(starting) {
        return;
    }
    for runtime in wanted {
        keep_one(resources, runtime);
    }
}

fn keep_one(resources: &Resources, runtime: Runtime) {
    let files = resources.runtimes.get(runtime);
    if resources.host.standbys().has(files.name) {
        return;
    }
    let uid_base = resources.uids.take();
    resources.host.keep_standby(StandbySpec {
        id: format!("standby-{uid_base}"),
        uid_base,
        runtime_dir: files.dir.clone(),
        runtime_name: files.name,
    });
}
