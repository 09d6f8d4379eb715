//! The form of `/lab` for a load: its configuration, and errors at its fields.

use hearth_web::pages::{FieldErrors, LoadForm};
use serde_json::{Map, Value, json};

use super::form::Form;
use super::guard::sentence;
use super::lab_form::{decimal, is_checked, whole};

/// The configuration that a form means; what is wrong with its fields otherwise. Only the fields of its loop are read.
pub(super) fn config(form: &Form) -> Result<String, FieldErrors> {
    let whole = |name| whole(form, name);
    let decimal = |name| decimal(form, name);
    let mut config = target(&form.trimmed("load_target"))?;
    let mut set = |name: &str, value: Value| config.insert(name.to_owned(), value);
    set("kind", json!("load"));
    if !form.trimmed("load_method").is_empty() {
        set("method", json!(form.trimmed("load_method")));
    }
    set("headers", headers(&form.lines("load_headers"))?);
    set("body", json!(form.lines("load_body")));
    set("timeout_ms", json!(whole("load_timeout")?));
    set("keep_alive", json!(is_checked(form, "load_keep_alive")));
    if !form.trimmed("load_connections").is_empty() {
        set("connections", json!(whole("load_connections")?));
    }
    match form.trimmed("load_loop").as_str() {
        "bursts" => {
            set("burst", json!(whole("load_burst")?));
            set("count", json!(whole("load_count")?));
            set("pause_ms", json!(whole("load_pause")?));
        }
        "open" => {
            let arrivals = form.trimmed("load_arrivals");
            set("rate", json!(decimal("load_rate")?));
            set("duration_s", json!(decimal("load_duration")?));
            if arrivals == "step" {
                set("to_rate", json!(decimal("load_to_rate")?));
            }
            set("arrivals", json!(arrivals));
        }
        _ => {
            set("duration_s", json!(decimal("load_duration")?));
        }
    }
    Ok(Value::Object(config).to_string())
}

/// An address, or a function or chain by its path on this server; a function by its name, too.
fn target(text: &str) -> Result<Map<String, Value>, FieldErrors> {
    let field = |name: &str, value: &str| (name.to_owned(), json!(value));
    // A name, and what follows it.
    let split = |rest: &str| {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (name, path) = rest.split_at(end);
        (name.to_owned(), path.to_owned())
    };
    let fields = if let Some(rest) = text.strip_prefix("/chain/") {
        let (name, path) = split(rest);
        vec![field("chain", &name), field("path", &path)]
    } else if let Some(rest) = text.strip_prefix("/fn/") {
        let (name, path) = split(rest);
        vec![field("function", &name), field("path", &path)]
    } else if text.contains("://") {
        vec![field("url", text)]
    } else if text.is_empty() || text.contains('/') {
        let rule = "A function’s name, a path as /fn/hello or /chain/shop/cart, or an address that begins with http:// or https://.";
        return Err(FieldErrors::one("load_target", rule.to_owned()));
    } else {
        vec![field("function", text)]
    };
    Ok(fields.into_iter().collect())
}

fn headers(lines: &str) -> Result<Value, FieldErrors> {
    let mut headers = Map::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let wrong = |rule: &str| FieldErrors::one("load_headers", format!("{line:?}: {rule}."));
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| wrong("must be “name: value”"))?;
        let name = name.trim().to_ascii_lowercase();
        if headers.insert(name, json!(value.trim())).is_some() {
            return Err(wrong("that header is there twice"));
        }
    }
    Ok(Value::Object(headers))
}

/// The field of the form that a setting is in; none if it is in none of them.
fn field(setting: &str) -> Option<&'static str> {
    Some(match setting {
        "url" | "function" | "chain" | "path" => "load_target",
        "method" => "load_method",
        "headers" => "load_headers",
        "body" => "load_body",
        "connections" => "load_connections",
        "duration_s" => "load_duration",
        "count" => "load_count",
        "rate" => "load_rate",
        "arrivals" => "load_arrivals",
        "to_rate" => "load_to_rate",
        "burst" => "load_burst",
        "pause_ms" => "load_pause",
        "timeout_ms" => "load_timeout",
        _ => return None,
    })
}

/// A refused setting, at its field.
pub(super) fn at_a_field(setting: &str, rule: &str) -> Option<FieldErrors> {
    Some(FieldErrors::one(field(setting)?, sentence(rule)))
}

/// The form as typed.
pub(super) fn typed(form: &Form) -> LoadForm {
    LoadForm {
        target: form.trimmed("load_target"),
        method: form.trimmed("load_method"),
        body: form.lines("load_body"),
        headers: form.lines("load_headers"),
        kind: form.trimmed("load_loop"),
        connections: form.trimmed("load_connections"),
        duration: form.trimmed("load_duration"),
        count: form.trimmed("load_count"),
        rate: form.trimmed("load_rate"),
        arrivals: form.trimmed("load_arrivals"),
        to_rate: form.trimmed("load_to_rate"),
        burst: form.trimmed("load_burst"),
        pause: form.trimmed("load_pause"),
        timeout: form.trimmed("load_timeout"),
        keep_alive: is_checked(form, "load_keep_alive"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_function_a_path_or_an_address() {
        let read = |text| target(text).map(Value::Object).expect(text);
        assert_eq!(read("hello"), json!({"function": "hello"}));
        assert_eq!(
            read("/fn/hello?a=/b"),
            json!({"function": "hello", "path": "?a=/b"})
        );
        assert_eq!(
            read("/chain/shop/cart"),
            json!({"chain": "shop", "path": "/cart"})
        );
        assert_eq!(
            read("/fn/proxy?url=https://a.b"),
            json!({"function": "proxy", "path": "?url=https://a.b"})
        );
        let url = "https://a.b/chain/x";
        assert_eq!(read(url), json!({ "url": url }));
        for bad in ["", "/hello", "a/b"] {
            let refused = target(bad).expect_err(bad);
            assert!(refused.of("load_target").contains("/fn/hello"), "{bad}");
        }
    }

    #[test]
    fn headers_are_lines() {
        let read = headers("Accept: a:b\n\n x-a : 1 \n").expect("headers");
        assert_eq!(read, json!({"accept": "a:b", "x-a": "1"}));
        for (bad, expected) in [("accept", "name: value"), ("a: 1\nA: 2", "twice")] {
            let refused = headers(bad).expect_err(bad);
            assert!(refused.of("load_headers").contains(expected), "{bad}");
        }
    }
}
