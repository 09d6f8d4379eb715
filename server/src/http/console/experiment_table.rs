//! What came of an experiment as a table.

use hearth_lab::duet::report::is_from_history;
use hearth_lab::overhead::layers::{LAYERS, TITLES};
use hearth_lab::plot::forest::percent;
use hearth_lab::plot::format::time;
use hearth_web::pages::ResultTable;
use serde::Deserialize as _;
use serde_json::Value;

use crate::model::{ExperimentView, WhatIf};

use super::what_if;

/// What came of it.
pub(super) fn result(view: &ExperimentView) -> ResultTable {
    let Some(result) = &view.result else {
        return ResultTable::default();
    };
    if let Some(rows) = result["overhead"].as_array() {
        return overhead(rows);
    }
    if let Ok(found) = WhatIf::deserialize(&result["what_if"]) {
        return what_if::table(&found);
    }
    match result["benchmarks"].as_array() {
        Some(benchmarks) => comparisons(benchmarks, result),
        None => latencies(result["rows"].as_array().map_or(&[], Vec::as_slice), true),
    }
}

/// Rows with the latency of something. `whole` has what is known only at the end.
pub(super) fn latencies(rows: &[Value], whole: bool) -> ResultTable {
    let is_table = rows.iter().any(|row| !row["ratios"].is_null());
    let mut headings = vec![
        "", "Samples", "p50", "p90", "p99", "p99.9", "Maximum", "TMR",
    ];
    if whole {
        headings.push("Failed");
    }
    if is_table {
        headings.extend(["MR", "TR", "Cold", "TMR in the paper"]);
    }
    let row = |row: &Value| {
        let tail = &row["latency_ns"];
        let mut cells = vec![tail["count"].to_string()];
        cells.extend(["median", "p90", "p99", "p999", "max"].map(|field| ns(&tail[field])));
        cells.push(ratio(&tail["tmr"]));
        if whole {
            cells.push(row["failed"].to_string());
        }
        if is_table {
            cells.push(ratio(&row["ratios"]["mr"]));
            cells.push(ratio(&row["ratios"]["tr"]));
            let cold = row["cold_share"].as_f64();
            cells.push(
                cold.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0)),
            );
            cells.push(in_the_paper(row));
        }
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        (text("title"), text("means"), cells)
    };
    ResultTable {
        headings,
        rows: rows.iter().map(row).collect(),
    }
}

/// By cloud, and whether this server's is less than the least of them: `AWS 1.7, here less`.
fn in_the_paper(row: &Value) -> String {
    let clouds = row["paper_tmr"].as_object().into_iter().flatten();
    let clouds: Vec<String> = clouds
        .map(|(cloud, tmr)| format!("{cloud} {tmr}"))
        .collect();
    match clouds.is_empty() {
        true => "–".to_owned(),
        false => {
            let here = match row["below_paper"].as_bool() {
                Some(true) => ", here less",
                Some(false) => ", here more",
                // Experiments of earlier versions do not say it.
                None => "",
            };
            clouds.join(", ") + here
        }
    }
}

/// What each layer has of its own in the mean, and its share of the whole.
fn overhead(rows: &[Value]) -> ResultTable {
    let mut headings = vec!["", "Samples"];
    headings.extend(TITLES);
    headings.extend(["Mean", "p50", "p99", "Failed"]);
    let row = |row: &Value| {
        let layers = row["layers"].as_array().into_iter().flatten();
        let mut cells = vec![row["samples"].to_string()];
        cells.extend(layers.map(|layer| {
            let share = layer["share"].as_f64().unwrap_or_default();
            format!("{} ({:.0} %)", ns(&layer["own"]["mean_ns"]), share * 100.0)
        }));
        let client = &row["layers"][LAYERS - 1]["through"];
        cells.extend(["mean_ns", "p50_ns", "p99_ns"].map(|field| ns(&client[field])));
        cells.push(row["uncounted"]["failed"].to_string());
        let title = row["title"].as_str().unwrap_or_default().to_owned();
        (title, String::new(), cells)
    };
    ResultTable {
        headings,
        rows: rows.iter().map(row).collect(),
    }
}

