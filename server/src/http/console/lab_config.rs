//! The forms of `/lab` as configurations of experiments.

use hearth_lab::replay::{Changes, Network};
use serde_json::{Value, json};

use super::form::Form;

/// The configuration that a form means; what is wrong with it otherwise. Those of loads and suites are [`super::lab_load`]'s and
/// [`super::lab_suite`]'s.
pub(super) fn config(form: &Form) -> Result<String, String> {
    let number = |name: &str, label: &str| {
        let text = form.trimmed(name);
        let number: Result<u64, _> = text.parse();
        number.map_err(|_| format!("{label}: {text:?} is not a whole number."))
    };
    match form.trimmed("kind").as_str() {
        "tail" => {
            let factors: Vec<&str> = form.all("factor").collect();
            // None would be all of them.
            if factors.is_empty() {
                return Err("Factors: choose at least one.".to_owned());
            }
            let samples = number("samples", "Samples")?;
            Ok(json!({ "kind": "tail", "samples": samples, "factors": factors }).to_string())
        }
        "overhead" => {
            // None would be all of them.
            let chosen = |name: &str, label: &str| match form.all(name).collect::<Vec<&str>>() {
                none if none.is_empty() => Err(format!("{label}: choose at least one.")),
                chosen => Ok(chosen),
            };
            let config = json!({
                "kind": "overhead",
                "samples": number("overhead_samples", "Warm samples")?,
                "cold": number("cold", "Cold samples")?,
                "workloads": chosen("workload", "Workloads")?,
                "runtimes": chosen("runtime", "Runtimes")?,
            });
            Ok(config.to_string())
        }
        "duet" => {
            let text = form.lines("event");
            let event: Option<Value> = match text.trim().is_empty() {
                true => None,
                false => serde_json::from_str(&text)
                    .map(Some)
                    .map_err(|error| format!("Event: not valid JSON: {error}"))?,
            };
            let saved = form.lines("saved");
            let saved: Vec<&str> = saved
                .lines()
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .collect();
            let config = json!({
                "kind": "duet",
                "first": form.trimmed("first"),
                "second": form.trimmed("second"),
                "events": Vec::from_iter(event),
                "saved": saved,
                "recorded": number("recorded", "Recorded events")?,
                "calls": number("calls", "Calls")?,
            });
            Ok(config.to_string())
        }
        "replay" => {
            let text = form.trimmed("speed");
            let speed: f64 = text
                .parse()
                .map_err(|_| format!("Speed: {text:?} is not a number."))?;
            let mut changes = Changes::default();
            let lines = form.lines("settings");
            for line in lines.lines().filter(|line| !line.trim().is_empty()) {
                changes
                    .set(line)
                    .map_err(|rule| format!("Other settings: {rule}."))?;
            }
            let allow = form.trimmed("allow");
            let allow = allow.split([',', ' ']).filter(|entry| !entry.is_empty());
            let allow: Vec<String> = allow.map(str::to_owned).collect();
            let config = json!({
                "kind": "replay",
                "first": form.trimmed("first"),
                "second": form.trimmed("second"),
                "settings": changes,
                "network": Network::allowing(allow),
                "last_s": number("last", "The last")?.saturating_mul(60),
                "speed": speed,
            });
            Ok(config.to_string())
        }
        _ => Ok(form.lines("config")),
    }
}
