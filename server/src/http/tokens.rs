//! `/api/v1/tokens`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::App;
use super::audit::Audit;
use super::auth::{Admin, Allowed};
use super::path::Path;
use super::problem::{Problem, ProblemCode};
use super::spec::{self, Fields, Input, invalid};
use crate::model::{Caller, InvalidField, NewToken, Page, Right, TokenView};

/// A token to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "ci", "rights": ["read", "write"], "scope": ["hello"]}))]
#[allow(dead_code)]
pub struct CreateToken {
    /// What it is for, 1 to 64 characters.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// What it allows; no right implies another.
    #[schema(min_items = 1)]
    pub rights: Vec<Right>,
    /// Names of the functions it is scoped to, existing or not; omit for all. A scoped token cannot have the right
    /// "admin".
    #[schema(min_items = 1, max_items = 100)]
    pub scope: Option<Vec<String>>,
    /// When it expires; omit for never.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<String>,
}

/// A new token with its secret, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedToken {
    /// The token.
    #[serde(flatten)]
    pub view: TokenView,
    /// Its secret, for `Authorization: Bearer`. Stored as a hash: it cannot be shown again.
    pub token: String,
}

/// List tokens, newest first, without their secrets.
#[utoipa::path(
    get,
    path = "/api/v1/tokens",
    tag = "tokens",
    operation_id = "list_tokens",
    security(("bearer" = ["admin"])),
    responses((status = 200, description = "All tokens, in one page", body = Page<TokenView>)),
)]
pub async fn list(
    _: Allowed<Admin>,
    State(app): State<App>,
) -> Result<Json<Page<TokenView>>, Problem> {
    let items = app.store.tokens();
    Ok(Json(Page { items, next: None }))
}

/// Create a token.
#[utoipa::path(
    post,
    path = "/api/v1/tokens",
    tag = "tokens",
    operation_id = "create_token",
    security(("bearer" = ["admin"])),
    request_body(content = CreateToken, content_type = "application/json"),
    responses((status = 201, description = "The token with its secret", body = CreatedToken)),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "invalid_field"
    ]))),
)]
pub async fn create(
    asked: Allowed<Admin>,
    State(app): State<App>,
    request: Request,
) -> Result<(StatusCode, Json<CreatedToken>), Problem> {
    asked.proof.is_fresh(&app).await?;
    let new = parse(&spec::json_fields(request).await?, Timestamp::now())?;
    tell(&asked.audit, &new);
    let (view, token) = app.store.create_token(new).await?;
    Ok((StatusCode::CREATED, Json(CreatedToken { view, token })))
}

/// Delete a token and its sessions.
///
/// A token cannot delete itself, so that nobody locks themselves out by mistake.
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{id}",
    tag = "tokens",
    operation_id = "delete_token",
    security(("bearer" = ["admin"])),
    params(("id" = i64, Path, minimum = 1, description = "Token id")),
    responses((status = 204, description = "Deleted")),
    extensions(("x-errors" = json!(["not_found", "token_in_use"]))),
)]
pub async fn delete(
    asked: Allowed<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    revoke(&app, &asked.caller, &asked.audit, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes the token with this number on behalf of `caller`, and returns its name.
pub(super) async fn revoke(
    app: &App,
    caller: &Caller,
    audit: &Audit,
    id: &str,
) -> Result<String, Problem> {
    let missing = || {
        let shown: String = id.chars().take(20).collect();
        Problem::not_found(format!("token {shown:?}"))
    };
    let number = id.parse().map_err(|_| missing())?;
    if caller.is_token(number) {
        let detail = "this token made the request; delete it with another one";
        return Err(Problem::new(ProblemCode::TokenInUse, detail));
    }
    let name = app.store.delete_token(number).await?.ok_or_else(missing)?;
    audit.target(name.as_str());
    Ok(name)
}

/// Records the rights of a new token in the audit log.
pub(super) fn tell(audit: &Audit, new: &NewToken) {
    audit.target(new.name.as_str());
    let rights: Vec<&str> = new.rights.iter().map(|right| right.name()).collect();
    audit.detail(format!("rights {}", rights.join(" ")));
    if let Some(scope) = &new.scope {
        audit.detail(format!("limited to {}", scope.join(" ")));
    }
    if let Some(end) = new.expires_at {
        audit.detail(format!("expires {end}"));
    }
}

const NAME_RULE: &str = "must be a string of 1 to 64 characters, without control characters";
const RIGHTS_RULE: &str =
    "must be a list of one or more of \"read\", \"invoke\", \"write\", \"admin\", each once";
const SCOPE_RULE: &str = "must be a list of 1 to 100 function names without duplicates";
const ADMIN_SCOPE_RULE: &str =
    "must not be combined with the right \"admin\", which covers more than functions";
const EXPIRY_RULE: &str = "must be a time in the future, such as 2030-01-31T12:00:00Z";
/// Most functions a token is limited to: the list is compared with on each request.
const MAX_SCOPE: usize = 100;

/// Reads the fields of a token.
///
/// # Errors
/// The first field that breaks its rule.
pub(super) fn parse(fields: &Fields, now: Timestamp) -> Result<NewToken, InvalidField> {
    fields.only(&["name", "rights", "scope", "expires_at"])?;
    let missing = |field, rule: &str| invalid(field, &Value::Null, format!("is required; {rule}"));
    let name = fields
        .get("name")
        .ok_or_else(|| missing("name", NAME_RULE))?;
    let rights = fields
        .get("rights")
        .ok_or_else(|| missing("rights", RIGHTS_RULE))?;
    let good_name = name.string().filter(|name| {
        (1..=64).contains(&name.chars().count())
            && !name.trim().is_empty()
            && !name.chars().any(char::is_control)
    });
    let Some(good_name) = good_name else {
        return Err(name.invalid("name", NAME_RULE));
    };
    let Some(good_rights) = read_list(rights, Right::by_name) else {
        return Err(rights.invalid("rights", RIGHTS_RULE));
    };
    let scope = given(fields, "scope")
        .map(|input| {
            let function = |name: &str| spec::is_function_name(name).then(|| name.to_owned());
            let names = read_list(input, function)
                .filter(|names| names.len() <= MAX_SCOPE)
                .ok_or_else(|| input.invalid("scope", SCOPE_RULE))?;
            match good_rights.contains(&Right::Admin) {
                true => Err(input.invalid("scope", ADMIN_SCOPE_RULE)),
                false => Ok(names),
            }
        })
        .transpose()?;
    let expires_at = given(fields, "expires_at")
        .map(|input| {
            let time = input
                .string()
                .and_then(|text| text.parse::<Timestamp>().ok());
            time.filter(|time| *time > now)
                .ok_or_else(|| input.invalid("expires_at", EXPIRY_RULE))
        })
        .transpose()?;
    Ok(NewToken {
        name: good_name.to_owned(),
        rights: good_rights,
        scope,
        expires_at,
    })
}

/// An optional field: null is as if it was not there.
fn given<'f>(fields: &'f Fields, name: &str) -> Option<&'f Input> {
    fields
        .get(name)
        .filter(|input| !matches!(input, Input::Json(Value::Null)))
}

