//! The report: a Markdown page with a table and a plot for each category.

mod audit;
mod curve;
mod goals;
mod introductions;
mod lab;
mod lengths;
mod page;
mod panel;
mod plot;

use std::path::Path;

use anyhow::{Context, ensure};
use hearth_lab::plot::format;

use crate::results::{Document, Measurement, Metrics};
use crate::suites;

/// The result files of one run.
pub struct Documents(Vec<Document>);

impl Documents {
    /// Reads those that are in `dir`, in the order of the suites.
    fn read(dir: &Path) -> anyhow::Result<Self> {
        let mut found = Vec::new();
        for (name, _) in suites::ALL {
            let file = dir.join(format!("{name}.json"));
            if file.is_file() {
                found.push(Document::read(&file)?);
            }
        }
        ensure!(!found.is_empty(), "no result file in {}", dir.display());
        Ok(Self(found))
    }

    /// A suite's file.
    fn of(&self, suite: &str) -> Option<&Document> {
        self.0
            .iter()
            .find(|document| document.benchmark_suite == suite)
    }

    /// Something that was timed.
    fn timed(&self, suite: &str, category: &str, name: &str) -> Option<&Metrics> {
        self.of(suite)?.timed(category, name)
    }

    /// The measurement of a suite with the highest 95th percentile.
    fn slowest(&self, suite: &str) -> Option<&Measurement> {
        let results = &self.of(suite)?.results;
        results
            .iter()
            .filter(|result| result.metrics.p95_ns.is_some())
            .max_by(|a, b| {
                let [a, b] = [a, b].map(|result| result.metrics.p95_ns.unwrap_or_default());
                a.total_cmp(&b)
            })
    }

    /// A figure.
    fn value(&self, suite: &str, category: &str, name: &str) -> Option<f64> {
        self.of(suite)?.value(category, name)
    }
}

/// Writes the report on the result files in `from` to `to`: `README.md`, the plots, and copies of the files.
pub fn write(from: &Path, to: &Path) -> anyhow::Result<()> {
    let documents = Documents::read(from)?;
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in std::fs::read_dir(to)? {
        let path = entry?.path();
        // Plots of categories that are no more would stay for good.
        if path.extension().is_some_and(|extension| extension == "svg") {
            std::fs::remove_file(path)?;
        }
    }
    for document in &documents.0 {
        let name = format!("{}.json", document.benchmark_suite);
        std::fs::copy(from.join(&name), to.join(&name))?;
        for category in page::categories(document) {
            let svg = plot::draw(document, category);
            std::fs::write(to.join(page::plot_file(document, category)), svg)?;
        }
        if let Some(svg) = curve::draw(document) {
            std::fs::write(to.join(curve::FILE), svg)?;
        }
        if let Some(svg) = lab::draw(document) {
            std::fs::write(to.join(lab::FILE), svg)?;
        }
        for (connections, file) in lengths::FILES {
            if let Some(svg) = lengths::draw(document, connections) {
                std::fs::write(to.join(file), svg)?;
            }
        }
    }
    std::fs::write(to.join("README.md"), page::write(&documents))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::results::Samples;

    #[test]
    fn a_report_has_a_plot_and_a_table_for_each_category() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut document = Document::new("ring");
        let mut samples = Samples::default();
        (1..=100).for_each(|nanos| samples.push(Duration::from_nanos(nanos * 10)));
        document.add("by payload", "64 B & more", samples);
        document.skip("node", "is not there");
        document.write(from.path()).unwrap();
        std::fs::write(to.path().join("ring-old.svg"), "").unwrap();

        write(from.path(), to.path()).unwrap();
        let page = std::fs::read_to_string(to.path().join("README.md")).unwrap();
        assert!(page.contains("observed") && page.contains("is not there"));
        assert!(page.contains("| 64 B & more | 90 | 550 ns |"), "{page}");
        assert!(page.contains("(ring-by-payload.svg)"), "{page}");
        let svg = std::fs::read_to_string(to.path().join("ring-by-payload.svg")).unwrap();
        assert!(svg.contains("64 B &amp; more") && svg.ends_with("</svg>\n"));
        assert!(!to.path().join("ring-old.svg").exists());
        assert!(to.path().join("ring.json").is_file());
    }
}
