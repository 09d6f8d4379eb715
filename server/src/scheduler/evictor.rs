//! The evictor: measures the memory of templates and instances, and evicts the least valuable when memory is short.
//! [`policy::keep`] chooses; this module measures and acts.
//!
//! A size is the memory charged to the cgroups without file cache, rather than PSS: `smaps_rollup` walks a process's
//! page tables, about a millisecond each while it holds the memory map, whereas the kernel maintains a cgroup's
//! counters anyway. They also fit the question better: a page shared with the template is charged to the template,
//! which touched it first, so an instance's own figure is what its end frees.
//!
//! [`policy::keep`]: super::policy::keep

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::housekeeping::TICK;
use super::policy::estimate::{Frequency, Mean};
use super::policy::keep::{self, Kept, KeptTier, StartCosts};
use super::policy::pressure::{HostStalls, excess};
use super::prewarmed;
use super::{Deployment, Resources};
use crate::instance::Template;
use crate::model::StartKind;
use crate::sandbox::MemoryUse;
use crate::system::HostMemory;

/// Age at which a size is measured again: a function's memory grows with use, but slowly.
const SAMPLE_AGE: Duration = Duration::from_secs(10);
/// Rounds in which all are measured again.
const ROUNDS_PER_AGE: usize = (SAMPLE_AGE.as_millis() / TICK.as_millis()) as usize;
/// Sandboxes measured at once: bounds the cost for any number of functions (four small files each, some 100 µs).
const SAMPLES_AT_ONCE: usize = 16;
/// Assumed duration of a boot and a restore until one was measured.
const ASSUMED_BOOT: Duration = Duration::from_millis(80);
const ASSUMED_RESTORE: Duration = Duration::from_millis(15);
/// Assumed size of an instance until one was measured: about that of an idle Python one.
const ASSUMED_INSTANCE_BYTES: u64 = 1 << 20;

/// What keeping a deployment is worth. Only the evictor and boots, which are rare, use it.
#[derive(Debug, Clone, Default)]
pub(super) struct KeepValue {
    boot: Mean,
    restore: Mean,
    frequency: Frequency,
    /// Calls included in `frequency`, and until when.
    calls: u64,
    until: Option<Instant>,
    mark: f64,
    size: Option<Size>,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    template: u64,
    instance: u64,
    sampled: Instant,
}

impl KeepValue {
    /// Bytes of one instance, as last measured.
    pub(super) fn instance_bytes(&self) -> u64 {
        self.size
            .map_or(ASSUMED_INSTANCE_BYTES, |size| size.instance)
    }

    /// For the function's next version, whose sizes differ.
    pub(super) fn continued(&self) -> Self {
        Self {
            calls: 0,
            until: None,
            size: None,
            ..self.clone()
        }
    }

    /// Records how long this start kind took to bring the template up.
    pub(super) fn brought_up(&mut self, start_kind: StartKind, took: Duration) {
        match start_kind {
            StartKind::Restore => self.restore.sample(took),
            _ => self.boot.sample(took),
        }
        self.size = None;
    }

    /// The time it takes to bring up a template.
    pub(super) fn boot_cost(&self) -> Duration {
        self.boot.get().unwrap_or(ASSUMED_BOOT)
    }

    fn advance(&mut self, calls: u64, now: Instant, clock: f64) {
        let elapsed = now - self.until.unwrap_or(now);
        let new = calls.saturating_sub(self.calls);
        self.frequency.advance(elapsed, new);
        if new > 0 || self.until.is_none() {
            self.mark = clock;
        }
        (self.calls, self.until) = (calls, Some(now));
    }

    /// `becomes`: each instance was such a template, and takes at least as much memory.
    fn measured(&mut self, memory: MemoryUse, live: u32, becomes: bool, now: Instant) {
        let instances = memory.sandbox.saturating_sub(memory.template);
        let instance = match (live, self.size) {
            _ if becomes => memory.template,
            (0, Some(size)) => size.instance,
            (0, None) => ASSUMED_INSTANCE_BYTES,
            (live, _) => instances / u64::from(live),
        };
        self.size = Some(Size {
            template: memory.template,
            instance,
            sampled: now,
        });
    }
}

/// Memory in use, in bytes, and its budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// Used by templates, instances and images.
    pub used: u64,
    /// The budget.
    pub budget: u64,
}

/// Keeps memory within the budget.
#[derive(Debug)]
pub struct Evictor {
    budget: u64,
    policy: keep::KeepPolicy,
    stalls: HostStalls,
}