/// A list of texts that all read as something, none twice, at least one.
fn read_list<T: PartialEq>(input: &Input, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let Input::Json(Value::Array(items)) = input else {
        return None;
    };
    let mut values = Vec::new();
    for item in items {
        let value = read(item.as_str()?)?;
        if values.contains(&value) {
            return None;
        }
        values.push(value);
    }
    (!values.is_empty()).then_some(values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field_of(body: Value) -> String {
        let Value::Object(object) = body else {
            unreachable!("the tests pass objects")
        };
        match parse(&Fields::from_json(object), Timestamp::UNIX_EPOCH) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.field,
        }
    }

    #[test]
    fn tokens_are_parsed_field_by_field() {
        assert_eq!(
            field_of(json!({"name": "ci", "rights": ["read", "invoke"]})),
            "ok"
        );
        for (body, field) in [
            (json!({}), "name"),
            (json!({"name": "", "rights": ["read"]}), "name"),
            (json!({"name": " ", "rights": ["read"]}), "name"),
            (json!({"name": "a\nb", "rights": ["read"]}), "name"),
            (json!({"name": 1, "rights": ["read"]}), "name"),
            (json!({"name": "x".repeat(65), "rights": ["read"]}), "name"),
            (json!({"name": "ci"}), "rights"),
            (json!({"name": "ci", "rights": []}), "rights"),
            (json!({"name": "ci", "rights": ["root"]}), "rights"),
            (json!({"name": "ci", "rights": ["read", "read"]}), "rights"),
            (json!({"name": "ci", "rights": "read"}), "rights"),
            (
                json!({"name": "ci", "rights": ["read"], "expires": 1}),
                "expires",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "scope": null, "expires_at": null}),
                "ok",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "scope": ["a", "b"], "expires_at": "2030-01-31T12:00:00Z"}),
                "ok",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "scope": []}),
                "scope",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "scope": "a"}),
                "scope",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "scope": ["A"]}),
                "scope",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "scope": ["a", "a"]}),
                "scope",
            ),
            (
                json!({"name": "ci", "rights": ["admin"], "scope": ["a"]}),
                "scope",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "scope": (0..101).map(|n| format!("f{n}")).collect::<Vec<_>>()}),
                "scope",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "expires_at": "tomorrow"}),
                "expires_at",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "expires_at": 4_000_000_000_i64}),
                "expires_at",
            ),
            (
                json!({"name": "ci", "rights": ["read"], "expires_at": "1969-01-31T12:00:00Z"}),
                "expires_at",
            ),
        ] {
            assert_eq!(field_of(body), field);
        }
    }
}
