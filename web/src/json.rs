//! JSON text laid out for reading, token by token: key order, number spelling and duplicates stay as they were sent,
//! which a round trip through a parsed value would lose.

/// Spaces of one level.
const INDENT: usize = 2;

/// Lays out valid JSON text over several lines. Text that is not JSON comes out unharmed in content, oddly spaced.
pub fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                // To the closing quote; a backslash takes the next character with it.
                while let Some(c) = chars.next() {
                    out.push(c);
                    match c {
                        '"' => break,
                        '\\' => out.extend(chars.next()),
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(close) = chars.next_if(|&next| next == '}' || next == ']') {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    // Deeply nested text must not grow with the square of its depth.
    out.extend(std::iter::repeat_n(
        ' ',
        INDENT * depth.min(MAX_INDENTED_DEPTH),
    ));
}

/// Levels deeper than this are not indented further: keeps hostile nesting from blowing up the output.
const MAX_INDENTED_DEPTH: usize = 32;

/// JSON for display: laid out, and shortened when it is very long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText {
    /// What is shown.
    pub shown: String,
    /// Bytes of the whole, when `shown` is only its beginning.
    pub cut_from: Option<u64>,
}

/// Bytes of a result that are shown on a page; the API returns all of it. Keeps a 6 MiB result from stalling the
/// browser.
const SHOWN_BYTES: usize = 256 * 1024;

impl JsonText {
    /// Size of the whole when only its beginning is shown.
    pub fn whole(&self) -> Option<String> {
        self.cut_from.map(crate::format::bytes)
    }

    /// Plain text, not JSON.
    pub fn plain(text: &[u8]) -> Self {
        let end = text.len().min(SHOWN_BYTES);
        Self {
            shown: String::from_utf8_lossy(&text[..end]).into_owned(),
            cut_from: (text.len() > SHOWN_BYTES).then_some(text.len() as u64),
        }
    }

    /// Lays out `text`; bytes that are not UTF-8 are replaced.
    pub fn new(text: &[u8]) -> Self {
        let end = text.len().min(SHOWN_BYTES);
        let cut = text.len() > SHOWN_BYTES;
        Self {
            shown: pretty(&String::from_utf8_lossy(&text[..end])),
            cut_from: cut.then_some(text.len() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_keeps_order_numbers_and_escapes() {
        let text = r#"{"z":1.0e400,"a":[1,{"b":"x\"y, {z}\\"},[],{}],"a":null}"#;
        assert_eq!(
            pretty(text),
            "{\n  \"z\": 1.0e400,\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\\"y, {z}\\\\\"\n    },\n    [],\n    {}\n  ],\n  \"a\": null\n}"
        );
    }

    #[test]
    fn layout_is_stable_and_keeps_the_value() {
        for text in ["null", "\"a b\"", "[ ]", "{ \"a\" : [ 1 , 2 ] }", "-1.5"] {
            let once = pretty(text);
            assert_eq!(pretty(&once), once);
            let before: serde_json::Value = serde_json::from_str(text).expect("valid");
            let after: serde_json::Value = serde_json::from_str(&once).expect("still valid");
            assert_eq!(before, after);
        }
    }

    #[test]
    fn deep_nesting_and_broken_text_stay_small() {
        let deep = "[".repeat(100_000);
        assert!(pretty(&deep).len() < deep.len() * 80);
        assert_eq!(pretty("\"open \\"), "\"open \\");
        assert_eq!(pretty("]]"), "\n]\n]");
    }

    #[test]
    fn long_results_are_shortened_and_say_so() {
        let long = vec![b'1'; SHOWN_BYTES + 1];
        let shown = JsonText::new(&long);
        assert_eq!(shown.cut_from, Some(SHOWN_BYTES as u64 + 1));
        assert_eq!(JsonText::new(b"1").cut_from, None);
        assert_eq!(JsonText::new(b"\xff").shown, "\u{fffd}");
    }
}
