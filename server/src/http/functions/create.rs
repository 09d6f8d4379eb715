//! `POST /api/v1/functions`.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::addressed;
use super::to_the_end;
use crate::http::App;
use crate::http::auth::{self, Scoped, Write};
use crate::http::etag;
use crate::http::problem::Problem;
use crate::http::secrets;
use crate::http::spec;
use crate::model::FunctionView;

/// Deploy a new function.
///
/// Responds once the template is running, so that even the first invocation starts by a fork. Code that does not import
/// is rejected with its traceback (`import_failed`), and nothing is stored.
#[utoipa::path(
    post,
    path = "/api/v1/functions",
    tag = "functions",
    operation_id = "create_function",
    security(("bearer" = ["write"])),
    request_body(content(
        (spec::CreateFunction = "application/json"),
        (spec::CreateFunctionForm = "multipart/form-data"),
    )),
    responses((status = 201, description = "Deployed", body = FunctionView,
        headers(("Location" = String, description = "URL of the function")))),
    extensions(("x-tagged" = json!("make")), ("x-errors" = json!([
        "invalid_json", "invalid_multipart", "bad_request_body", "already_exists", "payload_too_large",
        "unsupported_media_type", "invalid_field", "invalid_package", "import_failed", "host_exhausted", "shutting_down"
    ]))),
)]
pub async fn create(
    asked: Scoped<Write>,
    State(app): State<App>,
    sent: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let fields = spec::upload(request, &app.uploads).await?;
    let (settings, code) = spec::create(fields)?;
    auth::reach(&asked.caller, &settings.name)?;
    secrets::may_bind(&asked.caller, &[], Some(&settings.secrets))?;
    let location = format!("/api/v1/functions/{}", settings.name);
    let engine = app.engine.clone();
    let view = to_the_end(async move { engine.create(settings, code).await }).await?;
    let view = addressed(&app, &sent, view);
    let made = etag::changed(StatusCode::CREATED, &view.revision(), &view)?;
    Ok(([(header::LOCATION, location)], made).into_response())
}
