//! A JSON body with an archive in it: the archive is extracted while the body arrives, so that it is never held in
//! memory.
//!
//! The rest has `""` in place of `code.zip_base64` and is parsed as usual. This module looks for that one place only;
//! whether the body is valid JSON is the parser's concern.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, alphabet};

/// Standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Characters of a text that a refusal repeats, at most.
const SHOWN: usize = 200;
/// Longer names than this are none that is looked for.
const LONGEST_NAME: usize = "zip_base64".len();

/// Where the sieve is in the text.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// Between strings.
    #[default]
    Between,
    /// In a string that is kept; whether the next character is escaped.
    Kept(bool),
    /// In the archive.
    Archive,
    /// In an escape of it.
    Escape(Vec<u8>),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    kept: Vec<u8>,
    archive: Option<Decoder>,
    place: Place,
    depth: usize,
    /// The last string, as far as it can be a name that is looked for.
    name: Vec<u8>,
    /// A value comes next, or is there.
    after_colon: bool,
    /// The object in the outermost one is `code`.
    in_code: bool,
}

impl Sieve {
    /// Takes a piece of the body; `out` gets what of it belongs to the archive, decoded.
    pub fn take(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let mut rest = piece;
        while let Some((&byte, after)) = rest.split_first() {
            if self.place == Place::Archive {
                // Most of a body, in one go.
                let plain = rest
                    .iter()
                    .position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ')
                    .unwrap_or(rest.len());
                self.decode(&rest[..plain], out);
                rest = &rest[plain..];
                if let Some((&byte, after)) = rest.split_first() {
                    rest = after;
                    self.leave(byte);
                }
                continue;
            }
            rest = after;
            match &mut self.place {
                Place::Escape(escape) => {
                    escape.push(byte);
                    let whole = if escape[1] == b'u' { 6 } else { 2 };
                    if escape.len() == whole {
                        self.escaped(out);
                    }
                }
                Place::Kept(escaped) => {
                    let ends = byte == b'"' && !*escaped;
                    *escaped = byte == b'\\' && !*escaped;
                    self.kept.push(byte);
                    if ends {
                        self.place = Place::Between;
                    } else if self.name.len() <= LONGEST_NAME {
                        self.name.push(byte);
                    }
                }
                Place::Between | Place::Archive => self.between(byte),
            }
        }
    }

    fn between(&mut self, byte: u8) {
        self.kept.push(byte);
        match byte {
            b'"' => self.begin_text(),
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 2 {
                    self.in_code = byte == b'{' && self.after_colon && self.name == b"code";
                }
                self.after_colon = false;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.after_colon = false;
            }
            b':' => self.after_colon = true,
            b',' => self.after_colon = false,
            _ => {}
        }
    }

    fn begin_text(&mut self) {
        let is_archive = self.after_colon
            && self.in_code
            && self.depth == 2
            && self.name == b"zip_base64"
            // A second one is kept and rejected later.
            && self.archive.is_none();
        if is_archive {
            self.archive = Some(Decoder::default());
            self.place = Place::Archive;
        } else {
            self.name.clear();
            self.place = Place::Kept(false);
        }
    }

    /// A character that is not base64.
    fn leave(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.kept.push(byte);
                self.place = Place::Between;
            }
            b'\\' => self.place = Place::Escape(vec![byte]),
            // A control character makes it no JSON, which the parser shall see.
            _ => self.kept.push(byte),
        }
    }

    fn escaped(&mut self, out: &mut Vec<u8>) {
        let Place::Escape(escape) = std::mem::replace(&mut self.place, Place::Archive) else {
            return;
        };
        let text = [b"\"", escape.as_slice(), b"\""].concat();
        match serde_json::from_slice::<String>(&text) {
            Ok(text) => self.decode(text.as_bytes(), out),
            // The parser shall see that one, too.
            Err(_) => self.kept.extend(escape),
        }
    }

    fn decode(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if let Some(archive) = &mut self.archive {
            archive.push(text, out);
        }
    }

    /// Bytes that are kept so far.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// What was kept, and the end of the archive, if there was one.
    pub fn finish(self) -> (Vec<u8>, Option<Decoder>) {
        (self.kept, self.archive)
    }
}

/// Base64 that comes in pieces. White space in it is left out: `base64` on the command line wraps its lines.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// What is not decoded yet.
    pending: Vec<u8>,
    /// Characters that are.
    decoded: usize,
    /// The text's beginning, for a refusal.
    shown: Vec<u8>,
    error: Option<DecodeError>,
}

/// A text that is not base64, or nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotBase64 {
    /// Its beginning.
    pub shown: String,
    /// What would be right.
    pub rule: String,
}

impl Decoder {
    pub fn push(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if self.error.is_some() {
            return;
        }
        let before = self.pending.len();
        let bare = text.iter().filter(|byte| !byte.is_ascii_whitespace());
        self.pending.extend(bare);
        let room = SHOWN.saturating_sub(self.shown.len());
        self.shown.extend(self.pending[before..].iter().take(room));
        // The last four may hold the padding.
        let whole = self.pending.len().saturating_sub(1) / 4 * 4;
        self.decode(whole, out);
    }

