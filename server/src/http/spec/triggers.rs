//! The rules of the `triggers` setting.

mod mqtt;

use serde_json::{Map, Value};

use super::fields::{Fields, Input, invalid, type_of};
use crate::model::{
    Batch, InvalidField, MAX_BATCH, MAX_BATCH_WAIT_MS, MAX_PORTS, PortOrBroker, PortTrigger,
    StreamMode, chain,
};

const RULE: &str =
    "must be a list of ports such as [{\"protocol\": \"tcp\", \"port\": 9000}], or [] for none";
const PROTOCOL_RULE: &str = "must be \"tcp\", \"udp\", \"coap\" or \"mqtt\"";
const PORT_RULE: &str = "must be a whole number from 1 to 65535";
const MODE_RULE: &str = "must be \"http\" or \"raw\"";
const ROUTE_RULE: &str = "must be the name of a route of the chain, or null";
const BATCH_RULE: &str =
    "must be an object with max and wait_ms, such as {\"max\": 64, \"wait_ms\": 2}";

/// The setting of a function, if it is given.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<Vec<PortTrigger>>, InvalidField> {
    list(fields, |place, item| place.trigger(item, &[]))
}

/// The setting of a chain, if it is given. Whether the routes exist is for who knows them.
pub(super) fn of_chain(fields: &mut Fields) -> Result<Option<Vec<chain::Trigger>>, InvalidField> {
    list(fields, |place, item| {
        let trigger = place.trigger(item, &["route"])?;
        let route = match item.get("route") {
            None | Some(Value::Null) => None,
            Some(Value::String(route)) => Some(route.clone()),
            Some(other) => return Err(invalid(&place.name(".route"), other, ROUTE_RULE)),
        };
        Ok(chain::Trigger::new(trigger, route))
    })
}

/// A list whose items have ports of their own, or brokers.
fn list<T: HasOrigin>(
    fields: &mut Fields,
    read: impl Fn(Place, &Value) -> Result<T, InvalidField>,
) -> Result<Option<Vec<T>>, InvalidField> {
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
    if items.len() > MAX_PORTS {
        let rule = format!(
            "must have at most {MAX_PORTS} ports; these are {}",
            items.len()
        );
        return Err(invalid("triggers", &value, rule));
    }
    let mut triggers = Vec::<T>::new();
    for (index, item) in items.iter().enumerate() {
        let trigger = read(Place(index), item)?;
        let origin = trigger.origin();
        if let Some(twin) = triggers.iter().position(|other| other.origin() == origin) {
            let what = match origin {
                Some(PortOrBroker::Broker(_)) => "broker",
                Some(PortOrBroker::Port(_)) | None => "port",
            };
            let rule = format!("must differ from triggers[{twin}], which has the same {what}");
            return Err(invalid(
                &format!("triggers[{index}].{what}"),
                &item[what],
                rule,
            ));
        }
        triggers.push(trigger);
    }
    Ok(Some(triggers))
}

/// What tells triggers from each other.
trait HasOrigin {
    fn origin(&self) -> Option<PortOrBroker>;
}

impl HasOrigin for PortTrigger {
    fn origin(&self) -> Option<PortOrBroker> {
        let broker = || Some(PortOrBroker::Broker(self.broker()?.to_owned()));
        self.port().map(PortOrBroker::Port).or_else(broker)
    }
}

impl HasOrigin for chain::Trigger {
    fn origin(&self) -> Option<PortOrBroker> {
        self.plain().origin()
    }
}

/// Which item of the list is read.
struct Place(usize);

