//! A logarithmic scale of time, in whole decades.

use std::fmt::Write as _;

use super::format::time;

/// From a decade to another, drawn from left to right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Decades {
    /// Exponents of ten, in ns.
    pub(super) from: f64,
    pub(super) to: f64,
    left: f64,
    right: f64,
}

impl Decades {
    /// That holds all of these durations in ns; those below 1 are drawn as 1.
    pub(super) fn of(ns: impl Iterator<Item = f64>, left: f64, right: f64) -> Self {
        let (least, most) = ns.fold((f64::INFINITY, 1.0), |(least, most), ns| {
            (ns.max(1.0).min(least), ns.max(most))
        });
        let least = if least.is_finite() { least } else { 1.0 };
        let from = least.log10().floor();
        Self {
            from,
            to: most.log10().ceil().max(from + 1.0),
            left,
            right,
        }
    }

    /// Where a duration is.
    pub(super) fn x(&self, ns: f64) -> f64 {
        let share = (ns.max(1.0).log10() - self.from) / (self.to - self.from);
        self.left + share * (self.right - self.left)
    }

    /// A line for each decade, and its name below.
    pub(super) fn grid(&self, top: f64, bottom: f64, svg: &mut String) {
        for decade in (self.from as i32)..=(self.to as i32) {
            let ns = 10_f64.powi(decade);
            // Writing to a string does not fail.
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"x\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                bottom + 18.0,
                time(ns),
                x = self.x(ns),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_lie_between_whole_decades() {
        let scale = Decades::of([2e5, 3e6].into_iter(), 100.0, 300.0);
        assert_eq!(scale.x(1e5), 100.0);
        assert_eq!(scale.x(1e6), 200.0);
        assert_eq!(scale.x(1e7), 300.0);
        let none = Decades::of(std::iter::empty(), 0.0, 1.0);
        assert_eq!((none.x(0.0), none.x(10.0)), (0.0, 1.0));
        let mut svg = String::new();
        scale.grid(0.0, 10.0, &mut svg);
        assert_eq!(svg.matches("<line").count(), 3);
    }
}
