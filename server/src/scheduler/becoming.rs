//! Instances that are not forks: each is a whole template, restored or booted in its own sandbox with all the threads
//! that its import left running. A fork would have none of them, and a request that waits for one would hang.
//!
//! One such template is brought up in advance, as others keep a pre-forked instance: a start takes it out of the slot
//! and has it become the instance. A start that finds none brings one up itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::boot::TemplateSlot;
use super::boot_failure::BootFailure;
use super::deployment::Deployment;
use super::resources::Resources;
use super::snapshot;
use super::starting::Started;
use crate::instance::{Instance, StartError, Template, Way};
use crate::model::{
    FunctionSpec, Start, StartChoice, StartKind, Threads, choose_boot, choose_start,
};

/// State of the template that is brought up in advance.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Whether to bring one up: somebody called, and it was not evicted since.
    wanted: AtomicBool,
    /// Whether one is being brought up.
    coming: AtomicBool,
    /// Whether an image was attempted. Another attempt would take another boot and likely fail as well.
    imaged: AtomicBool,
}

impl Resources {
    /// How instances of a version with these settings start on this host.
    pub fn start_choice(&self, spec: &FunctionSpec, threads: Option<&Threads>) -> StartChoice {
        let runtime = self.runtimes.get(spec.runtime);
        if let Some(why) = runtime.becomes {
            return choose_boot(spec.start, why);
        }
        let restore = self.images.available();
        let fork = match &runtime.fork {
            Ok(()) => Ok(()),
            Err(why) => Err(why.as_str()),
        };
        choose_start(spec.start, threads, fork, restore)
    }
}

impl Deployment {
    /// How its instances start, and why.
    pub fn start_choice(&self) -> StartChoice {
        let threads = self.threads.lock();
        let mut choice = self.resources.start_choice(&self.spec, threads.as_ref());
        drop(threads);
        if choice.by == StartKind::Restore && self.image().is_none() {
            let counters = self.resources.images.counters(&self.name);
            if let Some(note) = counters
                .note()
                .filter(|_| counters.totals().dump_failures > 0)
            {
                choice.by = StartKind::Boot;
                let image = format!("there is no image: {note}");
                choice.reason = Some(match choice.reason {
                    Some(reason) => format!("{reason}; {image}"),
                    None => image,
                });
            }
        }
        choice
    }

    /// What its import leaves running, once known.
    pub fn threads(&self) -> Option<Threads> {
        self.threads.lock().clone()
    }

    /// Whether a template becomes the instance instead of forking it.
    pub(super) fn becomes(&self) -> bool {
        let runtime = self.resources.runtimes.get(self.spec.runtime);
        if runtime.becomes.is_some() {
            return true;
        }
        if runtime.fork.is_err() {
            return false;
        }
        match self.spec.start {
            Start::Fork => false,
            Start::Restore | Start::Boot => true,
            Start::Auto => {
                let threads = self.threads.lock();
                threads.as_ref().is_some_and(|threads| threads.count > 0)
            }
        }
    }

    /// Whether its image may be used: only once it is known whether a template restored from it can fork.
    pub(super) fn may_restore(&self) -> bool {
        self.spec.start != Start::Auto || self.threads.lock().is_some()
    }

    /// Records the findings of a boot. Threads that were seen once may appear in any boot: from then on it is not
    /// forked.
    pub(super) fn note_threads(&self, template: &Template) {
        let Some(seen) = &template.threads else {
            return;
        };
        let was_forked = !self.becomes();
        {
            let mut known = self.threads.lock();
            match &*known {
                Some(known) if known.count > 0 => {}
                _ => *known = Some(seen.clone()),
            }
        }
        if was_forked && self.becomes() {
            tracing::info!(function = %self.name, version = self.version(), threads = seen.count, "its import leaves threads running: it is not forked");
            // It may have forked.
            self.slot.clear();
        }
    }