impl Place {
    /// An item, which may have `more` fields.
    fn trigger(&self, item: &Value, more: &[&str]) -> Result<PortTrigger, InvalidField> {
        let Value::Object(object) = item else {
            let rule = format!(
                "must be an object with protocol and port; this is {}",
                type_of(item)
            );
            return Err(invalid(&self.name(""), item, rule));
        };
        let protocol = object.get("protocol").unwrap_or(&Value::Null);
        match protocol.as_str() {
            Some("tcp") => {
                self.only(
                    object,
                    &[&["protocol", "port", "mode"][..], more].concat(),
                    "",
                )?;
                let mode = match object.get("mode") {
                    None => StreamMode::default(),
                    Some(Value::String(mode)) if mode == "http" => StreamMode::Http,
                    Some(Value::String(mode)) if mode == "raw" => StreamMode::Raw,
                    Some(other) => return Err(invalid(&self.name(".mode"), other, MODE_RULE)),
                };
                let port = self.port(object)?;
                Ok(PortTrigger::Tcp { port, mode })
            }
            Some("udp") => {
                self.only(
                    object,
                    &[&["protocol", "port", "batch"][..], more].concat(),
                    "",
                )?;
                let batch = match object.get("batch") {
                    None => Batch::default(),
                    Some(Value::Object(batch)) => self.batch(batch)?,
                    Some(other) => return Err(invalid(&self.name(".batch"), other, BATCH_RULE)),
                };
                let port = self.port(object)?;
                Ok(PortTrigger::Udp { port, batch })
            }
            Some("coap") => {
                self.only(object, &[&["protocol", "port"][..], more].concat(), "")?;
                let port = self.port(object)?;
                Ok(PortTrigger::Coap { port })
            }
            Some("mqtt") => {
                // Routes are those of its topics.
                self.only(object, &["protocol", "port", "broker", "topics"], "")?;
                self.mqtt(object, more)
            }
            _ => Err(invalid(&self.name(".protocol"), protocol, PROTOCOL_RULE)),
        }
    }

    fn port(&self, object: &Map<String, Value>) -> Result<u16, InvalidField> {
        let value = object.get("port").unwrap_or(&Value::Null);
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        port.filter(|port| *port > 0)
            .ok_or_else(|| invalid(&self.name(".port"), value, PORT_RULE))
    }

    fn batch(&self, object: &Map<String, Value>) -> Result<Batch, InvalidField> {
        self.only(object, &["max", "wait_ms"], ".batch")?;
        let number = |name: &str, default: u32, least: u32, most: u32| {
            let Some(value) = object.get(name) else {
                return Ok(default);
            };
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            let good = number.filter(|number| (least..=most).contains(number));
            good.ok_or_else(|| {
                let rule = format!("must be a whole number from {least} to {most}");
                invalid(&self.name(&format!(".batch.{name}")), value, rule)
            })
        };
        let default = Batch::default();
        Ok(Batch {
            max: number("max", default.max, 1, MAX_BATCH)?,
            wait_ms: number("wait_ms", default.wait_ms, 0, MAX_BATCH_WAIT_MS)?,
        })
    }

