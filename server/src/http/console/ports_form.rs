//! The settings of a function's or chain's ports in the form: `triggers` with a port in each line, `port_limits` as four numbers.

use std::fmt::Display;

use hearth_web::pages::PortLimitsForm;
use serde_json::{Map, Value, json};

use crate::http::App;
use crate::http::spec::invalid;
use crate::model::{InvalidField, PortLimits, PortRate};

use super::form::Form;

const RULE: &str = "must be a port in each line, such as \"tcp 9000\", \"tcp 9001 raw\", \"udp 9002\", \
                    \"udp 9003 batch 64 wait 2\", \"coap 5683\", \
                    \"mqtt 1883 topic sensors/# response answers/{client}\" or \"mqtt broker plant topic sensors/#\"";
const ROUTED_RULE: &str = "must be a port in each line, such as \"tcp 9000\", \"tcp 9001 raw route checkout\", \
                           \"udp 9002 route checkout\", \"udp 9003 batch 64 wait 2 route checkout\", \
                           \"coap 5683\", \"mqtt 1883 topic sensors/# response answers/{client} route motion\" \
                           or \"mqtt broker plant topic sensors/# route motion\"";

/// The setting as the form shows it.
pub(super) fn present(triggers: &[impl Display]) -> String {
    let lines: Vec<_> = triggers.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// What was typed, without empty lines.
pub(super) fn typed(form: &Form) -> String {
    let text = form.text("triggers");
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// A function's setting as the API expects it. Numbers that are out of range are passed on for its rules to reject.
pub(super) fn value(typed: &str) -> Result<Value, InvalidField> {
    ports(typed, false)
}

/// The same of a chain, whose ports have routes.
pub(super) fn routed_value(typed: &str) -> Result<Value, InvalidField> {
    ports(typed, true)
}

fn ports(typed: &str, routed: bool) -> Result<Value, InvalidField> {
    let rule = if routed { ROUTED_RULE } else { RULE };
    let ports = typed
        .lines()
        .map(|line| port(line, routed).ok_or_else(|| invalid("triggers", &line.into(), rule)));
    ports.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn port(line: &str, routed: bool) -> Option<Value> {
    let number = |word: &str| word.parse::<u64>().ok();
    let mut words = line.split_whitespace();
    let protocol = words.next()?.to_ascii_lowercase();
    let mut port = match (protocol.as_str(), words.next()?) {
        ("mqtt", "broker") => json!({"protocol": protocol, "broker": words.next()?}),
        (_, word) => json!({"protocol": protocol, "port": number(word)?}),
    };
    while let Some(word) = words.next() {
        match (protocol.as_str(), word) {
            ("mqtt", "topic") => {
                let topic = json!({"filter": words.next()?});
                match port.get_mut("topics").and_then(Value::as_array_mut) {
                    Some(topics) => topics.push(topic),
                    None => port["topics"] = json!([topic]),
                }
            }
            ("mqtt", "response" | "route") => {
                let name = match word {
                    "response" => "response_topic",
                    _ if routed => "route",
                    _ => return None,
                };
                let topics = port.get_mut("topics")?.as_array_mut()?;
                let topic = topics.last_mut()?.as_object_mut()?;
                if topic.contains_key(name) {
                    return None;
                }
                topic.insert(name.to_owned(), words.next()?.into());
            }
            ("tcp", "http" | "raw") if port.get("mode").is_none() => port["mode"] = word.into(),
            ("udp", "batch") => port["batch"]["max"] = number(words.next()?)?.into(),
            (_, "route") if routed && port.get("route").is_none() => {
                port["route"] = words.next()?.into();
            }
            ("udp", "wait") => port["batch"]["wait_ms"] = number(words.next()?)?.into(),
            _ => return None,
        }
    }
    Some(port)
}

/// The limits as the form shows them.
pub(super) fn present_limits(limits: PortLimits) -> PortLimitsForm {
    let texts = |rate: Option<PortRate>| match rate {
        Some(rate) => (rate.per_second.to_string(), rate.burst.to_string()),
        None => Default::default(),
    };
    let (source_rate, source_burst) = texts(limits.per_source);
    let (total_rate, total_burst) = texts(limits.total);
    PortLimitsForm {
        source_rate,
        source_burst,
        total_rate,
        total_burst,
    }
}

/// The limits that were typed.
pub(super) fn typed_limits(form: &Form) -> PortLimitsForm {
    PortLimitsForm {
        source_rate: form.trimmed("limit_source_rate"),
        source_burst: form.trimmed("limit_source_burst"),
        total_rate: form.trimmed("limit_total_rate"),
        total_burst: form.trimmed("limit_total_burst"),
    }
}

/// The limits as the API expects them. What is no number is passed on for its rules to reject.
pub(super) fn limits_value(typed: &PortLimitsForm) -> Result<Value, InvalidField> {
    let mut limits = Map::new();
    for (name, field, rate, burst) in [
        (
            "per_source",
            "limit_source_rate",
            &typed.source_rate,
            &typed.source_burst,
        ),
        (
            "total",
            "limit_total_rate",
            &typed.total_rate,
            &typed.total_burst,
        ),
    ] {
        let number = |text: &str| {
            text.parse::<u64>()
                .map_or_else(|_| text.into(), Value::from)
        };
        match (rate.is_empty(), burst.is_empty()) {
            (true, true) => {}
            (true, false) => {
                return Err(invalid(field, &"".into(), "must be set to limit bursts"));
            }
            (false, true) => {
                limits.insert(name.to_owned(), json!({"per_second": number(rate)}));
            }
            (false, false) => {
                let rate = json!({"per_second": number(rate), "burst": number(burst)});
                limits.insert(name.to_owned(), rate);
            }
        }
    }
    Ok(match limits.is_empty() {
        true => Value::Null,
        false => Value::Object(limits),
    })
}

/// Why limits are not enforced on this node; empty where they are.
pub(super) fn limits_reason(app: &App) -> String {
    let reason = app.engine.ingress().not_limiting();
    reason.unwrap_or_default().to_owned()
}

/// An error of the API at the input of the form that it is about.
pub(super) fn at_input(mut error: InvalidField) -> InvalidField {
    let input = match error.field.as_str() {
        "port_limits.per_source.per_second" => "limit_source_rate",
        "port_limits.per_source.burst" => "limit_source_burst",
        "port_limits.total.per_second" => "limit_total_rate",
        "port_limits.total.burst" => "limit_total_burst",
        _ => return error,
    };
    error.field = input.to_owned();
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PortTrigger, chain};

    fn limits(source: [&str; 2], total: [&str; 2]) -> PortLimitsForm {
        let [source_rate, source_burst] = source.map(str::to_owned);
        let [total_rate, total_burst] = total.map(str::to_owned);
        PortLimitsForm {
            source_rate,
            source_burst,
            total_rate,
            total_burst,
        }
    }

    #[test]
    fn empty_numbers_are_no_limits() {
        let value = |source, total| limits_value(&limits(source, total));
        assert_eq!(value(["", ""], ["", ""]), Ok(Value::Null));
        assert_eq!(
            value(["5", ""], ["9", "20"]),
            Ok(json!({"per_source": {"per_second": 5}, "total": {"per_second": 9, "burst": 20}}))
        );
        let error = value(["", ""], ["", "20"]).expect_err("a burst of nothing");
        assert_eq!(error.field, "limit_total_rate");
        let shown = limits(["", ""], ["9", "20"]);
        let setting = serde_json::from_value(limits_value(&shown).expect("limits"));
        assert_eq!(present_limits(setting.expect("limits")), shown);
    }

    #[test]
    fn lines_are_ports() {
        assert_eq!(
            value("tcp 9000\nTCP 9001 raw\nudp 9002\nudp 9003 batch 64 wait 2\ncoap 5683"),
            Ok(json!([
                {"protocol": "tcp", "port": 9000},
                {"protocol": "tcp", "port": 9001, "mode": "raw"},
                {"protocol": "udp", "port": 9002},
                {"protocol": "udp", "port": 9003, "batch": {"max": 64, "wait_ms": 2}},
                {"protocol": "coap", "port": 5683},
            ]))
        );
        assert_eq!(value(""), Ok(json!([])));
        for wrong in [
            "9000",
            "tcp",
            "tcp x",
            "tcp 9000 fast",
            "udp 1 raw",
            "udp 1 batch",
            "tcp 1 raw raw",
            "tcp 1 route r",
            "coap 1 raw",
            "mqtt 1 response a",
            "mqtt 1 topic",
            "mqtt 1 topic a route r",
            "mqtt 1 topic a response b response c",
            "mqtt broker",
            "tcp broker plant",
            "mqtt broker plant house",
        ] {
            let error = value(&format!("tcp 1\n{wrong}")).expect_err(wrong);
            assert_eq!(
                (error.field.as_str(), error.value),
                ("triggers", format!("\"{wrong}\""))
            );
        }
    }

    #[test]
    fn lines_of_a_chain_have_routes() {
        let text = "tcp 9000\ntcp 9001 raw route r\nudp 9003 batch 64 wait 2 route r\ncoap 1\ncoap 2 route r\nmqtt 3\n\
                    mqtt 4 topic a/# response b/{client} route r topic # route s\n\
                    mqtt broker plant topic house/+/door response answers/door route door";
        let setting = routed_value(text).expect("ports");
        let triggers: Vec<chain::Trigger> = serde_json::from_value(setting).expect("triggers");
        assert_eq!(present(&triggers), text);
        for wrong in ["tcp 9000 route", "tcp 9000 route a route b", "udp 1 r"] {
            assert!(routed_value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        let text = "tcp 9000\ntcp 9001 raw\nudp 9002\nudp 9003 batch 64 wait 2\n\
                    mqtt broker plant topic # response a topic b";
        let setting = value(text).expect("ports");
        let triggers: Vec<PortTrigger> = serde_json::from_value(setting).expect("triggers");
        assert_eq!(present(&triggers), text);
    }
}
