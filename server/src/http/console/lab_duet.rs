//! The form of `/lab` for a duet: its configuration, and errors at its fields.

use hearth_lab::job::duet::THRESHOLD_MAX;
use hearth_web::pages::{DuetForm, FieldErrors};
use serde_json::{Value, json};

use super::form::Form;
use super::guard::sentence;
use super::lab_form::{confidence, is_checked, one_a_line, share, stage, whole, wrong};

/// The configuration that a form means; what is wrong with its fields otherwise.
pub(super) fn config(form: &Form) -> Result<String, FieldErrors> {
    let whole = |name| whole(form, name);
    let saved = form.lines("saved");
    let config = json!({
        "kind": "duet",
        "first": form.trimmed("first"),
        "second": form.trimmed("second"),
        "events": Vec::from_iter(event(form)?),
        "saved": one_a_line(&saved),
        "recorded": whole("recorded")?,
        "calls": whole("calls")?,
        "repeats": whole("duet_repeats")?,
        "invocations": whole("duet_invocations")?,
        "stage": stage(form, "duet_stage")?,
        "control": is_checked(form, "duet_control"),
        "confidence": confidence(form, "duet_confidence")?,
        "width": width(form)?,
        "threshold": threshold(form)?,
    });
    Ok(config.to_string())
}

fn event(form: &Form) -> Result<Option<Value>, FieldErrors> {
    let text = form.lines("event");
    if text.trim().is_empty() {
        return Ok(None);
    }
    let event = serde_json::from_str(&text);
    event
        .map(Some)
        .map_err(|error| FieldErrors::one("duet-event", format!("Not valid JSON: {error}.")))
}

/// The lab has the same rules for this and the threshold, but says them in shares.
fn width(form: &Form) -> Result<f64, FieldErrors> {
    let width = share(form, "duet_width")?;
    match width > 0.0 {
        true => Ok(width),
        false => Err(wrong(form, "duet_width", "more than 0")),
    }
}

fn threshold(form: &Form) -> Result<Option<f64>, FieldErrors> {
    if form.trimmed("duet_threshold").is_empty() {
        return Ok(None);
    }
    let threshold = share(form, "duet_threshold")?;
    if !(0.0..=THRESHOLD_MAX).contains(&threshold) {
        let rule = format!("within 0 and {}", THRESHOLD_MAX * 100.0);
        return Err(wrong(form, "duet_threshold", &rule));
    }
    Ok(Some(threshold))
}

/// A refused setting, at the field of the form that it is about; none if it is about none of them.
pub(super) fn at_a_field(setting: &str, rule: &str) -> Option<FieldErrors> {
    let field = match setting {
        "first" => "first",
        "second" => "second",
        "events" => "duet-event",
        "saved" => "duet-saved",
        "recorded" => "recorded",
        "calls" => "calls",
        "repeats" => "duet_repeats",
        "invocations" => "duet_invocations",
        "threshold" => "duet_threshold",
        // The form has no resamples: fewer trials are all that helps.
        "resamples" => {
            let rule = "Too many trials with these events and repeats.";
            return Some(FieldErrors::one("calls", rule.to_owned()));
        }
        _ => return None,
    };
    Some(FieldErrors::one(field, sentence(rule)))
}

/// The form as typed.
pub(super) fn typed(form: &Form) -> DuetForm {
    DuetForm {
        first: form.trimmed("first"),
        second: form.trimmed("second"),
        event: form.lines("event"),
        saved: form.lines("saved"),
        recorded: form.trimmed("recorded"),
        calls: form.trimmed("calls"),
        repeats: form.trimmed("duet_repeats"),
        invocations: form.trimmed("duet_invocations"),
        stage: form.trimmed("duet_stage"),
        confidence: form.trimmed("duet_confidence"),
        width: form.trimmed("duet_width"),
        threshold: form.trimmed("duet_threshold"),
        control: is_checked(form, "duet_control"),
    }
}

#[cfg(test)]
mod tests {
    use hearth_lab::duet::report::Stage;
    use hearth_lab::job::duet::Duet;

    use super::*;
    use crate::http::console::lab_form;

