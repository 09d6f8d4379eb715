//! Why an invocation took as long as it did.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::{InvocationCounters, InvocationId, Stages, StartKind};

/// What made an invocation slow, or may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// An instance had to be started.
    Start,
    /// All instances were busy.
    Queue,
    /// The runtime collected garbage.
    Collector,
    /// Pages of memory were touched for the first time, copied, or read from a disk.
    PageFaults,
    /// The kernel held the sandbox back for its quota of processor time.
    Throttling,
    /// The kernel gave the processor to somebody else.
    Preemption,
    /// Something on the host waited for a processor.
    CpuPressure,
    /// Something on the host waited for memory.
    MemoryPressure,
    /// Something on the host waited for a disk.
    IoPressure,
    /// The hypervisor ran something else.
    Steal,
}

/// One cause with its figure.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Cause {
    /// Which.
    pub kind: CauseKind,
    /// Time it may account for, µs; null where a counter has no time.
    pub us: Option<u64>,
    /// `us` as a share of what the invocation took longer than the median, 0 to 1.
    pub share: Option<f64>,
    /// Whether it was measured for this invocation alone. Otherwise it was measured for the host or the sandbox around that time, and `us` is
    /// what falls to the invocation on average, or at most.
    pub is_own: bool,
    /// The figure in words.
    pub figure: String,
}

/// Counters of the host, and of the function's sandboxes, around an invocation. Shares are of the window's time, 0 to 1; those of
/// the kernel's pressure stall information are null where it does not tell.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TailWindow {
    /// The last sample before the invocation.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// The first sample after it.
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
    /// Share of all processors' time that was not idle.
    pub busy: f64,
    /// Share of all processors' time that the hypervisor took.
    pub steal: f64,
    /// Share of the time in which something waited for a processor.
    pub cpu_pressure: Option<f64>,
    /// The same for memory.
    pub memory_pressure: Option<f64>,
    /// The same for disks.
    pub io_pressure: Option<f64>,
    /// Periods of its quota in which the kernel held the function's sandboxes back.
    pub throttled_periods: u64,
    /// How long it did, µs, added up over processors.
    pub throttled_us: u64,
}

/// Invocations of a function in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RanMeanwhile {
    /// Name of the function or chain.
    pub function: String,
    /// Invocations.
    pub count: u64,
    /// Those among them that needed a start.
    pub cold: u64,
    /// Time of theirs that lies in the window, µs, added up.
    pub overlap_us: u64,
}

/// A version that was deployed around that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeployedMeanwhile {
    /// Name of the function.
    pub function: String,
    /// The version.
    pub version: u32,
    /// When it was stored, after it was built and booted.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// An experiment of the lab that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExperimentMeanwhile {
    /// Its number.
    pub id: i64,
    /// What it answers.
    pub title: String,
}

/// What else ran while an invocation did. Only what the caller may see is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Meanwhile {
    /// Other invocations that have ended since, by function, the longest overlap first.
    pub invocations: Vec<RanMeanwhile>,
    /// Invocations of functions that are not named: at most ten are, and only those that the caller may see.
    pub unnamed: u64,
    /// Versions that were stored from a second before until ten seconds after it: they were being built and booted.
    pub deployments: Vec<DeployedMeanwhile>,
    /// Experiments of the lab.
    pub experiments: Vec<ExperimentMeanwhile>,
    /// Writes of the history that took 20 ms or longer, µs each: a checkpoint of the database or a slow disk.
    pub slow_writes_us: Vec<u64>,
}

/// `GET /api/v1/invocations/{id}/explain`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Explanation {
    /// The invocation.
    pub id: InvocationId,
    /// Its function.
    pub function: String,
    /// How its instance was started.
    pub start: Option<StartKind>,
    /// When it was admitted.
    #[schema(value_type = String, format = DateTime)]
    pub received_at: Timestamp,
    /// Time per stage.
    pub stages_us: Stages,
    /// Medians of the function's stages in the last hour, or in the last 7 days if it was not called twice in that; null if not in those
    /// either.
    pub median_us: Option<Stages>,
    /// 99th percentile of the total in the same window; null with fewer than 100 invocations.
    pub p99_us: Option<u64>,
    /// How much longer than the median it took, µs.
    pub excess_us: u64,
    /// What most likely explains that, in a sentence or two. That no counter does is an answer.
    pub summary: String,
    /// All causes that left a figure, what may account for most first.
    pub causes: Vec<Cause>,
    /// Counters of the instance; null if there are none.
    pub counters: Option<InvocationCounters>,
    /// Counters of the host and the sandbox; null if they do not reach back.
    pub window: Option<TailWindow>,
    /// Since when the host's counters are kept.
    #[schema(value_type = String, format = DateTime)]
    pub window_since: Timestamp,
    /// What else ran.
    pub meanwhile: Meanwhile,
}
