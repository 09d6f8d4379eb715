//! What two runs have in common, side by side.

use std::collections::{HashMap, VecDeque};

use hearth_lab::duet::against::Against;
use hearth_lab::duet::report::is_from_history;
use hearth_lab::overhead::layers::LAYERS;
use hearth_lab::plot::forest::percent;
use hearth_lab::statistics::Intervals;
use hearth_web::pages::ResultTable;
use serde::Deserialize as _;
use serde_json::Value;

use super::experiment_table::{ns, verdict};

/// What has the same name, in order, beside each other, and then what only the second has.
pub(super) fn by_name<T>(
    first: Vec<T>,
    second: Vec<T>,
    name: impl Fn(&T) -> &str,
) -> Vec<[Option<T>; 2]> {
    let mut same: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (index, one) in second.iter().enumerate() {
        same.entry(name(one).to_owned())
            .or_default()
            .push_back(index);
    }
    let mut second: Vec<Option<T>> = second.into_iter().map(Some).collect();
    let mut pairs = Vec::new();
    for one in first {
        let other = same.get_mut(name(&one)).and_then(VecDeque::pop_front);
        let other = other.and_then(|index| second[index].take());
        pairs.push([Some(one), other]);
    }
    pairs.extend(
        second
            .into_iter()
            .flatten()
            .map(|other| [None, Some(other)]),
    );
    pairs
}

/// The same, or the only ones of both whatever their names, if the runs are alike.
fn paired<T>(
    first: Vec<T>,
    second: Vec<T>,
    name: impl Fn(&T) -> &str,
    are_alike: bool,
) -> Vec<[Option<T>; 2]> {
    match are_alike && first.len() == 1 && second.len() == 1 {
        true => {
            let pairs = first.into_iter().zip(second);
            pairs.map(|(one, two)| [Some(one), Some(two)]).collect()
        }
        false => by_name(first, second, name),
    }
}

fn both(one: &str, two: &str) -> String {
    match one == two {
        true => one.to_owned(),
        false => format!("{one} / {two}"),
    }
}

fn title<'a>(one: &'a &Value) -> &'a str {
    one["title"].as_str().unwrap_or_default()
}

/// What both have, line by line, and of runs that are alike the only lines of both whatever their names. Nothing where they have nothing
/// in common.
pub(super) fn differences(first: &Value, second: &Value, are_alike: bool) -> ResultTable {
    if let (Some(ones), Some(twos)) = (
        first["benchmarks"].as_array(),
        second["benchmarks"].as_array(),
    ) {
        return findings(first, ones, second, twos, are_alike);
    }
    let (ones, twos) = (latencies(first), latencies(second));
    let pairs = paired(ones, twos, |(title, _)| title, are_alike);
    let row = |pair: [Option<(String, [Value; 2])>; 2]| {
        let [Some((title, one)), Some((other, two))] = pair else {
            return None;
        };
        let title = both(&title, &other);
        let cells = one.iter().zip(&two).flat_map(|(one, two)| {
            let change = match (one.as_f64(), two.as_f64()) {
                (Some(one), Some(two)) if one > 0.0 => percent(two / one - 1.0),
                _ => "–".to_owned(),
            };
            [ns(one), ns(two), change]
        });
        Some((title, String::new(), cells.collect()))
    };
    ResultTable {
        headings: vec![
            "",
            "p50, first",
            "p50, second",
            "Change of p50",
            "p99, first",
            "p99, second",
            "Change of p99",
        ],
        rows: pairs.into_iter().filter_map(row).collect(),
    }
}

/// The median and the 99th percentile of each row, at the client.
fn latencies(result: &Value) -> Vec<(String, [Value; 2])> {
    let title = |row: &Value| row["title"].as_str().unwrap_or_default().to_owned();
    if let Some(rows) = result["overhead"].as_array() {
        let row = |row: &Value| {
            let client = &row["layers"][LAYERS - 1]["through"];
            (
                title(row),
                ["p50_ns", "p99_ns"].map(|name| client[name].clone()),
            )
        };
        return rows.iter().map(row).collect();
    }
    let rows = result["rows"].as_array().into_iter().flatten();
    let row = |row: &Value| {
        let tail = &row["latency_ns"];
        (title(row), ["median", "p99"].map(|name| tail[name].clone()))
    };
    rows.map(row).collect()
}

/// What two duets say of the same benchmarks.
fn findings(
    first: &Value,
    ones: &[Value],
    second: &Value,
    twos: &[Value],
    are_alike: bool,
) -> ResultTable {
    let change = |one: &Value| {
        let estimate = one["change"]["estimate"].as_f64();
        estimate.map_or_else(|| "–".to_owned(), percent)
    };
    let row = |pair: [Option<&Value>; 2]| {
        let [Some(one), Some(two)] = pair else {
            return None;
        };
        let cells = vec![
            change(one),
            change(two),
            verdict(one, first),
            verdict(two, second),
        ];
        Some((both(title(&one), title(&two)), String::new(), cells))
    };
    let pairs = paired(
        ones.iter().collect(),
        twos.iter().collect(),
        title,
        are_alike,
    );
    ResultTable {
        headings: vec![
            "",
            "Change, first",
            "Change, second",
            "Verdict, first",
            "Verdict, second",
        ],
        rows: pairs.into_iter().filter_map(row).collect(),
    }
}

/// The benchmarks of a result in which both versions ran beside each other.
fn duets(result: &Value) -> Vec<&Value> {
    let all = result["benchmarks"].as_array().into_iter().flatten();
    all.filter(|one| !is_from_history(result, one)).collect()
}

