//! The forms of `/lab` for a tail table, an overhead study and STeLLAR's format, as configurations of experiments.

use serde_json::json;

use super::form::Form;

/// The configuration that a form means; what is wrong with it otherwise.
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
        _ => Ok(form.lines("config")),
    }
}
