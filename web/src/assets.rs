//! The files of `/static`, compiled in and served under a URL that names their content.
//!
//! `/static/{release}/{name}`: the release is a hash over all files, so that a browser may keep them for ever and
//! scripts that import each other by relative path always meet their own generation.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

/// One file.
#[derive(Debug)]
struct Asset {
    /// Path below `/static`.
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal => $content_type:expr),* $(,)?) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../static/", $name)),
        }),*]
    };
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

static ASSETS: &[Asset] = assets! {
    "css/base.css" => CSS,
    "css/code.css" => CSS,
    "css/charts.css" => CSS,
    "css/components.css" => CSS,
    "css/forms.css" => CSS,
    "css/function.css" => CSS,
    "css/history.css" => CSS,
    "css/invocation.css" => CSS,
    "css/menu.css" => CSS,
    "css/messages.css" => CSS,
    "css/narrow.css" => CSS,
    "css/overview.css" => CSS,
    "css/palette.css" => CSS,
    "css/people.css" => CSS,
    "css/tables.css" => CSS,
    "favicon.svg" => SVG,
    "js/app.js" => SCRIPT,
    "js/codemirror.js" => SCRIPT,
    "js/confirm.js" => SCRIPT,
    "js/charts/heat.js" => SCRIPT,
    "js/charts/histogram.js" => SCRIPT,
    "js/charts/latency.js" => SCRIPT,
    "js/charts/scale.js" => SCRIPT,
    "js/copy.js" => SCRIPT,
    "js/early.js" => SCRIPT,
    "js/editor.js" => SCRIPT,
    "js/forms.js" => SCRIPT,
    "js/live.js" => SCRIPT,
    "js/menu.js" => SCRIPT,
    "js/once.js" => SCRIPT,
    "js/panel.js" => SCRIPT,
    "js/palette.js" => SCRIPT,
    "js/poll.js" => SCRIPT,
    "js/relative.js" => SCRIPT,
    "js/sparkline.js" => SCRIPT,
    "js/progress.js" => SCRIPT,
    "js/settings.js" => SCRIPT,
    "js/tabs.js" => SCRIPT,
    "js/theme.js" => SCRIPT,
    "js/tail.js" => SCRIPT,
    "js/toast.js" => SCRIPT,
    "js/unsaved.js" => SCRIPT,
    "js/workbench.js" => SCRIPT,
    "vendor/codemirror/codemirror.js" => SCRIPT,
    "vendor/htmx/htmx.min.js" => SCRIPT,
};

/// Hash over names and contents of all files, 16 hex digits.
static RELEASE: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    for asset in ASSETS {
        hasher.update((asset.name.len() as u64).to_le_bytes());
        hasher.update(asset.name);
        hasher.update((asset.bytes.len() as u64).to_le_bytes());
        hasher.update(asset.bytes);
    }
    hex(&hasher.finalize()[..8])
});

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// URL of a file of `/static`.
pub fn url(name: &str) -> String {
    debug_assert!(
        ASSETS.iter().any(|asset| asset.name == name),
        "no asset {name}"
    );
    format!("/static/{}/{name}", *RELEASE)
}

/// Serves the files; needs no state and no login.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/static/{release}/{*name}", get(serve))
}

async fn serve(Path((release, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "no such file\n").into_response();
    };
    // A page that was loaded before an update still finds its files by name; those are not to be kept.
    let cache = if release == *RELEASE {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let etag = format!("\"{}\"", *RELEASE);
    let known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains(&etag));
    let common = [(CACHE_CONTROL, cache.to_owned()), (ETAG, etag)];
    if known {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let typed = [
        (CONTENT_TYPE, asset.content_type),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (common, typed, asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fetch(release: &str, name: &str, etag: Option<&str>) -> Response {
        let mut headers = HeaderMap::new();
        if let Some(etag) = etag {
            headers.insert(IF_NONE_MATCH, etag.parse().expect("header"));
        }
        serve(Path((release.to_owned(), name.to_owned())), headers).await
    }

    #[tokio::test]
    async fn files_are_kept_for_ever_under_their_release_only() {
        let fresh = fetch(&RELEASE, "css/base.css", None).await;
        assert_eq!(fresh.status(), StatusCode::OK);
        assert_eq!(fresh.headers()[CONTENT_TYPE], CSS);
        assert!(
            fresh.headers()[CACHE_CONTROL]
                .to_str()
                .expect("text")
                .contains("immutable")
        );
        let etag = fresh.headers()[ETAG].to_str().expect("text").to_owned();

        let other = fetch("0000", "css/base.css", None).await;
        assert_eq!(other.headers()[CACHE_CONTROL], "no-cache");
        let again = fetch("0000", "css/base.css", Some(&etag)).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }

    #[tokio::test]
    async fn only_listed_files_exist() {
        for name in ["../web/Cargo.toml", "vendor/README.md", "", "css"] {
            assert_eq!(
                fetch(&RELEASE, name, None).await.status(),
                StatusCode::NOT_FOUND
            );
        }
    }

    /// The table in `static/vendor/README.md` is what a reviewer compares with the packages.
    #[test]
    fn vendored_files_match_their_table() {
        let readme = include_str!("../../static/vendor/README.md");
        for asset in ASSETS
            .iter()
            .filter(|asset| asset.name.starts_with("vendor/"))
        {
            let file = asset.name.trim_start_matches("vendor/");
            let row = readme
                .lines()
                .find(|line| line.starts_with(&format!("| `{file}`")))
                .unwrap_or_else(|| panic!("{file} is missing from static/vendor/README.md"));
            let hash = hex(&Sha256::digest(asset.bytes));
            assert!(
                row.contains(&hash),
                "{file} is {hash}, the table says: {row}"
            );
        }
    }
}
