//! Latencies of a run that is under way, as counts: enough to draw them while they come.

use serde::{Deserialize, Serialize};

/// Bins of an octave: each is a quarter as wide as what it begins with, at most.
const BINS: usize = 4;

/// How many latencies lie in each bin of a scale from 1 ns on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Sketch {
    counts: Vec<u64>,
    total: u64,
}

impl Sketch {
    /// Counts one, in ns.
    pub(crate) fn note(&mut self, ns: u64) {
        self.add(ns, 1);
    }

    fn add(&mut self, ns: u64, count: u64) {
        let bin = bin(ns);
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += count;
        self.total += count;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Bins that are not empty: where each begins and ends, in ns, and how many are in it.
    pub fn bins(&self) -> impl Iterator<Item = ([f64; 2], u64)> {
        self.filled()
            .map(|(bin, count)| ([edge(bin) as f64, end(bin)], count))
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0)
    }

    /// The middle of the bin that a share of all do not exceed, in ns. None without any.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((share * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bin = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(f64::midpoint(edge(bin) as f64, end(bin)))
    }
}

impl From<Sketch> for Vec<(u64, u64)> {
    fn from(sketch: Sketch) -> Self {
        let filled = sketch.filled();
        filled.map(|(bin, count)| (edge(bin), count)).collect()
    }
}

impl From<Vec<(u64, u64)>> for Sketch {
    fn from(bins: Vec<(u64, u64)>) -> Self {
        let mut sketch = Self::default();
        for (ns, count) in bins {
            // From another process: counts that no run has.
            sketch.add(ns, count.min(u64::from(u32::MAX)));
        }
        sketch
    }
}

fn bin(ns: u64) -> usize {
    let ns = ns.max(BINS as u64);
    let octave = ns.ilog2() as usize;
    let within = (ns >> (octave - 2)) as usize - BINS;
    (octave - 2) * BINS + within
}

fn edge(bin: usize) -> u64 {
    let (octave, within) = (bin / BINS, bin % BINS);
    ((BINS + within) as u64) << octave
}

/// Where a bin ends: the last one beyond what an u64 holds.
fn end(bin: usize) -> f64 {
    let (octave, within) = (bin / BINS, bin % BINS);
    (BINS + within + 1) as f64 * 2_f64.powi(octave as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_lies_in_its_bin() {
        for ns in [
            0,
            1,
            4,
            5,
            7,
            8,
            9,
            1_000,
            123_456_789,
            u64::MAX >> 1,
            u64::MAX,
        ] {
            let bin = bin(ns);
            assert!(edge(bin) <= ns.max(4), "{ns}");
            // The largest ones are rounded up to it.
            assert!((ns as f64) < end(bin) || ns >> 53 > 0, "{ns}");
        }
    }

    #[test]
    fn quantiles_are_within_a_bin_and_survive_the_way() {
        let mut sketch = Sketch::default();
        assert_eq!((sketch.count(), sketch.quantile(0.5)), (0, None));
        for number in 1..=1_000_u64 {
            sketch.note(number * 1_000);
        }
        for (share, expected) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            let found = sketch.quantile(share).expect("some");
            assert!((found / expected - 1.0).abs() < 0.13, "{share}: {found}");
        }
        let text = serde_json::to_string(&sketch).expect("JSON");
        assert_eq!(serde_json::from_str::<Sketch>(&text).expect("read"), sketch);
        assert_eq!(sketch.bins().map(|(_, count)| count).sum::<u64>(), 1_000);
    }

    #[test]
    fn what_an_agent_says_cannot_overflow() {
        let most = format!("[[{0},{0}],[{0},{0}],[0,{0}]]", u64::MAX);
        let sketch: Sketch = serde_json::from_str(&most).expect("read");
        assert_eq!(sketch.count(), 3 * u64::from(u32::MAX));
        assert_eq!(sketch.bins().count(), 2);
        assert!(
            sketch
                .bins()
                .all(|([from, to], _)| from < to && to.is_finite())
        );
    }
}