impl Evictor {
    /// `budget` in bytes.
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            policy: keep::KeepPolicy::default(),
            stalls: HostStalls::default(),
        }
    }

    /// One round: measures what has no figure yet, and evicts what exceeds the budget. Call it every [`TICK`].
    pub async fn round(
        &mut self,
        resources: &Resources,
        deployments: &[Arc<Deployment>],
        now: Instant,
    ) -> MemoryStatus {
        measure_new(deployments, now).await;
        let host = tokio::task::spawn_blocking(HostMemory::read).await;
        let host = self.stalls.only(host.unwrap_or_default(), now);
        let mut used = 0_u64;
        let kept: Vec<Kept> = deployments
            .iter()
            .map(|deployment| {
                let (kept, bytes) = self.look_at(deployment, now);
                used = used.saturating_add(bytes);
                kept
            })
            .collect();
        let excess = excess(used, self.budget, host);
        let sleeping = deployments
            .iter()
            .zip(&kept)
            .filter_map(|(deployment, kept)| {
                // The next instance of a function that cannot fork is restored even while it is awake.
                let restores = deployment.slot.up().is_none() || deployment.becomes();
                (kept.restorable && restores).then_some(deployment)
            });
        prewarmed::keep(resources, deployments, sleeping, excess == 0);
        for deployment in deployments {
            deployment.allow_prefork(excess == 0);
        }
        if excess > 0 {
            for (index, tier) in self.policy.choose(&kept, excess) {
                deployments[index].evict(tier);
            }
        }
        MemoryStatus {
            used,
            budget: self.budget,
        }
    }

    /// What may be evicted of a deployment, and the bytes that it uses in total.
    fn look_at(&self, deployment: &Deployment, now: Instant) -> (Kept, u64) {
        let (counts, idle, calls, fork) = {
            let pool = deployment.pool.lock();
            let counts = pool.counts();
            (counts, pool.evictable(), pool.calls(), pool.start_cost())
        };
        let is_up = deployment.slot.up().is_some();
        let image = deployment.image_bytes();
        let mut keep_value = deployment.keep_value.lock();
        keep_value.advance(calls, now, self.policy.clock());
        let stays = deployment.spec.keep_warm;
        // An instance that is starting or busy, or must stay, needs its template.
        let only_idle = counts.live() == idle && counts.starting == 0 && counts.queued == 0;
        // Where many are new at once, a size that is not known yet counts from a later round on.
        let template = keep_value.size.filter(|_| is_up).map(|size| size.template);
        let instance_bytes = keep_value.instance_bytes();
        let kept = Kept {
            idle,
            live: counts.live(),
            instance_bytes,
            template: template.filter(|_| only_idle && !stays),
            image: image.filter(|_| only_idle && !stays),
            restorable: image.is_some(),
            costs: StartCosts {
                fork,
                restore: keep_value.restore.get().unwrap_or(ASSUMED_RESTORE),
                boot: keep_value.boot_cost(),
            },
            frequency: keep_value.frequency.get(),
            mark: keep_value.mark,
        };
        let bytes =
            template.unwrap_or(0) + u64::from(counts.live()) * instance_bytes + image.unwrap_or(0);
        (kept, bytes)
    }
}

/// Measures the sandboxes that have no figure yet.
async fn measure_new(deployments: &[Arc<Deployment>], now: Instant) {
    let mut due = Vec::new();
    for (index, deployment) in deployments.iter().enumerate() {
        let is_new = deployment.keep_value.lock().size.is_none();
        if is_new && let Some(template) = deployment.slot.up() {
            due.push((index, template));
        }
    }
    due.truncate(SAMPLES_AT_ONCE);
    measure(deployments, due, now).await;
}

/// Measures again the sandboxes with the oldest of those figures that are old, so few that the others are measured in other
/// rounds. Call it every [`TICK`] for each deployment, but not for all at once.
pub async fn measure_again(deployments: &[Arc<Deployment>], now: Instant) {
    let mut due = Vec::new();
    for (index, deployment) in deployments.iter().enumerate() {
        let sampled = deployment.keep_value.lock().size.map(|size| size.sampled);
        let old = sampled.filter(|at| now.saturating_duration_since(*at) >= SAMPLE_AGE);
        if let (Some(sampled), Some(template)) = (old, deployment.slot.up()) {
            due.push((sampled, (index, template)));
        }
    }
    due.sort_by_key(|(sampled, _)| *sampled);
    due.truncate(
        deployments
            .len()
            .div_ceil(ROUNDS_PER_AGE)
            .min(SAMPLES_AT_ONCE),
    );
    let due = due.into_iter().map(|(_, one)| one).collect();
    measure(deployments, due, now).await;
}

async fn measure(deployments: &[Arc<Deployment>], due: Vec<(usize, Arc<Template>)>, now: Instant) {
    if due.is_empty() {
        return;
    }
    let read = move || -> Vec<_> {
        let due = due.into_iter();
        due.filter_map(|(index, template)| Some((index, template.memory()?)))
            .collect()
    };
    // An error means the end of the tokio runtime.
    for (index, memory) in tokio::task::spawn_blocking(read).await.unwrap_or_default() {
        let deployment = &deployments[index];
        let live = deployment.counts().live();
        let becomes = deployment.becomes();
        let mut keep_value = deployment.keep_value.lock();
        keep_value.measured(memory, live, becomes, now);
    }
}

impl Deployment {
    /// Evicts a tier for lack of memory, unless it is in use by now.
    fn evict(&self, tier: KeptTier) {
        match tier {
            KeptTier::Instance => {
                let evicted = self.pool.lock().evict(1);
                let count = evicted.len() as u64;
                drop(evicted);
                self.decisions.note(|counts| counts.evicted_memory += count);
            }
            KeptTier::Template => {
                if self.let_template_go() {
                    self.decisions.note(|counts| counts.template_evicted += 1);
                    tracing::info!(function = %self.name, version = self.version(), "template let go: memory is short");
                }
            }
            KeptTier::Image => {
                self.drop_image();
                self.decisions.note(|counts| counts.image_evicted += 1);
            }
        }
    }
}
