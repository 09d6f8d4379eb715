//! Translates user input into a query of the search index.
//!
//! A line must contain all words, `"phrases"` and prefixes (`conn*`). Every part is quoted as an FTS5 string, so no
//! FTS5 operator can be injected.

/// Longest search text in bytes: a query's cost grows with its words.
const LONGEST: usize = 400;
/// Most words and phrases.
const MOST_PARTS: usize = 16;
/// Shortest beginning of a word: all lines of all words that begin so are put together before the first is shown.
const SHORTEST_PREFIX: usize = 3;

/// What is wrong with the query, for the user who typed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SearchTextError {
    /// Nothing that could be found.
    #[error("must contain a word (letters or digits)")]
    Empty,
    /// See [`LONGEST`].
    #[error("must be at most 400 bytes long")]
    TooLong,
    /// See [`MOST_PARTS`].
    #[error("must have at most 16 words and phrases")]
    TooMany,
    /// An odd number of quotes.
    #[error("has an unclosed quotation mark")]
    OpenPhrase,
    /// See [`SHORTEST_PREFIX`].
    #[error("must have at least three letters or digits before a *")]
    ShortPrefix,
}

/// A text that can be searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchText(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    text: String,
    prefix: bool,
}

impl SearchText {
    /// Parses a query.
    pub fn parse(typed: &str) -> Result<Self, SearchTextError> {
        if typed.len() > LONGEST {
            return Err(SearchTextError::TooLong);
        }
        // A NUL would end the query for SQLite; control characters are in no word.
        let typed: String = typed
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let mut parts = Vec::new();
        let mut rest = typed.trim_start();
        while !rest.is_empty() {
            let text;
            (text, rest) = match rest.strip_prefix('"') {
                Some(phrase) => phrase.split_once('"').ok_or(SearchTextError::OpenPhrase)?,
                None => {
                    let end = rest
                        .find(|c: char| c.is_whitespace() || c == '"')
                        .unwrap_or(rest.len());
                    rest.split_at(end)
                }
            };
            let after = rest.trim_start_matches('*');
            let prefix = after.len() < rest.len() || text.ends_with('*');
            rest = after.trim_start();
            let text = text.trim_end_matches('*');
            if text.chars().any(char::is_alphanumeric) {
                parts.push(Part::new(text, prefix)?);
            }
        }
        match parts.len() {
            0 => Err(SearchTextError::Empty),
            1..=MOST_PARTS => Ok(Self(parts)),
            _ => Err(SearchTextError::TooMany),
        }
    }

    /// As FTS5 takes it, restricted to the lines of one function.
    pub(crate) fn in_function(&self, function: i64) -> String {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|part| {
                let quoted = part.text.replace('"', "\"\"");
                let star = if part.prefix { " *" } else { "" };
                format!("\"{quoted}\"{star}")
            })
            .collect();
        format!(
            "owner : \"f{function}\" AND text : ({})",
            parts.join(" AND ")
        )
    }
}

impl Part {
    fn new(text: &str, prefix: bool) -> Result<Self, SearchTextError> {
        // The star belongs to the last word of a phrase, and to none when something else ends it.
        let last = text
            .rsplit(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let prefix = prefix && !last.is_empty();
        if prefix && last.chars().count() < SHORTEST_PREFIX {
            return Err(SearchTextError::ShortPrefix);
        }
        Ok(Self {
            text: text.to_owned(),
            prefix,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_phrases_and_beginnings_are_quoted() {
        for (typed, query) in [
            ("error", "\"error\""),
            ("  a\tb ", "\"a\" AND \"b\""),
            ("\"not found\" 404", "\"not found\" AND \"404\""),
            ("conn*", "\"conn\" *"),
            ("\"lost conn\"*", "\"lost conn\" *"),
            ("NOT a OR b", "\"NOT\" AND \"a\" AND \"OR\" AND \"b\""),
            ("order_id=7 --", "\"order_id=7\""),
            ("text:x^2", "\"text:x^2\""),
            ("a\"b c\"d", "\"a\" AND \"b c\" AND \"d\""),
            ("é*ö", "\"é*ö\""),
            ("a\0b", "\"a\" AND \"b\""),
            ("abc-*", "\"abc-\""),
        ] {
            let text = SearchText::parse(typed).expect(typed);
            let expected = format!("owner : \"f7\" AND text : ({query})");
            assert_eq!(text.in_function(7), expected, "{typed}");
        }
    }

    #[test]
    fn what_cannot_be_searched_for_is_explained() {
        use SearchTextError::*;
        let many = "a ".repeat(MOST_PARTS + 1);
        let long = "a".repeat(LONGEST + 1);
        for (typed, error) in [
            ("", Empty),
            (" -- * \"\" ", Empty),
            ("\"open", OpenPhrase),
            ("a \"b\" \"", OpenPhrase),
            ("ab*", ShortPrefix),
            ("long-b*", ShortPrefix),
            (many.as_str(), TooMany),
            (long.as_str(), TooLong),
        ] {
            assert_eq!(SearchText::parse(typed), Err(error), "{typed}");
        }
    }
}
