//! Errors of the lab's experiments.

use axum::http::{HeaderValue, header};

use crate::http::problem::{Problem, ProblemCode};
use crate::lab::LabError;

impl From<LabError> for Problem {
    fn from(error: LabError) -> Self {
        let code = match error {
            LabError::Store(error) => return error.into(),
            LabError::Engine(error) => return error.into(),
            LabError::NotFound(_) => ProblemCode::NotFound,
            LabError::State(..) | LabError::Busy => ProblemCode::ExperimentState,
            LabError::Job(_) | LabError::NoFunction(..) | LabError::Path => {
                ProblemCode::InvalidExperiment
            }
            LabError::Files | LabError::Kept => ProblemCode::PayloadTooLarge,
            LabError::Simulating => {
                // A simulation of much takes seconds.
                return Self::new(ProblemCode::TooManyRequests, error.to_string())
                    .header(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            LabError::Full => {
                // Until one has ended, which takes minutes.
                return Self::new(ProblemCode::TooManyRequests, error.to_string())
                    .header(header::RETRY_AFTER, HeaderValue::from_static("60"));
            }
        };
        Self::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn who_has_to_wait_is_told_how_long() {
        for (error, seconds) in [(LabError::Simulating, "5"), (LabError::Full, "60")] {
            let response = Problem::from(error).into_response();
            assert_eq!(response.status(), 429);
            assert_eq!(response.headers()[header::RETRY_AFTER], seconds);
        }
    }
}
