//! Two things that are measured in turns, the second with what the first is without.

use super::median::{interval_of_median, middle};
use crate::results::{Document, Samples};

/// What was seen of both.
#[derive(Default)]
pub(super) struct Pair {
    samples: [Samples; 2],
    /// Of the second to the first, one for each round: a machine's speed drifts by more than what is looked for.
    ratios: Vec<f64>,
}

impl Pair {
    /// Whether nothing was seen.
    pub(super) fn is_empty(&self) -> bool {
        self.ratios.is_empty()
    }

    /// Adds a round, in which both were measured one right after the other.
    pub(super) fn add(&mut self, round: &[Samples; 2]) {
        let [first, second] = round.each_ref().map(|samples| samples.metrics().median_ns);
        self.ratios.push(second / first);
        for (all, samples) in self.samples.iter_mut().zip(round) {
            all.extend(samples);
        }
    }

    /// Adds a round of figures that are no times.
    pub(super) fn add_rates(&mut self, [first, second]: [f64; 2]) {
        self.ratios.push(second / first);
    }

    /// Adds the samples and their ratio to the document.
    pub(super) fn conclude(self, category: &str, names: [&str; 2], document: &mut Document) {
        for (name, samples) in names.into_iter().zip(self.samples.clone()) {
            document.add(category, name, samples);
        }
        self.conclude_ratio(category, names, document);
    }

    /// The ratio alone.
    pub(super) fn conclude_ratio(
        mut self,
        category: &str,
        names: [&str; 2],
        document: &mut Document,
    ) {
        self.ratios.sort_by(f64::total_cmp);
        let name = ratio_name(names);
        document.figure(category, &name, middle(&self.ratios), "×");
        if let Some((low, high)) = interval_of_median(&self.ratios) {
            document.figure(category, &format!("{name}, from"), low, "×");
            document.figure(category, &format!("{name}, to"), high, "×");
        }
    }
}

/// What the report calls the median of the rounds' ratios.
pub fn ratio_name([first, second]: [&str; 2]) -> String {
    format!("{second} / {first}")
}
