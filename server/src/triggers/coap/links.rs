//! `/.well-known/core`: what there is at a port (RFC 6690).

use super::answer::Answer;
use super::code::Code;
use super::message::Call;
use crate::triggers::target::Target;

/// Its path.
const PATH: &str = "/.well-known/core";
/// `application/link-format`.
const LINK_FORMAT: u16 = 40;

/// The answer, if that is what is asked for.
pub(super) fn answer(call: &Call, target: &Target) -> Option<Answer> {
    if call.path != PATH {
        return None;
    }
    if call.method != Code::GET {
        return Some(Answer::of(Code::METHOD_NOT_ALLOWED));
    }
    Some(Answer {
        content_format: Some(LINK_FORMAT),
        body: links(target.paths(), &call.query).into(),
        ..Answer::of(Code::CONTENT)
    })
}

/// The links of these paths, or of those that a query such as `href=/a*` is about (RFC 6690, 4.1).
fn links<'a>(paths: impl Iterator<Item = &'a str>, query: &str) -> String {
    let wanted = query.strip_prefix("href=");
    let fits = |path: &str| match (wanted, wanted.and_then(|text| text.strip_suffix('*'))) {
        (_, Some(begin)) => path.starts_with(begin),
        (Some(whole), None) => path == whole,
        // No link has any other attribute.
        (None, None) => query.is_empty(),
    };
    let links: Vec<_> = paths
        .map(|path| format!("/{path}"))
        .filter(|path| fits(path))
        .map(|path| format!("<{path}>"))
        .collect();
    links.join(",")
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn queries_choose_among_the_links() {
        let all = ["cart", "checkout"];
        for (query, wanted) in [
            ("", "</cart>,</checkout>"),
            ("href=/ch*", "</checkout>"),
            ("href=/cart", "</cart>"),
            ("href=/car", ""),
            ("rt=x", ""),
        ] {
            assert_eq!(links(all.into_iter(), query), wanted, "{query}");
        }
        assert_eq!(links([""].into_iter(), ""), "</>");
    }
}
