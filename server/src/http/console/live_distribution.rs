//! Latencies of a run that is under way, as bars.

use hearth_lab::load::Sketch;
use hearth_lab::plot::format::{number, time};
use hearth_web::pages::LiveDistribution;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;
/// Fewer have no 99th percentile.
const P99_FROM: u64 = 100;

/// On a log scale of time from the first bin that has any to the last. Bins differ in width, so a bar's height is how many it has
/// for its width, beside the densest.
pub(super) fn distribution(kind: &str, sketch: &Sketch) -> LiveDistribution {
    let bins: Vec<([f64; 2], f64)> = sketch
        .bins()
        .map(|([from, to], count)| ([from, to], count as f64 / (to / from).ln()))
        .collect();
    let (Some(([first, _], _)), Some(([_, last], _))) = (bins.first(), bins.last()) else {
        return LiveDistribution::default();
    };
    let x = |ns: f64| (ns / first).ln() / (last / first).ln() * WIDTH;
    let most = bins.iter().map(|(_, density)| *density).fold(0.0, f64::max);
    let bar = |([from, to], density): &([f64; 2], f64)| {
        let height = (HEIGHT * density / most).max(1.0);
        [x(*from), HEIGHT - height, x(*to) - x(*from), height]
            .map(|part| (part * 10.0).round() as f32 / 10.0)
    };
    let quantile = |share| sketch.quantile(share).map_or_else(String::new, time);
    LiveDistribution {
        bars: bins.iter().map(bar).collect(),
        caption: caption(kind, sketch.count()),
        count: sketch.count(),
        ends: [time(*first), time(*last)],
        median: quantile(0.5),
        p99: match sketch.count() >= P99_FROM {
            true => quantile(0.99),
            false => String::new(),
        },
    }
}

/// What an experiment of a kind draws while it runs.
fn caption(kind: &str, count: u64) -> String {
    let number = number(count as f64);
    let (what, one) = match kind {
        "duet" | "replay" => ("Time in both versions so far", "execution"),
        "suite" => ("Results of both trees so far", "execution"),
        _ => ("To the first byte so far, warm-up included", "request"),
    };
    let ending = if count == 1 { "" } else { "s" };
    format!("{what}: {number} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_says_what_it_is_of() {
        assert_eq!(
            caption("load", 1_234),
            "To the first byte so far, warm-up included: 1,234 requests"
        );
        assert_eq!(
            caption("duet", 1),
            "Time in both versions so far: 1 execution"
        );
    }

    #[test]
    fn bars_fill_the_box_and_touch() {
        // As many in each bin as it is wide.
        let even = vec![
            (4 << 20, 223),
            (5 << 20, 182),
            (6 << 20, 154),
            (7 << 20, 134),
            (8 << 20, 223),
        ];
        let found = distribution("load", &Sketch::from(even));
        assert_eq!((found.bars.len(), found.count), (5, 916));
        for pair in found.bars.windows(2) {
            let ([left, _, width, _], [next, ..]) = (pair[0], pair[1]);
            assert!((left + width - next).abs() < 0.2, "{found:?}");
        }
        assert!(found.bars.iter().all(|[_, _, _, height]| *height > 99.0));
        let [left, _, width, _] = found.bars[4];
        assert!((left + width - 600.0).abs() < 0.2, "{found:?}");
        assert_eq!(found.ends, ["4.19 ms", "10.5 ms"]);
        assert_eq!(distribution("load", &Sketch::default()).count, 0);
        let few = distribution("load", &Sketch::from(vec![(1_000, 1)]));
        assert_eq!(
            (few.bars[0], few.p99.as_str()),
            ([0.0, 0.0, 600.0, 100.0], "")
        );
    }
}
