//! What the study comes to.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::layers::{LAYERS, Layers, NAMES, Stages};
use super::render;
use super::settings::OverheadError;
use crate::run::environment::Environment;
use crate::run::noise::{Noise, fdatasync};
use crate::run::result;
use crate::statistics::Tail;
use crate::statistics::quantile::mean;
use crate::stellar::files::create_directory;

/// The study, over.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of the lab.
    pub lab_version: &'static str,
    /// When it began.
    pub began_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Warm samples of each workload and runtime that were asked for.
    pub samples: usize,
    /// Cold ones.
    pub cold: usize,
    /// The event of every invocation.
    pub event: Value,
    /// One for each workload, runtime, and warm or cold.
    pub rows: Vec<Row>,
    /// Those that have no sample, and why.
    pub left_out: Vec<String>,
    /// Functions that could not be removed, and why.
    pub left_behind: Option<String>,
    /// How noisy the machine of the client was.
    pub noise: Noise,
    /// The machine of the client.
    pub environment: Environment,
    /// What the server says of itself.
    pub node: Value,
}

/// An invocation that was measured on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// How it got its instance, as the server names it.
    pub start: String,
    /// From sending to the first byte, in ns.
    pub first_byte_ns: u64,
    /// From sending to the last byte, in ns.
    pub last_byte_ns: u64,
    /// Where its time in the server went.
    pub stages_us: Stages,
    /// What the workload computed.
    pub value: f64,
}

/// Requests that count in no layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Uncounted {
    /// Requests that failed.
    pub failed: usize,
    /// Those of which the history has no record.
    pub without_record: usize,
    /// Warm ones among the cold, and cold ones among the warm.
    pub other_start: usize,
}

/// A workload in a runtime.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The workload.
    pub workload: &'static str,
    /// The runtime.
    pub runtime: &'static str,
    /// Whether every request started an instance; otherwise none did.
    pub is_cold: bool,
    /// Requests that count.
    pub samples: usize,
    /// The layers from the inside out.
    pub layers: [Layer; LAYERS],
    /// From sending to the first byte.
    pub first_byte: Figures,
    /// From sending to the last byte, which the layers add up to.
    pub total_ns: Tail,
    /// Samples in which a layer was cut to the one around it.
    pub cut: usize,
    /// Requests that do not count.
    pub uncounted: Uncounted,
    /// How requests got their instances.
    pub starts: BTreeMap<String, usize>,
    /// The mean of what the workload computed.
    pub value: f64,
    /// All samples.
    #[serde(skip)]
    pub measured: Vec<Measured>,
}

/// A layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// What it has of its own.
    pub own: Figures,
    /// The same with the layers inside it.
    pub through: Figures,
    /// Its own share of the client's time: the mean over the client's mean. All shares add up to 1.
    pub share: f64,
}

/// Mean and quantiles, in ns. Means of layers add up, quantiles do not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
}

impl Figures {
    fn of(mut samples: Vec<f64>) -> Option<Self> {
        let tail = Tail::of(&mut samples)?;
        Some(Self {
            mean_ns: mean(&samples),
            p50_ns: tail.median,
            p99_ns: tail.p99,
        })
    }
}

impl Row {
    /// Of these samples. None without any.
    pub fn of(
        (workload, runtime): (&'static str, &'static str),
        is_cold: bool,
        measured: Vec<Measured>,
        uncounted: Uncounted,
    ) -> Option<Self> {
        let divided: Vec<Layers> = measured
            .iter()
            .map(|one| Layers::of(&one.stages_us, one.last_byte_ns))
            .collect();
        let total_ns = Tail::of(&mut of(&measured, |one| one.last_byte_ns as f64))?;
        let all = mean(&of(&measured, |one| one.last_byte_ns as f64));
        let mut layers = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            let own = Figures::of(of(&divided, |one| one.own_ns[at] as f64))?;
            layers.push(Layer {
                name,
                own,
                through: Figures::of(of(&divided, |one| one.through_ns()[at] as f64))?,
                share: if all > 0.0 { own.mean_ns / all } else { 0.0 },
            });
        }
        let mut starts = BTreeMap::new();
        for one in &measured {
            *starts.entry(one.start.clone()).or_default() += 1;
        }
        Some(Self {
            workload,
            runtime,
            is_cold,
            samples: measured.len(),
            layers: layers.try_into().ok()?,
            first_byte: Figures::of(of(&measured, |one| one.first_byte_ns as f64))?,
            total_ns,
            cut: divided.iter().filter(|one| one.was_cut).count(),
            uncounted,
            starts,
            value: mean(&of(&measured, |one| one.value)),
            measured,
        })
    }

    /// `warm` or `cold`.
    pub fn start(&self) -> &'static str {
        if self.is_cold { "cold" } else { "warm" }
    }

    /// What it is of.
    pub fn title(&self) -> String {
        format!("{}, {}, {}", self.workload, self.runtime, self.start())
    }
}

