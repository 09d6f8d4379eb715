//! `GET /api/v1/functions/{name}/versions/{n}/code`.

use std::io::Seek;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tokio_util::io::ReaderStream;

use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::package;

/// Download a version's code as a zip archive.
///
/// The archive contains every file of the version with its executable bit. Uploading it again creates a version with
/// the same `code_sha256`.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/versions/{n}/code",
    tag = "functions",
    operation_id = "get_version_code",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("n" = u32, Path, minimum = 1, description = "Version number"),
    ),
    responses((status = 200, description = "The archive", body = Vec<u8>, content_type = "application/zip")),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn version_code(
    _: Allowed<Read>,
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    archive(&app, &name, &version).await
}

/// The archive as a download named after function and version.
pub async fn archive(app: &App, name: &str, version: &str) -> Result<Response, Problem> {
    super::id_of(app, name)?;
    let number = super::version_number(name, version)?;
    let code = app.engine.code(name, Some(number)).await?;
    // Beside the code, where there is room for it, and without a name, so that nothing of it can be left behind.
    let packed = tokio::task::spawn_blocking(move || {
        let root = code.path();
        let beside = root.parent().unwrap_or(&root);
        let mut file = tempfile::tempfile_in(beside).map_err(Problem::internal)?;
        package::pack(&root, &mut file).map_err(Problem::internal)?;
        let bytes = file.stream_position().map_err(Problem::internal)?;
        file.rewind().map_err(Problem::internal)?;
        Ok::<_, Problem>((file, bytes))
    });
    let (file, bytes) = packed.await.map_err(Problem::internal)??;
    let disposition =
        HeaderValue::try_from(format!("attachment; filename=\"{name}-v{number}.zip\""))
            .map_err(Problem::internal)?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/zip"),
        ),
        (header::CONTENT_LENGTH, HeaderValue::from(bytes)),
        (header::CONTENT_DISPOSITION, disposition),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let stream = ReaderStream::new(tokio::fs::File::from_std(file));
    Ok((headers, Body::from_stream(stream)).into_response())
}
