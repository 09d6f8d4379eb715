//! The goals of the lab: what its load generator adds, what its duets find, what this host's tail is, and what a suite takes.

use super::Goal;
use crate::report::Documents;
use crate::report::format::number;
use crate::suites::lab::{
    BENCHMARKS, CLOSED, CONNECTIONS, CPU, DUETS, Duet, FOUND, GO, LAB, OPEN, P50, P99, PAPER_TMR,
    RATE, RATE_ERROR, RATES, RATIO, Spacing, TAIL, TMR, TRIVIAL, WRK, difference, row,
};

/// What the load generator may add to wrk's percentiles, in µs.
const ADDED_US: [f64; 2] = [5.0, 20.0];
/// The open loop's limits: of the rate's error in percent, and of the send time's 99th percentile in µs.
const RATE_ERROR_MAX: f64 = 0.5;
const LATE_MAX_US: f64 = 200.0;
/// What each duet is to find, as a share of its benchmarks.
const FINDS: [(Duet, &str, f64, f64); 4] = [
    (Duet::Itself, "no change found", 0.0, 0.0),
    (Duet::Copy, "no change found", 0.0, 0.0),
    (Duet::Slower5, "found in ≥ 95 %", 0.95, 1.0),
    (Duet::Slower10, "found in all", 1.0, 1.0),
];
/// Factors whose requests come one at a time.
const SINGLE: [&str; 2] = ["warm", "cold"];
/// The tail-to-median ratios' limits.
const TMR_MAX: [(&str, f64); 3] = [("warm", 1.5), ("cold", 1.5), ("burst-100-cold", 2.0)];

