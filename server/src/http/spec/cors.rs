//! The rules of the `cors` setting.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::model::{Cors, InvalidField};

use super::fields::{Fields, Input, invalid, type_of};

/// Longest list of origins and headers: each request of another origin is compared with it.
const MAX_ITEMS: usize = 100;
/// Longest name of a header or of an origin's host.
const MAX_CHARS: usize = 253;
/// Longest time that a preflight's answer is kept: a day, as Lambda's.
const MAX_AGE_S: u64 = 86_400;
const METHODS: [&str; 8] = [
    "*", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
];
const KNOWN: [&str; 6] = [
    "allow_origins",
    "allow_methods",
    "allow_headers",
    "expose_headers",
    "allow_credentials",
    "max_age_s",
];

const RULE: &str = "must be an object with allow_origins, or null for none";
const ORIGIN_RULE: &str = "must be a list of 1 to 100 origins such as \"https://example.com\" (scheme, host and \
                           optional port), or [\"*\"] for all";
const METHOD_RULE: &str =
    "must be a list of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, or [\"*\"] for all";
const HEADER_RULE: &str = "must be a list of at most 100 header names, or [\"*\"] for all";
const CREDENTIALS_RULE: &str = "must be true or false";
const ALL_RULE: &str =
    "must not be true with \"*\" in allow_origins, which browsers reject; list the origins";
const AGE_RULE: &str = "must be a whole number from 0 to 86400";

/// The setting: absent, taken away, or given.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<Option<Cors>>, InvalidField> {
    let value = match fields.remove("cors") {
        None => return Ok(None),
        Some(Input::Json(value)) => value,
        Some(Input::Text(text)) => {
            let read = serde_json::from_str(&text);
            read.map_err(|_| invalid("cors", &text.into(), format!("{RULE}, as JSON text")))?
        }
        Some(file) => return Err(file.invalid("cors", RULE)),
    };
    match value {
        Value::Null => Ok(Some(None)),
        Value::Object(object) => checked(object).map(|cors| Some(Some(cors))),
        other => {
            let rule = format!("{RULE}; this is {}", type_of(&other));
            Err(invalid("cors", &other, rule))
        }
    }
}

fn checked(object: Map<String, Value>) -> Result<Cors, InvalidField> {
    if let Some((name, value)) = object
        .iter()
        .find(|(name, _)| !KNOWN.contains(&name.as_str()))
    {
        let name: String = name.chars().take(100).collect();
        let rule = format!("unknown field; expected one of {}", KNOWN.join(", "));
        return Err(invalid(&format!("cors.{name}"), value, rule));
    }
    let list =
        |name: &str, rule: &str, is_good: fn(&str) -> bool| -> Result<Vec<String>, InvalidField> {
            let items: Vec<String> = part(&object, name, rule)?.unwrap_or_default();
            let unique = items
                .iter()
                .enumerate()
                .all(|(at, item)| !items[..at].contains(item));
            match items.len() <= MAX_ITEMS && unique && items.iter().all(|item| is_good(item)) {
                true => Ok(items),
                false => Err(refuse(&object, name, rule)),
            }
        };
    let cors = Cors {
        allow_origins: list("allow_origins", ORIGIN_RULE, is_origin)?,
        allow_methods: list("allow_methods", METHOD_RULE, |method| {
            METHODS.contains(&method)
        })?,
        allow_headers: list("allow_headers", HEADER_RULE, is_header)?,
        expose_headers: list("expose_headers", HEADER_RULE, is_header)?,
        allow_credentials: part(&object, "allow_credentials", CREDENTIALS_RULE)?.unwrap_or(false),
        max_age_s: part::<u64>(&object, "max_age_s", AGE_RULE)?
            .filter(|age| *age > MAX_AGE_S)
            .map_or_else(
                || part(&object, "max_age_s", AGE_RULE),
                |_| Err(refuse(&object, "max_age_s", AGE_RULE)),
            )?
            .unwrap_or(0),
    };
    if cors.allow_origins.is_empty() {
        return Err(refuse(&object, "allow_origins", ORIGIN_RULE));
    }
    if cors.allow_credentials && cors.allows_all() {
        return Err(refuse(&object, "allow_credentials", ALL_RULE));
    }
    Ok(cors)
}

