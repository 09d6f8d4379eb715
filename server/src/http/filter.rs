//! The invocation filter of the API's query and the console's form.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::query::Query;
use super::spec::invalid;
use crate::model::{InvalidField, InvocationFilter};

/// The parameters of the API that filter.
pub const PARAMETERS: [&str; 6] = ["status", "start", "version", "trigger", "min_us", "max_us"];

/// Longest duration that can be asked for, µs: an hour, which no invocation takes.
pub const LONGEST_US: u32 = 3_600_000_000;

const STATUS_RULE: &str = "must be one of queued, running, succeeded, failed, timed_out, crashed, out_of_memory, cancelled, dead";
const START_RULE: &str = "must be one of warm, fork, restore, boot";
const TRIGGER_RULE: &str = "must be one of invoke, http, async, schedule, udp, chain";
const MS_RULE: &str = "must be a number of milliseconds from 0 to 3600000, such as 250 or 0.5";

/// The filter in a query that was parsed with [`PARAMETERS`] among its names.
pub fn of_query(query: &Query) -> Result<InvocationFilter, InvalidField> {
    let filter = InvocationFilter {
        status: choice("status", query.text("status"), STATUS_RULE)?,
        start: choice("start", query.text("start"), START_RULE)?,
        version: version(query.text("version"))?,
        trigger: choice("trigger", query.text("trigger"), TRIGGER_RULE)?,
        min_us: micros(query, "min_us")?,
        max_us: micros(query, "max_us")?,
    };
    ordered(&filter, "max_us", query.text("max_us"), "min_us")?;
    Ok(filter)
}

/// What the console's form sends: as the API's, but a field that was left empty says nothing, and durations are in ms.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct FilterForm {
    /// As the API's.
    pub status: String,
    /// As the API's.
    pub start: String,
    /// As the API's.
    pub version: String,
    /// As the API's.
    pub trigger: String,
    /// Shortest total, ms.
    pub min_ms: String,
    /// Longest total, ms.
    pub max_ms: String,
}

impl FilterForm {
    /// The filter, or the field that breaks its rule.
    pub fn filter(&self) -> Result<InvocationFilter, InvalidField> {
        let filter = InvocationFilter {
            status: choice("status", given(&self.status), STATUS_RULE)?,
            start: choice("start", given(&self.start), START_RULE)?,
            version: version(given(&self.version))?,
            trigger: choice("trigger", given(&self.trigger), TRIGGER_RULE)?,
            min_us: millis("min_ms", given(&self.min_ms))?,
            max_us: millis("max_ms", given(&self.max_ms))?,
        };
        ordered(&filter, "max_ms", given(&self.max_ms), "min_ms")?;
        Ok(filter)
    }
}

