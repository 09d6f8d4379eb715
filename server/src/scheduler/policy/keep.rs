//! What to let go when memory is short: GreedyDual-Size-Frequency.
//!
//! Everything kept saves a start: an idle instance saves a fork, a template saves a restore or a boot, an image saves the
//! difference between the two. What is worth keeping saves much, often, in little memory:
//!
//! ```text
//! priority = clock at its last use + frequency × cost saved / size
//! ```
//!
//! The lowest goes first, and the clock moves up to its priority, so that what was not used since sinks below what is,
//! however high it once stood. The rule is Cherkasova's ("Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency
//! Caching Policy", HP Labs 1998), after GreedyDual-Size (Cao and Irani, USENIX ITS 1997); FaasCache (Fuerst and Sharma,
//! ASPLOS 2021) showed that keeping functions warm is the same problem.
//!
//! Of one function, instances go before the template they are forks of, since its memory is not free before they are
//! gone. Images go last, after everybody's templates: a template that goes costs its next caller a restore, an image a
//! boot, which for a large function is a hundred times as long; and an image is file cache, which the kernel takes back
//! by itself. What is busy, starting, wanted as a minimum or declared
//! `keep_warm` is never a candidate: who asks leaves it out.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Least size that is counted with: whatever was measured, the kernel's own books for a process take this much.
const LEAST_BYTES: u64 = 64 * 1024;

/// What the starts of a function take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartCosts {
    /// An instance off its template.
    pub fork: Duration,
    /// A template from its image.
    pub restore: Duration,
    /// A template without one.
    pub boot: Duration,
}

/// What one function keeps, as far as it may be let go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// Idle instances that may go.
    pub idle: u32,
    /// Instances that live, those included.
    pub live: u32,
    /// Size of one of them, bytes.
    pub instance_bytes: u64,
    /// Size of its template; `None` if there is none or it must stay.
    pub template: Option<u64>,
    /// Size of its image; likewise.
    pub image: Option<u64>,
    /// Whether there is an image, be it one that has to stay.
    pub restorable: bool,
    /// What its starts take.
    pub costs: StartCosts,
    /// How often it is called.
    pub frequency: f64,
    /// [`KeepPolicy::clock`] when it was last used.
    pub mark: f64,
}

/// A tier that is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptTier {
    /// The idle instance that was used least recently.
    Instance,
    /// The template.
    Template,
    /// The image.
    Image,
}

/// The clock of the rule, from one call to the next.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepPolicy {
    clock: f64,
}

struct Candidate {
    priority: f64,
    function: usize,
    tier: KeptTier,
    bytes: u64,
}

impl Ord for Candidate {
    /// The heap gives the greatest: images last, else the lowest priority, and of equal ones the function that comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        let is_image = |candidate: &Self| candidate.tier == KeptTier::Image;
        (is_image(other).cmp(&is_image(self)))
            .then(other.priority.total_cmp(&self.priority))
            .then(other.function.cmp(&self.function))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl KeepPolicy {
    /// What a function that is used now is marked with.
    pub fn clock(&self) -> f64 {
        self.clock
    }

    /// Chooses what to let go so that at least `excess` bytes are free, or everything that may go when that is less:
    /// indices into `kept` and what goes, in order.
    pub fn choose(&mut self, kept: &[Kept], excess: u64) -> Vec<(usize, KeptTier)> {
        let mut left: Vec<Kept> = kept.to_vec();
        let mut heap: BinaryHeap<Candidate> = (0..left.len())
            .filter_map(|function| candidate(&left[function], function))
            .collect();
        let (mut chosen, mut freed) = (Vec::new(), 0_u64);
        while freed < excess
            && let Some(lowest) = heap.pop()
        {
            self.clock = self.clock.max(lowest.priority);
            freed = freed.saturating_add(lowest.bytes);
            chosen.push((lowest.function, lowest.tier));
            let function = &mut left[lowest.function];
            match lowest.tier {
                KeptTier::Instance => {
                    function.idle -= 1;
                    function.live = function.live.saturating_sub(1);
                }
                KeptTier::Template => function.template = None,
                KeptTier::Image => function.image = None,
            }
            heap.extend(candidate(function, lowest.function));
        }
        chosen
    }
}

/// What of a function would go first.
fn candidate(kept: &Kept, function: usize) -> Option<Candidate> {
    let StartCosts {
        fork,
        restore,
        boot,
    } = kept.costs;
    let (tier, bytes, saved, frequency) = if kept.idle > 0 {
        // The last of several is used only while all the others are busy: it is taken to serve that part of the calls.
        let rank = f64::from(kept.live.max(1));
        (
            KeptTier::Instance,
            kept.instance_bytes,
            fork,
            kept.frequency / rank,
        )
    } else if let Some(bytes) = kept.template {
        let saved = if kept.restorable { restore } else { boot };
        (KeptTier::Template, bytes, saved, kept.frequency)
    } else {
        let saved = boot.saturating_sub(restore);
        (KeptTier::Image, kept.image?, saved, kept.frequency)
    };
    let size = bytes.max(LEAST_BYTES) as f64;
    Some(Candidate {
        priority: kept.mark + frequency * saved.as_secs_f64() / size,
        function,
        tier,
        bytes,
    })
}

#[cfg(test)]
#[path = "keep_tests.rs"]
mod tests;
