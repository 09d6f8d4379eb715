//! Checks of a caller's rights and scope, and the 401s and 403s with the challenges of RFC 6750.

use axum::http::{HeaderValue, header};

use crate::http::problem::{Problem, ProblemCode};
use crate::model::{Caller, Right};

/// Refuses a caller whose scope does not hold this function.
pub fn reach(caller: &Caller, function: &str) -> Result<(), Problem> {
    match caller.reaches(function) {
        true => Ok(()),
        false => Err(out_of_scope(caller)),
    }
}

/// Refuses a caller whose scope is limited: for what several functions have a part in.
pub fn reach_all(caller: &Caller) -> Result<(), Problem> {
    match caller.scope() {
        None => Ok(()),
        Some(_) => Err(out_of_scope(caller)),
    }
}

/// 403 that names the scope.
pub(super) fn out_of_scope(caller: &Caller) -> Problem {
    let scope = caller.scope().unwrap_or_default();
    let names: Vec<String> = scope.iter().map(|name| format!("\"{name}\"")).collect();
    Problem::new(
        ProblemCode::Forbidden,
        format!(
            "the token \"{}\" is limited to the functions {}",
            caller.name(),
            names.join(", ")
        ),
    )
    .with("scope", scope)
    .header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"hearth\", error=\"insufficient_scope\""),
    )
}

/// Refuses a caller who lacks the right, naming the right.
pub fn check(caller: &Caller, right: Right) -> Result<(), Problem> {
    if caller.may(right) {
        return Ok(());
    }
    let name = right.name();
    let who = match caller {
        Caller::User(user) => format!("the user \"{}\" ({})", user.name, user.role.name()),
        Caller::Token(token) => format!("the token \"{}\"", token.name),
    };
    let challenge =
        format!("Bearer realm=\"hearth\", error=\"insufficient_scope\", scope=\"{name}\"");
    let problem = Problem::new(
        ProblemCode::Forbidden,
        format!("{who} lacks the right \"{name}\""),
    )
    .with("right", name);
    Err(match HeaderValue::try_from(challenge) {
        Ok(challenge) => problem.header(header::WWW_AUTHENTICATE, challenge),
        Err(_) => problem,
    })
}

/// 401, with the challenge RFC 6750 asks for.
pub fn unauthorized(detail: &str, sent_one: bool) -> Problem {
    let challenge = if sent_one {
        "Bearer realm=\"hearth\", error=\"invalid_token\""
    } else {
        "Bearer realm=\"hearth\""
    };
    Problem::new(ProblemCode::Unauthorized, detail).header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::response::IntoResponse;
    use jiff::Timestamp;

    use super::*;
    use crate::model::{Role, TokenView, UserView};

    fn token(scope: Option<&[&str]>) -> Caller {
        let names = |scope: &[&str]| scope.iter().map(|name| (*name).to_owned()).collect();
        Caller::Token(Arc::new(TokenView {
            id: 1,
            name: "ci".into(),
            rights: vec![Right::Read],
            scope: scope.map(names),
            created_at: Timestamp::UNIX_EPOCH,
            last_used_at: None,
            expires_at: None,
        }))
    }

    #[test]
    fn a_missing_right_is_named() {
        let token = token(None);
        assert!(check(&token, Right::Read).is_ok());
        let problem = check(&token, Right::Write).unwrap_err();
        assert_eq!(
            problem.detail(),
            "the token \"ci\" lacks the right \"write\""
        );
        let response = problem.into_response();
        assert_eq!(response.status(), 403);
        assert!(
            response.headers()["www-authenticate"]
                .to_str()
                .unwrap()
                .contains("scope=\"write\"")
        );
        let user = Caller::User(Arc::new(UserView {
            id: 1,
            name: "ada".into(),
            role: Role::Viewer,
            disabled: false,
            created_at: Timestamp::UNIX_EPOCH,
            last_login_at: None,
            sessions: 0,
        }));
        assert_eq!(
            check(&user, Right::Invoke).unwrap_err().detail(),
            "the user \"ada\" (viewer) lacks the right \"invoke\""
        );
    }

    #[test]
    fn a_scope_is_named_and_holds_whole_names() {
        assert!(reach(&token(None), "anything").is_ok());
        let token = token(Some(&["a", "b-c"]));
        assert!(reach(&token, "a").is_ok() && reach(&token, "b-c").is_ok());
        for outside in ["", "b", "ab", "A", "a "] {
            let problem = reach(&token, outside).unwrap_err();
            assert_eq!(problem.code(), ProblemCode::Forbidden);
            assert!(problem.detail().contains("\"a\", \"b-c\""));
        }
    }
}
