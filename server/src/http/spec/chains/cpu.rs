//! How much of the processors a chain may take, from requests.

use serde_json::Value;

use super::{json_of, object};
use crate::http::spec::fields::Fields;
use crate::http::spec::place::Place;
use crate::model::InvalidField;
use crate::model::chain::{Cpu, CpuCores, CpuUs, MAX_CORES, MAX_CPU_US};

const CPU_US: &str = "an object of µs per request by member such as {\"cart\": 120}";

const CPU_CORES: &str = "a list of the numbers of cores such as [2, 3]";

/// `cpu`.
pub(super) fn setting(fields: &mut Fields) -> Result<Option<Cpu>, InvalidField> {
    let rule = "\"shared\", \"proportional\" or \"dedicated\"";
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

/// `cpu_cores`.
pub(super) fn cores(fields: &mut Fields) -> Result<Option<CpuCores>, InvalidField> {
    let Some(input) = fields.remove("cpu_cores") else {
        return Ok(None);
    };
    let place = Place::new("cpu_cores");
    let value = json_of("cpu_cores", input, CPU_CORES)?;
    let Value::Array(items) = &value else {
        return Err(place.wrong(&value, CPU_CORES));
    };
    let each = items
        .iter()
        .zip(0..)
        .map(|(item, at)| place.item(at).integer(item, 0, MAX_CORES - 1, None));
    each.collect::<Result<_, _>>().map(Some)
}
