//! The report: a JSON file with the machine it was taken on, and a table.

use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::samples::Samples;

/// Results of one run.
pub struct Report {
    suite: &'static str,
    quick: bool,
    results: Vec<Value>,
    rows: Vec<[String; 6]>,
    notes: Vec<String>,
}

fn micros(nanos: u64) -> String {
    format!("{:.1}", nanos as f64 / 1000.0)
}

fn first_line_with(file: &str, key: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.starts_with(key))
        .unwrap_or_default();
    line.split_once([':', '='])
        .map(|(_, value)| value.trim().trim_matches('"').to_owned())
        .unwrap_or_default()
}

fn system_info() -> Value {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory_kb: u64 = first_line_with("/proc/meminfo", "MemTotal")
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap_or(0);
    json!({
        "os": first_line_with("/etc/os-release", "PRETTY_NAME"),
        "kernel_version": kernel.trim(),
        "cpu_model": first_line_with("/proc/cpuinfo", "model name"),
        "cpu_cores": std::thread::available_parallelism().map_or(1, usize::from),
        "memory_bytes": memory_kb * 1024,
    })
}

impl Report {
    /// An empty report.
    pub fn new(suite: &'static str, quick: bool) -> Self {
        Self {
            suite,
            quick,
            results: Vec::new(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a measurement, its first tenth dropped.
    pub fn add(&mut self, category: &str, name: &str, samples: Samples) -> u64 {
        let samples = samples.without_warm_up();
        let metrics = samples.metrics();
        self.results.push(json!({
            "name": name,
            "category": category,
            "iterations": samples.len(),
            "percentiles": "observed",
            "metrics": metrics,
        }));
        self.rows.push([
            name.to_owned(),
            samples.len().to_string(),
            micros(metrics.median_ns),
            micros(metrics.p95_ns),
            micros(metrics.p99_ns),
            micros(metrics.max_ns),
        ]);
        metrics.median_ns
    }

    /// Adds a figure that is not a latency.
    pub fn figure(&mut self, category: &str, name: &str, value: f64, unit: &str) {
        self.results
            .push(json!({ "name": name, "category": category, "value": value, "unit": unit }));
        self.notes.push(format!("{name}: {value:.2} {unit}"));
    }

    /// Writes the file and prints the table.
    pub fn finish(&self) -> io::Result<()> {
        let document = json!({
            "benchmark_suite": self.suite,
            "version": env!("CARGO_PKG_VERSION"),
            "timestamp": jiff::Timestamp::now().to_string(),
            "quick": self.quick,
            "system_info": system_info(),
            "results": self.results,
        });
        let target = PathBuf::from(env!("CARGO_BIN_EXE_hearth"))
            .ancestors()
            .nth(2)
            .map(PathBuf::from)
            .unwrap_or_default();
        let dir = target.join("bench");
        std::fs::create_dir_all(&dir)?;
        let file = dir.join(if self.quick {
            format!("{}-quick.json", self.suite)
        } else {
            format!("{}.json", self.suite)
        });
        std::fs::write(&file, serde_json::to_string_pretty(&document)?)?;
        self.print();
        println!("\nwritten to {}", file.display());
        Ok(())
    }

    fn print(&self) {
        println!("\n{}", system_info());
        if self.quick {
            println!("quick run: shows that the harness works; quote none of these figures");
        }
        println!("\nlatencies in µs, observed\n");
        let header = ["what", "n", "p50", "p95", "p99", "max"].map(str::to_owned);
        let width = self
            .rows
            .iter()
            .map(|row| row[0].len())
            .max()
            .unwrap_or(4)
            .max(4);
        for row in std::iter::once(&header).chain(&self.rows) {
            println!(
                "{:width$}  {:>8} {:>10} {:>10} {:>10} {:>10}",
                row[0], row[1], row[2], row[3], row[4], row[5]
            );
        }
        println!();
        for note in &self.notes {
            println!("{note}");
        }
    }
}
