//! The files of `/static`, compiled in and served under a URL that names their content.
//!
//! `/static/{release}/{name}`: the release is a hash over all files, so that a browser may keep them for ever and
//! scripts that import each other by relative path always meet their own generation. The style sheets are served as one,
//! and so are the console's own modules ([`bundle`]): a first visit is a handful of requests. Each file is compressed once,
//! when the first one is asked for, and none per request.

mod bundle;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

use crate::compress;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../static/", $name)))),*]
    };
}

/// A file's path below `/static`, and its content.
type Source = (&'static str, &'static [u8]);

/// The parts of [`STYLES`], in the order of the cascade.
static STYLE_PARTS: &[Source] = files! {
    "css/base.css",
    "css/components.css",
    "css/menu.css",
    "css/forms.css",
    "css/code.css",
    "css/diff.css",
    "css/function.css",
    "css/history.css",
    "css/tables.css",
    "css/invocation.css",
    "css/log.css",
    "css/overview.css",
    "css/charts.css",
    "css/palette.css",
    "css/messages.css",
    "css/accounts.css",
    "css/ingress.css",
    "css/chains.css",
    "css/lab.css",
    "css/narrow.css",
};

/// The modules of [`SCRIPT`]; the first imports the others.
static SCRIPT_PARTS: &[Source] = files! {
    "js/app.js",
    "js/charts/heat.js",
    "js/charts/histogram.js",
    "js/charts/latency.js",
    "js/charts/png.js",
    "js/charts/scale.js",
    "js/confirm.js",
    "js/copy.js",
    "js/drafts.js",
    "js/editor.js",
    "js/file.js",
    "js/focus.js",
    "js/times.js",
    "js/loglines.js",
    "js/env.js",
    "js/forms.js",
    "js/hold.js",
    "js/live.js",
    "js/menu.js",
    "js/once.js",
    "js/palette.js",
    "js/panel.js",
    "js/poll.js",
    "js/progress.js",
    "js/relative.js",
    "js/review.js",
    "js/rows.js",
    "js/session.js",
    "js/settings.js",
    "js/sparkline.js",
    "js/tabs.js",
    "js/tail.js",
    "js/theme.js",
    "js/toast.js",
    "js/unsaved.js",
    "js/workbench.js",
};

/// Files that are served as they are. The editor is for the pages that have one.
static FILES: &[Source] = files! {
    "favicon.svg",
    "js/codemirror.js",
    "js/early.js",
    "vendor/codemirror/codemirror.js",
    "vendor/htmx/htmx.min.js",
};

/// The one style sheet.
pub const STYLES: &str = "css/console.css";
/// The console's own script.
pub const SCRIPT: &str = "js/console.js";

/// A static file.
#[derive(Debug)]
struct Asset {
    content_type: &'static str,
    bytes: Cow<'static, [u8]>,
    /// The same with gzip, where that is shorter.
    gzip: Option<Vec<u8>>,
}

static ASSETS: LazyLock<BTreeMap<&'static str, Asset>> = LazyLock::new(|| {
    let styles: Vec<u8> = STYLE_PARTS
        .iter()
        .flat_map(|(_, bytes)| bytes.iter().copied())
        .collect();
    // A test holds that they can be put together.
    let script = bundle::scripts(SCRIPT_PARTS)
        .unwrap_or_else(|error| format!("throw new Error({error:?});\n"));
    let whole = [
        (STYLES, Cow::Owned(styles)),
        (SCRIPT, Cow::Owned(script.into_bytes())),
    ];
    let files = FILES
        .iter()
        .map(|(name, bytes)| (*name, Cow::Borrowed(*bytes)));
    files
        .chain(whole)
        .map(|(name, bytes)| {
            let gzip = compress::smallest(&bytes);
            let content_type = content_type(name);
            (
                name,
                Asset {
                    content_type,
                    bytes,
                    gzip,
                },
            )
        })
        .collect()
});

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        _ => "image/svg+xml",
    }
}

/// Hash over names and contents of all files, 16 hex digits.
static RELEASE: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    for (name, bytes) in STYLE_PARTS.iter().chain(SCRIPT_PARTS).chain(FILES) {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    hex::encode(&hasher.finalize()[..8])
});

/// URL of a file that is served.
pub fn url(name: &str) -> String {
    debug_assert!(ASSETS.contains_key(name), "no asset {name}");
    format!("/static/{}/{name}", *RELEASE)
}

/// Serves the files; needs no state and no login.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/static/{release}/{*name}", get(serve))
}