    /// Starts an instance: from the template that was brought up in advance, else from one brought up for it. `None` if
    /// the start was no longer needed when its place came. `begun` is moved past the wait for the place.
    pub(super) async fn attempt_becoming(
        self: &Arc<Self>,
        begun: &mut Instant,
    ) -> Result<Option<Started>, Arc<BootFailure>> {
        self.ahead.wanted.store(true, Ordering::Release);
        let of_use = || self.pool.lock().confirm_start(Instant::now());
        if self.slot.up().is_some() {
            let asked = Instant::now();
            let deferred = || {
                self.decisions
                    .note(|counts| counts.start_deferred_by_cores += 1);
            };
            let _place = self.resources.starts.enter(self.id, deferred).await;
            *begun += asked.elapsed();
            if !of_use() {
                return Ok(None);
            }
            if let Some(template) = self.slot.take() {
                match self.make_instance(&template, None).await {
                    Ok(mut started) => {
                        started.instance.was_preforked = true;
                        return Ok(Some(started));
                    }
                    Err(StartError::Host(error)) => {
                        return Err(Arc::new(StartError::Host(error).into()));
                    }
                    // It may have ended while it waited, which says nothing about the next one.
                    Err(error) => {
                        tracing::info!(function = %self.name, version = self.version(), %error, "a template brought up in advance did not become an instance");
                    }
                }
            }
        }
        loop {
            let since = Instant::now();
            let Some(template) = self.slot.bring_up(self, of_use).await? else {
                return Ok(None);
            };
            self.image_once(&template);
            let place = self.resources.starts.enter(self.id, || {}).await;
            let error = match self.make_instance(&template, Some(since)).await {
                Ok(started) => return Ok(Some(started)),
                Err(error) => error,
            };
            drop(place);
            tracing::warn!(function = %self.name, version = self.version(), %error, "an instance did not start");
            if matches!(error, StartError::Host(_)) || template.start_kind != StartKind::Restore {
                return Err(Arc::new(error.into()));
            }
            // Without its image, the next one is booted.
            self.blame_image(&template, &error.to_string());
        }
    }

    /// Has a template become an instance, and learns the cost of a start that began `since` then.
    async fn make_instance(
        &self,
        template: &Arc<Template>,
        since: Option<Instant>,
    ) -> Result<Started, StartError> {
        let sharing = self.pool.lock().forks();
        let logs = &self.resources.logs;
        let started = Instance::start(template, Way::Become, &self.function, logs).await;
        if let Err(StartError::Host(error)) = &started {
            self.resources.host_errors.note(error);
        }
        let took = since.filter(|_| started.is_ok());
        self.pool
            .lock()
            .forked(took.map(|since| since.elapsed() / sharing));
        Ok(Started::of(started?, template.start_kind))
    }

    /// Has the image created that further instances are restored from, unless that was tried.
    fn image_once(self: &Arc<Self>, template: &Template) {
        if template.start_kind == StartKind::Boot && !self.ahead.imaged.swap(true, Ordering::AcqRel)
        {
            snapshot::make_later(self);
        }
    }

    /// An image exists, and is missed if it disappears.
    pub(super) fn was_imaged(&self) {
        self.ahead.imaged.store(false, Ordering::Release);
    }

    /// Notes that the template came up for the next request.
    pub(super) fn want_ahead(&self) {
        self.ahead.wanted.store(true, Ordering::Release);
    }

    /// Evicts the template: none is brought up in advance until somebody calls.
    pub(super) fn want_none_ahead(&self) {
        self.ahead.wanted.store(false, Ordering::Release);
    }

    /// Brings up the next template if there is none, in the background, once no start is under way. Under memory
    /// pressure it is evicted first.
    pub(super) fn keep_ahead(self: &Arc<Self>, allowed: bool) {
        if !allowed {
            if self.slot.up().is_some() && !self.spec.keep_warm {
                // Only after a call: otherwise it would be evicted and brought up alternately.
                self.want_none_ahead();
                self.slot.clear();
            }
            return;
        }
        let counts = self.counts();
        let of_use = !self.is_retired()
            && self.resources.prefork
            && self.ahead.wanted.load(Ordering::Acquire)
            && self.slot.up().is_none()
            && counts.starting + counts.queued == 0
            && counts.live() < self.spec.max_concurrency;
        if !of_use || self.ahead.coming.swap(true, Ordering::AcqRel) {
            return;
        }
        let deployment = self.clone();
        tokio::spawn(async move {
            // If it fails, the next start reports why.
            let up = deployment.slot.bring_up(&deployment, || true).await;
            if let Ok(Some(template)) = up {
                deployment.image_once(&template);
                deployment.keep(&template);
            }
            deployment.ahead.coming.store(false, Ordering::Release);
            deployment.end_if_retired();
        });
    }

    /// Keeps a template for the next start, unless there is one.
    fn keep(self: &Arc<Self>, template: &Arc<Template>) {
        if !self.slot.put(template) {
            template.retire();
        } else if template.claim_watch() {
            tokio::spawn(TemplateSlot::watch(self.clone(), template.clone()));
        }
    }
}
