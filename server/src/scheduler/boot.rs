//! A deployment's template: restored from its image or booted by the first caller that needs it, and replaced on demand
//! when it dies.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::boot_failure::BootFailure;
use super::deployment::Deployment;
use super::environment::environment;
use super::resources::Resources;
use crate::host_error::HostError;
use crate::instance::{BootError, Imported, Template, TemplateConfig};
use crate::model::StartKind;
use crate::network::WayOut;
use crate::sandbox::SandboxSpec;

/// State of a deployment's template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateStatus {
    /// Never booted, or gone. The next request boots it.
    Asleep,
    /// Booting.
    Booting,
    /// Up.
    Up,
    /// The last boot failed, with its reason.
    Failed(String),
}

/// The slot that holds a deployment's template.
pub(super) struct TemplateSlot {
    current: ArcSwapOption<Template>,
    /// Locked while booting, so that one boot serves all waiting callers.
    booting: tokio::sync::Mutex<()>,
    failure: Mutex<Option<(Instant, Arc<BootFailure>)>>,
}

impl TemplateSlot {
    pub(super) fn empty() -> Self {
        Self {
            current: ArcSwapOption::empty(),
            booting: tokio::sync::Mutex::new(()),
            failure: Mutex::new(None),
        }
    }

    pub(super) fn status(&self) -> TemplateStatus {
        if self.current.load().is_some() {
            TemplateStatus::Up
        } else if self.booting.try_lock().is_err() {
            TemplateStatus::Booting
        } else if let Some((_, failure)) = &*self.failure.lock() {
            TemplateStatus::Failed(failure.reason.clone())
        } else {
            TemplateStatus::Asleep
        }
    }

    /// The template, if it is up.
    pub(super) fn up(&self) -> Option<Arc<Template>> {
        self.current.load_full()
    }

    /// Takes the template out to make it an instance. It is no longer watched as a template.
    pub(super) fn take(&self) -> Option<Arc<Template>> {
        let template = self.current.swap(None)?;
        template.retire();
        Some(template)
    }

    /// Stores a template if the slot is empty.
    pub(super) fn put(&self, template: &Arc<Template>) -> bool {
        let before = self
            .current
            .compare_and_swap(&None::<Arc<Template>>, Some(template.clone()));
        before.is_none()
    }

    /// Drops the template. It ends with its last instance.
    pub(super) fn clear(&self) {
        if let Some(template) = self.current.swap(None) {
            template.retire();
        }
    }

    /// Forgets this template if it is still the current one: it died, or it cannot fork. If it is still alive (stopped,
    /// or made not to listen by its function), it ends with its last instance.
    pub(super) fn forget(&self, template: &Arc<Template>) {
        template.retire();
        self.current.rcu(|current| match current {
            Some(current) if Arc::ptr_eq(current, template) => None,
            other => other.clone(),
        });
    }

    /// The template, by the cheapest start kind available, and that start kind: a fork if it is up, a restore if it has an
    /// image, else a boot. Concurrent callers share one restore or boot and its start kind.
    pub(super) async fn get(
        &self,
        deployment: &Deployment,
    ) -> Result<(Arc<Template>, StartKind), Arc<BootFailure>> {
        if let Some(template) = self.current.load_full() {
            return Ok((template, StartKind::Fork));
        }
        let _booting = self.booting.lock().await;
        if let Some(template) = self.current.load_full() {
            let start_kind = template.start_kind;
            return Ok((template, start_kind));
        }
        let template = self.bring_up(deployment, || true).await?;
        // It is always needed.
        let template = template.ok_or_else(|| Arc::new(BootFailure::withdrawn()))?;
        self.current.store(Some(template.clone()));
        let start_kind = template.start_kind;
        Ok((template, start_kind))
    }