async fn serve(Path((release, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.get(name.as_str()) else {
        return (StatusCode::NOT_FOUND, "no such file\n").into_response();
    };
    // A page that was loaded before an update still finds its files by name; those are not to be kept.
    let cache = if release == *RELEASE {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let gzip = asset
        .gzip
        .as_deref()
        .filter(|_| compress::accepts_gzip(&headers));
    // Two encodings are two representations.
    let etag = match gzip {
        Some(_) => format!("\"{}-gzip\"", *RELEASE),
        None => format!("\"{}\"", *RELEASE),
    };
    let known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().trim_start_matches("W/") == etag);
    let common = [
        (CACHE_CONTROL, cache.to_owned()),
        (ETAG, etag),
        (VARY, "accept-encoding".to_owned()),
    ];
    if known {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let typed = [
        (CONTENT_TYPE, asset.content_type),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    match (gzip, &asset.bytes) {
        (Some(gzip), _) => (common, typed, [(CONTENT_ENCODING, "gzip")], gzip).into_response(),
        (None, Cow::Borrowed(bytes)) => (common, typed, *bytes).into_response(),
        (None, Cow::Owned(bytes)) => (common, typed, bytes.as_slice()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn fetch(release: &str, name: &str, asked: &[(&str, &str)]) -> Response {
        let mut headers = HeaderMap::new();
        for (name, value) in asked {
            let name = axum::http::HeaderName::try_from(*name).expect("a name");
            headers.insert(name, value.parse().expect("a value"));
        }
        serve(Path((release.to_owned(), name.to_owned())), headers).await
    }

    #[tokio::test]
    async fn files_are_kept_for_ever_under_their_release_only() {
        let fresh = fetch(&RELEASE, STYLES, &[]).await;
        assert_eq!(fresh.status(), StatusCode::OK);
        assert_eq!(fresh.headers()[CONTENT_TYPE], "text/css; charset=utf-8");
        assert!(
            fresh.headers()[CACHE_CONTROL]
                .to_str()
                .expect("text")
                .contains("immutable")
        );
        let etag = fresh.headers()[ETAG].to_str().expect("text").to_owned();

        let other = fetch("0000", STYLES, &[]).await;
        assert_eq!(other.headers()[CACHE_CONTROL], "no-cache");
        let again = fetch("0000", STYLES, &[("if-none-match", &etag)]).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }

    #[tokio::test]
    async fn each_encoding_is_a_representation_of_its_own() {
        let name = "vendor/codemirror/codemirror.js";
        let gzip = [("accept-encoding", "br;q=1, gzip")];
        let plain = fetch(&RELEASE, name, &[("accept-encoding", "gzip;q=0")]).await;
        let packed = fetch(&RELEASE, name, &gzip).await;
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        for answer in [&plain, &packed] {
            assert_eq!(answer.headers()[VARY], "accept-encoding");
        }
        assert_ne!(plain.headers()[ETAG], packed.headers()[ETAG]);
        let tag = packed.headers()[ETAG].to_str().expect("text").to_owned();
        let known = [gzip[0], ("if-none-match", tag.as_str())];
        assert_eq!(
            fetch(&RELEASE, name, &known).await.status(),
            StatusCode::NOT_MODIFIED
        );
        let other = [("if-none-match", tag.as_str())];
        assert_eq!(fetch(&RELEASE, name, &other).await.status(), StatusCode::OK);
        let plain = to_bytes(plain.into_body(), 1 << 20).await.expect("a body");
        let packed = to_bytes(packed.into_body(), 1 << 20).await.expect("a body");
        assert!(packed.len() * 2 < plain.len());
        assert_eq!(compress::tests::unpack(&packed), plain);
    }

    #[tokio::test]
    async fn only_listed_files_exist() {
        for name in ["../web/Cargo.toml", "vendor/README.md", "", "css"] {
            assert_eq!(
                fetch(&RELEASE, name, &[]).await.status(),
                StatusCode::NOT_FOUND
            );
        }
    }

    #[test]
    fn every_module_is_in_the_bundle() {
        let script = bundle::scripts(SCRIPT_PARTS).expect("a bundle");
        for (name, _) in SCRIPT_PARTS {
            assert!(
                script.contains(&format!("// {name}\n")),
                "{name} is imported by nobody"
            );
        }
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../static/");
        for (folder, parts) in [
            ("css", STYLE_PARTS),
            ("js", SCRIPT_PARTS),
            ("js/charts", SCRIPT_PARTS),
        ] {
            for entry in std::fs::read_dir(format!("{directory}{folder}")).expect("a directory") {
                let entry = entry.expect("an entry");
                let name = format!("{folder}/{}", entry.file_name().to_str().expect("text"));
                let listed = parts.iter().chain(FILES).any(|(listed, _)| *listed == name);
                assert!(listed || entry.path().is_dir(), "{name} is not served");
            }
        }
    }

    /// The table in `static/vendor/README.md` is what a reviewer compares with the packages.
    #[test]
    fn vendored_files_match_their_table() {
        let readme = include_str!("../../static/vendor/README.md");
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.starts_with("vendor/")) {
            let file = name.trim_start_matches("vendor/");
            let row = readme
                .lines()
                .find(|line| line.starts_with(&format!("| `{file}`")))
                .unwrap_or_else(|| panic!("{file} is missing from static/vendor/README.md"));
            let hash = hex::encode(Sha256::digest(bytes));
            assert!(
                row.contains(&hash),
                "{file} is {hash}, the table says: {row}"
            );
        }
    }
}
