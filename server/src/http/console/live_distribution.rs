//! Latencies of a run that is under way, as bars.

use hearth_lab::load::Sketch;
use hearth_lab::plot::format::time;
use hearth_web::pages::LiveDistribution;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;
/// Fewer have no 99th percentile.
const P99_FROM: u64 = 100;

/// On a log scale of time from the first bin that has any to the last. Bins differ in width, so a bar's height is how many it has
/// for its width, beside the densest.
pub(super) fn distribution(sketch: &Sketch) -> LiveDistribution {
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
        count: sketch.count(),
        ends: [time(*first), time(*last)],
        median: quantile(0.5),
        p99: match sketch.count() >= P99_FROM {
            true => quantile(0.99),
            false => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found = distribution(&Sketch::from(even));
        assert_eq!((found.bars.len(), found.count), (5, 916));
        for pair in found.bars.windows(2) {
            let ([left, _, width, _], [next, ..]) = (pair[0], pair[1]);
            assert!((left + width - next).abs() < 0.2, "{found:?}");
        }
        assert!(found.bars.iter().all(|[_, _, _, height]| *height > 99.0));
        let [left, _, width, _] = found.bars[4];
        assert!((left + width - 600.0).abs() < 0.2, "{found:?}");
        assert_eq!(found.ends, ["4.19 ms", "10.5 ms"]);
        assert_eq!(distribution(&Sketch::default()).count, 0);
        let few = distribution(&Sketch::from(vec![(1_000, 1)]));
        assert_eq!(
            (few.bars[0], few.p99.as_str()),
            ([0.0, 0.0, 600.0, 100.0], "")
        );
    }
}