/// Whether a version was found to differ from itself: by the control, or by an A/A run.
fn is_noisy(result: &Value) -> bool {
    let is_change = |one: &Value| matches!(one["verdict"].as_str(), Some("faster" | "slower"));
    let is_aa = result["first"].is_string() && result["first"] == result["second"];
    result["control_changes"].as_u64() > Some(0)
        || is_aa && duets(result).into_iter().any(is_change)
}

/// Whether two duets agree, and cover each other, by the benchmarks that both have. Nothing where one of them is none or they have nothing
/// in common.
pub(super) fn agreement(first: &Value, second: &Value) -> String {
    let mut sum = Against::default();
    for pair in by_name(duets(first), duets(second), title) {
        let [Some(one), Some(two)] = pair else {
            continue;
        };
        let of = |one: &Value| Intervals::deserialize(&one["change"]).ok();
        if let (Some(one), Some(two)) = (of(one), of(two)) {
            sum.add(one.agreement(&two));
        }
    }
    if sum.benchmarks == 0 {
        return String::new();
    }
    let noisy = match (is_noisy(first), is_noisy(second)) {
        (false, false) => None,
        (true, false) => Some("the first run"),
        (false, true) => Some("the second run"),
        (true, true) => Some("both runs"),
    };
    if let Some(which) = noisy {
        return format!("No agreement: in {which} a version differs from itself.");
    }
    format!(
        "Of {} benchmarks the runs agree on {}, and {} changed in one of them only. The first's median lies in the second's interval with {}, \
         the second's in the first's with {}, both with {}.",
        sum.benchmarks, sum.agree, sum.possible_changes, sum.covered, sum.covers, sum.covered_both,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_both_have_is_compared_line_by_line() {
        let tail = |median: f64, p99: f64| json!({"median": median, "p99": p99});
        let row = |title: &str, latency: Value| json!({"title": title, "latency_ns": latency});
        let first = json!({"rows": [row("warm", tail(1e6, 2e6)), row("cold", tail(3e6, 4e6))]});
        let second = json!({"rows": [row("warm", tail(2e6, 1e6))]});
        let found = differences(&first, &second, true);
        let (title, _, cells) = &found.rows[0];
        assert_eq!((found.rows.len(), title.as_str()), (1, "warm"));
        assert_eq!(cells[..3], ["1 ms", "2 ms", "+100 %"]);
        assert_eq!(cells[3..], ["2 ms", "1 ms", "−50 %"]);
        assert!(differences(&first, &Value::Null, true).rows.is_empty());
        // The only ones are compared, if they are alike.
        let other = json!({"rows": [row("hot", tail(0.0, 1e6))]});
        assert!(differences(&first, &other, true).rows.is_empty());
        assert!(differences(&second, &other, false).rows.is_empty());
        let found = differences(&second, &other, true);
        assert_eq!(found.rows[0].0, "warm / hot");
        assert_eq!(found.rows[0].2[..3], ["2 ms", "0 ns", "−100 %"]);
        assert_eq!(differences(&other, &second, true).rows[0].2[2], "–");
        // The second of a name beside the second.
        let twice = |one: f64, two: f64| json!({"rows": [row("a", tail(one, one)), row("a", tail(two, two))]});
        let found = differences(&twice(1e6, 8e6), &twice(2e6, 4e6), true);
        assert_eq!(found.rows[1].2[..3], ["8 ms", "4 ms", "−50 %"]);

        let duet = |verdict: &str| json!({"benchmarks": [{"title": "a", "change": {"estimate": 0.5}, "verdict": verdict}], "control_changes": 0});
        let found = differences(&duet("slower"), &duet("no_change"), true);
        assert_eq!(found.rows[0].2, ["+50 %", "+50 %", "slower", "no change"]);
        assert!(differences(&duet("slower"), &first, false).rows.is_empty());
        let mut renamed = duet("slower");
        renamed["benchmarks"][0]["title"] = json!("b");
        let found = differences(&duet("slower"), &renamed, true);
        assert_eq!(found.rows[0].0, "a / b");
    }

    #[test]
    fn duets_agree_and_cover_each_other_or_not() {
        let one = |title: &str, estimate: f64, low: f64, high: f64| {
            let interval = json!({"low": low, "high": high});
            let change = json!({"estimate": estimate, "percentile": interval, "bca": null});
            json!({"title": title, "change": change})
        };
        let duet = |all: &[Value]| json!({"benchmarks": all, "control_changes": 0});
        let first = duet(&[one("a", 0.2, 0.1, 0.3), one("b", 0.0, -0.1, 0.1)]);
        let second = duet(&[one("a", 0.25, 0.22, 0.28), one("b", 0.2, 0.05, 0.3)]);
        assert_eq!(
            agreement(&first, &second),
            "Of 2 benchmarks the runs agree on 1, and 1 changed in one of them only. The first's median lies in the second's interval with 0, \
             the second's in the first's with 1, both with 0."
        );
        // What is set beside the history does not count.
        let recorded = |result: &Value| {
            let mut replay = result.clone();
            replay["benchmarks"][1]["from_history"] = json!(true);
            replay
        };
        let found = agreement(&recorded(&first), &recorded(&second));
        assert!(found.starts_with("Of 1 benchmarks"), "{found}");
        let mut noisy = second.clone();
        noisy["control_changes"] = json!(1);
        let why = |which: &str| format!("No agreement: in {which} a version differs from itself.");
        assert_eq!(agreement(&first, &noisy), why("the second run"));
        assert_eq!(agreement(&noisy, &noisy), why("both runs"));
        let mut itself = second;
        (itself["first"], itself["second"]) = (json!("a@1"), json!("a@1"));
        itself["benchmarks"][0]["verdict"] = json!("slower");
        assert_eq!(agreement(&itself, &first), why("the first run"));
        assert_eq!(agreement(&first, &Value::Null), "");
    }
}