fn of<T>(all: &[T], pick: impl Fn(&T) -> f64) -> Vec<f64> {
    all.iter().map(pick).collect()
}

impl Report {
    /// Writes its files into a new directory, which it returns: `overhead.json`, `overhead.csv`, `overhead.svg` and `samples.csv`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(&mut self, parent: &Path) -> Result<PathBuf, OverheadError> {
        let failed = |path: &Path, error| OverheadError::File(path.to_owned(), error);
        fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        let directory = create_directory(parent, &self.began_at.as_second().to_string())
            .map_err(|error| failed(parent, error))?;
        // A device that cannot be measured says nothing.
        self.noise.fdatasync = fdatasync(&directory).ok();
        self.write(&directory)
            .map_err(|error| failed(&directory, error))?;
        Ok(directory)
    }

    /// What is wrong if nothing could be measured.
    pub fn without_rows(&self) -> Option<String> {
        let is_empty = self.rows.is_empty();
        is_empty.then(|| format!("no samples: {}", self.left_out.join("; ")))
    }

    fn write(&self, directory: &Path) -> io::Result<()> {
        fs::write(directory.join("overhead.csv"), render::csv(self))?;
        fs::write(directory.join("samples.csv"), render::samples(self))?;
        fs::write(directory.join("overhead.svg"), render::plot(self))?;
        result::write(&directory.join("overhead.json"), self)
    }

    /// In short, for a server that keeps it.
    pub fn summary(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let mut short = json!(row);
                short["title"] = row.title().into();
                short
            })
            .collect();
        json!({ "overhead": rows, "left_out": self.left_out, "steal_share": self.noise.steal_share, "noise": self.noise })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::run::noise::Watched;

    /// A report with a warm and a cold row.
    pub fn report() -> Report {
        let stages = |start: u64, run: u64| Stages {
            queue: 1,
            start,
            send: 10,
            run,
            recv: 9,
            total: start + run + 30,
        };
        let measured = |start: &str, stages_us: Stages| Measured {
            start: start.to_owned(),
            first_byte_ns: stages_us.total * 1_000 + 40_000,
            last_byte_ns: stages_us.total * 1_000 + 50_000,
            stages_us,
            value: 3.0,
        };
        let warm = (0..100).map(|run| measured("warm", stages(0, run)));
        let cold = (0..10).map(|run| measured("fork", stages(900, run)));
        let none = Uncounted::default();
        let late = Uncounted {
            other_start: 2,
            ..none
        };
        Report {
            lab_version: "1",
            began_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            samples: 100,
            cold: 12,
            event: json!({}),
            rows: [
                Row::of(("math", "python3"), false, warm.collect(), none),
                Row::of(("math", "node"), true, cold.collect(), late),
            ]
            .map(|row| row.expect("samples"))
            .into(),
            left_out: vec!["image, node, cold: no request was cold".to_owned()],
            left_behind: None,
            noise: Watched::begin().end(&Environment::read(), None),
            environment: Environment::read(),
            node: Value::Null,
        }
    }

    #[test]
    fn shares_and_means_add_up() {
        let report = report();
        for row in &report.rows {
            let shares: f64 = row.layers.iter().map(|layer| layer.share).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{row:?}");
            let means: f64 = row.layers.iter().map(|layer| layer.own.mean_ns).sum();
            let client = row.layers[LAYERS - 1].through;
            assert!((means - client.mean_ns).abs() < 1e-3, "{row:?}");
            assert_eq!(client.p99_ns, row.total_ns.p99);
            assert!(row.layers.iter().all(|layer| layer.share >= 0.0));
        }
        assert_eq!(report.without_rows(), None);
        let [warm, cold] = report.rows.as_slice() else {
            panic!("two rows")
        };
        assert_eq!(
            warm.layers.map(|layer| layer.own.p50_ns),
            [49_500.0, 19_000.0, 11_000.0, 50_000.0]
        );
        assert_eq!((cold.samples, cold.uncounted.other_start), (10, 2));
        assert_eq!(cold.layers[1].own.mean_ns, 919_000.0);
        assert_eq!(cold.starts["fork"], 10);
        assert!(Row::of(("a", "b"), false, Vec::new(), Uncounted::default()).is_none());
    }
}
