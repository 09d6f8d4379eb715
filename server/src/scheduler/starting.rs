//! Starts of a deployment: begins the starts that the pool asks for, each at its place among those of all functions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Deployment;
use super::boot::TemplateSlot;
use super::boot_failure::BootFailure;
use super::lease::Origin;
use super::snapshot;
use crate::instance::{FollowUp, Instance, StartError, Template, Way};
use crate::model::StartKind;

/// Pauses between tries while the host is short of something. Most shortages are bursts; after these,
/// the client should rather retry later.
const SHORTAGE_PAUSES: [Duration; 3] = [
    Duration::from_millis(60),
    Duration::from_millis(120),
    Duration::from_millis(240),
];

/// An instance that has started.
pub(super) struct Started {
    pub instance: Instance,
    /// What is to be done once its first request is on its way.
    pub follow_up: FollowUp,
    pub start_kind: StartKind,
}

impl Started {
    pub fn of((instance, follow_up): (Instance, FollowUp), start_kind: StartKind) -> Self {
        Self {
            instance,
            follow_up,
            start_kind,
        }
    }
}

impl Deployment {
    /// The template, and the start kind of a start from it: a fork if it was up, else how it was brought up.
    pub(super) async fn template(
        self: &Arc<Self>,
    ) -> Result<(Arc<Template>, StartKind), Arc<BootFailure>> {
        if let Some(template) = self.slot.up() {
            return Ok((template, self.start_off_a_template()));
        }
        let (template, start_kind) = self.bring_up().await?;
        if template.claim_watch() {
            tokio::spawn(TemplateSlot::watch(self.clone(), template.clone()));
            self.want_ahead();
            self.allow_prefork(true);
            if start_kind == StartKind::Boot {
                snapshot::make_later(self);
            }
        }
        Ok((template, start_kind))
    }

    /// Has the template keep a pre-forked instance, or not while memory is short: it is evicted first.
    pub(super) fn allow_prefork(self: &Arc<Self>, allowed: bool) {
        if self.becomes() {
            self.keep_ahead(allowed);
            return;
        }
        let Some(template) = self.slot.up() else {
            return;
        };
        let forks = self.start_off_a_template() == StartKind::Fork;
        if allowed && self.resources.prefork && forks && !self.is_retired() {
            template.keep_preforked(&self.function, &self.resources.logs);
        } else {
            template.end_preforked();
        }
    }

    /// How an instance starts while the template is up: by a fork, if the interpreter can be forked.
    fn start_off_a_template(&self) -> StartKind {
        match self.resources.runtimes.get(self.spec.runtime).fork {
            Ok(()) => StartKind::Fork,
            Err(_) => StartKind::Boot,
        }
    }

    /// Restores or boots the template. The first caller of this deployment takes a place at the gate; the others wait
    /// for it.
    async fn bring_up(self: &Arc<Self>) -> Result<(Arc<Template>, StartKind), Arc<BootFailure>> {
        let _turn = self.booting.lock().await;
        if let Some(template) = self.slot.up() {
            let start_kind = template.start_kind;
            return Ok((template, start_kind));
        }
        let (template, start_kind) = self.slot.get(self).await?;
        self.pool.lock().touch(Instant::now());
        Ok((template, start_kind))
    }

    /// Begins the starts that pay off for a request that has just joined the queue.
    pub(super) fn start_for_request(self: &Arc<Self>) {
        let begun = self.start_due();
        if begun == 0 && self.pool.lock().queues_behind_busy() {
            self.decisions.note(|counts| counts.queued_behind_busy += 1);
        }
    }

