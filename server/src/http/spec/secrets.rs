//! The rules of the `secrets` setting, and of a secret itself.

use axum::http::HeaderName;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::env;
use super::fields::{Fields, Input, invalid, type_of};
use crate::model::{
    AUTHORIZATION, BoundHost, InvalidField, MAX_BINDINGS, MAX_SECRET_BYTES, SecretBinding,
    is_secret_name,
};

/// A secret that a function is given: as an environment variable (`env`), or brokered, in a header of its requests to a host
/// (`host` with `header`, or `basic`), where the function never sees it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"secret": "stripe", "host": "api.stripe.com", "header": "Authorization", "format": "Bearer {}"}))]
#[allow(dead_code)]
pub struct SecretSetting {
    /// Name of the secret.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub secret: String,
    /// Environment variable that becomes its value.
    #[schema(required = false, pattern = "^(?!HEARTH_)[A-Za-z_][A-Za-z0-9_]*$")]
    pub env: String,
    /// Host whose requests by HTTPS carry it, with a port other than 443 behind a colon. The setting `network` has to allow
    /// it.
    #[schema(required = false)]
    pub host: String,
    /// Header that carries it; `Authorization` if there is no `basic`.
    #[schema(required = false, pattern = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$")]
    pub header: String,
    /// The header's value, with `{}` for the secret; `Bearer {}` for `Authorization`, else `{}`.
    #[schema(required = false, max_length = 256)]
    pub format: String,
    /// User whose password it is, for basic authentication.
    #[schema(required = false, max_length = 128)]
    pub basic: String,
}

const RULE: &str = "must be a list of at most 32 objects, such as {\"secret\": \"stripe\", \"env\": \"STRIPE_KEY\"} or \
                    {\"secret\": \"stripe\", \"host\": \"api.stripe.com\", \"header\": \"Authorization\", \"format\": \
                    \"Bearer {}\"}";
const NAME_RULE: &str =
    "must be 1 to 64 of A-Z, a-z, 0-9, \".\", \"_\" and \"-\", beginning with a letter or a digit";
const KNOWN: [&str; 6] = ["secret", "env", "host", "header", "format", "basic"];
const KINDS: &str = "must have \"env\", or \"host\" with \"header\" or \"basic\"";
const FORMAT_RULE: &str =
    "must hold {} once, for the secret, and at most 256 visible ASCII characters and spaces";
const BASIC_RULE: &str =
    "must be the name of a user: 1 to 128 characters without colon and control characters";
const HEADER_RULE: &str = "must be the name of a header that is the function's to choose, such as \"Authorization\" or \
                           \"X-Api-Key\"";
/// What stands for the secret in a format.
const PLACE: &str = "{}";
/// Longest format, header and user name.
const MAX_FORMAT: usize = 256;
const MAX_HEADER: usize = 64;
const MAX_USER: usize = 128;
/// Headers by which messages are told apart, or that are of one connection: a secret in them would make another request.
const RESERVED: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// The setting, if it is given.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<Vec<SecretBinding>>, InvalidField> {
    let value = match fields.remove("secrets") {
        None => return Ok(None),
        Some(Input::Json(value)) => value,
        Some(Input::Text(text)) => serde_json::from_str(&text).map_err(|_| {
            invalid(
                "secrets",
                &text.into(),
                format!("{RULE}; this is not valid JSON"),
            )
        })?,
        Some(file) => return Err(file.invalid("secrets", RULE)),
    };
    let Value::Array(items) = &value else {
        let rule = format!("{RULE}; this is {}", type_of(&value));
        return Err(invalid("secrets", &value, rule));
    };
    if items.len() > MAX_BINDINGS {
        let rule = format!("{RULE}; these are {}", items.len());
        return Err(invalid("secrets", &value, rule));
    }
    let mut bindings: Vec<SecretBinding> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("secrets[{index}]");
        let Value::Object(object) = item else {
            let rule = format!("must be an object; this is {}", type_of(item));
            return Err(invalid(&place, item, rule));
        };
        let binding = Item { place, object }.read()?;
        if let Some(twice) = bindings.iter().find_map(|other| conflict(other, &binding)) {
            let rule = "must be named once in the list";
            return Err(invalid(
                &format!("secrets[{index}].{twice}"),
                &object.get(twice).cloned().unwrap_or_default(),
                rule,
            ));
        }
        bindings.push(binding);
    }
    Ok(Some(bindings))
}