fn given(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// One of a list, by the name the API has for it.
fn choice<T: DeserializeOwned>(
    field: &str,
    text: Option<&str>,
    rule: &str,
) -> Result<Option<T>, InvalidField> {
    text.map(|text| {
        serde_json::from_value(Value::from(text)).map_err(|_| invalid(field, &text.into(), rule))
    })
    .transpose()
}

fn version(text: Option<&str>) -> Result<Option<u32>, InvalidField> {
    text.map(|text| match text.parse() {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(invalid(
            "version",
            &text.into(),
            "must be a version number, 1 or greater",
        )),
    })
    .transpose()
}

fn micros(query: &Query, field: &str) -> Result<Option<u64>, InvalidField> {
    match query.text(field) {
        None => Ok(None),
        Some(_) => query
            .number(field, 0, LONGEST_US, 0)
            .map(|us| Some(us.into())),
    }
}

/// Milliseconds with up to three decimals, as µs.
fn millis(field: &str, text: Option<&str>) -> Result<Option<u64>, InvalidField> {
    let Some(text) = text else {
        return Ok(None);
    };
    let parsed = (|| {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || part.len() > 3 || !digits(whole) || !digits(part) {
            return None;
        }
        let part: u64 = format!("{part:0<3}").parse().ok()?;
        let us = whole.parse::<u64>().ok()?.checked_mul(1000)? + part;
        (us <= LONGEST_US.into()).then_some(us)
    })();
    match parsed {
        Some(us) => Ok(Some(us)),
        None => Err(invalid(field, &text.into(), MS_RULE)),
    }
}

fn ordered(
    filter: &InvocationFilter,
    field: &str,
    text: Option<&str>,
    other: &str,
) -> Result<(), InvalidField> {
    match (filter.min_us, filter.max_us) {
        (Some(least), Some(most)) if least > most => Err(invalid(
            field,
            &text.unwrap_or_default().into(),
            format!("must not be less than {other}"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{StartKind, Status, Trigger};

    #[test]
    fn every_name_a_rule_lists_parses() {
        fn names(rule: &str) -> impl Iterator<Item = &str> {
            rule.strip_prefix("must be one of ")
                .into_iter()
                .flat_map(|names| names.split(", "))
        }
        for name in names(STATUS_RULE) {
            assert!(choice::<Status>("status", Some(name), "").is_ok(), "{name}");
        }
        for name in names(START_RULE) {
            let found = choice::<StartKind>("start", Some(name), "");
            assert!(found.is_ok(), "{name}");
        }
        for name in names(TRIGGER_RULE) {
            let found = choice::<Trigger>("trigger", Some(name), "");
            assert!(found.is_ok(), "{name}");
        }
        assert_eq!(names(STATUS_RULE).count(), 9);
    }

    #[test]
    fn what_the_console_offers_is_understood() {
        use hearth_web::pages::{START_FILTERS, STATUS_FILTERS, TRIGGER_FILTERS};
        for (status, _) in STATUS_FILTERS {
            for (start, _) in START_FILTERS {
                for (trigger, _) in TRIGGER_FILTERS {
                    let form = FilterForm {
                        status: status.into(),
                        start: start.into(),
                        trigger: trigger.into(),
                        ..FilterForm::default()
                    };
                    let filter = form.filter().unwrap();
                    assert_eq!(filter.status.is_none(), status.is_empty());
                    assert_eq!(filter.start.is_none(), start.is_empty());
                    assert_eq!(filter.trigger.is_none(), trigger.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let parse = |text| of_query(&Query::parse(Some(text), &PARAMETERS)?);
        for (text, field) in [
            ("status=ok", "status"),
            ("status=", "status"),
            ("start=cold", "start"),
            ("version=0", "version"),
            ("version=x", "version"),
            ("trigger=cron", "trigger"),
            ("min_us=-1", "min_us"),
            ("max_us=3600000001", "max_us"),
            ("min_us=2&max_us=1", "max_us"),
        ] {
            assert_eq!(parse(text).unwrap_err().field, field, "{text}");
        }
        let all = parse("status=failed&start=fork&version=2&trigger=http&min_us=1&max_us=1");
        let expected = InvocationFilter {
            status: Some(Status::Failed),
            start: Some(StartKind::Fork),
            version: Some(2),
            trigger: Some(Trigger::Http),
            min_us: Some(1),
            max_us: Some(1),
        };
        assert_eq!(all.unwrap(), expected);
        assert_eq!(parse("").unwrap(), InvocationFilter::default());
    }

    #[test]
    fn milliseconds_have_up_to_three_decimals() {
        for (text, us) in [
            ("0", 0),
            ("1", 1000),
            ("0.5", 500),
            ("1.234", 1234),
            ("3600000", 3_600_000_000),
            ("7.", 7000),
        ] {
            assert_eq!(millis("min_ms", Some(text)), Ok(Some(us)), "{text}");
        }
        for text in [
            ".",
            ".5",
            "1.2345",
            "-1",
            "1e3",
            "x",
            "3600000.001",
            "1,5",
            "٣",
        ] {
            assert!(millis("min_ms", Some(text)).is_err(), "{text}");
        }
        let form = FilterForm {
            min_ms: "2".into(),
            max_ms: " 1 ".into(),
            ..FilterForm::default()
        };
        assert_eq!(form.filter().unwrap_err().field, "max_ms");
        assert_eq!(
            FilterForm::default().filter(),
            Ok(InvocationFilter::default())
        );
    }
}
