//! What the samples of a run come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::drive::{Ended, Outcome};
use super::plan::{Plan, Schedule};
use super::sample::{Fault, Sample};
use crate::statistics::Tail;

/// A run of the load generator, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// When it began, in ns since 1970.
    pub began_at_ns: u64,
    /// How long it took, in ns.
    pub elapsed_ns: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Those that were answered with 200.
    pub good: u64,
    /// Those that were not, by reason.
    pub faults: BTreeMap<Fault, u64>,
    /// Answers by their status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests of an open loop that were due but never sent: all connections were busy up to the end.
    pub unsent: u64,
    /// Bytes of all answers' bodies.
    pub bytes: u64,
    /// Requests per second that were sent.
    pub rate: f64,
    /// By how much the rate is off from the planned one, as a share of it. Open loop only.
    pub rate_error: Option<f64>,
    /// How much later than intended requests were sent, in ns. Not in a closed loop, which intends no times.
    pub send_delay_ns: Option<Tail>,
    /// From sending to the first byte of good answers.
    pub to_first_byte: Latency,
    /// From sending to the last byte of good answers.
    pub to_last_byte: Latency,
    /// Processor time of the load generator, in ns.
    pub processor_ns: u64,
    /// The same as a share of one processor.
    pub processor_share: f64,
}

/// Latencies in ns. None without good answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// From when a request was sent. With a slow server an open loop that waits for connections looks better than it is, as a closed loop
    /// always does: coordinated omission.
    pub uncorrected_ns: Option<Tail>,
    /// From when it was intended to be sent: corrected for coordinated omission. Not in a closed loop, which intends no times.
    pub corrected_ns: Option<Tail>,
}

impl Report {
    /// Of an outcome of a plan.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let samples = &outcome.samples;
        let mut faults = BTreeMap::new();
        let mut statuses = BTreeMap::new();
        for sample in samples {
            if let Some(fault) = sample.fault {
                *faults.entry(fault).or_default() += 1;
            }
            if sample.status != 0 {
                *statuses.entry(sample.status).or_default() += 1;
            }
        }
        let has_times = !matches!(plan.schedule, Schedule::Closed { .. });
        let good = || samples.iter().filter(|sample| sample.fault.is_none());
        let tail = |of: fn(&Sample) -> u64| {
            let mut all: Vec<f64> = good().map(|sample| of(sample) as f64).collect();
            Tail::of(&mut all)
        };
        let mut delays: Vec<f64> = samples
            .iter()
            .map(|sample| (sample.sent - sample.intended.min(sample.sent)) as f64)
            .collect();
        let sent = samples.len() as u64;
        let seconds = outcome.elapsed.max(1) as f64 / 1e9;
        Self {
            ended: outcome.ended,
            began_at_ns: outcome.began_at,
            elapsed_ns: outcome.elapsed,
            sent,
            good: good().count() as u64,
            faults,
            statuses,
            unsent: outcome.unsent,
            bytes: samples.iter().map(|sample| sample.bytes).sum(),
            rate: sent as f64 / seconds,
            rate_error: rate_error(plan, outcome),
            send_delay_ns: if has_times {
                Tail::of(&mut delays)
            } else {
                None
            },
            to_first_byte: Latency {
                uncorrected_ns: tail(Sample::to_first),
                corrected_ns: if has_times {
                    tail(Sample::to_first_corrected)
                } else {
                    None
                },
            },
            to_last_byte: Latency {
                uncorrected_ns: tail(Sample::to_last),
                corrected_ns: if has_times {
                    tail(Sample::to_last_corrected)
                } else {
                    None
                },
            },
            processor_ns: outcome.processor,
            processor_share: outcome.processor as f64 / outcome.elapsed.max(1) as f64,
        }
    }
}

/// The rate at which requests were sent beside the one at which they were due.
fn rate_error(plan: &Plan, outcome: &Outcome) -> Option<f64> {
    let Schedule::Open { .. } = plan.schedule else {
        return None;
    };
    let sent = outcome.samples.len() as f64;
    let last = outcome.samples.iter().map(|sample| sample.sent).max()?;
    if last == 0 || outcome.planned == 0 {
        return None;
    }
    let rate = sent / last as f64;
    let planned = (sent + outcome.unsent as f64) / outcome.planned as f64;
    Some(rate / planned - 1.0)
}
