//! The forms of `/lab`: which configuration one means, what is wrong with it, and what was typed.

use hearth_web::pages::{FieldErrors, LabForm};

use crate::lab::LabError;

use super::form::Form;
use super::guard::sentence;
use super::{lab_config, lab_load, lab_suite};

/// Why a form is refused.
pub(super) enum Refusal {
    /// Said above the forms.
    Problem(String),
    /// Said at fields.
    Fields(FieldErrors),
}

/// A field's whole number.
pub(super) fn whole(form: &Form, name: &str) -> Result<u64, FieldErrors> {
    let number = form.trimmed(name).parse();
    number.map_err(|_| wrong(form, name, "a whole number"))
}

/// A field's number.
pub(super) fn decimal(form: &Form, name: &str) -> Result<f64, FieldErrors> {
    let number = form.trimmed(name).parse().ok();
    let number = number.filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| wrong(form, name, "a number"))
}

/// What a field has is something else.
pub(super) fn wrong(form: &Form, name: &str, rule: &str) -> FieldErrors {
    let text = form.trimmed(name);
    FieldErrors::one(name, format!("{text:?} is not {rule}."))
}

/// The configuration that a form means.
pub(super) fn config(form: &Form) -> Result<String, Refusal> {
    match form.trimmed("kind").as_str() {
        "suite" => lab_suite::config(form).map_err(Refusal::Fields),
        "load" => lab_load::config(form).map_err(Refusal::Fields),
        _ => lab_config::config(form).map_err(Refusal::Problem),
    }
}

/// Why the lab refuses an experiment, where the form has it. None if that is not the form's fault.
pub(super) fn refusal(form: &Form, error: &LabError) -> Option<Refusal> {
    let no_function;
    let setting = match error {
        LabError::Job(error) => error.setting(),
        LabError::NoFunction(setting, name) => {
            no_function = format!("there is no function {name:?}");
            Some((*setting, no_function.as_str()))
        }
        LabError::Full | LabError::Kept => None,
        _ => return None,
    };
    let fields = setting.and_then(|(setting, rule)| match form.trimmed("kind").as_str() {
        "suite" => lab_suite::at_a_field(setting, rule),
        "load" => lab_load::at_a_field(setting, rule),
        _ => None,
    });
    let problem = || Refusal::Problem(sentence(&error.to_string()));
    Some(fields.map_or_else(problem, Refusal::Fields))
}

/// The forms as typed.
pub(super) fn typed(form: &Form) -> LabForm {
    let defaults = LabForm::default();
    let kind = form.trimmed("kind");
    // A form has its own fields only; the others keep what they begin with.
    let typed = |name: &str, default: String| match form.all(name).next() {
        Some(text) => text.replace("\r\n", "\n"),
        None => default,
    };
    LabForm {
        samples: typed("samples", defaults.samples),
        factors: form.all("factor").map(str::to_owned).collect(),
        overhead_samples: typed("overhead_samples", defaults.overhead_samples),
        cold: typed("cold", defaults.cold),
        workloads: form.all("workload").map(str::to_owned).collect(),
        runtimes: form.all("runtime").map(str::to_owned).collect(),
        first: typed("first", defaults.first),
        second: typed("second", defaults.second),
        recorded: typed("recorded", defaults.recorded),
        calls: typed("calls", defaults.calls),
        event: typed("event", defaults.event),
        saved: typed("saved", defaults.saved),
        last: typed("last", defaults.last),
        speed: typed("speed", defaults.speed),
        settings: typed("settings", defaults.settings),
        allow: typed("allow", defaults.allow),
        load: match kind.as_str() {
            "load" => lab_load::typed(form),
            _ => defaults.load,
        },
        suite: match kind.as_str() {
            "suite" => lab_suite::typed(form),
            _ => defaults.suite,
        },
        config: typed("config", defaults.config),
        kind,
    }
}