    /// Decodes the end.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), NotBase64> {
        self.decode(self.pending.len(), out);
        let rule = match self.error {
            Some(error) => format!("must be base64 (standard alphabet): {error}"),
            None if self.decoded == 0 => "must not be empty".to_owned(),
            None => return Ok(()),
        };
        Err(NotBase64 {
            shown: String::from_utf8_lossy(&self.shown).into_owned(),
            rule,
        })
    }

    fn decode(&mut self, count: usize, out: &mut Vec<u8>) {
        if self.error.is_some() {
            return;
        }
        let text = &self.pending[..count];
        // Padding is for the end only.
        let last = count == self.pending.len();
        let padded = text.iter().position(|&byte| byte == b'=');
        self.error = match padded {
            Some(at) if !last => Some(DecodeError::InvalidByte(at, b'=')),
            _ => BASE64.decode_vec(text, out).err(),
        };
        self.error = self.error.take().map(|error| match error {
            DecodeError::InvalidByte(at, byte) => DecodeError::InvalidByte(self.decoded + at, byte),
            DecodeError::InvalidLastSymbol {
                offset,
                symbol,
                symbol_value,
            } => DecodeError::InvalidLastSymbol {
                offset: self.decoded + offset,
                symbol,
                symbol_value,
            },
            other => other,
        });
        self.decoded += count;
        self.pending.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    type Sifted = (String, Option<Result<Vec<u8>, String>>);

    fn sift(text: &str, piece: usize) -> Sifted {
        let (mut sieve, mut out) = (Sieve::default(), Vec::new());
        for piece in text.as_bytes().chunks(piece) {
            sieve.take(piece, &mut out);
        }
        let (kept, archive) = sieve.finish();
        let archive = archive.map(|archive| {
            let end = archive.finish(&mut out).map_err(|error| error.rule);
            end.map(|()| out)
        });
        (String::from_utf8(kept).unwrap(), archive)
    }

    /// The same whatever the pieces are.
    fn sifted(text: &str) -> Sifted {
        let whole = sift(text, text.len().max(1));
        for piece in 1..9 {
            assert_eq!(sift(text, piece), whole, "{text}: pieces of {piece}");
        }
        whole
    }

    #[test]
    fn the_archive_comes_out_and_everything_else_stays() {
        for (text, kept, archive) in [
            (
                r#"{"name":"a","code":{"zip_base64":"AAEC"},"b":["x\"y",{}]}"#,
                r#"{"name":"a","code":{"zip_base64":""},"b":["x\"y",{}]}"#,
                &[0, 1, 2][..],
            ),
            (
                " { \"code\" : {\n\"zip_base64\" :\t\"AA \\n EC\\/\\u0077\\u003d=\" } } ",
                " { \"code\" : {\n\"zip_base64\" :\t\"\" } } ",
                &[0, 1, 2, 0xff],
            ),
            (
                r#"{"code":{"a":{"zip_base64":"x"},"zip_base64":"AA"}}"#,
                r#"{"code":{"a":{"zip_base64":"x"},"zip_base64":""}}"#,
                &[0],
            ),
        ] {
            let (found, decoded) = sifted(text);
            assert_eq!(found, kept);
            assert_eq!(decoded.unwrap().unwrap(), archive, "{text}");
        }
    }

    #[test]
    fn other_places_are_left_alone() {
        for text in [
            r#"{"zip_base64":"AAEC"}"#,
            r#"{"x":{"zip_base64":"AAEC"}}"#,
            r#"{"x":{"code":{"zip_base64":"AAEC"}}}"#,
            r#"{"code":[{"zip_base64":"AAEC"}]}"#,
            r#"[{"code":{"zip_base64":"AAEC"}}]"#,
            r#"{"code":"zip_base64","a":"AAEC"}"#,
            r#"{"code":{"inline":"\"zip_base64\":\"AAEC\""}}"#,
            r#"{"code":{},"x":{"zip_base64":"AAEC"}}"#,
            r#"{"code":{"zip_base64":["AAEC"]}}"#,
            r#"{"code":{"zip_base64x":"AAEC"}}"#,
            "",
            "\"",
            "}}]]{{\"",
        ] {
            assert_eq!(sifted(text), (text.to_owned(), None));
        }
        let twice = r#"{"code":{"zip_base64":"AAEC","zip_base64":"AAEC"}}"#;
        let (kept, _) = sifted(twice);
        assert_eq!(kept, r#"{"code":{"zip_base64":"","zip_base64":"AAEC"}}"#);
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in [
            "{\"code\":{\"zip_base64\":\"AA\nEC\"}}",
            r#"{"code":{"zip_base64":"AA\xEC"}}"#,
            r#"{"code":{"zip_base64":"AA\u00"}}"#,
            r#"{"code":{"zip_base64":"AA"#,
        ] {
            let (kept, _) = sifted(text);
            assert!(serde_json::from_str::<Value>(&kept).is_err(), "{kept}");
        }
    }

    #[test]
    fn what_is_no_base64_says_where() {
        for (archive, rule) in [
            ("", "must not be empty"),
            ("AAEC!AEC", "Invalid symbol 33, offset 4"),
            ("AA==AAEC", "Invalid symbol 61, offset 2"),
            ("AAECA", "nvalid"),
            ("AAECAB", "Invalid last symbol"),
            ("äAEC", "Invalid symbol"),
        ] {
            let text = json!({"code": {"zip_base64": archive}}).to_string();
            let refused = sifted(&text).1.unwrap().unwrap_err();
            assert!(refused.contains(rule), "{archive}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_archive_comes_out_whole(bytes in proptest::collection::vec(any::<u8>(), 1..300), piece in 1..50_usize) {
            let text = json!({"name": "x", "code": {"zip_base64": STANDARD.encode(&bytes)}});
            let (kept, archive) = sift(&text.to_string(), piece);
            prop_assert_eq!(archive.unwrap().unwrap(), bytes);
            let kept: Value = serde_json::from_str(&kept).unwrap();
            prop_assert_eq!(kept, json!({"name": "x", "code": {"zip_base64": ""}}));
        }
    }
}