/// A member, if it is there.
fn part<T: DeserializeOwned>(
    object: &Map<String, Value>,
    name: &str,
    rule: &str,
) -> Result<Option<T>, InvalidField> {
    let value = object.get(name).cloned().map(serde_json::from_value);
    value.transpose().map_err(|_| refuse(object, name, rule))
}

fn refuse(object: &Map<String, Value>, name: &str, rule: &str) -> InvalidField {
    let value = object.get(name).unwrap_or(&Value::Null);
    invalid(&format!("cors.{name}"), value, rule)
}

/// An origin as browsers write it (RFC 6454, 6.2), or all.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return text == "*";
    };
    let of_scheme = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+.-".contains(&b);
    let of_host = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._:[]-".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.bytes().all(of_scheme)
        && (1..=MAX_CHARS).contains(&host.len())
        && host.bytes().all(of_host)
}

/// A header's name (RFC 9110, 5.6.2), of which `*` is one.
fn is_header(text: &str) -> bool {
    (1..=MAX_CHARS).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Option<Option<Cors>>, String> {
        let mut fields = Fields::single("cors", Input::Json(value));
        setting(&mut fields).map_err(|error| error.field)
    }

    #[test]
    fn what_is_given_is_kept_and_the_rest_is_closed() {
        assert_eq!(setting(&mut Fields::default()), Ok(None));
        assert_eq!(read(json!(null)), Ok(Some(None)));
        let least = Cors {
            allow_origins: vec!["*".into()],
            ..Cors::default()
        };
        assert_eq!(
            read(json!({"allow_origins": ["*"]})),
            Ok(Some(Some(least.clone())))
        );
        let text = Input::Text("{\"allow_origins\": [\"*\"]}".into());
        assert_eq!(
            setting(&mut Fields::single("cors", text)),
            Ok(Some(Some(least)))
        );
        let whole = json!({
            "allow_origins": ["https://a.example", "http://localhost:3000", "http://[::1]:80", "moz-extension://x"],
            "allow_methods": ["GET", "POST"], "allow_headers": ["X-Own", "authorization"], "expose_headers": ["*"],
            "allow_credentials": true, "max_age_s": 86_400,
        });
        let read = read(whole.clone()).expect("valid").flatten();
        assert_eq!(serde_json::to_value(read).expect("JSON"), whole);
    }

    #[test]
    fn a_refusal_names_the_part() {
        let with = |name: &str, value: Value| {
            let mut cors = json!({"allow_origins": ["https://a.example"]});
            cors[name] = value;
            cors
        };
        for origin in [
            "",
            "null",
            "a.example",
            "https://",
            "https://a.example/",
            "https://A.example",
            "https://*.a.example",
            "https://u@a",
            "https://a b",
            "://a",
            "1://a",
        ] {
            let refused = read(json!({"allow_origins": [origin]}));
            assert_eq!(refused, Err("cors.allow_origins".into()), "{origin}");
        }
        for (value, field) in [
            (json!([]), "cors"),
            (json!("*"), "cors"),
            (json!({}), "cors.allow_origins"),
            (json!({"allow_origins": []}), "cors.allow_origins"),
            (json!({"allow_origins": "*"}), "cors.allow_origins"),
            (json!({"allow_origins": ["*", "*"]}), "cors.allow_origins"),
            (with("allow_methods", json!(["get"])), "cors.allow_methods"),
            (
                with("allow_methods", json!(["TRACE"])),
                "cors.allow_methods",
            ),
            (with("allow_headers", json!(["a b"])), "cors.allow_headers"),
            (with("expose_headers", json!([""])), "cors.expose_headers"),
            (
                with("allow_credentials", json!("yes")),
                "cors.allow_credentials",
            ),
            (with("max_age_s", json!(86_401)), "cors.max_age_s"),
            (with("max_age_s", json!(-1)), "cors.max_age_s"),
            (with("max_age_s", json!(null)), "cors.max_age_s"),
            (with("allow_orgins", json!(1)), "cors.allow_orgins"),
            (
                json!({"allow_origins": ["*"], "allow_credentials": true}),
                "cors.allow_credentials",
            ),
        ] {
            assert_eq!(read(value.clone()), Err(field.to_owned()), "{value}");
        }
    }
}
