//! Errors of requests to chains.

use axum::http::{HeaderValue, header};

use super::super::{Problem, ProblemCode};
use super::shaped;
use crate::chains::InvokeError;

/// When to come back to a chain that is not in service, in seconds: by then another start has been tried.
const UNAVAILABLE_RETRY_AFTER: u64 = 2;

impl From<InvokeError> for Problem {
    fn from(error: InvokeError) -> Self {
        let detail = error.to_string();
        match error {
            InvokeError::Unavailable(_) => Self::new(ProblemCode::ChainUnavailable, detail).header(
                header::RETRY_AFTER,
                HeaderValue::from(UNAVAILABLE_RETRY_AFTER),
            ),
            InvokeError::NoRoute(_) => Self::new(ProblemCode::NotFound, detail),
            InvokeError::PoolEmpty { retry_after } => {
                // Whole seconds, rounded up: 0 would invite a busy loop.
                let seconds = (retry_after.as_millis().div_ceil(1000)).clamp(1, 3600) as u64;
                Self::new(ProblemCode::ChainPoolExhausted, detail)
                    .header(header::RETRY_AFTER, HeaderValue::from(seconds))
            }
            InvokeError::TooLarge { limit, .. } => {
                Self::new(ProblemCode::PayloadTooLarge, detail).with("limit", limit)
            }
            InvokeError::Timeout { hop, .. } => {
                let problem = Self::new(ProblemCode::ChainTimeout, detail);
                match hop {
                    Some((at, member)) => problem.with("hop", at).with("member", member),
                    None => problem,
                }
            }
            InvokeError::Member { member, error } => {
                shaped(Self::new(ProblemCode::FunctionError, detail), error).with("member", member)
            }
            InvokeError::Crashed { member, .. } => {
                Self::new(ProblemCode::FunctionCrashed, detail).with("member", member)
            }
            InvokeError::Broken { member, .. } => {
                Self::new(ProblemCode::ChainRuleBroken, detail).with("member", member)
            }
            InvokeError::ResultTooLarge { member, limit } => {
                Self::new(ProblemCode::ResultTooLarge, detail)
                    .with("member", member)
                    .with("limit", limit)
            }
            InvokeError::ShuttingDown => Self::new(ProblemCode::ShuttingDown, detail),
            InvokeError::Internal(cause) => Self::internal(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::response::IntoResponse;

    use super::*;
    use crate::model::FunctionError;

    #[test]
    fn a_time_out_names_the_hop_that_was_reached() {
        let reached = |hop| {
            let error = InvokeError::Timeout {
                timeout_ms: 50,
                hop,
            };
            Problem::from(error).document("r")
        };
        let document = reached(Some((1, "payment".to_owned())));
        assert_eq!(document["status"], 504);
        assert_eq!(
            (&document["hop"], &document["member"]),
            (&1.into(), &"payment".into())
        );
        assert!(
            document["detail"]
                .as_str()
                .unwrap()
                .contains("hop 1, member \"payment\"")
        );
        assert!(!reached(None).contains_key("hop"));
    }

    #[test]
    fn a_member_is_named_and_an_empty_pool_says_when_to_come_back() {
        let error = FunctionError {
            error_type: "ValueError".into(),
            error_message: "no".into(),
            stack_trace: Vec::new(),
        };
        let member = "cart".to_owned();
        let document = Problem::from(InvokeError::Member { member, error }).document("r");
        assert_eq!(document["member"], "cart");
        assert_eq!(document["errorType"], "ValueError");
        let retry_after = Duration::from_millis(5);
        let response = Problem::from(InvokeError::PoolEmpty { retry_after }).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
    }
}
