//! `/api/v1/tokens`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::App;
use super::auth::{self, Admin, Allowed};
use super::functions::to_the_end;
use super::path::Path;
use super::problem::{Code, Problem};
use super::spec::{self, Fields, Input, invalid};
use crate::model::{InvalidField, Page, Right, TokenView};

/// A token to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "ci", "rights": ["read", "write"]}))]
#[allow(dead_code)]
pub struct CreateToken {
    /// What it is for, 1 to 64 characters.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// What it allows; no right implies another.
    #[schema(min_items = 1)]
    pub rights: Vec<Right>,
}

/// A new token with its secret, which is shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedToken {
    /// The token.
    #[serde(flatten)]
    pub view: TokenView,
    /// Its secret, for `Authorization: Bearer`. Stored hashed: it cannot be shown again.
    pub token: String,
}

/// All tokens, newest first, without their secrets.
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
    let items = app.store.tokens().await?;
    Ok(Json(Page { items, next: None }))
}

/// Make a token.
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
    _: Allowed<Admin>,
    State(app): State<App>,
    request: Request,
) -> Result<(StatusCode, Json<CreatedToken>), Problem> {
    let (name, rights) = parse(&spec::json_fields(request).await?)?;
    let change = async move { app.store.create_token(&name, &rights).await };
    let (view, token) = to_the_end(change).await?;
    Ok((StatusCode::CREATED, Json(CreatedToken { view, token })))
}

/// Delete a token and its sessions. The token of the request itself cannot be deleted, so that nobody locks themselves
/// out by mistake.
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{id}",
    tag = "tokens",
    operation_id = "delete_token",
    security(("bearer" = ["admin"])),
    params(("id" = i64, Path, description = "Number of the token")),
    responses((status = 204, description = "Deleted")),
    extensions(("x-errors" = json!(["not_found", "token_in_use"]))),
)]
pub async fn delete(
    caller: Allowed<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let missing = || {
        let shown: String = id.chars().take(20).collect();
        Problem::not_found(format!("token {shown:?}"))
    };
    let number = id.parse().map_err(|_| missing())?;
    if number == caller.token.id {
        let detail = "this is the token of the request; delete it with another one";
        return Err(Problem::new(Code::TokenInUse, detail));
    }
    match to_the_end(async move { app.store.delete_token(number).await }).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing()),
    }
}

const NAME_RULE: &str = "must be a string of 1 to 64 characters, without control characters";
const RIGHTS_RULE: &str =
    "must be a list of one or more of \"read\", \"invoke\", \"write\", \"admin\", each once";
const ALL_RIGHTS: [Right; 4] = [Right::Read, Right::Invoke, Right::Write, Right::Admin];

fn parse(fields: &Fields) -> Result<(String, Vec<Right>), InvalidField> {
    fields.only(&["name", "rights"])?;
    let missing = |field, rule: &str| {
        invalid(
            field,
            &Value::Null,
            format!("is required and missing; {rule}"),
        )
    };
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
    let Some(good_rights) = read_rights(rights) else {
        return Err(rights.invalid("rights", RIGHTS_RULE));
    };
    Ok((good_name.to_owned(), good_rights))
}

fn read_rights(input: &Input) -> Option<Vec<Right>> {
    let Input::Json(Value::Array(items)) = input else {
        return None;
    };
    let mut rights = Vec::new();
    for item in items {
        let named = item.as_str()?;
        let right = *ALL_RIGHTS
            .iter()
            .find(|right| auth::name(**right) == named)?;
        if rights.contains(&right) {
            return None;
        }
        rights.push(right);
    }
    (!rights.is_empty()).then_some(rights)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field_of(body: Value) -> String {
        let Value::Object(object) = body else {
            unreachable!("the tests pass objects")
        };
        match parse(&Fields::from_json(object)) {
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
        ] {
            assert_eq!(field_of(body), field);
        }
    }
}