    /// Restores or boots a template that is not in the slot; nothing if it is no longer needed when its place comes.
    pub(super) async fn bring_up(
        &self,
        deployment: &Deployment,
        of_use: impl Fn() -> bool,
    ) -> Result<Option<Arc<Template>>, Arc<BootFailure>> {
        if let Some((when, failure)) = &*self.failure.lock()
            && when.elapsed() < failure.stands_for()
        {
            return Err(failure.clone());
        }
        match try_bring_up(deployment, of_use).await {
            Ok(up) => {
                *self.failure.lock() = None;
                Ok(up)
            }
            Err(error) => {
                let failure = Arc::new(BootFailure::from(error));
                if failure.is_of_host() {
                    deployment.resources.host_errors.note(&failure.reason);
                } else {
                    tracing::warn!(function = %deployment.name, version = deployment.version(), reason = failure.reason, "template did not boot");
                }
                *self.failure.lock() = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// Watches a template: reads its reports, and forgets it when its sandbox is gone.
    pub(super) async fn watch(deployment: Arc<Deployment>, template: Arc<Template>) {
        // Reports after a malformed one are ignored.
        let heard_out = async {
            template.listen().await;
            template.exited().await
        };
        let ended = tokio::select! {
            ended = template.exited() => ended,
            ended = heard_out => ended,
            // A strong reference would keep its sandbox alive.
            () = template.retired() => return,
        };
        tracing::info!(function = %deployment.name, version = deployment.version(), "template ended: {ended}");
        deployment.slot.forget(&template);
    }
}

async fn try_bring_up(
    deployment: &Deployment,
    of_use: impl Fn() -> bool,
) -> Result<Option<Arc<Template>>, BootError> {
    let Resources {
        restores, boots, ..
    } = &*deployment.resources;
    if deployment.image().is_some() && deployment.may_restore() {
        let _place = restores.enter(deployment.id, || {}).await;
        if !of_use() {
            return Ok(None);
        }
        if let Some(template) = super::snapshot::restore(deployment).await? {
            return Ok(Some(template));
        }
    }
    let _place = boots.enter(deployment.id, || {}).await;
    if !of_use() {
        return Ok(None);
    }
    let begun = Instant::now();
    let template = boot(deployment).await?;
    let mut keep_value = deployment.keep_value.lock();
    keep_value.brought_up(StartKind::Boot, begun.elapsed());
    Ok(Some(template))
}

async fn boot(deployment: &Deployment) -> Result<Arc<Template>, BootError> {
    let (template, imported) = boot_apart(deployment, false).await?;
    deployment.note_threads(&template);
    deployment.keep_imported(imported);
    Ok(template)
}

/// Boots a template that is not the deployment's own yet, and returns the outcome of its import. `dumpable`: it will be
/// dumped.
pub(super) async fn boot_apart(
    deployment: &Deployment,
    dumpable: bool,
) -> Result<(Arc<Template>, Imported), BootError> {
    let Resources {
        host,
        logs,
        busy_poll,
        ..
    } = &*deployment.resources;
    let spec = &deployment.spec;
    let config = TemplateConfig {
        handler: spec.handler.clone(),
        function: spec.name.clone(),
        version: deployment.version(),
        memory_mb: spec.memory_mb,
        body: spec.body,
        busy_poll: *busy_poll,
    };
    let way_out = deployment.way_out();
    let mut sandbox = sandbox_spec(deployment, way_out.as_ref())?;
    sandbox.dumpable = dumpable;
    let function = deployment.function.clone();
    Template::boot(host, sandbox, &config, function, logs, way_out.as_ref()).await
}

/// The sandbox of a version's template.
pub(super) fn sandbox_spec(
    deployment: &Deployment,
    way_out: Option<&WayOut>,
) -> Result<SandboxSpec, BootError> {
    let Resources {
        runtimes,
        uids,
        secrets,
        ..
    } = &*deployment.resources;
    let spec = &deployment.spec;
    let runtime = runtimes.get(spec.runtime);
    let env = environment(spec, deployment.version(), runtime, secrets)
        .map_err(|error| BootError::without("Runtime.NoSecret", &error))?;
    let trust = way_out.map(WayOut::certificate).transpose();
    let trust = trust
        .map_err(|error| BootError::Host(HostError::new(error)))?
        .flatten();
    let uid = uids.take();
    Ok(SandboxSpec {
        id: format!("{}-{}-{uid}", spec.name, deployment.version()),
        hostname: spec.name.clone(),
        uid_base: uid,
        code_dir: deployment.package.path(),
        runtime_name: runtime.name,
        argv: runtime.argv(&spec.handler, spec.memory_mb),
        forks: runtime.fork.is_ok(),
        env,
        memory_bytes: u64::from(spec.memory_mb) * 1024 * 1024,
        // It also bounds the sandbox's memory.
        max_instances: match runtime.becomes {
            Some(_) => 1,
            None => spec.max_concurrency,
        },
        network: way_out.map(WayOut::kernel),
        trust: trust.map(str::to_owned),
        processor: deployment.processor(),
        dumpable: false,
        restore: None,
    })
}