    /// The form as its page begins, except for a first version and `others`.
    async fn sent(others: &[(&str, &str)]) -> Form {
        let begins = DuetForm::default();
        let fields = [
            ("kind", "duet"),
            ("first", "f"),
            ("second", &begins.second),
            ("event", &begins.event),
            ("saved", &begins.saved),
            ("recorded", &begins.recorded),
            ("calls", &begins.calls),
            ("duet_repeats", &begins.repeats),
            ("duet_invocations", &begins.invocations),
            ("duet_stage", &begins.stage),
            ("duet_confidence", &begins.confidence),
            ("duet_width", &begins.width),
            ("duet_threshold", &begins.threshold),
            ("duet_control", if begins.control { "true" } else { "" }),
        ];
        lab_form::sent(&fields, others).await
    }

    fn read(config: &str) -> Duet {
        serde_json::from_str(config).expect("a duet")
    }

    #[tokio::test]
    async fn the_form_begins_with_the_defaults_of_the_lab() {
        let config = config(&sent(&[]).await).expect("a duet");
        let defaults = json!({"kind": "duet", "first": "f", "events": [{}]}).to_string();
        assert_eq!(read(&config), read(&defaults));
    }

    #[tokio::test]
    async fn every_field_is_a_setting_and_percentages_are_shares() {
        let form = sent(&[
            ("second", " f@2 "),
            ("event", "[1,\r\n2]"),
            ("saved", "a b\r\n\r\n c \r\n"),
            ("recorded", "7"),
            ("calls", "20"),
            ("duet_repeats", "4"),
            ("duet_invocations", "5"),
            ("duet_stage", "total"),
            ("duet_confidence", "99.5"),
            ("duet_width", "2.5"),
            ("duet_threshold", "10"),
        ]);
        let form = form.await;
        let duet = read(&config(&form).expect("a duet"));
        assert_eq!((duet.first.as_str(), duet.second.as_str()), ("f", "f@2"));
        assert_eq!((duet.events, duet.recorded), (vec![json!([1, 2])], 7));
        assert_eq!(duet.saved, ["a b", "c"]);
        assert_eq!((duet.calls, duet.repeats, duet.invocations), (20, 4, 5));
        assert_eq!((duet.stage, duet.control), (Stage::Total, true));
        assert_eq!((duet.confidence, duet.width), (0.995, 0.025));
        assert_eq!(duet.threshold, Some(0.1));
        let kept = typed(&form);
        assert_eq!(
            (kept.event.as_str(), kept.width.as_str()),
            ("[1,\n2]", "2.5")
        );
        assert_eq!((kept.stage.as_str(), kept.control), ("total", true));

        let form = sent(&[("event", " "), ("duet_control", "")]).await;
        let duet = read(&config(&form).expect("a duet"));
        assert!(duet.events.is_empty() && !duet.control);
    }

    #[tokio::test]
    async fn what_is_wrong_is_said_at_its_field() {
        for (name, value, field, expected) in [
            ("first", "No!", "first", "A function is named by"),
            ("second", "f@0", "second", "A version is a number from 1"),
            ("event", "{", "duet-event", "Not valid JSON"),
            ("saved", "a\na", "duet-saved", "each once"),
            (
                "recorded",
                "all",
                "recorded",
                "\"all\" is not a whole number.",
            ),
            ("recorded", "201", "recorded", "At most 200"),
            ("calls", "0", "calls", "0 is not within 1 and 10000"),
            ("duet_repeats", "0", "duet_repeats", "within 1 and 1000"),
            (
                "duet_invocations",
                "10001",
                "duet_invocations",
                "within 1 and",
            ),
            ("duet_stage", "start", "duet_stage", "not run or total"),
            (
                "duet_confidence",
                "100",
                "duet_confidence",
                "50 to below 100",
            ),
            (
                "duet_confidence",
                "0.99",
                "duet_confidence",
                "50 to below 100",
            ),
            ("duet_width", "0", "duet_width", "not more than 0"),
            (
                "duet_width",
                "NaN",
                "duet_width",
                "\"NaN\" is not a number.",
            ),
            (
                "duet_threshold",
                "1001",
                "duet_threshold",
                "within 0 and 1000",
            ),
            (
                "duet_threshold",
                "-1",
                "duet_threshold",
                "within 0 and 1000",
            ),
            (
                "duet_threshold",
                "5",
                "duet_threshold",
                "Needs a second version",
            ),
        ] {
            let said = lab_form::refused(&sent(&[(name, value)]).await);
            assert!(
                said.of(field).contains(expected),
                "{name}={value}: {said:?}"
            );
        }
        let many = [("calls", "10000"), ("duet_repeats", "50")];
        let said = lab_form::refused(&sent(&many).await);
        assert!(said.of("calls").contains("Too many trials"), "{said:?}");
    }
}