    fn only(
        &self,
        object: &Map<String, Value>,
        known: &[&str],
        within: &str,
    ) -> Result<(), InvalidField> {
        let unknown = object
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()));
        let Some((name, value)) = unknown else {
            return Ok(());
        };
        let name: String = name.chars().take(100).collect();
        let rule = format!("unknown field; expected one of {}", known.join(", "));
        Err(invalid(
            &self.name(&format!("{within}.{name}")),
            value,
            rule,
        ))
    }

    /// The field's name, with what follows the item.
    fn name(&self, rest: &str) -> String {
        format!("triggers[{}]{rest}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Option<Vec<PortTrigger>>, String> {
        let mut fields = Fields::single("triggers", Input::Json(value));
        setting(&mut fields).map_err(|error| error.field)
    }

    #[test]
    fn ports_have_defaults_and_settings() {
        let all = json!([
            {"protocol": "tcp", "port": 9000},
            {"protocol": "tcp", "port": 9001, "mode": "raw"},
            {"protocol": "udp", "port": 9000},
            {"protocol": "udp", "port": 65535, "batch": {"max": 64, "wait_ms": 2}},
            {"protocol": "coap", "port": 5683},
            {"protocol": "mqtt", "port": 1883},
            {"protocol": "mqtt", "port": 1884, "topics": [{"filter": "a/+", "response_topic": null}]},
            {"protocol": "mqtt", "broker": "plant", "topics": [{"filter": "a/+", "response_topic": "b"}]},
            {"protocol": "mqtt", "port": null, "broker": "far", "topics": [{"filter": "#"}]},
        ]);
        let read_back = read(all.clone()).unwrap().unwrap();
        let lines: Vec<_> = read_back.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "tcp 9000",
                "tcp 9001 raw",
                "udp 9000",
                "udp 65535 batch 64 wait 2",
                "coap 5683",
                "mqtt 1883",
                "mqtt 1884 topic a/+",
                "mqtt broker plant topic a/+ response b",
                "mqtt broker far topic #",
            ]
        );
        let text = Input::Text(all.to_string());
        assert_eq!(
            setting(&mut Fields::single("triggers", text)).unwrap(),
            Some(read_back)
        );
        assert_eq!(read(json!([])), Ok(Some(Vec::new())));
        assert_eq!(setting(&mut Fields::default()).unwrap(), None);
    }

    #[test]
    fn each_wrong_field_is_named() {
        let tcp = |name: &str, value: Value| {
            let mut item = json!({"protocol": "tcp", "port": 9000});
            item[name] = value;
            json!([{"protocol": "udp", "port": 1}, item])
        };
        let batch = |batch: Value| json!([{"protocol": "udp", "port": 1, "batch": batch}]);
        let mqtt = |topics: Value| json!([{"protocol": "mqtt", "port": 1, "topics": topics}]);
        let many: Vec<_> = (1..=MAX_PORTS + 1)
            .map(|port| json!({"protocol": "tcp", "port": port}))
            .collect();
        for (value, field) in [
            (json!(null), "triggers"),
            (json!(9000), "triggers"),
            (json!({"protocol": "tcp", "port": 9000}), "triggers"),
            (Value::Array(many), "triggers"),
            (json!([9000]), "triggers[0]"),
            (tcp("protocol", json!("icmp")), "triggers[1].protocol"),
            (tcp("protocol", json!(null)), "triggers[1].protocol"),
            (tcp("port", json!(0)), "triggers[1].port"),
            (tcp("port", json!(65536)), "triggers[1].port"),
            (tcp("port", json!(80.5)), "triggers[1].port"),
            (tcp("port", json!("80")), "triggers[1].port"),
            (tcp("mode", json!("h2")), "triggers[1].mode"),
            (tcp("batch", json!({"max": 2})), "triggers[1].batch"),
            (tcp("prot", json!(1)), "triggers[1].prot"),
            (tcp("route", json!("r")), "triggers[1].route"),
            (batch(json!(2)), "triggers[0].batch"),
            (batch(json!({"max": 0})), "triggers[0].batch.max"),
            (batch(json!({"max": 257})), "triggers[0].batch.max"),
            (batch(json!({"wait_ms": 1001})), "triggers[0].batch.wait_ms"),
            (batch(json!({"wait_ms": -1})), "triggers[0].batch.wait_ms"),
            (batch(json!({"size": 1})), "triggers[0].batch.size"),
            (
                json!([{"protocol": "udp", "port": 1, "mode": "raw"}]),
                "triggers[0].mode",
            ),
            (mqtt(json!([])), "triggers[0].topics"),
            (mqtt(json!("a")), "triggers[0].topics"),
            (mqtt(json!(["a"])), "triggers[0].topics[0]"),
            (mqtt(json!([{}])), "triggers[0].topics[0].filter"),
            (
                mqtt(json!([{"filter": "#"}, {"filter": "a b"}])),
                "triggers[0].topics[1].filter",
            ),
            (
                mqtt(json!([{"filter": "#", "response_topic": "a/#"}])),
                "triggers[0].topics[0].response_topic",
            ),
            (
                mqtt(json!([{"filter": "#", "route": "r"}])),
                "triggers[0].topics[0].route",
            ),
            (json!([{"protocol": "mqtt"}]), "triggers[0].port"),
            (
                json!([{"protocol": "mqtt", "port": 1, "broker": "plant", "topics": [{"filter": "#"}]}]),
                "triggers[0].broker",
            ),
            (
                json!([{"protocol": "mqtt", "broker": 3, "topics": [{"filter": "#"}]}]),
                "triggers[0].broker",
            ),
            (
                json!([{"protocol": "mqtt", "broker": "plant"}]),
                "triggers[0].topics",
            ),
            (
                json!([{"protocol": "mqtt", "broker": "plant", "topics": [{"filter": "$share/a/b"}]}]),
                "triggers[0].topics[0].filter",
            ),
            (
                json!([
                    {"protocol": "mqtt", "broker": "plant", "topics": [{"filter": "a"}]},
                    {"protocol": "mqtt", "broker": "plant", "topics": [{"filter": "b"}]},
                ]),
                "triggers[1].broker",
            ),
            (
                json!([{"protocol": "coap", "port": 1, "batch": {"max": 2}}]),
                "triggers[0].batch",
            ),
            (
                json!([{"protocol": "udp", "port": 1}, {"protocol": "coap", "port": 1}]),
                "triggers[1].port",
            ),
            (
                json!([{"protocol": "udp", "port": 1}, {"protocol": "udp", "port": 1, "batch": {"max": 2}}]),
                "triggers[1].port",
            ),
        ] {
            assert_eq!(read(value.clone()), Err(field.to_owned()), "{value}");
        }
    }
}