pub(super) fn measuring(documents: &Documents, goals: &mut Vec<Goal>) {
    let value = |category, row: &str, unit| documents.of("lab")?.value_in(category, row, unit);
    let [_, many] = CONNECTIONS;
    let mut goal = Goal::new(
        format!("load generator on one core, closed loop, {many} connections"),
        "≥ 50,000 requests/s",
    );
    goal.measured = value(CLOSED, &row(many, LAB), RATE)
        .map(|rate| (format!("{}/s", number(rate)), rate >= 50_000.0));
    if let (Some(rate), Some(cpu)) = (
        value(CLOSED, &row(many, WRK), RATE),
        value(CLOSED, &row(many, WRK), CPU),
    ) {
        goal.floor = format!("wrk: {}/s, {} µs of CPU each", number(rate), number(cpu));
    }
    goals.push(goal);
    for connections in CONNECTIONS {
        let plural = if connections == 1 { "" } else { "s" };
        let [p50, p99] = ADDED_US;
        let mut goal = Goal::new(
            format!("load generator beside wrk, {connections} connection{plural}"),
            format!("adds ≤ {p50} µs to p50, ≤ {p99} µs to p99"),
        );
        let added = |unit| value(CLOSED, &difference(connections, ""), unit);
        goal.measured = added(P50).zip(added(P99)).map(|(median, tail)| {
            let text = format!("p50 {} µs, p99 {} µs", number(median), number(tail));
            (text, median <= p50 && tail <= p99)
        });
        goals.push(goal);
    }
    let mut goal = Goal::new(
        "open loop, 100 to 10,000/s, fixed and exponential",
        format!("rate error ≤ {RATE_ERROR_MAX} %, sent late p99 ≤ {LATE_MAX_US} µs"),
    );
    let worst = |unit| {
        let rows = RATES
            .into_iter()
            .flat_map(|rate| Spacing::ALL.map(|spacing| value(OPEN, &spacing.row(rate), unit)));
        // One that is missing is not good.
        rows.collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::max)
    };
    goal.measured = worst(RATE_ERROR).zip(worst(P99)).map(|(error, late)| {
        let text = format!("at most {} %, {} µs", number(error), number(late));
        (text, error <= RATE_ERROR_MAX && late <= LATE_MAX_US)
    });
    goals.push(goal);
    for (duet, wanted, least, most) in FINDS {
        let mut goal = Goal::new(format!("duets of 100 benchmarks, {}", duet.row()), wanted);
        let all = value(DUETS, duet.row(), BENCHMARKS);
        goal.measured = all
            .zip(value(DUETS, duet.row(), FOUND))
            .map(|(all, found)| {
                let text = format!("{} of {}", number(found), number(all));
                (text, (least * all..=most * all).contains(&found))
            });
        goals.push(goal);
    }
    for (factor, most) in TMR_MAX {
        let mut goal = Goal::new(
            format!("tail table, {factor}, p99 / median"),
            format!("≤ {most}"),
        );
        goal.measured = value(TAIL, factor, TMR).map(|found| (number(found), found <= most));
        // No floors: a ratio may be below either.
        let ratio = |what: &str, row: &str, unit| {
            value(TAIL, row, unit).map(|ratio| format!("{what} {}", number(ratio)))
        };
        let mut compared = Vec::new();
        if SINGLE.contains(&factor) {
            compared.extend(ratio("a server that does nothing", TRIVIAL, TMR));
        }
        compared.extend(ratio("the paper’s best cloud", factor, PAPER_TMR));
        if !compared.is_empty() {
            goal.floor = format!("to compare: {}", compared.join(", "));
        }
        goals.push(goal);
    }
    let mut goal = Goal::new(
        "Go suite, 10 benchmarks × 15 calls × 3",
        "≤ 2 × the pure benchmark time",
    );
    goal.measured = documents
        .value("lab", GO, RATIO)
        .map(|ratio| (format!("{} ×", number(ratio)), ratio <= 2.0));
    goals.push(goal);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Document;

    /// Whether the goals that were measured are met.
    fn met(document: Document) -> Vec<(String, bool)> {
        let mut goals = Vec::new();
        measuring(&Documents(vec![document]), &mut goals);
        let measured = goals
            .into_iter()
            .filter_map(|goal| Some((goal.what, goal.measured?.1)));
        measured.collect()
    }

    #[test]
    fn the_ratio_of_a_server_that_does_nothing_stands_beside_those_of_single_requests() {
        let mut document = Document::new("lab");
        document.figure(TAIL, TRIVIAL, 1.9, TMR);
        document.figure(TAIL, "cold", 1.5, PAPER_TMR);
        let mut goals = Vec::new();
        measuring(&Documents(vec![document]), &mut goals);
        let floors = goals.iter().filter(|goal| goal.what.contains("tail table"));
        let floors: Vec<&str> = floors.map(|goal| goal.floor.as_str()).collect();
        let trivial = "to compare: a server that does nothing 1.9";
        let with_best = format!("{trivial}, the paper’s best cloud 1.5");
        assert_eq!(floors, [trivial, &with_best, ""]);
    }

    #[test]
    fn goals_are_met_at_their_limits_and_missed_beyond() {
        assert!(met(Document::new("lab")).is_empty());
        for (beyond, is_met) in [(0.0, true), (1.0, false)] {
            let mut document = Document::new("lab");
            let mut add = |category: &str, row: &str, value, unit| {
                document.figure(category, row, value, unit);
            };
            add(CLOSED, &row(16, LAB), 50_000.0 - beyond, RATE);
            for connections in CONNECTIONS {
                add(CLOSED, &difference(connections, ""), -1.0, P50);
                add(CLOSED, &difference(connections, ""), 20.0 + beyond, P99);
            }
            for rate in RATES {
                for spacing in Spacing::ALL {
                    add(OPEN, &spacing.row(rate), 0.5, RATE_ERROR);
                    add(OPEN, &spacing.row(rate), 200.0 + beyond, P99);
                }
            }
            for (duet, found) in
                Duet::ALL
                    .into_iter()
                    .zip([beyond, beyond, 95.0 - beyond, 100.0 - beyond])
            {
                add(DUETS, duet.row(), 100.0, BENCHMARKS);
                add(DUETS, duet.row(), found, FOUND);
            }
            for (factor, most) in TMR_MAX {
                add(TAIL, factor, most + beyond, TMR);
            }
            add(GO, RATIO, 2.0 + beyond, "×");
            let met = met(document);
            assert_eq!(met.len(), 12);
            assert!(met.iter().all(|(_, met)| *met == is_met), "{met:?}");
        }
    }
}
