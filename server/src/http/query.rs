//! Query strings: decoded and validated name by name, with the same errors as for fields.

use std::collections::BTreeMap;

use crate::model::InvalidField;

use super::spec::invalid;

/// The parameters of an API request.
#[derive(Debug)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses; a name that is not in `known` or comes twice is refused.
    pub fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, InvalidField> {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if !known.contains(&&*name) {
                let rule = match known {
                    [] => "this address has no query parameters".to_owned(),
                    _ => format!(
                        "unknown query parameter; expected one of {}",
                        known.join(", ")
                    ),
                };
                return Err(invalid(&name, &value.into(), rule));
            }
            if values.contains_key(&*name) {
                return Err(invalid(&name, &value.into(), "must be given once"));
            }
            values.insert(name.into_owned(), value.into_owned());
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
    fn wrong_parameters_are_named() {
        let query = |text| Query::parse(Some(text), &["limit", "follow"]);
        assert_eq!(query("limit=5").unwrap().number("limit", 1, 9, 3), Ok(5));
        assert_eq!(query("").unwrap().number("limit", 1, 9, 3), Ok(3));
        assert_eq!(query("&limit=%35&").unwrap().text("limit"), Some("5"));
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