/// The field by which two of them would be in each other's way.
fn conflict(one: &SecretBinding, other: &SecretBinding) -> Option<&'static str> {
    if one.env().is_some() && one.env() == other.env() {
        return Some("env");
    }
    let ((host, header), (other_host, other_header)) = one.brokered().zip(other.brokered())?;
    let same = host == other_host && header.eq_ignore_ascii_case(other_header);
    same.then_some(match other {
        SecretBinding::Basic { .. } => "basic",
        _ => "header",
    })
}

/// One entry.
struct Item<'a> {
    place: String,
    object: &'a Map<String, Value>,
}

impl<'a> Item<'a> {
    fn read(&self) -> Result<SecretBinding, InvalidField> {
        let unknown = self
            .object
            .iter()
            .find(|(name, _)| !KNOWN.contains(&name.as_str()));
        if let Some((name, value)) = unknown {
            let name: String = name.chars().take(100).collect();
            let rule = format!("unknown field; expected one of {}", KNOWN.join(", "));
            return Err(invalid(&format!("{}.{name}", self.place), value, rule));
        }
        let secret = self.text("secret", NAME_RULE, is_secret_name)?;
        let secret = secret.ok_or_else(|| self.refuse("secret", NAME_RULE))?;
        let secret = secret.to_owned();
        let one_of = |others: &[&'static str]| {
            let given = others.iter().find(|name| self.object.contains_key(**name));
            given.map_or(Ok(()), |name| {
                Err(self.refuse(name, &format!("must not be there; an entry {KINDS}")))
            })
        };
        if self.object.contains_key("env") {
            one_of(&["host", "header", "format", "basic"])?;
            let rule = "must be the name of a variable: letters, digits and _, not starting with a digit or HEARTH_";
            let env = self.text("env", rule, |name| env::check_name(name).is_ok())?;
            let env = env.unwrap_or_default().to_owned();
            return Ok(SecretBinding::Env { secret, env });
        }
        let Some(host) = self.object.get("host") else {
            return Err(invalid(
                &self.place,
                &Value::Object(self.object.clone()),
                KINDS,
            ));
        };
        let host: BoundHost = match host.as_str().unwrap_or_default().parse() {
            Ok(host) => host,
            Err(error) => return Err(self.refuse("host", &format!("{error}"))),
        };
        if self.object.contains_key("basic") {
            one_of(&["header", "format"])?;
            let basic = self.text("basic", BASIC_RULE, is_user)?;
            let basic = basic.unwrap_or_default().to_owned();
            return Ok(SecretBinding::Basic {
                secret,
                host,
                basic,
            });
        }
        let header = self.text("header", HEADER_RULE, is_header)?;
        let header = header.unwrap_or(AUTHORIZATION).to_owned();
        let usual = match header.eq_ignore_ascii_case(AUTHORIZATION) {
            true => "Bearer {}",
            false => PLACE,
        };
        let format = self.text("format", FORMAT_RULE, is_format)?;
        let format = format.unwrap_or(usual).to_owned();
        Ok(SecretBinding::Header {
            secret,
            host,
            header,
            format,
        })
    }

    /// A string, if it is there.
    fn text(
        &self,
        name: &str,
        rule: &str,
        is_good: impl Fn(&str) -> bool,
    ) -> Result<Option<&'a str>, InvalidField> {
        match self.object.get(name) {
            None => Ok(None),
            Some(value) => match value.as_str().filter(|text| is_good(text)) {
                Some(text) => Ok(Some(text)),
                None => Err(self.refuse(name, rule)),
            },
        }
    }

    fn refuse(&self, name: &str, rule: &str) -> InvalidField {
        let value = self.object.get(name).unwrap_or(&Value::Null);
        invalid(&format!("{}.{name}", self.place), value, rule)
    }
}

