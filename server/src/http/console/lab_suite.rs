//! The form of `/lab` for a suite: its configuration, and errors at its fields.

use hearth_lab::suite::TOOLS;
use hearth_lab::suite::settings::PARALLEL_MAX;
use hearth_web::pages::{FieldErrors, SuiteForm};
use serde_json::{Value, json};

use super::form::Form;
use super::guard::sentence;
use super::lab_form::{decimal, is_checked, one_a_line, whole, wrong};

/// The tools, each with what it is.
pub(super) fn tools() -> Vec<(&'static str, &'static str)> {
    TOOLS
        .iter()
        .map(|tool| (tool.name(), tool.means()))
        .collect()
}

/// Most calls at a time on this host.
pub(super) fn parallel_max() -> usize {
    (crate::system::cores() as usize).clamp(1, PARALLEL_MAX)
}

/// The configuration that a form means; what is wrong with its fields otherwise.
pub(super) fn config(form: &Form) -> Result<String, FieldErrors> {
    let whole = |name| whole(form, name);
    let seconds = |name| decimal(form, name);
    let parallel = match form.trimmed("suite_parallel").is_empty() {
        true => Value::Null,
        false => {
            let (wanted, most) = (whole("suite_parallel")?, parallel_max());
            if !(1..=most as u64).contains(&wanted) {
                let rule = format!("{wanted} is not within 1 and {most}.");
                return Err(FieldErrors::one("suite_parallel", rule));
            }
            json!(wanted)
        }
    };
    let memory = u32::try_from(whole("suite_memory")?)
        .map_err(|_| wrong(form, "suite_memory", "a size that an instance can have"))?;
    let paths = form.lines("suite_paths");
    let only = form.trimmed("suite_only");
    let config = json!({
        "kind": "suite",
        "tool": tool(form)?,
        "first": form.trimmed("suite_first"),
        "second": form.trimmed("suite_second"),
        "paths": one_a_line(&paths),
        "only": (!only.is_empty()).then_some(only),
        "calls": whole("suite_calls")?,
        "repeats": whole("suite_repeats")?,
        "control": is_checked(form, "suite_control"),
        "parallel": parallel,
        "time_s": seconds("suite_time")?,
        "limit_s": seconds("suite_limit")?,
        "memory_mb": memory,
        "cgo": is_checked(form, "suite_cgo"),
    });
    Ok(config.to_string())
}

fn tool(form: &Form) -> Result<&'static str, FieldErrors> {
    let given = form.trimmed("suite_tool");
    let mut names = TOOLS.iter().map(|tool| tool.name());
    let found = names.find(|name| *name == given);
    found.ok_or_else(|| {
        let all: Vec<&str> = TOOLS.iter().map(|tool| tool.name()).collect();
        let rule = format!("{given:?} is none of {}.", all.join(", "));
        FieldErrors::one("suite_tool", rule)
    })
}

/// A refused setting, at the field of the form that it is about; none if it is about none of them.
pub(super) fn at_a_field(setting: &str, rule: &str) -> Option<FieldErrors> {
    let field = match setting {
        "first" => "suite_first",
        "second" => "suite_second",
        "path" => "suite_paths",
        "calls" => "suite_calls",
        "repeats" => "suite_repeats",
        "time" => "suite_time",
        "limit" => "suite_limit",
        "cgo" => "suite_cgo",
        _ => return None,
    };
    Some(FieldErrors::one(field, sentence(rule)))
}

/// The form as typed.
pub(super) fn typed(form: &Form) -> SuiteForm {
    SuiteForm {
        tool: form.trimmed("suite_tool"),
        first: form.trimmed("suite_first"),
        second: form.trimmed("suite_second"),
        paths: form.lines("suite_paths"),
        only: form.trimmed("suite_only"),
        calls: form.trimmed("suite_calls"),
        repeats: form.trimmed("suite_repeats"),
        parallel: form.trimmed("suite_parallel"),
        time: form.trimmed("suite_time"),
        limit: form.trimmed("suite_limit"),
        memory: form.trimmed("suite_memory"),
        control: is_checked(form, "suite_control"),
        cgo: is_checked(form, "suite_cgo"),
    }
}