fn comparisons(benchmarks: &[Value], result: &Value) -> ResultTable {
    // Only where results are trials, and where it came to be.
    let is_needed = benchmarks.iter().any(|one| one["trials_needed"].is_u64());
    let row = |one: &Value| {
        let change = &one["change"];
        let interval =
            |interval: &Value| match (interval["low"].as_f64(), interval["high"].as_f64()) {
                (Some(low), Some(high)) => format!("{} to {}", percent(low), percent(high)),
                _ => "–".to_owned(),
            };
        let estimate = change["estimate"].as_f64();
        let mut cells = vec![
            one["trials"].to_string(),
            ns(&one["first_ns"]),
            ns(&one["second_ns"]),
            estimate.map_or_else(|| "–".to_owned(), percent),
            interval(&change["percentile"]),
            interval(&change["bca"]),
            verdict(one, result),
        ];
        if is_needed {
            let needed = one["trials_needed"].as_u64();
            cells.push(needed.map_or_else(|| "–".to_owned(), |count| count.to_string()));
        }
        let title = one["title"].as_str().unwrap_or_default().to_owned();
        (
            title,
            one["error"].as_str().unwrap_or_default().to_owned(),
            cells,
        )
    };
    let what = match result["suite"].is_object() {
        true => "Benchmark",
        false => "Event",
    };
    let mut headings = vec![
        what, "Trials", "First", "Second", "Change", "Interval", "BCa", "Verdict",
    ];
    if is_needed {
        headings.push("Trials needed");
    }
    ResultTable {
        headings,
        rows: benchmarks.iter().map(row).collect(),
    }
}

/// What is said of a benchmark.
pub(super) fn verdict(one: &Value, result: &Value) -> String {
    if is_from_history(result, one) {
        return "not judged".to_owned();
    }
    // Where the first version differs from itself, what differs from it says nothing.
    if result["control_changes"].as_u64() > Some(0) {
        return "–".to_owned();
    }
    let word = match one["verdict"].as_str() {
        Some("faster") => "faster",
        Some("slower") => "slower",
        Some("possible") => "possible change",
        Some(_) => "no change",
        None => "left out",
    };
    match one["doubtful"].as_bool() {
        Some(true) => format!("{word}, perhaps noise"),
        _ => word.to_owned(),
    }
}

pub(super) fn ns(value: &Value) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), time)
}

fn ratio(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn trials_that_are_needed_are_shown_where_they_are_known() {
        let one = |needed: Value| json!({"title": "a", "trials": 45, "trials_needed": needed});
        let headings = |all: &[Value]| comparisons(all, &json!({})).headings;
        assert_eq!(headings(&[one(Value::Null)]).len(), 8);
        let both = [one(Value::Null), one(json!(21))];
        assert_eq!(headings(&both).last(), Some(&"Trials needed"));
        let rows = comparisons(&both, &json!({})).rows;
        let last = |row: usize| rows[row].2.last().map(String::as_str);
        assert_eq!((last(0), last(1)), (Some("–"), Some("21")));
    }

    #[test]
    fn what_is_set_beside_the_history_is_not_judged() {
        let replay = |changes: u32| json!({"replayed": {}, "control_changes": changes});
        let recorded = json!({"title": "recorded", "verdict": null, "from_history": true});
        // As earlier versions of the lab kept it.
        let old = json!({"title": "recorded", "verdict": "slower", "doubtful": true});
        for one in [&recorded, &old] {
            for changes in [0, 1] {
                assert_eq!(verdict(one, &replay(changes)), "not judged");
            }
        }
        let event = json!({"title": "recorded", "verdict": "slower", "from_history": false});
        assert_eq!(verdict(&event, &json!({})), "slower");
    }
}
