//! The whole mapping of errors to problems, in one place.

mod chains;
mod lab;

use axum::http::{HeaderValue, header};
use serde_json::Value;

use super::{Problem, ProblemCode};
use crate::accounts::PasswordError;
use crate::catalog::CatalogError;
use crate::engine::{EngineError, InvokeError};
use crate::host_error::is_shortage;
use crate::model::{FunctionError, InvalidField, LogLine};
use crate::package::PackageError;
use crate::store::StoreError;
use crate::uploads::UploadError;

impl From<InvalidField> for Problem {
    fn from(error: InvalidField) -> Self {
        // The value is JSON text unless it was cut; then it stays a string.
        let value = serde_json::from_str(&error.value)
            .unwrap_or_else(|_| Value::from(error.value.as_str()));
        Self::new(ProblemCode::InvalidField, error.to_string())
            .with("field", error.field)
            .with("value", value)
            .with("rule", error.rule)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Exists(_) | StoreError::ChainExists(_) | StoreError::UserExists(_) => {
                Self::new(ProblemCode::AlreadyExists, error.to_string())
            }
            StoreError::LastAdmin(_) | StoreError::NoAdmin => {
                Self::new(ProblemCode::LastAdmin, error.to_string())
            }
            StoreError::Sqlx { .. } => Self::internal(error),
        }
    }
}

impl From<PasswordError> for Problem {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Busy => {
                // By then the queue is worked off.
                Self::new(ProblemCode::TooManyRequests, error.to_string())
                    .header(header::RETRY_AFTER, HeaderValue::from_static("2"))
            }
            PasswordError::Failed(_) => Self::internal(error),
        }
    }
}

