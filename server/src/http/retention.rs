//! `/api/v1/retention`: how long what happened is kept, and how much of it.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::App;
use super::auth::{Admin, Allowed};
use super::etag;
use super::functions::to_the_end;
use super::problem::Problem;
use super::spec::{self, Fields, IntegerRule};
use crate::model::{InvalidField, LEAST_MIB, MOST_DAYS, MOST_MIB, MOST_PAYLOAD_BYTES, Retention};
use crate::retention::RetentionStatus;

/// Settings to change; omitted ones stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"invocations_days": 90, "logs_mib": 4096}))]
#[allow(dead_code)]
pub struct PatchRetention {
    /// Age at which an invocation is removed with its event and result; days.
    #[schema(required = false, minimum = 1, maximum = 3650)]
    pub invocations_days: u32,
    /// Maximum size of all invocations with their events and results; MiB.
    #[schema(required = false, minimum = 16, maximum = 1048576)]
    pub invocations_mib: u32,
    /// Age at which a log line is removed; days.
    #[schema(required = false, minimum = 1, maximum = 3650)]
    pub logs_days: u32,
    /// Maximum size of all log lines with their search index; MiB.
    #[schema(required = false, minimum = 16, maximum = 1048576)]
    pub logs_mib: u32,
    /// Age at which statistics are removed; days.
    #[schema(required = false, minimum = 7, maximum = 3650)]
    pub statistics_days: u32,
    /// Age at which an audit record is removed; days.
    #[schema(required = false, minimum = 30, maximum = 3650)]
    pub audit_days: u32,
    /// Stored part of an event; bytes, 0 for none.
    #[schema(required = false, minimum = 0, maximum = 65536)]
    pub event_bytes: u32,
    /// Stored part of a result; bytes, 0 for none.
    #[schema(required = false, minimum = 0, maximum = 65536)]
    pub result_bytes: u32,
}

/// The shortest time statistics are kept: the longest window the console shows.
const LEAST_STATISTICS_DAYS: u32 = 7;
/// Shortest retention of the audit log: nobody must be able to erase the record of their own actions at once.
const LEAST_AUDIT_DAYS: u32 = 30;

/// The rule of each setting.
const RULES: [IntegerRule; 8] = [
    rule("invocations_days", 1, MOST_DAYS),
    rule("invocations_mib", LEAST_MIB, MOST_MIB),
    rule("logs_days", 1, MOST_DAYS),
    rule("logs_mib", LEAST_MIB, MOST_MIB),
    rule("statistics_days", LEAST_STATISTICS_DAYS, MOST_DAYS),
    rule("audit_days", LEAST_AUDIT_DAYS, MOST_DAYS),
    rule("event_bytes", 0, MOST_PAYLOAD_BYTES),
    rule("result_bytes", 0, MOST_PAYLOAD_BYTES),
];

const fn rule(field: &'static str, min: u32, max: u32) -> IntegerRule {
    IntegerRule { field, min, max }
}

/// The settings with what was sent; the names of those that differ.
pub fn changed(
    mut fields: Fields,
    now: &Retention,
) -> Result<(Retention, Vec<&'static str>), InvalidField> {
    fields.only(&RULES.map(|rule| rule.field))?;
    let mut settings = *now;
    let targets = [
        &mut settings.invocations_days,
        &mut settings.invocations_mib,
        &mut settings.logs_days,
        &mut settings.logs_mib,
        &mut settings.statistics_days,
        &mut settings.audit_days,
        &mut settings.event_bytes,
        &mut settings.result_bytes,
    ];
    let mut names = Vec::new();
    for (rule, target) in RULES.iter().zip(targets) {
        if let Some(value) = fields.integer(rule)?
            && value != *target
        {
            *target = value;
            names.push(rule.field);
        }
    }
    Ok((settings, names))
}

/// Get retention settings, the space used and the progress of removal.
#[utoipa::path(
    get,
    path = "/api/v1/retention",
    tag = "node",
    operation_id = "get_retention",
    security(("bearer" = ["admin"])),
    responses((status = 200, description = "Settings and space used", body = RetentionStatus)),
    extensions(("x-tagged" = json!("read"))),
)]
pub async fn get(
    _: Allowed<Admin>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let status = app.retention.status().await?;
    etag::answer(&headers, &status.settings.revision(), &status)
}

/// Change retention settings.
///
/// Entries past the new limits are removed in the background, oldest first.
#[utoipa::path(
    patch,
    path = "/api/v1/retention",
    tag = "node",
    operation_id = "patch_retention",
    security(("bearer" = ["admin"])),
    request_body(content = PatchRetention, content_type = "application/json"),
    responses((status = 200, description = "Settings and space used", body = RetentionStatus)),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "invalid_field"
    ]))),
)]
pub async fn patch(
    asked: Allowed<Admin>,
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let fields = spec::json_fields(request).await?;
    let change = app.retention.change().await;
    let present = change.present();
    etag::meant(&headers).check(present.revision())?;
    let (settings, names) = changed(fields, &present)?;
    if names.is_empty() {
        drop(change);
        asked.audit.nothing_changed();
    } else {
        asked.audit.detail(names.join(", "));
        to_the_end(async move { change.save(settings).await }).await?;
    }
    let status = app.retention.status().await?;
    etag::changed(StatusCode::OK, &status.settings.revision(), &status)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sent(body: Value) -> Fields {
        match body {
            Value::Object(object) => Fields::from_json(object),
            _ => Fields::default(),
        }
    }

    #[test]
    fn each_setting_goes_to_its_place_and_has_its_rule() {
        let now = Retention::default();
        let whole = serde_json::to_value(now).unwrap();
        assert_eq!(changed(sent(whole.clone()), &now).unwrap(), (now, vec![]));
        for rule in &RULES {
            let body = json!({ rule.field: rule.max });
            let (settings, names) = changed(sent(body), &now).unwrap();
            assert_eq!(names, [rule.field]);
            let mut expected = whole.clone();
            expected[rule.field] = rule.max.into();
            assert_eq!(serde_json::to_value(settings).unwrap(), expected);
            for wrong in [json!(u64::from(rule.max) + 1), json!("many"), json!(-1)] {
                let error = changed(sent(json!({ rule.field: wrong })), &now).unwrap_err();
                assert_eq!(error.field, rule.field);
            }
        }
        let unknown = changed(sent(json!({"days": 1})), &now).unwrap_err();
        assert_eq!(unknown.field, "days");
    }
}
