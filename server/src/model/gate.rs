//! Gates: whether a function's new version may become active, by a duet with the version that is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::InvalidField;

/// Most recorded events of a comparison.
pub const GATE_RECORDED_MAX: u32 = 100;

/// A function's gate. New versions with other code, another handler, other variables or another memory size must pass it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gate {
    /// A version that is slower by so many per cent, or more, is refused.
    #[schema(minimum = 0, maximum = 1000)]
    pub threshold_percent: f64,
    /// Confidence of the intervals, in per cent.
    #[schema(minimum = 50, maximum = 99.99)]
    pub confidence_percent: f64,
    /// Names of saved events of the function that both versions get; all that are saved without one, `{}` if none is.
    pub events: Vec<String>,
    /// So many of the newest events that the history has kept, beside them.
    #[schema(maximum = 100)]
    pub recorded: u32,
    /// Seconds until a comparison that is not over is given up.
    #[schema(minimum = 60, maximum = 86400)]
    pub within_s: u32,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            threshold_percent: 5.0,
            confidence_percent: 99.0,
            events: Vec::new(),
            recorded: 0,
            within_s: 1800,
        }
    }
}

impl Gate {
    /// Whether every field keeps its rule.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), InvalidField> {
        let number = |field: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(InvalidField {
                field: field.to_owned(),
                value: value.to_string(),
                rule: format!("must be a number from {least} to {most}"),
            })
        };
        number("threshold_percent", self.threshold_percent, 0.0, 1000.0)?;
        number("confidence_percent", self.confidence_percent, 50.0, 99.99)?;
        number(
            "recorded",
            self.recorded.into(),
            0.0,
            GATE_RECORDED_MAX.into(),
        )?;
        number("within_s", self.within_s.into(), 60.0, 86_400.0)
    }
}

/// What a gate says of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// It is being compared, or waits for an agent that does it.
    Pending,
    /// It is not slower by the threshold, and was activated.
    Passed,
    /// It is slower, or fails, and was not activated.
    Refused,
    /// It could not be compared, and was not activated.
    NotJudged,
    /// An admin has activated it all the same.
    Overridden,
}

/// What a function's gate said of a version when it was last to become active.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionGate {
    /// Whether it passed.
    pub state: GateState,
    /// The version that it was compared with, which was the active one.
    pub against: u32,
    /// The experiment that compared them: `/api/v1/experiments/{id}`.
    pub experiment: i64,
    /// The figures, or why there are none; null while it is pending.
    pub reason: Option<String>,
    /// When the comparison was asked for.
    #[schema(value_type = String, format = DateTime)]
    pub begun_at: Timestamp,
    /// When it was decided.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_says_which_field_breaks_its_rule() {
        assert_eq!(Gate::default().check(), Ok(()));
        let read = |text: &str| serde_json::from_str::<Gate>(text).unwrap();
        for (text, field) in [
            (r#"{"threshold_percent": -1}"#, "threshold_percent"),
            (r#"{"threshold_percent": 1000.5}"#, "threshold_percent"),
            (r#"{"confidence_percent": 100}"#, "confidence_percent"),
            (r#"{"recorded": 101}"#, "recorded"),
            (r#"{"within_s": 59}"#, "within_s"),
        ] {
            let error = read(text).check().unwrap_err();
            assert_eq!(error.field, field, "{text}");
        }
        assert!(serde_json::from_str::<Gate>(r#"{"threshold": 5}"#).is_err());
    }
}