impl From<PackageError> for Problem {
    fn from(error: PackageError) -> Self {
        match error {
            PackageError::Io(io) if is_shortage(&io) => exhausted(PackageError::Io(io).to_string()),
            PackageError::Io(_) => Self::internal(error),
            refused => Self::new(ProblemCode::InvalidPackage, refused.to_string())
                .with("reason", refused.code()),
        }
    }
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Full(_) => Self::new(ProblemCode::TooManyUploads, error.to_string())
                .header(header::RETRY_AFTER, HeaderValue::from(UPLOADS_RETRY_AFTER)),
            UploadError::Io(ref io) if is_shortage(io) => exhausted(error.to_string()),
            UploadError::Io(_) => Self::internal(error),
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NotFound(_) => Self::new(ProblemCode::NotFound, error.to_string()),
            EngineError::AlreadyExists(_) => {
                Self::new(ProblemCode::AlreadyExists, error.to_string())
            }
            EngineError::Invalid(field) => field.into(),
            EngineError::Changed(changed) => changed.into(),
            EngineError::Package(package) => package.into(),
            EngineError::Import { error, logs } => {
                let detail = format!("{}: {}", error.error_type, error.error_message);
                shaped(Self::new(ProblemCode::ImportFailed, detail), error)
                    .with("logs", lines(&logs))
            }
            EngineError::SecretInUse { .. } => {
                Self::new(ProblemCode::SecretInUse, error.to_string())
            }
            EngineError::IsCopy(_) => Self::new(ProblemCode::FunctionIsCopy, error.to_string()),
            EngineError::HostExhausted(_) => exhausted(error.to_string()),
            EngineError::ShuttingDown => Self::new(ProblemCode::ShuttingDown, error.to_string()),
            EngineError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<CatalogError> for Problem {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::NotFound(_) => Self::new(ProblemCode::NotFound, error.to_string()),
            CatalogError::AlreadyExists(_) => {
                Self::new(ProblemCode::AlreadyExists, error.to_string())
            }
            CatalogError::Invalid(field) => field.into(),
            CatalogError::Changed(changed) => changed.into(),
            CatalogError::FunctionInUse { .. } => {
                Self::new(ProblemCode::FunctionInUse, error.to_string())
            }
            CatalogError::NotStarted(_) => {
                Self::new(ProblemCode::ChainNotStarted, error.to_string())
            }
            CatalogError::HostExhausted(_) => exhausted(error.to_string()),
            CatalogError::Engine(error) => error.into(),
            CatalogError::ShuttingDown => Self::new(ProblemCode::ShuttingDown, error.to_string()),
            CatalogError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<InvokeError> for Problem {
    fn from(error: InvokeError) -> Self {
        let detail = error.to_string();
        match error {
            InvokeError::NotFound(_) | InvokeError::NoVersion(_) => {
                Self::new(ProblemCode::NotFound, detail)
            }
            InvokeError::Function(error) => {
                shaped(Self::new(ProblemCode::FunctionError, detail), error)
            }
            InvokeError::InvalidResult(_) => {
                let error = FunctionError {
                    error_type: "Runtime.InvalidResult".into(),
                    error_message: detail.clone(),
                    stack_trace: Vec::new(),
                };
                shaped(Self::new(ProblemCode::FunctionError, detail), error)
            }
            InvokeError::Timeout(_) | InvokeError::NotRead(_) => {
                Self::new(ProblemCode::FunctionTimeout, detail)
            }
            InvokeError::Crashed(_) => Self::new(ProblemCode::FunctionCrashed, detail),
            InvokeError::OutOfMemory(_) => Self::new(ProblemCode::FunctionOutOfMemory, detail),
            InvokeError::ResultTooLarge { limit } => {
                Self::new(ProblemCode::ResultTooLarge, detail).with("limit", limit)
            }
            InvokeError::TooManyRequests { retry_after, .. } => {
                // Whole seconds, rounded up: 0 would invite a busy loop.
                let seconds = (retry_after.as_millis().div_ceil(1000)).clamp(1, 3600) as u64;
                Self::new(ProblemCode::TooManyRequests, detail)
                    .header(header::RETRY_AFTER, HeaderValue::from(seconds))
            }
            InvokeError::HostExhausted(_) => exhausted(detail),
            InvokeError::Unavailable(_) => Self::new(ProblemCode::FunctionUnavailable, detail),
            InvokeError::RequestBody(_) => Self::new(ProblemCode::BadRequestBody, detail),
            InvokeError::RequestTimeout(_) => Self::new(ProblemCode::RequestTimeout, detail),
            InvokeError::ShuttingDown => Self::new(ProblemCode::ShuttingDown, detail),
            InvokeError::Internal(cause) => Self::internal(cause),
        }
    }
}

/// When other uploads may be done, in seconds.
const UPLOADS_RETRY_AFTER: u64 = 5;
/// When to come back after the host was short of something, in seconds.
const EXHAUSTED_RETRY_AFTER: u64 = 1;

fn exhausted(detail: String) -> Problem {
    Problem::new(ProblemCode::HostExhausted, detail).header(
        header::RETRY_AFTER,
        HeaderValue::from(EXHAUSTED_RETRY_AFTER),
    )
}

/// Adds the three members as Lambda shapes them.
fn shaped(problem: Problem, error: FunctionError) -> Problem {
    problem
        .with("errorType", error.error_type)
        .with("errorMessage", error.error_message)
        .with("stackTrace", error.stack_trace)
}

fn lines(logs: &[LogLine]) -> Value {
    // A log line is strings and a time: it always serialises.
    serde_json::to_value(logs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::response::IntoResponse;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invalid_field_names_field_value_and_rule() {
        let problem = Problem::from(InvalidField {
            field: "memory_mb".into(),
            value: "31".into(),
            rule: "must be a whole number from 32 to 16384".into(),
        });
        assert_eq!(
            Value::Object(problem.document("r-1")),
            json!({
                "type": "urn:hearth:problem:invalid_field",
                "title": "A field is not valid",
                "status": 422,
                "detail": "memory_mb: 31 is not valid: must be a whole number from 32 to 16384",
                "code": "invalid_field",
                "request_id": "r-1",
                "field": "memory_mb",
                "value": 31,
                "rule": "must be a whole number from 32 to 16384",
            })
        );
    }

    #[test]
    fn a_function_error_has_lambdas_members() {
        let problem = Problem::from(InvokeError::Function(FunctionError {
            error_type: "ValueError".into(),
            error_message: "no".into(),
            stack_trace: vec!["  File …".into()],
        }));
        let document = problem.document("r");
        assert_eq!(document["status"], 502);
        assert_eq!(document["errorType"], "ValueError");
        assert_eq!(document["stackTrace"], json!(["  File …"]));
    }

    #[test]
    fn too_many_requests_says_when_to_come_back() {
        for (wait, seconds) in [(0, "1"), (400, "1"), (1001, "2")] {
            let response = Problem::from(InvokeError::TooManyRequests {
                max_concurrency: 1,
                queued: 1,
                retry_after: Duration::from_millis(wait),
            })
            .into_response();
            assert_eq!(response.status(), 429);
            assert_eq!(response.headers()["retry-after"], seconds);
        }
    }

    #[test]
    fn internal_causes_stay_inside() {
        let problem = Problem::from(EngineError::Internal("/var/secret: broken".into()));
        assert!(!problem.detail().contains("secret"));
        assert_eq!(problem.cause(), Some("/var/secret: broken"));
    }
}
