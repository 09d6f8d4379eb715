//! The goals of the way out.

use super::Goal;
use crate::report::Documents;
use crate::report::format::number;
use crate::suites::network::{
    CONNECTION, FIRST, KEPT, MORE, NEW, NONE, POLICY, RESTORED, TWO_PLAIN, WARM, WITH, throughput,
};
use crate::suites::pair::ratio_name;

pub(super) fn reaching(documents: &Documents, goals: &mut Vec<Goal>) {
    let ratio = |category: &str, names| documents.value("network", category, &ratio_name(names));
    let mut add = |what: &str, goal: &str, found: Option<f64>, good: fn(f64) -> bool| {
        let mut goal = Goal::new(what, goal);
        goal.measured = found.map(|found| (format!("{} ×", number(found)), good(found)));
        goals.push(goal);
    };
    let ways = [TWO_PLAIN, POLICY];
    add(
        "TCP connection with one exchange through a policy",
        "≤ 1.3 × between two plain namespaces",
        ratio(CONNECTION, ways),
        |found| found <= 1.3,
    );
    for direction in ["to the function", "from the function"] {
        add(
            &format!("throughput of one connection through a policy, {direction}"),
            "≥ 0.9 × between two plain namespaces",
            ratio(&throughput(direction), ways),
            |found| found >= 0.9,
        );
    }
    for (what, category) in [
        ("first HTTP request by fork, with a policy", FIRST),
        ("warm HTTP request, with a policy", WARM),
        ("first HTTP request by restore, with a policy", RESTORED),
    ] {
        let found = ratio(category, [NONE, WITH]);
        add(what, "≤ 1.03 × without a network", found, |found| {
            found <= 1.03
        });
    }
    for (what, category) in [
        ("brokered HTTPS request, open connection", KEPT),
        ("brokered HTTPS request, new connection", NEW),
    ] {
        let mut goal = Goal::new(what, "≤ 1 ms more than direct");
        let found = documents.value("network", category, MORE);
        goal.measured = found.map(|found| (format!("{} ms", number(found)), found <= 1.0));
        goals.push(goal);
    }
}
