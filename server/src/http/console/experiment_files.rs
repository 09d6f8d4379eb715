//! An experiment's files, and which of them are plots.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hearth_web::format::{bytes, encode};
use hearth_web::pages::{ExperimentFileRow, PlotView};

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{ExperimentDetail, ExperimentFile};

/// Most bytes of a plot that is shown: it is part of the page.
const PLOT_MAX: u64 = 512 << 10;

fn address(id: i64, path: &str) -> String {
    format!("/lab/{id}/files/{}", encode(path))
}

/// A sub-experiment's bursts, which the plots of a whole table do not have.
const BURSTS: &str = "bursts_characterization.svg";

/// A file that is a plot.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    /// What it shows.
    pub name: String,
    pub path: String,
    pub bytes: u64,
}

/// Its plots, in the order of their paths.
pub(super) fn plots(files: &[ExperimentFile]) -> Vec<Plot> {
    let name = |path: &str| match path.rsplit_once('/') {
        None => match path {
            "cdf.svg" => "Distributions".to_owned(),
            "histogram.svg" => "Histograms".to_owned(),
            "percentiles.svg" => "Percentiles".to_owned(),
            "over_time.svg" => "Latency over time".to_owned(),
            "overhead.svg" => "Shares of the layers".to_owned(),
            "forest.svg" => "Changes with their intervals".to_owned(),
            other => other.to_owned(),
        },
        Some((directory, file)) => {
            let what = match file {
                BURSTS => ": bursts",
                "histogram.svg" => ": histogram",
                "percentiles.svg" => ": percentiles",
                _ => "",
            };
            format!("{directory}{what}")
        }
    };
    // The histograms of single bursts are files only: there may be a hundred.
    let is_burst = |path: &str| path.contains("/histograms/");
    let svgs = files
        .iter()
        .filter(|file| file.path.ends_with(".svg") && !is_burst(&file.path));
    // A table has all of them in one.
    let has_all = files.iter().any(|file| file.path == "cdf.svg");
    let is_part = |path: &str| path.contains('/') && !path.ends_with(BURSTS);
    let shown = svgs.filter(|file| !has_all || !is_part(&file.path));
    let plot = |file: &ExperimentFile| Plot {
        name: name(&file.path),
        path: file.path.clone(),
        bytes: file.bytes,
    };
    shown.map(plot).collect()
}

/// A plot with what it shows, its address, and itself as a `data:` address: a page loads images from no other place than `/static/`. None if
/// it is too large for a page.
pub(super) async fn shown(app: &App, id: i64, plot: Plot) -> Result<Option<PlotView>, Problem> {
    if plot.bytes > PLOT_MAX {
        return Ok(None);
    }
    let Some(content) = app.lab.file(id, &plot.path).await? else {
        return Ok(None);
    };
    let content = BASE64_STANDARD.encode(content);
    let file = plot.path.trim_end_matches(".svg").replace('/', "-");
    Ok(Some(PlotView {
        name: plot.name,
        file: format!("experiment-{id}-{file}"),
        address: address(id, &plot.path),
        data: format!("data:image/svg+xml;base64,{content}"),
    }))
}

/// Its files.
pub(super) fn files(found: &ExperimentDetail) -> Vec<ExperimentFileRow> {
    let row = |file: &ExperimentFile| ExperimentFileRow {
        path: file.path.clone(),
        address: address(found.view.id, &file.path),
        size: bytes(file.bytes),
    };
    found.files.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let file = |path: &&str| ExperimentFile {
            path: (*path).to_owned(),
            bytes: 1,
        };
        let files: Vec<ExperimentFile> = paths.iter().map(file).collect();
        plots(&files).into_iter().map(|plot| plot.name).collect()
    }

    #[test]
    fn plots_say_what_they_show() {
        let one = [
            "a/empirical_CDF.svg",
            "a/histogram.svg",
            "a/histograms/burst0_delta3s.svg",
            "a/latencies.csv",
        ];
        assert_eq!(names(&one), ["a", "a: histogram"]);
        let table = [
            "cdf.svg",
            "warm/empirical_CDF.svg",
            "warm/bursts_characterization.svg",
        ];
        assert_eq!(names(&table), ["Distributions", "warm: bursts"]);
    }
}
