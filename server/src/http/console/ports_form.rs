//! The `triggers` setting in the form: a port in each line.

use serde_json::{Value, json};

use crate::http::spec::invalid;
use crate::model::{InvalidField, PortTrigger};

use super::form::Form;

const RULE: &str = "must be a port in each line, such as \"tcp 9000\", \"tcp 9001 raw\", \"udp 9002\" or \
                    \"udp 9003 batch 64 wait 2\"";

/// The setting as the form shows it.
pub(super) fn present(triggers: &[PortTrigger]) -> String {
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

/// The setting as the API expects it. Numbers that are out of range are passed on for its rules to reject.
pub(super) fn value(typed: &str) -> Result<Value, InvalidField> {
    let ports = typed
        .lines()
        .map(|line| port(line).ok_or_else(|| invalid("triggers", &line.into(), RULE)));
    ports.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn port(line: &str) -> Option<Value> {
    let number = |word: &str| word.parse::<u64>().ok();
    let mut words = line.split_whitespace();
    let protocol = words.next()?.to_ascii_lowercase();
    let mut port = json!({"protocol": protocol, "port": number(words.next()?)?});
    while let Some(word) = words.next() {
        match (protocol.as_str(), word) {
            ("tcp", "http" | "raw") if port.get("mode").is_none() => port["mode"] = word.into(),
            ("udp", "batch") => port["batch"]["max"] = number(words.next()?)?.into(),
            ("udp", "wait") => port["batch"]["wait_ms"] = number(words.next()?)?.into(),
            _ => return None,
        }
    }
    Some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ports() {
        assert_eq!(
            value("tcp 9000\nTCP 9001 raw\nudp 9002\nudp 9003 batch 64 wait 2"),
            Ok(json!([
                {"protocol": "tcp", "port": 9000},
                {"protocol": "tcp", "port": 9001, "mode": "raw"},
                {"protocol": "udp", "port": 9002},
                {"protocol": "udp", "port": 9003, "batch": {"max": 64, "wait_ms": 2}},
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
        ] {
            let error = value(&format!("tcp 1\n{wrong}")).expect_err(wrong);
            assert_eq!(
                (error.field.as_str(), error.value),
                ("triggers", format!("\"{wrong}\""))
            );
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        let text = "tcp 9000\ntcp 9001 raw\nudp 9002\nudp 9003 batch 64 wait 2";
        let setting = value(text).expect("ports");
        let triggers: Vec<PortTrigger> = serde_json::from_value(setting).expect("triggers");
        assert_eq!(present(&triggers), text);
    }
}
