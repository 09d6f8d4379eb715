//! The forms of `/lab`: which configuration one means, what is wrong with it, and what was typed.

use hearth_lab::duet::report::Stage;
use hearth_lab::stellar::experiment::TEXT_MAX;
use hearth_web::pages::{FieldErrors, LabForm};

use crate::lab::LabError;

use super::form::Form;
use super::guard::sentence;
use super::{lab_config, lab_duet, lab_load, lab_replay, lab_suite};

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

/// A field's percentage as a share.
pub(super) fn share(form: &Form, name: &str) -> Result<f64, FieldErrors> {
    Ok(decimal(form, name)? / 100.0)
}

/// A field's confidence in percent as a share. The lab has the same rule, but says it in shares.
pub(super) fn confidence(form: &Form, name: &str) -> Result<f64, FieldErrors> {
    let share = share(form, name)?;
    match (0.5..1.0).contains(&share) {
        true => Ok(share),
        false => Err(wrong(form, name, "from 50 to below 100")),
    }
}

/// What a field says is measured.
pub(super) fn stage(form: &Form, name: &str) -> Result<Stage, FieldErrors> {
    let given = form.trimmed(name);
    let mut all = [Stage::Run, Stage::Total].into_iter();
    let found = all.find(|stage| stage.name() == given);
    found.ok_or_else(|| wrong(form, name, "run or total"))
}

/// Texts that stand one a line.
pub(super) fn one_a_line(lines: &str) -> Vec<&str> {
    let texts = lines.lines().map(str::trim);
    texts.filter(|text| !text.is_empty()).collect()
}

/// Whether a box is checked.
pub(super) fn is_checked(form: &Form, name: &str) -> bool {
    form.text(name) == "true"
}

/// What a field has is something else.
pub(super) fn wrong(form: &Form, name: &str, rule: &str) -> FieldErrors {
    let text = form.trimmed(name);
    FieldErrors::one(name, format!("{text:?} is not {rule}."))
}

/// The configuration that a form means.
pub(super) fn config(form: &Form) -> Result<String, Refusal> {
    let config = match form.trimmed("kind").as_str() {
        "load" => lab_load::config(form).map_err(Refusal::Fields),
        "duet" => lab_duet::config(form).map_err(Refusal::Fields),
        "replay" => lab_replay::config(form).map_err(Refusal::Fields),
        "suite" => lab_suite::config(form).map_err(Refusal::Fields),
        _ => lab_config::config(form).map_err(Refusal::Problem),
    }?;
    if config.len() > TEXT_MAX {
        let rule = format!("an experiment has at most {} MiB", TEXT_MAX >> 20);
        // Only a trace is that large.
        return Err(match at_a_field(form, "trace", &rule) {
            Some(errors) => Refusal::Fields(errors),
            None => Refusal::Problem(sentence(&rule)),
        });
    }
    Ok(config)
}

/// A refused setting, at its field; none if the form has none for it.
fn at_a_field(form: &Form, setting: &str, rule: &str) -> Option<FieldErrors> {
    match form.trimmed("kind").as_str() {
        "load" => lab_load::at_a_field(setting, rule),
        "duet" => lab_duet::at_a_field(setting, rule),
        "replay" => lab_replay::at_a_field(form, setting, rule),
        "suite" => lab_suite::at_a_field(setting, rule),
        _ => None,
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
    let fields = setting.and_then(|(setting, rule)| at_a_field(form, setting, rule));
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
        load: match kind.as_str() {
            "load" => lab_load::typed(form),
            _ => defaults.load,
        },
        duet: match kind.as_str() {
            "duet" => lab_duet::typed(form),
            _ => defaults.duet,
        },
        replay: match kind.as_str() {
            "replay" => lab_replay::typed(form),
            _ => defaults.replay,
        },
        suite: match kind.as_str() {
            "suite" => lab_suite::typed(form),
            _ => defaults.suite,
        },
        config: typed("config", defaults.config),
        kind,
    }
}

/// The form that these fields are, of which those among `others` count instead.
#[cfg(test)]
pub(super) async fn sent(fields: &[(&str, &str)], others: &[(&str, &str)]) -> Form {
    let mut body = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        let other = others.iter().find(|(other, _)| other == name);
        body.append_pair(name, other.map_or(value, |(_, value)| value));
    }
    super::form::encoded::<super::form::Experiment>(&body.finish()).await
}

/// What is said at the fields of a form that the console or the lab refuses.
#[cfg(test)]
pub(super) fn refused(form: &Form) -> FieldErrors {
    let refused = match config(form) {
        Err(refused) => refused,
        Ok(config) => {
            let error = hearth_lab::job::Job::read(config.as_bytes()).expect_err("refused");
            refusal(form, &error.into()).expect("the form's fault")
        }
    };
    match refused {
        Refusal::Fields(errors) => errors,
        Refusal::Problem(problem) => panic!("not at a field: {problem}"),
    }
}
