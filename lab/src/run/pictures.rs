//! A measurement's plots.

use crate::load::Round;
use crate::plot::cdf::{self, Line, Panel};
use crate::plot::{bursts, histogram, percentiles};
use crate::statistics::quantile::sort;
use crate::stellar::SubExperiment;
use crate::stellar::files::histogram_name;

/// Most bursts that have a histogram of their own: a file each.
pub(super) const HISTOGRAMS_MAX: usize = 100;

/// What its `Visualization` asks for, and percentiles with all of it: names below the sub-experiment's directory, and SVGs.
pub(super) fn pictures(
    experiment: &SubExperiment,
    rounds: &[Round],
    latencies: &[(u32, f64)],
) -> Vec<(String, String)> {
    let title = experiment.title.as_str();
    let mut sorted_ns: Vec<f64> = latencies.iter().map(|(_, ns)| *ns).collect();
    sort(&mut sorted_ns);
    let line = |name| Line {
        name,
        sorted_ns: &sorted_ns,
    };
    let mut files = Vec::new();
    if experiment.shows("cdf") {
        let lines = vec![line("p50 / p99")];
        let svg = cdf::draw(title, &[Panel { title, lines }]);
        files.push(("empirical_CDF.svg".to_owned(), svg));
    }
    if experiment.shows("histogram") {
        let svg = histogram::draw(title, &[line("all requests")]);
        files.push(("histogram.svg".to_owned(), svg));
        files.extend(histograms(rounds, latencies));
    }
    if let Some(threshold_ms) = experiment.cold_threshold_ms() {
        let svg = bursts::draw(title, latencies, threshold_ms * 1e6);
        files.push(("bursts_characterization.svg".to_owned(), svg));
    }
    if experiment.visualization != "none" {
        let svg = percentiles::draw(title, &[line("all requests")]);
        files.push(("percentiles.svg".to_owned(), svg));
    }
    files
}

/// One for each burst, as far as they may have one.
fn histograms(rounds: &[Round], latencies: &[(u32, f64)]) -> Vec<(String, String)> {
    let pauses = rounds
        .iter()
        .flat_map(|round| round.bursts.iter().map(|_| round.pause_ms));
    let pauses: Vec<u64> = pauses.take(HISTOGRAMS_MAX).collect();
    let mut of_bursts = vec![Vec::new(); pauses.len()];
    for (burst, ns) in latencies {
        if let Some(of_burst) = of_bursts.get_mut(*burst as usize) {
            of_burst.push(*ns);
        }
    }
    let draw = |(burst, (pause_ms, mut sorted_ns)): (usize, (u64, Vec<f64>))| {
        sort(&mut sorted_ns);
        let line = Line {
            name: "requests",
            sorted_ns: &sorted_ns,
        };
        let title = format!(
            "Burst {burst}, after a pause of {} s",
            pause_ms as f64 / 1e3
        );
        let svg = histogram::draw(&title, &[line]);
        (histogram_name(burst, pause_ms), svg)
    };
    let bursts = pauses.into_iter().zip(of_bursts);
    bursts.enumerate().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Burst;

    fn drawn(visualization: &str, rounds: &[Round]) -> Vec<String> {
        let experiment = SubExperiment {
            visualization: visualization.to_owned(),
            ..SubExperiment::default()
        };
        let files = pictures(&experiment, rounds, &[(0, 1e6), (0, 2e6), (1, 3e6)]);
        assert!(files.iter().all(|(_, svg)| svg.ends_with("</svg>\n")));
        files.into_iter().map(|(name, _)| name).collect()
    }

    fn round(pause_ms: u64, bursts: usize) -> Round {
        let burst = |_| Burst {
            request: 0,
            size: 2,
        };
        Round {
            pause_ms,
            bursts: (0..bursts).map(burst).collect(),
        }
    }

    #[test]
    fn what_is_asked_for_is_drawn() {
        let rounds = [round(1_500, 1), round(60_000, 1)];
        let (cdf, percentiles) = ("empirical_CDF.svg", "percentiles.svg");
        let (histogram, bursts) = ("histogram.svg", "bursts_characterization.svg");
        let (first, second) = (
            "histograms/burst0_delta1.5s.svg",
            "histograms/burst1_delta1m0s.svg",
        );
        let drawn = |visualization| drawn(visualization, &rounds);
        assert_eq!(drawn("cdf"), [cdf, percentiles]);
        assert_eq!(drawn("histogram"), [histogram, first, second, percentiles]);
        assert_eq!(drawn("bar"), [bursts, percentiles]);
        assert_eq!(drawn("bar-50"), [bursts, percentiles]);
        assert_eq!(
            drawn("all"),
            [cdf, histogram, first, second, bursts, percentiles]
        );
        assert!(drawn("none").is_empty());
    }

    #[test]
    fn the_bursts_of_a_round_share_its_pause_and_some_bursts_have_no_histogram() {
        let names = drawn("histogram", &[round(0, 3), round(7, HISTOGRAMS_MAX)]);
        assert_eq!(names.len(), 2 + HISTOGRAMS_MAX);
        assert_eq!(names[3], "histograms/burst2_delta0s.svg");
        assert_eq!(names[4], "histograms/burst3_delta7ms.svg");
    }
}
