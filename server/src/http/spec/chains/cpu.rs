//! How much of the processors a chain may take, from requests.

use super::object;
use crate::http::spec::fields::Fields;
use crate::http::spec::place::Place;
use crate::model::InvalidField;
use crate::model::chain::{Cpu, CpuUs, MAX_CPU_US};

const CPU_US: &str = "an object of µs per request by member such as {\"cart\": 120}";

/// `cpu`.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<Cpu>, InvalidField> {
    let rule = "\"shared\" or \"proportional\"";
    fields.take("cpu", rule, "a string", |input| {
        let name = input.string()?;
        Cpu::ALL.into_iter().find(|one| one.as_str() == name)
    })
}

/// `cpu_us`.
pub(super) fn constants(fields: &mut Fields) -> Result<Option<CpuUs>, InvalidField> {
    let Some(object) = object(fields, "cpu_us", CPU_US)? else {
        return Ok(None);
    };
    let each = object.iter().map(|(name, value)| {
        let place = Place::new("cpu_us").within(name);
        Ok((name.clone(), place.integer(value, 1, MAX_CPU_US, None)?))
    });
    each.collect::<Result<_, _>>().map(Some)
}
