//! The rules of the `port_limits` setting.

use serde_json::{Map, Value};

use super::fields::{Fields, Input, invalid, type_of};
use crate::model::{InvalidField, MAX_PORT_RATE, PortLimits, PortRate};

const RULE: &str = "must be an object with any of per_source and total, such as {\"per_source\": {\"per_second\": 100, \
                    \"burst\": 200}}, or null for no limits";
const RATE_RULE: &str =
    "must be an object with per_second, such as {\"per_second\": 100, \"burst\": 200}, or null";

/// The setting, if it is given.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<PortLimits>, InvalidField> {
    let value = match fields.remove("port_limits") {
        None => return Ok(None),
        Some(Input::Json(value)) => value,
        Some(Input::Text(text)) => {
            let read = serde_json::from_str(&text);
            read.map_err(|_| invalid("port_limits", &text.into(), format!("{RULE}, as JSON text")))?
        }
        Some(file) => return Err(file.invalid("port_limits", RULE)),
    };
    match &value {
        Value::Null => Ok(Some(PortLimits::default())),
        Value::Object(object) => {
            only(object, "port_limits", &["per_source", "total"])?;
            Ok(Some(PortLimits {
                per_source: rate(object, "per_source")?,
                total: rate(object, "total")?,
            }))
        }
        other => {
            let rule = format!("{RULE}; this is {}", type_of(other));
            Err(invalid("port_limits", other, rule))
        }
    }
}

fn rate(object: &Map<String, Value>, name: &str) -> Result<Option<PortRate>, InvalidField> {
    let place = format!("port_limits.{name}");
    let rate = match object.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(rate)) => rate,
        Some(other) => return Err(invalid(&place, other, RATE_RULE)),
    };
    only(rate, &place, &["per_second", "burst"])?;
    let number = |name: &str| match rate.get(name) {
        None => Ok(None),
        Some(value) => {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            let good = number.filter(|number| (1..=MAX_PORT_RATE).contains(number));
            good.map(Some).ok_or_else(|| {
                let rule = format!("must be a whole number from 1 to {MAX_PORT_RATE}");
                invalid(&format!("{place}.{name}"), value, rule)
            })
        }
    };
    let Some(per_second) = number("per_second")? else {
        return Err(invalid(&place, &rate.clone().into(), RATE_RULE));
    };
    Ok(Some(PortRate {
        per_second,
        burst: number("burst")?.unwrap_or(per_second),
    }))
}

fn only(object: &Map<String, Value>, within: &str, known: &[&str]) -> Result<(), InvalidField> {
    let unknown = object
        .iter()
        .find(|(name, _)| !known.contains(&name.as_str()));
    match unknown {
        None => Ok(()),
        Some((name, value)) => {
            let name: String = name.chars().take(100).collect();
            let rule = format!("unknown field; expected one of {}", known.join(", "));
            Err(invalid(&format!("{within}.{name}"), value, rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Option<PortLimits>, String> {
        let mut fields = Fields::single("port_limits", Input::Json(value));
        setting(&mut fields).map_err(|error| error.field)
    }

    #[test]
    fn limits_have_defaults() {
        let limits =
            read(json!({"per_source": {"per_second": 5}, "total": {"per_second": 9, "burst": 20}}));
        let limits = limits.unwrap().unwrap();
        let text = "per source 5 a second, burst 5; total 9 a second, burst 20";
        assert_eq!(limits.to_string(), text);
        for none in [json!(null), json!({}), json!({"total": null})] {
            assert_eq!(read(none), Ok(Some(PortLimits::default())));
        }
        assert_eq!(PortLimits::default().to_string(), "none");
        assert_eq!(setting(&mut Fields::default()).unwrap(), None);
        let text = Input::Text(r#"{"total": {"per_second": 1}}"#.to_owned());
        let read = setting(&mut Fields::single("port_limits", text)).unwrap();
        assert_eq!(read.unwrap().total.unwrap().burst, 1);
    }

    #[test]
    fn each_wrong_field_is_named() {
        let total = |rate: Value| json!({"total": rate});
        for (value, field) in [
            (json!(3), "port_limits"),
            (json!([]), "port_limits"),
            (json!({"source": {}}), "port_limits.source"),
            (total(json!(3)), "port_limits.total"),
            (total(json!({})), "port_limits.total"),
            (total(json!({"burst": 2})), "port_limits.total"),
            (
                total(json!({"per_second": 0})),
                "port_limits.total.per_second",
            ),
            (
                total(json!({"per_second": 20_000_001})),
                "port_limits.total.per_second",
            ),
            (
                total(json!({"per_second": 1.5})),
                "port_limits.total.per_second",
            ),
            (
                total(json!({"per_second": 1, "burst": 0})),
                "port_limits.total.burst",
            ),
            (
                total(json!({"per_second": 1, "per": 0})),
                "port_limits.total.per",
            ),
        ] {
            assert_eq!(read(value.clone()), Err(field.to_owned()), "{value}");
        }
    }
}
