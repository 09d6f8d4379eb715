//! Which counters may explain why an invocation was slow, and a sentence that says so. Pure.
//!
//! A cause's time is compared with the excess: how much longer than the median the invocation took.
//! - Of the invocation itself are its stages and what its instance counted. Their times are measured, but for page faults, which are
//!   counted and take [`MINOR_FAULT_NS`] or [`MAJOR_FAULT_NS`] each by assumption.
//! - The quota held back the function's sandboxes at some time between two samples: at most all of that was the invocation's.
//! - Pressure and steal are the host's: what is above their average of the last minutes counts, and the invocation gets its part by its
//!   length. What is always so explains no exception.

mod summary;

use hearth_web::format::{count, duration_us, percent, plural};

use crate::model::{Cause, CauseKind, InvocationRecord, Stages, StartKind, TailWindow};

/// What a page fault takes that needs no disk, in ns: zeroing or copying 4 KiB and the kernel's entry and exit; 0.25 µs on a
/// machine of its own, 0.5 to 1 µs in a virtual one.
const MINOR_FAULT_NS: u64 = 500;
/// What a page fault takes that reads from a disk, in ns: an SSD's.
const MAJOR_FAULT_NS: u64 = 100_000;
/// Part of the excess from which on a cause is the most likely one.
const MOST: f64 = 0.5;
/// Part from which on it is named.
const SOME: f64 = 0.2;
/// Part below which a cause is not listed.
const LEAST: f64 = 0.01;
/// Pressure on the processors from which on a preemption is a likely cause.
const CROWDED: f64 = 0.2;

/// A share of the host's counters.
type Share = fn(&TailWindow) -> Option<f64>;

/// What the host's counters may explain.
const HOST: [(CauseKind, Share, &str); 4] = [
    (
        CauseKind::CpuPressure,
        |window| window.cpu_pressure,
        "something waited for a processor",
    ),
    (
        CauseKind::MemoryPressure,
        |window| window.memory_pressure,
        "something waited for memory",
    ),
    (
        CauseKind::IoPressure,
        |window| window.io_pressure,
        "something waited for a disk",
    ),
    (
        CauseKind::Steal,
        |window| Some(window.steal),
        "the hypervisor took the processors",
    ),
];

/// What is known of an invocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub record: &'a InvocationRecord,
    /// The function's medians.
    pub median: Option<&'a Stages>,
    pub window: Option<&'a TailWindow>,
    /// The host's counters over all the time that they are kept.
    pub usual: Option<&'a TailWindow>,
}

