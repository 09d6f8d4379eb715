//! What is said of an experiment's result beside its figures.

use hearth_lab::duet::render::{certificate, machine};
use hearth_lab::plot::format::{number, time};
use hearth_lab::run::noise::Noise;
use hearth_lab::suite::Suite;
use serde_json::Value;

use crate::model::ExperimentView;

use super::experiment_table::ns;
use super::guard::sentence;

/// Sentences about a result.
pub(super) fn remarks(view: &ExperimentView) -> Vec<String> {
    let Some(result) = &view.result else {
        return Vec::new();
    };
    let mut remarks = Vec::new();
    if result["control_changes"].as_u64() > Some(0) {
        let first = result["first"].as_str().unwrap_or_default();
        remarks.push(format!(
            "No verdict: {first} beside itself differs, too, so that this host was too noisy."
        ));
    }
    remarks.extend(needed(result));
    remarks.extend(gate(&result["gate"]));
    remarks.extend(replayed(&result["replayed"]));
    remarks.extend(sent(result));
    if let Ok(suite) = serde_json::from_value::<Suite>(result["suite"].clone()) {
        // Not capitalised: they begin with names.
        remarks.extend(suite.lines().iter().map(|line| format!("{line}.")));
    }
    let noise = serde_json::from_value::<Noise>(result["noise"].clone());
    let said = |noise: Noise| match result["benchmarks"].is_array() {
        true => certificate(&noise),
        false => machine(&noise),
    };
    remarks.extend(noise.ok().map(|noise| sentence(&said(noise))));
    remarks.extend(generator(&result["generator"]));
    let steal = result["steal_share"].as_f64();
    if let Some(steal) = steal.filter(|steal| *steal > 0.01) {
        remarks.push(format!(
            "The hypervisor took {:.0} % of the processors meanwhile.",
            steal * 100.0
        ));
    }
    if result["overhead"].is_array() {
        remarks.push(
            "Means. Each layer without those inside it, and its share of the time at the client, from sending to the last byte.".to_owned(),
        );
        let left_out = result["left_out"].as_array().into_iter().flatten();
        remarks.extend(
            left_out
                .filter_map(Value::as_str)
                .map(|reason| format!("Left out: {reason}.")),
        );
    }
    if result["load"].is_object() {
        remarks.push(
            "Uncorrected for coordinated omission from when a request was sent, corrected from when it was due. TMR: p99 over the median.".to_owned(),
        );
    } else if result["rows"].is_array() {
        remarks.push(
            "Time from sending to the first byte, not corrected for coordinated omission. TMR: p99 over the median. MR and TR: median and p99 over the warm median.".to_owned(),
        );
    }
    remarks
}

/// What the load generator took.
fn generator(generator: &Value) -> Option<String> {
    let took = time(generator["processor_ns"].as_f64()?);
    Some(match generator["processor"].as_u64() {
        Some(processor) => format!("The load generator took {took} of processor {processor}."),
        None => format!("The load generator took {took} of processor time."),
    })
}

/// What the trials that were needed were needed for.
fn needed(result: &Value) -> Option<String> {
    let benchmarks = result["benchmarks"].as_array()?;
    // Experiments of earlier versions do not say it.
    let width = number(result["width"].as_f64()? * 100.0);
    let of = |is: fn(&Value) -> bool| benchmarks.iter().filter(|one| is(one)).count();
    let reached = of(|one| one["trials_needed"].is_u64());
    let wide = of(|one| one["wide"] == true);
    Some(match (reached, wide) {
        (0, 0) => return None,
        (0, _) => format!("No interval became as narrow as {width} %: that takes more trials."),
        (_, 0) => {
            format!("Trials needed: after so many the interval was no wider than {width} %.")
        }
        (_, wide) => format!(
            "Trials needed: after so many the interval was no wider than {width} %; of {wide} it never was."
        ),
    })
}

