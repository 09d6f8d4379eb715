//! Where a value stands within a field, as refusals name it: `members.cart.version`, `routes.checkout[1]`.

use serde_json::{Map, Value};

use super::fields::{invalid, type_of};
use super::suggest;
use crate::model::InvalidField;

/// Where a value stands, as refusals name it.
pub(super) struct Place(String);

impl Place {
    pub(super) fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    pub(super) fn within(&self, name: &str) -> Self {
        let name: String = name.chars().take(100).collect();
        Self(format!("{}.{name}", self.0))
    }

    pub(super) fn item(&self, at: usize) -> Self {
        Self(format!("{}[{at}]", self.0))
    }

    pub(super) fn wrong(&self, value: &Value, rule: &str) -> InvalidField {
        let rule = format!("must be {rule}; this is {}", type_of(value));
        invalid(&self.0, value, rule)
    }

    /// A whole number; `rule` is for when "from least to most" does not say all.
    pub(super) fn integer(
        &self,
        value: &Value,
        least: u32,
        most: u32,
        rule: Option<&str>,
    ) -> Result<u32, InvalidField> {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let good = number.filter(|number| (least..=most).contains(number));
        good.ok_or_else(|| match rule {
            Some(rule) => invalid(&self.0, value, format!("must be {rule}")),
            None => {
                let rule = format!("must be a whole number from {least} to {most}");
                invalid(&self.0, value, rule)
            }
        })
    }

    pub(super) fn only(
        &self,
        object: &Map<String, Value>,
        known: &[&str],
    ) -> Result<(), InvalidField> {
        let unknown = object
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()));
        let Some((name, value)) = unknown else {
            return Ok(());
        };
        let rule = match suggest::closest(name, known) {
            Some(meant) => format!("unknown field; did you mean {meant}?"),
            None => format!("unknown field; expected one of {}", known.join(", ")),
        };
        Err(invalid(&self.within(name).0, value, rule))
    }
}
