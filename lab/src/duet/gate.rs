//! Whether a new version may replace the active one, by a duet of both.

use serde_json::{Value, json};

use super::Report;
use crate::plot::forest::percent;
use crate::statistics::Verdict;

/// So often a new version may fail with an event with which the active one does not: anything may go wrong once.
pub const FAULTS_BORNE: usize = 2;

/// What a gate decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// With no event the new version was found slower by the threshold.
    Held,
    /// It was, or it fails: with which events, and by how much.
    FellShort(Vec<String>),
    /// Why it cannot be judged.
    Unknown(String),
}

impl Decision {
    /// For a summary: `held`, `fell_short` or `unknown`, and why.
    pub fn summary(&self) -> Value {
        let (decision, reasons) = match self {
            Self::Held => ("held", Vec::new()),
            Self::FellShort(reasons) => ("fell_short", reasons.clone()),
            Self::Unknown(reason) => ("unknown", vec![reason.clone()]),
        };
        json!({ "decision": decision, "reasons": reasons })
    }
}

/// By the verdicts, with a threshold, as a share of the active version's time.
pub fn judge(report: &Report, threshold: f64) -> Decision {
    let (mut fails, mut slower, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for one in &report.benchmarks {
        let (name, trials) = (&one.name, &one.trials);
        let only_new = trials.second_faults == trials.faults();
        let is_worse = trials.second_faults > FAULTS_BORNE
            || one.comparison.is_none() && trials.second_faults > 0;
        match (one.comparison, one.verdict) {
            // However fast the rest is.
            _ if only_new && is_worse => {
                let error = trials.error.as_deref().unwrap_or("it takes too long");
                fails.push(format!("fails with {name}: {error}"));
            }
            (Some(found), Some(Verdict::Slower)) if found.change.estimate >= threshold => {
                let change = percent(found.change.estimate);
                slower.push(format!("is slower by {change} with {name}"));
            }
            (Some(_), _) => {}
            (None, _) => left_out.push(name.as_str()),
        }
    }
    let is_noisy = report.control_changes() > 0;
    if !is_noisy {
        fails.append(&mut slower);
    }
    if !fails.is_empty() {
        Decision::FellShort(fails)
    } else if is_noisy {
        Decision::Unknown(format!(
            "{} beside itself differs, too: this host is too noisy now",
            report.first
        ))
    } else if left_out.is_empty() {
        Decision::Held
    } else {
        Decision::Unknown(format!("too few trials with {}", left_out.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duet::render::tests::{report, trials};

    #[test]
    fn a_gate_holds_falls_short_or_does_not_know() {
        let judged = |first_second: f64, control: f64| {
            judge(
                &report(vec![("event", trials(45, first_second, control))]),
                0.05,
            )
        };
        assert_eq!(judged(100.0, 100.5), Decision::Held);
        assert_eq!(judged(80.0, 100.5), Decision::Held);
        // Slower, but by less than the threshold.
        assert_eq!(judged(103.0, 100.5), Decision::Held);
        let Decision::FellShort(reasons) = judged(130.0, 100.5) else {
            panic!("30 % slower");
        };
        assert!(
            reasons[0].starts_with("is slower by +30 % with event"),
            "{reasons:?}"
        );
        assert!(matches!(judged(130.0, 130.0), Decision::Unknown(_)));

        let few = |second_faults| {
            let mut few = trials(5, 100.0, 100.0);
            (few.failed, few.interrupted, few.second_faults) = (9, 1, second_faults);
            few.error = Some("502".to_owned());
            judge(&report(vec![("event", few)]), 0.05)
        };
        let fails = Decision::FellShort(vec!["fails with event: 502".to_owned()]);
        assert_eq!(few(10), fails);
        assert!(matches!(few(5), Decision::Unknown(_)));

        // Enough trials, and fast ones, but it fails again and again.
        let flaky = |second_faults, failed| {
            let mut flaky = trials(35, 80.0, 100.5);
            (flaky.failed, flaky.second_faults) = (failed, second_faults);
            flaky.error = Some("502".to_owned());
            judge(&report(vec![("event", flaky)]), 0.05)
        };
        assert_eq!(flaky(10, 10), fails);
        assert_eq!(flaky(FAULTS_BORNE, FAULTS_BORNE), Decision::Held);
        // The active one does, too.
        assert_eq!(flaky(5, 10), Decision::Held);
    }
}