/// What a gate decided.
fn gate(gate: &Value) -> Option<String> {
    let word = match gate["decision"].as_str()? {
        "held" => "Held: the second version may replace the first.",
        "fell_short" => "Fell short: the second version",
        _ => return None,
    };
    let reasons = gate["reasons"].as_array().into_iter().flatten();
    let reasons: Vec<&str> = reasons.filter_map(Value::as_str).collect();
    Some(match reasons.is_empty() {
        true => word.to_owned(),
        false => format!("{word} {}.", reasons.join("; ")),
    })
}

/// What a load has sent.
fn sent(result: &Value) -> Vec<String> {
    let load = &result["load"];
    let Some(rate) = load["rate"].as_f64() else {
        return Vec::new();
    };
    let mut remarks = vec![format!(
        "{} requests in {:.1} s, {} per second.",
        load["sent"],
        load["elapsed_ns"].as_f64().unwrap_or_default() / 1e9,
        number(rate),
    )];
    if let Some(error) = load["rate_error"].as_f64() {
        let late = ns(&load["send_delay_ns"]["p99"]);
        remarks.push(format!(
            "The rate is off by {} %; sent later than planned by {late} (p99).",
            format!("{:+.3}", error * 100.0).replace('-', "−")
        ));
    }
    if load["unsent"].as_u64() > Some(0) {
        remarks.push(format!(
            "{} were due and never sent, because all connections were busy.",
            load["unsent"]
        ));
    }
    let failed = result["failures"].as_str().unwrap_or_default();
    if !failed.is_empty() {
        remarks.push(format!("Failed: {failed}."));
    }
    let starts = result["starts"].as_object().into_iter().flatten();
    let starts = starts.filter(|(_, count)| count.as_u64() > Some(0));
    let starts: Vec<String> = starts
        .map(|(start, count)| format!("{count} {start}"))
        .collect();
    if !starts.is_empty() {
        remarks.push(format!(
            "Starts of all requests to it meanwhile: {}.",
            starts.join(", ")
        ));
    }
    if result["is_full"].as_bool() == Some(true) {
        remarks.push("It ended before its time: a load has no more requests.".to_owned());
    }
    if let Some(step) = result["samples_step"].as_u64().filter(|step| *step > 1) {
        remarks.push(format!("samples.csv has one of {step} requests."));
    }
    remarks
}

/// What was replayed.
fn replayed(replayed: &Value) -> Vec<String> {
    let Some(source) = replayed["source"].as_str() else {
        return Vec::new();
    };
    let late = ns(&replayed["late_p99_ns"]);
    let mut remarks = vec![format!(
        "{source}: {} arrivals within {:.0} s at {} ×, in {} parts with copies of their own, {} with their own event, {} left out because too many were under way; sent late by {late} (p99).",
        replayed["arrivals"],
        replayed["span_s"].as_f64().unwrap_or_default(),
        replayed["speed"],
        // Experiments of earlier versions had one.
        replayed["parts"].as_u64().unwrap_or(1),
        replayed["own_events"],
        replayed["left_out"],
    )];
    for (what, list) in [
        // Experiments of earlier versions reached nothing.
        ("could reach", &replayed["network"]["allow"]),
        ("lack", &replayed["lacks"]),
    ] {
        let list = list.as_array().into_iter().flatten();
        let list: Vec<&str> = list.filter_map(Value::as_str).collect();
        if !list.is_empty() {
            remarks.push(format!("The copies {what} {}.", list.join(", ")));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn intervals_that_stay_wide_are_told() {
        let said = |benchmarks: Value| {
            let result = json!({"width": 0.02, "benchmarks": benchmarks});
            super::needed(&result).unwrap_or_default()
        };
        let reached = json!({"trials_needed": 15, "wide": false});
        let wide = json!({"trials_needed": null, "wide": true});
        let left_out = json!({"trials_needed": null, "wide": false});
        let all = said(json!([reached, left_out]));
        assert!(all.ends_with("no wider than 2 %."), "{all}");
        let some = said(json!([reached, wide]));
        assert!(some.ends_with("of 1 it never was."), "{some}");
        let none = said(json!([wide, left_out]));
        assert!(none.starts_with("No interval became as narrow"), "{none}");
        assert_eq!(said(json!([left_out])), "");
    }
}
