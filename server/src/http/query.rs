//! Query strings: decoded and validated name by name, with the same errors as for fields.

use std::collections::BTreeMap;

use crate::model::InvalidField;

use super::spec::invalid;

/// Name and value pairs in order, percent-decoded, `+` as a space. A name without `=` has an empty value.
pub fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(name), decode(value))
        })
}

/// Percent-decodes; what is not UTF-8 afterwards is replaced, a `%` that starts no escape stays.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

/// The parameters of an API request.
#[derive(Debug)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses; a name that is not in `known` or comes twice is refused.
    pub fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, InvalidField> {
        let mut values = BTreeMap::new();
        for (name, value) in pairs(query.unwrap_or_default()) {
            if !known.contains(&name.as_str()) {
                let rule = match known {
                    [] => "this address has no query parameters".to_owned(),
                    _ => format!(
                        "unknown query parameter; expected one of {}",
                        known.join(", ")
                    ),
                };
                return Err(invalid(&name, &value.into(), rule));
            }
            if values.contains_key(&name) {
                return Err(invalid(&name, &value.into(), "must be given once"));
            }
            values.insert(name, value);
        }
        Ok(Self(values))
    }

    /// A parameter's text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A whole number, or `default`.
    pub fn number(
        &self,
        name: &str,
        min: u32,
        max: u32,
        default: u32,
    ) -> Result<u32, InvalidField> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        match text.parse() {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(invalid(
                name,
                &text.into(),
                format!("must be a whole number from {min} to {max}"),
            )),
        }
    }

    /// `true` or `false`, or false when absent.
    pub fn flag(&self, name: &str) -> Result<bool, InvalidField> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(invalid(name, &other.into(), "must be true or false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let all: Vec<_> = pairs("a=1&b=x%20y+z&c&=v&d=%zz%4&e=%C3%A4&f=%ff&&g=1=2").collect();
        let expected = [
            ("a", "1"),
            ("b", "x y z"),
            ("c", ""),
            ("", "v"),
            ("d", "%zz%4"),
            ("e", "ä"),
            ("f", "\u{fffd}"),
            ("g", "1=2"),
        ];
        assert_eq!(all.len(), expected.len());
        for ((name, value), (n, v)) in all.iter().zip(expected) {
            assert_eq!((name.as_str(), value.as_str()), (n, v));
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        let query = |text| Query::parse(Some(text), &["limit", "follow"]);
        assert_eq!(query("limit=5").unwrap().number("limit", 1, 9, 3), Ok(5));
        assert_eq!(query("").unwrap().number("limit", 1, 9, 3), Ok(3));
        for wrong in [
            "limit=0",
            "limit=10",
            "limit=x",
            "limit=",
            "limit=-1",
            "limit=1.0",
        ] {
            let error = query(wrong).unwrap().number("limit", 1, 9, 3).unwrap_err();
            assert_eq!(error.field, "limit");
        }
        assert!(query("follow=true").unwrap().flag("follow").unwrap());
        assert!(query("follow=1").unwrap().flag("follow").is_err());
        assert_eq!(query("limt=1").unwrap_err().field, "limt");
        assert_eq!(
            query("limit=1&limit=2").unwrap_err().rule,
            "must be given once"
        );
    }
}