    /// Begins the due starts and returns how many. Arranges for another look at the queue if nothing ends for too long.
    pub(super) fn start_due(self: &Arc<Self>) -> u32 {
        let now = Instant::now();
        let (due, alarm) = {
            let mut pool = self.pool.lock();
            (pool.starts_due(now), pool.alarm(now))
        };
        let starts = due.for_requests + due.for_minimum;
        if starts > 0 {
            self.decisions.note(|counts| {
                counts.started_for_request += u64::from(due.for_requests);
                counts.started_for_minimum += u64::from(due.for_minimum);
            });
        }
        for _ in 0..starts {
            tokio::spawn(self.clone().start_one());
        }
        if let Some(at) = alarm {
            let deployment = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep_until(at.into()).await;
                // Handle what has ended in the meantime first.
                tokio::task::yield_now().await;
                if let Some(deployment) = deployment.upgrade() {
                    deployment.pool.lock().look_again(at);
                    deployment.start_due();
                }
            });
        }
        starts
    }

    pub(super) async fn start_one(self: Arc<Self>) {
        let mut begun = Instant::now();
        let follow_up = match self.try_start(&mut begun).await {
            Ok(Some(Started {
                instance,
                follow_up,
                start_kind,
            })) => {
                self.watch(&instance);
                let was_preforked = instance.was_preforked;
                self.decisions.note(|counts| {
                    counts.preforked_used += u64::from(was_preforked);
                    match start_kind {
                        StartKind::Boot => counts.booted += 1,
                        StartKind::Restore => counts.restored += 1,
                        StartKind::Fork | StartKind::Warm => counts.forked += 1,
                    }
                });
                let ready = Instant::now();
                let origin = Origin {
                    start_kind,
                    begun,
                    ready,
                };
                let given = self.pool.lock().started(Box::new(instance), ready);
                self.hand(given, Some(origin));
                Some(follow_up)
            }
            Ok(None) => {
                self.decisions.note(|counts| counts.start_withdrawn += 1);
                None
            }
            Err(failure) => {
                self.decisions.note(|counts| counts.start_failed += 1);
                let waiters = self.pool.lock().start_failed(Instant::now());
                for waiter in waiters {
                    // The client may have hung up.
                    let _ = waiter.send(Err(failure.clone()));
                }
                None
            }
        };
        self.start_due();
        self.end_if_retired();
        drop(self);
        if let Some(follow_up) = follow_up {
            // The request has been woken, and goes first.
            tokio::task::yield_now().await;
            follow_up.run().await;
        }
    }

    /// Starts an instance; while the host is short of something, retries after each of the pauses. What was brought up
    /// is kept in between.
    async fn try_start(
        self: &Arc<Self>,
        begun: &mut Instant,
    ) -> Result<Option<Started>, Arc<BootFailure>> {
        for pause in SHORTAGE_PAUSES {
            match self.attempt_start(begun).await {
                Err(failure) if failure.is_of_host() && !self.is_retired() => {
                    tokio::time::sleep(pause).await;
                }
                other => return other,
            }
        }
        self.attempt_start(begun).await
    }

    /// Forks an instance; if the template turns out to be dead, boots it and tries once more. `None` if the start was
    /// no longer needed when its place came. `begun` is moved past the wait for the place, which counts as queueing.
    async fn attempt_start(
        self: &Arc<Self>,
        begun: &mut Instant,
    ) -> Result<Option<Started>, Arc<BootFailure>> {
        if self.becomes() {
            return self.attempt_becoming(begun).await;
        }
        let (template, start_kind) = self.template().await?;
        // The first boot has shown whether it can fork.
        if self.becomes() {
            return self.attempt_becoming(begun).await;
        }
        let asked = Instant::now();
        let deferred = || {
            self.decisions
                .note(|counts| counts.start_deferred_by_cores += 1);
        };
        let place = self.resources.starts.enter(self.id, deferred).await;
        let now = Instant::now();
        *begun += now - asked;
        if !self.pool.lock().confirm_start(now) {
            return Ok(None);
        }
        let error = match self.fork(&template).await {
            Ok(forked) => return Ok(Some(Started::of(forked, start_kind))),
            Err(error @ StartError::Host(_)) => return Err(Arc::new(error.into())),
            Err(error) => error,
        };
        // A boot has a place at its own gate, and takes longer than this one should be occupied.
        drop(place);
        tracing::warn!(function = %self.name, version = self.version(), %error, "an instance did not start");
        self.slot.forget(&template);
        self.blame_image(&template, &error.to_string());
        let (template, start_kind) = self.template().await?;
        let _place = self.resources.starts.enter(self.id, || {}).await;
        match self.fork(&template).await {
            Ok(forked) => Ok(Some(Started::of(forked, start_kind))),
            Err(error) => Err(Arc::new(error.into())),
        }
    }

    /// Forks an instance and learns the cost. One that dies at once is replaced, once.
    async fn fork(&self, template: &Arc<Template>) -> Result<(Instance, FollowUp), StartError> {
        match self.fork_one(template).await {
            Err(StartError::Died) => self.fork_one(template).await,
            started => started,
        }
    }

    async fn fork_one(&self, template: &Arc<Template>) -> Result<(Instance, FollowUp), StartError> {
        let sharing = self.pool.lock().forks();
        let started =
            Instance::start(template, Way::Fork, &self.function, &self.resources.logs).await;
        if let Err(StartError::Host(error)) = &started {
            self.resources.host_errors.note(error);
        }
        // A pre-forked instance says nothing about the cost of the next start.
        let instance = started.as_ref().ok().map(|(instance, _)| instance);
        let forked = instance.filter(|new| !new.was_preforked);
        let took = forked.map(|new| new.forked_in / sharing);
        self.pool.lock().forked(took);
        started
    }
}
