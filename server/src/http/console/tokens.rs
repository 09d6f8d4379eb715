//! `/tokens`: API tokens.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{
    EXPIRIES, FieldErrors, MadeToken, Moment, NewTokenForm, TokenRow, TokensPage,
};
use hearth_web::respond;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::http::App;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::spec::{Fields, Input, invalid};
use crate::http::tokens;
use crate::model::{InvalidField, NewToken, Right, TokenView};

use super::confirm;
use super::form::{Form, Submitted};
use super::guard::{go, sentence};
use super::notice::Notice;
use super::session::Viewer;

/// `GET /tokens`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<Notice>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Admin)?;
    let mut page = view(&app, &viewer);
    if query.key() == "revoked" {
        page.chrome.notice = Some("Token revoked.".to_owned());
    }
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /tokens`: answers with the page that shows the secret.
pub async fn create(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    if let Some(question) = confirm::ask(&app, "/tokens", &submitted).await? {
        return Ok(question);
    }
    let Submitted { viewer, form, .. } = submitted;
    match read(&form, Timestamp::now()) {
        Ok(new) => {
            tokens::tell(viewer.audit(), &new);
            let (token, secret) = app.store.create_token(new).await?;
            let mut page = view(&app, &viewer);
            page.made = Some(MadeToken {
                name: token.name,
                secret,
            });
            Ok(respond::page(StatusCode::OK, &page))
        }
        Err(error) => {
            let mut page = view(&app, &viewer);
            page.errors = FieldErrors::one(&error.field, sentence(&error.rule));
            page.form = typed(&form);
            Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `POST /tokens/{id}/revoke`.
pub async fn revoke(
    State(app): State<App>,
    Path(id): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Admin)?;
    match tokens::revoke(&app, viewer.caller(), viewer.audit(), &id).await {
        Ok(_) => Ok(go(&submitted.headers, "/tokens?notice=revoked")),
        Err(problem) if problem.code() == ProblemCode::TokenInUse => {
            let mut page = view(&app, viewer);
            page.problem =
                "You are logged in with this token. Log in another way to revoke it.".to_owned();
            Ok(respond::page(problem.code().status(), &page))
        }
        Err(problem) => Err(problem),
    }
}

fn typed(form: &Form) -> NewTokenForm {
    NewTokenForm {
        name: form.trimmed("name"),
        rights: form.all("rights").map(str::to_owned).collect(),
        scope: form.trimmed("scope"),
        expires: form.trimmed("expires"),
    }
}

/// The form as the API's document would say it.
fn read(form: &Form, now: Timestamp) -> Result<NewToken, InvalidField> {
    let mut fields = Fields::default();
    fields.add("name".to_owned(), Input::Text(form.trimmed("name")))?;
    let rights = form.all("rights").map(Value::from).collect();
    fields.add("rights".to_owned(), Input::Json(Value::Array(rights)))?;
    let scope: Vec<Value> = form
        .text("scope")
        .split([' ', ',', '\t', '\r', '\n'])
        .filter(|name| !name.is_empty())
        .map(Value::from)
        .collect();
    if !scope.is_empty() {
        fields.add("scope".to_owned(), Input::Json(Value::Array(scope)))?;
    }
    if let Some(end) = expiry(&form.trimmed("expires"), now)? {
        let end = Input::Text(end.to_string());
        fields.add("expires_at".to_owned(), end)?;
    }
    tokens::parse(&fields, now)
}

/// The end of the chosen days.
fn expiry(days: &str, now: Timestamp) -> Result<Option<Timestamp>, InvalidField> {
    let offered = EXPIRIES.iter().any(|(offer, _)| *offer == days);
    let end = match days.parse::<i64>() {
        _ if days.is_empty() => return Ok(None),
        Ok(days) if offered => now.checked_add(SignedDuration::from_hours(24 * days)).ok(),
        _ => None,
    };
    end.map(Some)
        .ok_or_else(|| invalid("expires_at", &days.into(), "must be one of the options"))
}

fn row(token: TokenView, viewer: &Viewer, now: Timestamp) -> TokenRow {
    let moment = |at| Moment { at, now };
    let rights: Vec<&str> = token.rights.iter().map(|right| right.name()).collect();
    TokenRow {
        id: token.id,
        is_yours: viewer.caller().is_token(token.id),
        rights: rights.join(", "),
        scope: token.scope.unwrap_or_default().join(", "),
        created: moment(token.created_at),
        used: token.last_used_at.map(moment),
        expires: token.expires_at.map(moment),
        name: token.name,
    }
}

fn view(app: &App, viewer: &Viewer) -> TokensPage {
    let now = Timestamp::now();
    TokensPage {
        chrome: viewer.chrome(),
        tokens: app
            .store
            .tokens()
            .into_iter()
            .map(|token| row(token, viewer, now))
            .collect(),
        form: NewTokenForm {
            rights: vec![Right::Read.name().to_owned()],
            ..NewTokenForm::default()
        },
        errors: FieldErrors::default(),
        made: None,
        problem: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::console::form::{Settings, encoded};

    async fn token(body: &str) -> Result<NewToken, String> {
        let form = encoded::<Settings>(body).await;
        read(&form, Timestamp::UNIX_EPOCH).map_err(|error| error.field)
    }

    #[tokio::test]
    async fn the_form_says_what_the_api_does() {
        let made =
            token("name=ci&rights=read&rights=write&scope=+a%2C+b-c%0D%0Ad&expires=30").await;
        let made = made.expect("valid");
        assert_eq!(made.rights, [Right::Read, Right::Write]);
        assert_eq!(made.scope.expect("a scope"), ["a", "b-c", "d"]);
        let end: Timestamp = "1970-01-31T00:00:00Z".parse().expect("a time");
        assert_eq!(made.expires_at, Some(end));

        let made = token("name=ci&rights=admin&scope=&expires=")
            .await
            .expect("valid");
        assert_eq!((made.scope, made.expires_at), (None, None));
        for (body, field) in [
            ("name=&rights=read", "name"),
            ("name=ci", "rights"),
            ("name=ci&rights=root", "rights"),
            ("name=ci&rights=read&scope=A", "scope"),
            ("name=ci&rights=admin&scope=a", "scope"),
            ("name=ci&rights=read&expires=31", "expires_at"),
            ("name=ci&rights=read&expires=x", "expires_at"),
        ] {
            assert_eq!(token(body).await, Err(field.to_owned()), "{body}");
        }
    }
}
