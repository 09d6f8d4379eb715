//! The rules of the `triggers` setting.

use serde_json::{Map, Value};

use crate::model::{InvalidField, PortMode, PortProtocol, PortTrigger};

use super::fields::{Fields, Input, invalid, type_of};

/// Most ports of one function.
const MAX_TRIGGERS: usize = 100;

const RULE: &str =
    "must be a list of at most 100 ports such as [{\"protocol\": \"tcp\", \"port\": 9000}]";
const PORT_RULE: &str = "must be a whole number from 1 to 65535";
const PROTOCOL_RULE: &str = "must be \"tcp\"";
const MODE_RULE: &str = "must be \"http\"";
const KNOWN: [&str; 3] = ["protocol", "port", "mode"];

/// The setting, if it is given.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<Vec<PortTrigger>>, InvalidField> {
    let value = match fields.remove("triggers") {
        None => return Ok(None),
        Some(Input::Json(value)) => value,
        Some(Input::Text(text)) => {
            let read = serde_json::from_str(&text);
            read.map_err(|_| invalid("triggers", &text.into(), format!("{RULE}, as JSON text")))?
        }
        Some(file) => return Err(file.invalid("triggers", RULE)),
    };
    let Value::Array(items) = &value else {
        let rule = format!("{RULE}; this is {}", type_of(&value));
        return Err(invalid("triggers", &value, rule));
    };
    if items.len() > MAX_TRIGGERS {
        return Err(invalid("triggers", &value, RULE));
    }
    let mut triggers: Vec<PortTrigger> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let field = format!("triggers[{at}]");
        let Value::Object(object) = item else {
            return Err(invalid(&field, item, RULE));
        };
        let trigger = checked(&field, object)?;
        if triggers.iter().any(|other| other.port == trigger.port) {
            let rule = format!("must not name port {} twice", trigger.port);
            return Err(invalid(&field, item, rule));
        }
        triggers.push(trigger);
    }
    Ok(Some(triggers))
}

fn checked(field: &str, object: &Map<String, Value>) -> Result<PortTrigger, InvalidField> {
    let unknown = object
        .iter()
        .find(|(name, _)| !KNOWN.contains(&name.as_str()));
    if let Some((name, value)) = unknown {
        let name: String = name.chars().take(100).collect();
        let rule = format!("unknown field; expected one of {}", KNOWN.join(", "));
        return Err(invalid(&format!("{field}.{name}"), value, rule));
    }
    let part = |name: &str| object.get(name).unwrap_or(&Value::Null);
    let refuse = |name: &str, rule| Err(invalid(&format!("{field}.{name}"), part(name), rule));
    let Some("tcp") = part("protocol").as_str() else {
        return refuse("protocol", PROTOCOL_RULE);
    };
    let port = part("port").as_u64().and_then(|port| port.try_into().ok());
    let Some(port @ 1..) = port else {
        return refuse("port", PORT_RULE);
    };
    match object.get("mode").map(Value::as_str) {
        None | Some(Some("http")) => Ok(PortTrigger {
            protocol: PortProtocol::Tcp,
            port,
            mode: PortMode::Http,
        }),
        _ => refuse("mode", MODE_RULE),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Vec<u16>, String> {
        let mut fields = Fields::single("triggers", Input::Json(value));
        let triggers = setting(&mut fields).map_err(|error| error.field)?;
        let triggers = triggers.unwrap_or_default();
        Ok(triggers.iter().map(|trigger| trigger.port).collect())
    }

    #[test]
    fn ports_are_read_from_json_and_from_a_form() {
        assert_eq!(setting(&mut Fields::default()), Ok(None));
        assert_eq!(read(json!([])), Ok(vec![]));
        let both = json!([
            {"protocol": "tcp", "port": 1},
            {"protocol": "tcp", "port": 65_535, "mode": "http"},
        ]);
        assert_eq!(read(both.clone()), Ok(vec![1, 65_535]));
        let mut form = Fields::single("triggers", Input::Text(both.to_string()));
        assert_eq!(
            setting(&mut form).expect("valid").map(|all| all.len()),
            Some(2)
        );
    }

    #[test]
    fn a_refusal_names_the_part() {
        let with = |name: &str, value: Value| {
            let mut trigger = json!({"protocol": "tcp", "port": 9000});
            trigger[name] = value;
            json!([trigger])
        };
        for (value, field) in [
            (json!(null), "triggers"),
            (json!("tcp"), "triggers"),
            (
                json!(vec![json!({"protocol": "tcp", "port": 1}); 101]),
                "triggers",
            ),
            (json!([9000]), "triggers[0]"),
            (json!([{}]), "triggers[0].protocol"),
            (json!([{"protocol": "tcp"}]), "triggers[0].port"),
            (with("protocol", json!("udp")), "triggers[0].protocol"),
            (with("port", json!(0)), "triggers[0].port"),
            (with("port", json!(65_536)), "triggers[0].port"),
            (with("port", json!("9000")), "triggers[0].port"),
            (with("port", json!(1.5)), "triggers[0].port"),
            (with("mode", json!("raw")), "triggers[0].mode"),
            (with("mode", json!(null)), "triggers[0].mode"),
            (with("prt", json!(1)), "triggers[0].prt"),
            (
                json!([{"protocol": "tcp", "port": 9}, {"protocol": "tcp", "port": 9}]),
                "triggers[1]",
            ),
        ] {
            assert_eq!(read(value.clone()), Err(field.to_owned()), "{value}");
        }
    }
}
