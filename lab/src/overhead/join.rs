//! Joins what the client has measured with what the server has.

use std::collections::HashSet;

use serde::Deserialize;

use super::records;
use super::report::{Measured, Row, Uncounted};
use super::settings::Target;
use crate::load::Sample;
use crate::platform::client::{Client, ClientError};

/// What a workload answers.
#[derive(Deserialize)]
struct Answer {
    id: String,
    value: f64,
}

/// What the samples of a function come to beside the history; why there is nothing otherwise.
pub(super) async fn row(
    client: &Client,
    target: &Target,
    is_cold: bool,
    samples: &[&Sample],
) -> Result<Result<Row, String>, ClientError> {
    let answers: Vec<(&Sample, Answer)> = samples
        .iter()
        .filter(|sample| sample.fault.is_none())
        .filter_map(|sample| {
            let body = sample.body.as_deref().unwrap_or_default();
            Some((*sample, serde_json::from_slice(body).ok()?))
        })
        .collect();
    let ids: HashSet<&str> = answers.iter().map(|(_, answer)| &*answer.id).collect();
    let records = records::read(client, &target.name, &ids).await?;
    let mut uncounted = Uncounted {
        failed: samples.len() - answers.len(),
        ..Uncounted::default()
    };
    let mut measured = Vec::new();
    for (sample, answer) in &answers {
        let Some((start, record)) = records
            .get(&answer.id)
            .and_then(|record| Some((record.start.as_ref()?, record)))
        else {
            uncounted.without_record += 1;
            continue;
        };
        if (start == "warm") == is_cold {
            uncounted.other_start += 1;
            continue;
        }
        measured.push(Measured {
            start: start.clone(),
            first_byte_ns: sample.to_first(),
            last_byte_ns: sample.to_last(),
            stages_us: record.stages_us,
            value: answer.value,
        });
    }
    let names = (target.workload.name, target.runtime.name);
    let row = Row::of(names, is_cold, measured, uncounted);
    Ok(row.ok_or_else(|| {
        format!(
            "{}, {}, {}: of {} requests {} failed, {} have no record, {} were {}",
            names.0,
            names.1,
            if is_cold { "cold" } else { "warm" },
            samples.len(),
            uncounted.failed,
            uncounted.without_record,
            uncounted.other_start,
            if is_cold { "warm" } else { "cold" },
        )
    }))
}
