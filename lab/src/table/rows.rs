//! From what was measured to the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::factors::{FACTORS, Factor, PAPER_SAMPLES};
use super::render;
use crate::plot::cdf::{self, Line, Panel};
use crate::plot::{histogram, percentiles};
use crate::run::{Entry, RunError, result};
use crate::statistics::Tail;
use crate::statistics::tail::Ratios;

/// A factor's figures.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its name.
    pub factor: &'static str,
    /// What is measured.
    pub means: &'static str,
    /// Time to the first byte, in ns.
    pub latency_ns: Tail,
    /// Beside the warm median; none where that was not measured.
    pub ratios: Option<Ratios>,
    /// Share of requests that found no instance. None where the platform does not tell.
    pub cold_share: Option<f64>,
    /// Requests that failed.
    pub failed: u64,
    /// Share of all processor time that the hypervisor took meanwhile.
    pub steal_share: Option<f64>,
    /// Tail-to-median ratios in the paper, by cloud, as far as they are known.
    pub paper_tmr: BTreeMap<&'static str, f64>,
    #[serde(skip)]
    group: &'static str,
    #[serde(skip)]
    sorted_ns: Vec<f64>,
}

/// The table.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// Version of the lab.
    pub lab_version: &'static str,
    /// Samples that were asked for of each factor without a burst.
    pub samples: usize,
    /// As many as the paper has.
    pub paper_samples: usize,
    /// In the order of [`FACTORS`].
    pub rows: Vec<Row>,
    /// What was left out, and why.
    pub left_out: Option<String>,
}

impl Row {
    /// Whether its tail-to-median ratio is below that of the best cloud in the paper. None where none is known.
    pub fn is_below_paper(&self) -> Option<bool> {
        let best = self.paper_tmr.values().copied().reduce(f64::min)?;
        Some(self.latency_ns.tmr < best)
    }
}

impl Table {
    /// Of what was measured. Sub-experiments without a good answer, or that are no factors, have no row.
    pub fn of(measured: &[Entry], samples: usize) -> Self {
        let mut rows: Vec<Row> = FACTORS
            .iter()
            .filter_map(|factor| {
                let entry = measured.iter().find(|entry| entry.title == factor.name)?;
                Row::of(factor, entry, samples)
            })
            .collect();
        let warm = rows.iter().find(|row| row.factor == FACTORS[0].name);
        if let Some(warm) = warm.map(|row| row.latency_ns) {
            for row in &mut rows {
                row.ratios = Some(row.latency_ns.over(&warm));
            }
        }
        Self {
            lab_version: env!("CARGO_PKG_VERSION"),
            samples,
            paper_samples: PAPER_SAMPLES,
            rows,
            left_out: None,
        }
    }

    /// The same, with what was left out, and why.
    #[must_use]
    pub fn without(self, left_out: Option<String>) -> Self {
        Self { left_out, ..self }
    }

    /// Writes its files: `table.json`, `table.csv`, `cdf.svg`, `histogram.svg` and `percentiles.svg`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, directory: &Path) -> Result<(), RunError> {
        let failed = |path: &Path, error| RunError::File(path.to_owned(), error);
        for (name, text) in [
            ("table.csv", render::csv(self)),
            ("cdf.svg", self.plot()),
            ("histogram.svg", self.histogram()),
            ("percentiles.svg", self.percentiles()),
        ] {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|error| failed(&path, error))?;
        }
        let path = directory.join("table.json");
        result::write(&path, self).map_err(|error| failed(&path, error))
    }

    /// The same as counts.
    pub fn histogram(&self) -> String {
        let rows = self.rows.iter();
        let lines: Vec<Line<'_>> = rows.map(Row::line).collect();
        histogram::draw("Time to the first byte", &lines)
    }

    /// Their percentiles, as SVG.
    pub fn percentiles(&self) -> String {
        let lines: Vec<Line<'_>> = self.rows.iter().map(Row::line).collect();
        percentiles::draw("Time to the first byte", &lines)
    }

    /// The distributions, as SVG.
    pub fn plot(&self) -> String {
        let mut panels: Vec<Panel<'_>> = Vec::new();
        for row in &self.rows {
            let line = row.line();
            match panels.iter_mut().find(|panel| panel.title == row.group) {
                Some(panel) => panel.lines.push(line),
                None => panels.push(Panel {
                    title: row.group,
                    lines: vec![line],
                }),
            }
        }
        cdf::draw("Time to the first byte: p50 / p99", &panels)
    }
}

impl Row {
    fn line(&self) -> Line<'_> {
        Line {
            name: self.factor,
            sorted_ns: &self.sorted_ns,
        }
    }

    fn of(factor: &Factor, entry: &Entry, samples: usize) -> Option<Self> {
        let counted = entry.latencies_ns.iter();
        let counted = counted.filter(|(burst, _)| *burst >= factor.warm_up(samples));
        let mut sorted_ns: Vec<f64> = counted.map(|(_, ns)| *ns).collect();
        let latency_ns = Tail::of(&mut sorted_ns)?;
        let starts = entry.starts.as_ref().map(|starts| {
            let all: u64 = starts.values().sum();
            (all, all - starts.get("warm").copied().unwrap_or(0))
        });
        Some(Self {
            factor: factor.name,
            means: factor.means,
            latency_ns,
            ratios: None,
            cold_share: starts
                .filter(|(all, _)| *all > 0)
                .map(|(all, cold)| cold as f64 / all as f64),
            failed: entry.report.faults.values().sum(),
            steal_share: entry.steal_share,
            paper_tmr: factor.paper_tmr.iter().copied().collect(),
            group: factor.group,
            sorted_ns,
        })
    }
}
