//! `ETag`, `If-Match`, `If-None-Match` (RFC 9110, 8.8.3 and 13.1).
//!
//! A tag is `"REVISION-DIGEST"`. The revision identifies the configuration, such as a function's active version; the
//! digest covers the whole response, including live figures. `If-None-Match` compares both. `If-Match` compares only
//! the revision, so that an instance becoming idle does not reject a change.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::{Problem, ProblemCode};
use crate::model::{Changed, Meant, Revision, digest};

/// Caches must revalidate.
const KEPT: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The answer to a GET: the value as JSON with its tag, or 304 when the client has it.
pub fn answer(
    headers: &HeaderMap,
    revision: &Revision,
    value: &impl Serialize,
) -> Result<Response, Problem> {
    let bytes = serde_json::to_vec(value).map_err(Problem::internal)?;
    let tag = format!("\"{revision}-{}\"", digest(&bytes));
    let is_kept = tags(headers, &header::IF_NONE_MATCH).is_some_and(|tags| match tags {
        Tags::Any => true,
        // Weak comparison (13.1.2): a proxy that compresses may have made it weak.
        Tags::These(those) => those
            .iter()
            .any(|those| those.strip_prefix("W/").unwrap_or(those) == tag),
    });
    let mut response = match is_kept {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let json = [(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            )];
            (json, Body::from(bytes)).into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(
        header::ETAG,
        HeaderValue::try_from(tag).map_err(Problem::internal)?,
    );
    headers.insert(header::CACHE_CONTROL, KEPT);
    Ok(response)
}

/// The answer to a change: the value as JSON with its tag.
pub fn changed(
    status: StatusCode,
    revision: &Revision,
    value: &impl Serialize,
) -> Result<Response, Problem> {
    let mut response = answer(&HeaderMap::new(), revision, value)?;
    *response.status_mut() = status;
    response.headers_mut().remove(header::CACHE_CONTROL);
    Ok(response)
}

/// What a change is meant for, by its `If-Match`. What is no tag matches nothing, nor does a weak one (13.1.1).
pub fn meant(headers: &HeaderMap) -> Meant {
    match tags(headers, &header::IF_MATCH) {
        None | Some(Tags::Any) => Meant::Any,
        Some(Tags::These(tags)) => {
            Meant::Only(tags.iter().filter_map(|tag| revision(tag)).collect())
        }
    }
}

/// The revision in a tag. One without a digest counts as well.
fn revision(tag: &str) -> Option<Revision> {
    let opaque = tag.strip_prefix('"')?.strip_suffix('"')?;
    let (revision, _) = opaque.split_once('-').unwrap_or((opaque, ""));
    Some(Revision::named(revision))
}

enum Tags {
    Any,
    These(Vec<String>),
}

/// The tags in a header's lines; none when there is no such header.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Option<Tags> {
    let mut these = Vec::new();
    let mut is_there = false;
    for value in headers.get_all(name) {
        is_there = true;
        let text = value.to_str().unwrap_or_default();
        if text.trim() == "*" {
            return Some(Tags::Any);
        }
        // Ours have no comma in them; one that has matches nothing either way.
        these.extend(text.split(',').map(|tag| tag.trim().to_owned()));
    }
    is_there.then_some(Tags::These(these))
}

impl From<Changed> for Problem {
    /// 412, with the tag of what there is now.
    fn from(error: Changed) -> Self {
        let detail = format!(
            "{error}: If-Match does not match its current state; read it again and check that your change still applies"
        );
        let problem = Self::new(ProblemCode::PreconditionFailed, detail);
        match HeaderValue::try_from(format!("\"{}\"", error.present)) {
            Ok(tag) => problem.header(header::ETAG, tag),
            Err(_) => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(name: HeaderName, values: &[&str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_change_is_meant_for_the_revisions_of_its_tags() {
        let now = || Revision::of_function(3, 7);
        for (values, allowed) in [
            (&[][..], true),
            (&["*"], true),
            (&["\"3.7-0123456789abcdef\""], true),
            (&["\"3.7-of another moment\""], true),
            (&["\"3.7\""], true),
            (&["\"3.6-0123456789abcdef\", \"3.7-x\""], true),
            (&["\"3.6-x\"", "\"3.7-x\""], true),
            (&["\"3.6-0123456789abcdef\""], false),
            (&["\"2.7-0123456789abcdef\""], false),
            (&["W/\"3.7-0123456789abcdef\""], false),
            (&["3.7"], false),
            (&[""], false),
        ] {
            let checked = meant(&sent(header::IF_MATCH, values)).check(now());
            assert_eq!(checked.is_ok(), allowed, "{values:?}");
        }
    }

    #[test]
    fn an_answer_that_the_client_has_is_not_sent_again() {
        let revision = Revision::of_function(1, 1);
        let first = answer(&HeaderMap::new(), &revision, &"value").unwrap();
        assert_eq!(first.status(), 200);
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        for (sent_tag, status) in [
            (tag.clone(), 304),
            (format!("W/{tag}"), 304),
            (format!("\"other\", {tag}"), 304),
            ("*".to_owned(), 304),
            ("\"1.1\"".to_owned(), 200),
        ] {
            let headers = sent(header::IF_NONE_MATCH, &[&sent_tag]);
            let again = answer(&headers, &revision, &"value").unwrap();
            assert_eq!(again.status(), status, "{sent_tag}");
            assert_eq!(again.headers()[header::ETAG], tag.as_str());
        }
        let headers = sent(header::IF_NONE_MATCH, &[&tag]);
        let live = answer(&headers, &revision, &"another value").unwrap();
        assert_eq!(live.status(), 200, "live figures changed");
    }
}
