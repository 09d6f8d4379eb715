//! A measurement's plots.

use crate::plot::cdf::{self, Line, Panel};
use crate::plot::{bursts, histogram, percentiles};
use crate::statistics::quantile::sort;
use crate::stellar::SubExperiment;

/// What its `Visualization` asks for, as far as STeLLAR has it, and percentiles with all of them.
pub(super) fn pictures(
    experiment: &SubExperiment,
    latencies: &[(u32, f64)],
) -> Vec<(&'static str, String)> {
    let mut sorted_ns: Vec<f64> = latencies.iter().map(|(_, ns)| *ns).collect();
    sort(&mut sorted_ns);
    let (title, wanted) = (experiment.title.as_str(), experiment.visualization.as_str());
    let line = |name| Line {
        name,
        sorted_ns: &sorted_ns,
    };
    let mut files = Vec::new();
    if ["cdf", "all"].contains(&wanted) {
        let lines = vec![line("p50 / p99")];
        files.push((
            "empirical_CDF.svg",
            cdf::draw(title, &[Panel { title, lines }]),
        ));
    }
    if ["histogram", "all"].contains(&wanted) {
        files.push((
            "histogram.svg",
            histogram::draw(title, &[line("all requests")]),
        ));
    }
    // `bar`, or `bar-` and the milliseconds from which STeLLAR takes a request as cold: here the server says which were.
    if wanted.starts_with("bar") || wanted == "all" {
        files.push((
            "bursts_characterization.svg",
            bursts::draw(title, latencies),
        ));
    }
    if wanted != "none" {
        files.push((
            "percentiles.svg",
            percentiles::draw(title, &[line("all requests")]),
        ));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_drawn() {
        let drawn = |visualization: &str| {
            let experiment = SubExperiment {
                visualization: visualization.to_owned(),
                ..SubExperiment::default()
            };
            let files = pictures(&experiment, &[(0, 1e6), (0, 2e6), (1, 3e6)]);
            assert!(files.iter().all(|(_, svg)| svg.ends_with("</svg>\n")));
            files.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let (cdf, percentiles) = ("empirical_CDF.svg", "percentiles.svg");
        let (histogram, bursts) = ("histogram.svg", "bursts_characterization.svg");
        assert_eq!(drawn("cdf"), [cdf, percentiles]);
        assert_eq!(drawn("histogram"), [histogram, percentiles]);
        assert_eq!(drawn("bar"), [bursts, percentiles]);
        assert_eq!(drawn("bar-50"), [bursts, percentiles]);
        assert_eq!(drawn("all"), [cdf, histogram, bursts, percentiles]);
        assert!(drawn("none").is_empty());
    }
}