fn is_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.len() <= MAX_HEADER
        && HeaderName::from_bytes(name.as_bytes()).is_ok()
        && !RESERVED.contains(&lower.as_str())
        && !lower.starts_with("proxy-")
}

fn is_format(format: &str) -> bool {
    format.len() <= MAX_FORMAT
        && format.matches(PLACE).count() == 1
        && format
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

fn is_user(user: &str) -> bool {
    (1..=MAX_USER).contains(&user.chars().count())
        && !user.chars().any(|c| c.is_control() || c == ':')
}

/// Refuses what no secret can be called.
pub fn secret_name(name: &str) -> Result<(), InvalidField> {
    match is_secret_name(name) {
        true => Ok(()),
        false => Err(invalid("name", &name.into(), NAME_RULE)),
    }
}

/// Reads the body of `PUT /api/v1/secrets/{name}`. No refusal repeats what was sent: it may be the value, under a name that
/// was mistyped.
pub fn secret_value(mut fields: Fields) -> Result<Zeroizing<String>, InvalidField> {
    let hidden = |field: &str, rule: &str| invalid(field, &"(hidden)".into(), rule);
    let value = fields.remove("value");
    if let Err(unknown) = fields.only(&[]) {
        let rule = "unknown field; expected value";
        return Err(hidden(&unknown.field, rule));
    }
    let rule = format!("must be a string of 1 to {MAX_SECRET_BYTES} bytes without NUL characters");
    let text = match value {
        Some(Input::Json(Value::String(text)) | Input::Text(text)) => Zeroizing::new(text),
        Some(_) => return Err(hidden("value", &rule)),
        None => return Err(hidden("value", &format!("is required; {rule}"))),
    };
    match (1..=MAX_SECRET_BYTES).contains(&text.len()) && !text.contains('\0') {
        true => Ok(text),
        false => Err(hidden("value", &rule)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Option<Vec<SecretBinding>>, InvalidField> {
        setting(&mut Fields::single("secrets", Input::Json(value)))
    }

    fn shown(value: Value) -> Value {
        serde_json::to_value(read(value).expect("valid").expect("given")).expect("JSON")
    }

    #[test]
    fn entries_are_shown_in_their_one_form() {
        assert_eq!(
            shown(json!([
                {"secret": "a", "env": "A"},
                {"secret": "a", "host": "API.example.com"},
                {"secret": "a", "host": "api.example.com", "header": "X-Key"},
                {"secret": "a", "host": "b.example:8443", "basic": "me"},
            ])),
            json!([
                {"secret": "a", "env": "A"},
                {"secret": "a", "host": "api.example.com", "header": "Authorization", "format": "Bearer {}"},
                {"secret": "a", "host": "api.example.com", "header": "X-Key", "format": "{}"},
                {"secret": "a", "host": "b.example:8443", "basic": "me"},
            ])
        );
        let text = Input::Text(r#"[{"secret": "a", "env": "A"}]"#.into());
        let read = setting(&mut Fields::single("secrets", text)).expect("valid");
        assert_eq!(read.map(|bindings| bindings.len()), Some(1));
        assert_eq!(shown(json!([])), json!([]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let entry = |value: Value| json!([value]);
        for (value, field, rule) in [
            (json!({}), "secrets", "this is an object"),
            (json!(["a"]), "secrets[0]", "an object"),
            (json!(vec![json!({}); 33]), "secrets", "these are 33"),
            (entry(json!({"env": "A"})), "secrets[0].secret", "1 to 64"),
            (entry(json!({"secret": "a"})), "secrets[0]", "\"env\", or"),
            (
                entry(json!({"secret": "a", "env": "1A"})),
                "secrets[0].env",
                "not starting",
            ),
            (
                entry(json!({"secret": "a", "env": "HEARTH_A"})),
                "secrets[0].env",
                "HEARTH_",
            ),
            (
                entry(json!({"secret": "a", "env": "A", "host": "a.example"})),
                "secrets[0].host",
                "must not be there",
            ),
            (
                entry(json!({"secret": "a", "host": "*.example.com"})),
                "secrets[0].host",
                "no wildcard",
            ),
            (
                entry(json!({"secret": "a", "host": 1})),
                "secrets[0].host",
                "one host",
            ),
            (
                entry(json!({"secret": "a", "host": "a.example", "header": "Host"})),
                "secrets[0].header",
                "to choose",
            ),
            (
                entry(json!({"secret": "a", "host": "a.example", "header": "a b"})),
                "secrets[0].header",
                "to choose",
            ),
            (
                entry(json!({"secret": "a", "host": "a.example", "format": "Bearer"})),
                "secrets[0].format",
                "{} once",
            ),
            (
                entry(json!({"secret": "a", "host": "a.example", "format": "{}\r\nX: {}"})),
                "secrets[0].format",
                "{} once",
            ),
            (
                entry(json!({"secret": "a", "host": "a.example", "basic": "a:b"})),
                "secrets[0].basic",
                "colon",
            ),
            (
                entry(json!({"secret": "a", "host": "a.example", "basic": "a", "header": "X"})),
                "secrets[0].header",
                "must not be there",
            ),
            (
                entry(json!({"secret": "a", "value": "s3cr3t"})),
                "secrets[0].value",
                "unknown field",
            ),
            (
                json!([{"secret": "a", "env": "A"}, {"secret": "b", "env": "A"}]),
                "secrets[1].env",
                "once",
            ),
            (
                json!([{"secret": "a", "host": "a.example"}, {"secret": "b", "host": "a.example", "basic": "u"}]),
                "secrets[1].basic",
                "once",
            ),
        ] {
            let error = read(value).expect_err("refused");
            assert_eq!(error.field, field);
            assert!(error.rule.contains(rule), "{error}");
        }
    }

    #[test]
    fn no_refusal_of_a_value_repeats_it() {
        let fields = |value: Value| {
            let Value::Object(object) = value else {
                unreachable!("the test passes objects")
            };
            Fields::from_json(object)
        };
        let value = secret_value(fields(json!({"value": "s3cr3t"}))).expect("valid");
        assert_eq!(value.as_str(), "s3cr3t");
        for wrong in [
            json!({}),
            json!({"value": ""}),
            json!({"value": "s3cr3t\u{0}"}),
            json!({"value": ["s3cr3t"]}),
            json!({"vaule": "s3cr3t"}),
            json!({"value": "s3cr3t", "more": "s3cr3t"}),
            json!({"value": "s3cr3t".repeat(MAX_SECRET_BYTES)}),
        ] {
            let error = secret_value(fields(wrong)).expect_err("refused");
            assert!(!error.to_string().contains("s3cr3t"), "{error}");
        }
        assert!(secret_name("stripe").is_ok() && secret_name("a/b").is_err());
    }

    proptest! {
        /// Whatever is taken is taken again as it is shown, and its header stays one line.
        #[test]
        fn what_is_taken_is_taken_again(
            secret in "[a-z.-]{0,4}", host in "[a-zA-Z0-9.:*-]{0,14}", header in "[ -~]{0,8}", format in "[ -~]{0,6}(\\{\\})?[ -~\n]{0,3}",
        ) {
            let value = json!([{"secret": secret, "host": host, "header": header, "format": format}]);
            if let Ok(Some(bindings)) = read(value) {
                let shown = serde_json::to_value(&bindings).expect("JSON");
                prop_assert_eq!(read(shown).expect("valid"), Some(bindings));
                prop_assert!(!format.contains('\n'));
            }
        }
    }
}
