//! The result file. Other tools may rely on its fields.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::samples::Samples;

/// One suite's results. Every duration is in ns, every percentile is *observed*: a request's own latency, not corrected
/// for coordinated omission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The suite's name, which is the file's.
    pub benchmark_suite: String,
    /// Hearth's version.
    pub version: String,
    /// When the suite ended, RFC 3339 in UTC.
    pub timestamp: String,
    /// The machine.
    pub system_info: SystemInfo,
    /// What was timed.
    pub results: Vec<Measurement>,
    /// Measurements other than times: rates, bytes, ratios. Omitted if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// What could not be measured here, and why. Omitted if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

/// The machine that was measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemInfo {
    /// The distribution.
    pub os: String,
    /// The kernel's release.
    pub kernel_version: String,
    /// As `/proc/cpuinfo` names it.
    pub cpu_model: String,
    /// Processors that may be used.
    pub cpu_cores: usize,
    /// All of the memory.
    pub memory_bytes: u64,
}

/// One thing that was timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// What, within its category.
    pub name: String,
    /// What it may be compared with: a table and a plot of the report.
    pub category: String,
    /// How often, without the first tenth, which is warm-up.
    pub iterations: usize,
    /// How long.
    pub metrics: Metrics,
}

/// What is said of the samples, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Shortest.
    pub min_ns: f64,
    /// Longest.
    pub max_ns: f64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// 50th percentile, nearest rank, as the others.
    pub median_ns: f64,
    /// 95th percentile; none with fewer samples than it needs.
    pub p95_ns: Option<f64>,
    /// 99th percentile; none with fewer samples than it needs.
    pub p99_ns: Option<f64>,
    /// Standard deviation.
    pub std_dev_ns: f64,
}

impl Metrics {
    /// The highest percentile with enough samples.
    pub fn upper_ns(&self) -> f64 {
        self.p99_ns.or(self.p95_ns).unwrap_or(self.median_ns)
    }
}

/// A figure that is no time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What, within its category.
    pub name: String,
    /// As in [`Measurement::category`].
    pub category: String,
    /// In `unit`.
    pub value: f64,
    /// Such as `MiB` or `/s`.
    pub unit: String,
}

/// What was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// What.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Document {
    /// An empty one, with the machine's description.
    pub fn new(suite: &str) -> Self {
        Self {
            benchmark_suite: suite.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            timestamp: String::new(),
            system_info: super::system::describe(),
            results: Vec::new(),
            figures: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Adds what was timed, its first tenth dropped, and says its median in ns.
    pub fn add(&mut self, category: &str, name: &str, samples: Samples) -> f64 {
        let samples = samples.without_warm_up();
        let metrics = samples.metrics();
        self.results.push(Measurement {
            name: name.to_owned(),
            category: category.to_owned(),
            iterations: samples.iterations(),
            metrics,
        });
        metrics.median_ns
    }

    /// Adds a figure that is no time.
    pub fn figure(&mut self, category: &str, name: &str, value: f64, unit: &str) {
        self.figures.push(Figure {
            name: name.to_owned(),
            category: category.to_owned(),
            value,
            unit: unit.to_owned(),
        });
    }

    /// Says what was left out.
    pub fn skip(&mut self, name: &str, reason: impl Into<String>) {
        let reason = reason.into();
        eprintln!("hearth bench: left out: {name}: {reason}");
        self.skipped.push(Skipped {
            name: name.to_owned(),
            reason,
        });
    }

    /// Something that was timed.
    pub fn timed(&self, category: &str, name: &str) -> Option<&Metrics> {
        self.results
            .iter()
            .find(|result| result.category == category && result.name == name)
            .map(|result| &result.metrics)
    }

    /// A figure's value.
    pub fn value(&self, category: &str, name: &str) -> Option<f64> {
        self.figures
            .iter()
            .find(|figure| figure.category == category && figure.name == name)
            .map(|figure| figure.value)
    }

    /// The value of one of several figures of the same name, by its unit.
    pub fn value_in(&self, category: &str, name: &str, unit: &str) -> Option<f64> {
        self.figures
            .iter()
            .filter(|figure| figure.unit == unit)
            .find(|figure| figure.category == category && figure.name == name)
            .map(|figure| figure.value)
    }

    /// Writes `DIR/SUITE.json` and says where that is.
    pub fn write(&mut self, dir: &Path) -> anyhow::Result<PathBuf> {
        self.timestamp = jiff::Timestamp::now().to_string();
        self.check()?;
        std::fs::create_dir_all(dir)?;
        let file = dir.join(format!("{}.json", self.benchmark_suite));
        std::fs::write(&file, serde_json::to_string_pretty(self)? + "\n")?;
        Ok(file)
    }

    /// Reads a result file and checks it.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let document: Self =
            serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        document
            .check()
            .with_context(|| file.display().to_string())?;
        Ok(document)
    }

    /// What the types do not say: names are unique within their category, and the percentiles are in order.
    pub fn check(&self) -> anyhow::Result<()> {
        let suite = &self.benchmark_suite;
        self.timestamp
            .parse::<jiff::Timestamp>()
            .with_context(|| format!("{suite}: the time stamp"))?;
        ensure!(
            !self.results.is_empty() || !self.figures.is_empty() || !self.skipped.is_empty(),
            "{suite}: measured nothing"
        );
        let machine = &self.system_info;
        ensure!(
            machine.cpu_cores > 0 && machine.memory_bytes > 0 && !machine.kernel_version.is_empty(),
            "{suite}: the machine is not described"
        );
        let mut names = std::collections::HashSet::new();
        for result in &self.results {
            let name = format!("{}: {}", result.category, result.name);
            let m = &result.metrics;
            let order = [Some(m.min_ns), Some(m.median_ns), m.p95_ns, m.p99_ns];
            let order = order.into_iter().chain([Some(m.max_ns)]).flatten();
            ensure!(
                order.is_sorted() && m.min_ns > 0.0 && m.max_ns.is_finite() && m.std_dev_ns >= 0.0,
                "{suite}: {name}: its percentiles are not in order"
            );
            ensure!(
                (m.min_ns..=m.max_ns).contains(&m.mean_ns),
                "{suite}: {name}: its mean is outside of its range"
            );
            ensure!(result.iterations > 0, "{suite}: {name}: has no sample");
            ensure!(
                names.insert(name.clone()),
                "{suite}: {name}: is there twice"
            );
        }
        for figure in &self.figures {
            ensure!(
                figure.value.is_finite(),
                "{suite}: {}: is no number",
                figure.name
            );
        }
        Ok(())
    }
}