impl Facts<'_> {
    /// How much longer than the median it took, µs; all of it where there is no median.
    pub(super) fn excess_us(&self) -> u64 {
        let median = self.median.map_or(0, |median| median.total);
        self.record.stages_us.total.saturating_sub(median)
    }

    /// Every cause that left a figure: likely ones first, those of the invocation itself before the sandbox's and the host's, then by the time
    /// that they may account for.
    pub(super) fn causes(&self) -> Vec<Cause> {
        let excess = self.excess_us();
        let mut causes = self.of_stages();
        causes.extend(self.of_instance());
        causes.extend(self.of_window(excess));
        causes.retain(|cause| cause.us.is_none_or(|us| us as f64 >= LEAST * excess as f64));
        for cause in &mut causes {
            cause.share = cause
                .us
                .filter(|_| excess > 0)
                .map(|us| (us as f64 / excess as f64).min(1.0));
        }
        causes.sort_by_key(|cause| {
            let is_likely = cause.share.is_some_and(|share| share >= MOST);
            let evidence = match (cause.is_own, cause.kind) {
                (true, _) => 2,
                (false, CauseKind::Throttling) => 1,
                (false, _) => 0,
            };
            let evidence = if is_likely { evidence } else { 0 };
            std::cmp::Reverse((is_likely, evidence, cause.us, cause.is_own))
        });
        causes
    }

    fn of_stages(&self) -> Vec<Cause> {
        let (stages, mut causes) = (&self.record.stages_us, Vec::new());
        let how = match self.record.start {
            Some(StartKind::Fork) => "a fork of the template",
            Some(StartKind::Restore) => "a restore of the template",
            Some(StartKind::Boot) => "a boot of the runtime",
            Some(StartKind::Warm) | None => "a start",
        };
        let usual = self.median.map_or(0, |median| median.start);
        if stages.start > usual {
            let figure = format!("{how} took {}", duration_us(stages.start));
            causes.push(own(CauseKind::Start, stages.start - usual, figure));
        }
        let usual = self.median.map_or(0, |median| median.queue);
        if stages.queue > usual {
            let figure = format!("it waited {} for an instance", duration_us(stages.queue));
            causes.push(own(CauseKind::Queue, stages.queue - usual, figure));
        }
        causes
    }

    fn of_instance(&self) -> Vec<Cause> {
        let Some(counters) = &self.record.counters else {
            return Vec::new();
        };
        let mut causes = Vec::new();
        let (pauses, paused_us) = (
            counters.pauses.unwrap_or_default(),
            counters.paused_us.unwrap_or_default(),
        );
        if pauses > 0 {
            let figure = format!(
                "{} of garbage took {}",
                plural(pauses.into(), "collection"),
                duration_us(paused_us)
            );
            causes.push(own(CauseKind::Collector, paused_us, figure));
        }
        let (minor, major) = (
            u64::from(counters.minor_faults),
            u64::from(counters.major_faults),
        );
        if minor + major > 0 {
            let us = (minor * MINOR_FAULT_NS + major * MAJOR_FAULT_NS) / 1_000;
            let disk = match major {
                0 => String::new(),
                major => format!(", {} of them read from a disk", count(major)),
            };
            let figure = format!(
                "{}{disk}, which take about {}",
                plural(minor + major, "page fault"),
                duration_us(us)
            );
            causes.push(own(CauseKind::PageFaults, us, figure));
        }
        if let Some(preemptions @ 1..) = counters.preemptions {
            let times = plural(preemptions.into(), "time");
            causes.push(Cause {
                us: None,
                ..own(
                    CauseKind::Preemption,
                    0,
                    format!("it was taken off its processor {times}"),
                )
            });
        }
        causes
    }

    fn of_window(&self, excess: u64) -> Vec<Cause> {
        let Some(window) = self.window else {
            return Vec::new();
        };
        let mut causes = Vec::new();
        let total = self.record.stages_us.total;
        if window.throttled_periods > 0 {
            let figure = format!(
                "its quota of processor time held the function back in {}, for {}",
                plural(window.throttled_periods, "period"),
                duration_us(window.throttled_us)
            );
            let us = window.throttled_us.min(excess);
            causes.push(around(CauseKind::Throttling, us, figure));
        }
        for (kind, of, what) in HOST {
            let now = of(window).unwrap_or_default();
            let usual = self.usual.and_then(of).unwrap_or_default();
            if now > usual {
                let (now_shown, usual_shown) = (percent(now), percent(usual));
                let figure =
                    format!("{what} in {now_shown} of the time, in {usual_shown} on average");
                let us = ((now - usual) * total as f64) as u64;
                causes.push(around(kind, us.min(excess), figure));
            }
        }
        causes
    }
}

fn own(kind: CauseKind, us: u64, figure: String) -> Cause {
    Cause {
        kind,
        us: Some(us),
        share: None,
        is_own: true,
        figure,
    }
}

fn around(kind: CauseKind, us: u64, figure: String) -> Cause {
    Cause {
        is_own: false,
        ..own(kind, us, figure)
    }
}

/// What a cause is called in a sentence.
pub fn name(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Start => "a cold start",
        CauseKind::Queue => "the queue",
        CauseKind::Collector => "the garbage collector",
        CauseKind::PageFaults => "page faults",
        CauseKind::Throttling => "CPU throttling",
        CauseKind::Preemption => "a lost processor",
        CauseKind::CpuPressure => "a busy host",
        CauseKind::MemoryPressure => "short memory",
        CauseKind::IoPressure => "a busy disk",
        CauseKind::Steal => "the hypervisor",
    }
}

#[cfg(test)]
mod tests;
