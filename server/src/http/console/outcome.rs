//! Presents a failed deploy or change: field messages, an import's traceback, or an error page.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearth_web::pages::{DeployProblem, FieldErrors, FormOutcome};
use hearth_web::respond;

use crate::engine::EngineError;
use crate::http::problem::Problem;
use crate::model::InvalidField;
use crate::package::PackageError;

use super::guard::sentence;
use super::{place, view};

/// A failed form: to be shown in the form's page.
#[derive(Debug, Default)]
pub struct Failure {
    /// Messages at fields.
    pub errors: FieldErrors,
    /// What else went wrong.
    pub problem: Option<DeployProblem>,
    /// The form's new base revision, after somebody else's change.
    pub revision: Option<String>,
}

impl Failure {
    /// Somebody else made a change after the form was filled in: `title` reports it, `changes` describes it, and
    /// `revision` is the base of the next attempt. The input is kept.
    pub fn overtaken(title: String, changes: &str, revision: String) -> Self {
        Self {
            problem: Some(DeployProblem {
                title,
                detail: format!("{changes} Your input is kept: save again to apply it on top."),
                ..DeployProblem::default()
            }),
            revision: Some(revision),
            ..Self::default()
        }
    }

    /// The partial that puts the messages where they belong.
    pub fn partial(self, fields: &'static [&'static str]) -> Response {
        let outcome = FormOutcome {
            fields,
            errors: self.errors,
            problem: self.problem,
            revision: self.revision,
        };
        (StatusCode::UNPROCESSABLE_ENTITY, respond::partial(&outcome)).into_response()
    }

    /// A field of `fields` that breaks its rule; one that the form does not have becomes a message of its own.
    pub fn field(error: InvalidField, fields: &[&str]) -> Self {
        let slot = error.field.split('.').next().unwrap_or_default();
        if !fields.contains(&slot) {
            return Self {
                errors: FieldErrors::default(),
                problem: Some(DeployProblem {
                    title: sentence(&error.to_string()),
                    ..DeployProblem::default()
                }),
                revision: None,
            };
        }
        let message = match error.field.strip_prefix("env.") {
            Some(name) => format!("{name}: {}.", error.rule),
            None => sentence(&error.rule),
        };
        Self {
            errors: FieldErrors::one(&error.field, message),
            problem: None,
            revision: None,
        }
    }

    /// Errors of the engine as messages. Errors not caused by input stay a [`Problem`].
    pub fn engine(error: EngineError, fields: &[&str], request_id: &str) -> Result<Self, Problem> {
        match error {
            EngineError::Invalid(field) => Ok(Self::field(field, fields)),
            EngineError::AlreadyExists(_) => Ok(Self {
                errors: FieldErrors::one(
                    "name",
                    "A function with this name already exists.".to_owned(),
                ),
                problem: None,
                revision: None,
            }),
            EngineError::Package(package) if !matches!(package, PackageError::Io(_)) => Ok(Self {
                errors: FieldErrors::one("code", sentence(&package.to_string())),
                problem: None,
                revision: None,
            }),
            EngineError::Import { error, logs } => Ok(Self {
                errors: FieldErrors::default(),
                problem: Some(DeployProblem {
                    title: "The code does not import. Nothing was changed.".to_owned(),
                    detail: String::new(),
                    place: place::of(&error),
                    error: Some(view::error(error)),
                    output: view::logs(logs),
                    request_id: request_id.to_owned(),
                }),
                revision: None,
            }),
            other => Err(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FunctionError;

    fn invalid(field: &str) -> InvalidField {
        InvalidField {
            field: field.to_owned(),
            value: "\"x\"".to_owned(),
            rule: "must be right".to_owned(),
        }
    }

    #[test]
    fn messages_stand_at_their_fields() {
        const FIELDS: &[&str] = &["name", "code", "env"];
        for (field, slot, message) in [
            ("name", "name", "Must be right."),
            ("code.inline", "code", "Must be right."),
            ("env.A", "env", "A: must be right."),
        ] {
            let failure = Failure::field(invalid(field), FIELDS);
            assert_eq!(failure.errors.of(slot), message);
            assert!(failure.problem.is_none());
        }
        let failure = Failure::field(invalid("other"), FIELDS);
        assert!(failure.errors.is_empty());
        assert_eq!(
            failure.problem.expect("a message").title,
            "Other: \"x\" is not valid: must be right."
        );
    }

    #[test]
    fn only_what_the_user_can_change_stays_with_the_form() {
        let import = EngineError::Import {
            error: FunctionError {
                error_type: "SyntaxError".into(),
                error_message: "invalid syntax".into(),
                stack_trace: vec!["line 1".into()],
            },
            logs: Vec::new(),
        };
        let failure = Failure::engine(import, &[], "r-1").expect("a failure of the form");
        let problem = failure.problem.expect("a problem");
        assert_eq!(problem.error.expect("an error").error_type, "SyntaxError");
        assert_eq!(problem.request_id, "r-1");
        for error in [
            EngineError::ShuttingDown,
            EngineError::NotFound("x".into()),
            EngineError::Package(PackageError::Io(std::io::Error::other("disk"))),
        ] {
            assert!(Failure::engine(error, &[], "").is_err());
        }
    }
}
