//! The lab's own files: everything, as JSON.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::environment::Environment;
use super::noise::Noise;
use crate::load::{Fault, Report, Sample};
use crate::stellar::SubExperiment;

/// `experiment.json`: a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    pub(super) lab_version: &'static str,
    pub(super) began_at: Timestamp,
    pub(super) ended_at: Timestamp,
    /// Of the stochastic pauses; sub-experiment n has the n-th after it.
    pub(super) seed: u64,
    pub(super) provider: &'a str,
    pub(super) endpoint: Option<&'a String>,
    /// The machine that the load generator ran on.
    pub(super) environment: Environment,
    pub(super) noise: &'a Noise,
    /// What the server says of itself.
    pub(super) node: Option<Value>,
    pub(super) sub_experiments: &'a [Entry],
    /// Why it did not come to its end.
    pub(super) error: Option<String>,
}

/// A sub-experiment that was measured.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Its number in the experiment.
    pub number: usize,
    /// Its title.
    pub title: String,
    /// Name of the directory with its files.
    pub directory: String,
    /// What came of it.
    pub report: Report,
    /// How requests got their instances; none for an endpoint.
    pub starts: Option<BTreeMap<String, u64>>,
    /// Share of all processor time that the hypervisor took meanwhile.
    pub steal_share: Option<f64>,
    /// The number of the burst and the time to the first byte, in ns, of each good answer.
    #[serde(skip)]
    pub latencies_ns: Vec<(u32, f64)>,
}

/// `result.json`: a sub-experiment.
#[derive(Debug, Serialize)]
pub(super) struct Measured<'a> {
    pub(super) config: &'a SubExperiment,
    /// Names of the functions.
    pub(super) functions: &'a [String],
    /// Iterations of each service time.
    pub(super) increments: &'a [u64],
    /// How long they took when they were calibrated.
    pub(super) service_times_ms: Vec<f64>,
    /// Before each round.
    pub(super) pauses_ms: Vec<u64>,
    pub(super) report: &'a Report,
    /// How requests got their instances; none for an endpoint.
    pub(super) starts: &'a Option<BTreeMap<String, u64>>,
    /// Share of all processor time that the hypervisor took meanwhile.
    pub(super) steal_share: Option<f64>,
    pub(super) samples: Columns,
}

/// All samples, a list for each field, in the order in which they were over. Times are in ns from the run's begin.
#[derive(Debug, Default, Serialize)]
pub(super) struct Columns {
    burst: Vec<u32>,
    request: Vec<u32>,
    intended_ns: Vec<u64>,
    sent_ns: Vec<u64>,
    /// 0 for a connection that was open before.
    connected_ns: Vec<u64>,
    first_byte_ns: Vec<u64>,
    last_byte_ns: Vec<u64>,
    status: Vec<u16>,
    fault: Vec<Option<Fault>>,
}

impl Columns {
    pub(super) fn of(samples: &[Sample]) -> Self {
        let mut columns = Self::default();
        for sample in samples {
            columns.burst.push(sample.burst);
            columns.request.push(sample.request);
            columns.intended_ns.push(sample.intended);
            columns.sent_ns.push(sample.sent);
            columns.connected_ns.push(sample.connected);
            columns.first_byte_ns.push(sample.first);
            columns.last_byte_ns.push(sample.last);
            columns.status.push(sample.status);
            columns.fault.push(sample.fault);
        }
        columns
    }
}

/// Writes a file that is not there yet.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut file = BufWriter::new(File::create_new(path)?);
    serde_json::to_writer(&mut file, value)?;
    file.write_all(b"\n")?;
    file.flush()
}
