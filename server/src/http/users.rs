//! `/api/v1/users`.

mod fields;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::audit::Audit;
use super::auth::{Admin, Allowed};
use super::path::Path;
use super::problem::Problem;
use super::spec;
use crate::accounts::code;
use crate::model::{Page, Role, UserPatch, UserView};
use fields::parse_patch;

pub(super) use fields::{NewUser, parse_new};

/// Letters of a generated password: four groups of five, 100 bits.
const GENERATED: (usize, usize) = (4, 5);

/// A user to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "ada", "role": "operator"}))]
#[allow(dead_code)]
pub struct CreateUser {
    /// The name to log in with: 1 to 64 of a-z, 0-9, dot, dash, underscore and @.
    #[schema(pattern = "^[a-z0-9][a-z0-9._@-]{0,63}$")]
    pub name: String,
    /// What the user may do.
    pub role: Role,
    /// The initial password, 12 to 128 characters, not the name; if omitted, one is generated and returned.
    #[schema(required = false, min_length = 12, max_length = 128)]
    pub password: String,
}

/// Fields of a user to change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"role": "viewer"}))]
#[allow(dead_code)]
pub struct PatchUser {
    /// The new role; applies from the user's next request.
    #[schema(required = false)]
    pub role: Role,
    /// `true` blocks log-in and ends the user's sessions.
    #[schema(required = false)]
    pub disabled: bool,
    /// The new password, not the name. Ends the user's sessions.
    #[schema(required = false, min_length = 12, max_length = 128)]
    pub password: String,
}

/// A new user, with the password if it was generated.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedUser {
    /// The user.
    #[serde(flatten)]
    pub view: UserView,
    /// The generated password, if none was sent. Stored as a hash: it cannot be shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// List users by name, without their passwords.
#[utoipa::path(
    get,
    path = "/api/v1/users",
    tag = "accounts",
    operation_id = "list_users",
    security(("bearer" = ["admin"])),
    responses((status = 200, description = "All users, in one page", body = Page<UserView>)),
)]
pub async fn list(
    _: Allowed<Admin>,
    State(app): State<App>,
) -> Result<Json<Page<UserView>>, Problem> {
    let items = app.store.users().await?;
    Ok(Json(Page { items, next: None }))
}

/// Create a user.
///
/// The first user must be an admin and completes the console's set-up.
#[utoipa::path(
    post,
    path = "/api/v1/users",
    tag = "accounts",
    operation_id = "create_user",
    security(("bearer" = ["admin"])),
    request_body(content = CreateUser, content_type = "application/json"),
    responses((status = 201, description = "The user, with the password if none was sent", body = CreatedUser)),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "invalid_field",
        "already_exists", "last_admin", "too_many_requests"
    ]))),
)]
pub async fn create(
    asked: Allowed<Admin>,
    State(app): State<App>,
    request: Request,
) -> Result<(StatusCode, Json<CreatedUser>), Problem> {
    asked.proof.is_fresh(&app).await?;
    let new = parse_new(&spec::json_fields(request).await?)?;
    let (view, password) = make(&app, &asked.audit, new).await?;
    Ok((StatusCode::CREATED, Json(CreatedUser { view, password })))
}

/// Change a user's role or password, or disable or enable the user.
///
/// The last admin who can log in cannot be demoted or disabled (`last_admin`).
#[utoipa::path(
    patch,
    path = "/api/v1/users/{name}",
    tag = "accounts",
    operation_id = "patch_user",
    security(("bearer" = ["admin"])),
    params(("name" = String, Path, description = "Name of the user")),
    request_body(content = PatchUser, content_type = "application/json"),
    responses((status = 200, description = "The changed user", body = UserView)),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "payload_too_large", "unsupported_media_type", "invalid_field",
        "last_admin", "too_many_requests"
    ]))),
)]
pub async fn patch(
    asked: Allowed<Admin>,
    State(app): State<App>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<UserView>, Problem> {
    asked.proof.is_fresh(&app).await?;
    let fields = spec::json_fields(request).await?;
    let mut patch = parse_patch(&fields, &name)?;
    if app.store.user(&name).await?.is_none() {
        return Err(no_user(&name));
    }
    if let Some(password) = patch.password.take() {
        patch.password = Some(app.accounts.passwords.hash(&password).await?);
    }
    tell(&asked.audit, &patch);
    let changed = app.store.update_user(&name, &patch, None).await?;
    changed.map(Json).ok_or_else(|| no_user(&name))
}

/// Delete a user and their sessions.
///
/// Their audit records stay. The last admin who can log in cannot be deleted (`last_admin`).
#[utoipa::path(
    delete,
    path = "/api/v1/users/{name}",
    tag = "accounts",
    operation_id = "delete_user",
    security(("bearer" = ["admin"])),
    params(("name" = String, Path, description = "Name of the user")),
    responses((status = 204, description = "Deleted")),
    extensions(("x-errors" = json!(["not_found", "last_admin"]))),
)]
pub async fn delete(
    _: Allowed<Admin>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    match app.store.delete_user(&name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_user(&name)),
    }
}

/// 404 for a user.
pub(super) fn no_user(name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    Problem::not_found(format!("user {shown:?}"))
}

/// Makes a user; returns the password too if it was made here.
pub(super) async fn make(
    app: &App,
    audit: &Audit,
    new: NewUser,
) -> Result<(UserView, Option<String>), Problem> {
    audit.target(new.name.as_str());
    audit.detail(format!("role {}", new.role.name()));
    let generated = match &new.password {
        Some(_) => None,
        None => Some(generated_password()?),
    };
    let password = generated.as_ref().or(new.password.as_ref());
    let hash = app
        .accounts
        .passwords
        .hash(password.map_or("", String::as_str))
        .await?;
    let user = app.store.create_user(&new.name, new.role, &hash).await?;
    app.accounts.setup.close();
    Ok((user, generated))
}

/// A new password for another user, who can replace it.
pub(super) fn generated_password() -> Result<String, Problem> {
    let (groups, letters) = GENERATED;
    code::random(groups, letters).map_err(Problem::internal)
}

/// Records the changes to a user in the audit log.
pub(super) fn tell(audit: &Audit, patch: &UserPatch) {
    let mut actions = Vec::new();
    if let Some(role) = patch.role {
        actions.push("user.role");
        audit.detail(format!("role {}", role.name()));
    }
    if let Some(disabled) = patch.disabled {
        actions.push(if disabled {
            "user.disable"
        } else {
            "user.enable"
        });
        audit.detail(if disabled { "disabled" } else { "enabled" });
    }
    if patch.password.is_some() {
        actions.push("user.password");
        audit.detail("password");
    }
    if let [action] = actions[..] {
        audit.action(action);
    }
}
