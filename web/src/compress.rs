//! gzip for the console's files, once at the start.

use std::io::Write;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Shorter responses fit into one packet uncompressed.
const WORTH_BYTES: usize = 1024;
/// Whether the client takes gzip: named, or by `*`, and not with `q=0`.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let quality = |name: &str| {
        headers
            .get_all(ACCEPT_ENCODING)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .find_map(|coding| {
                let mut parts = coding.split(';').map(str::trim);
                let named = parts
                    .next()
                    .is_some_and(|coding| coding.eq_ignore_ascii_case(name));
                let refused =
                    parts
                        .filter_map(|parameter| parameter.split_once('='))
                        .any(|(key, value)| {
                            key.trim().eq_ignore_ascii_case("q")
                                && value
                                    .trim()
                                    .parse::<f32>()
                                    .is_ok_and(|quality| quality <= 0.0)
                        });
                named.then_some(!refused)
            })
    };
    quality("gzip").or_else(|| quality("*")).unwrap_or(false)
}

/// As small as gzip makes it, if that is smaller.
pub(crate) fn smallest(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < WORTH_BYTES {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), Compression::best());
    // Writing to memory does not fail.
    encoder.write_all(bytes).ok()?;
    encoder
        .finish()
        .ok()
        .filter(|packed| packed.len() < bytes.len())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;

    use axum::http::HeaderValue;

    use super::*;

    pub(crate) fn unpack(bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut plain)
            .expect("gzip");
        plain
    }

    #[test]
    fn gzip_is_taken_when_it_is_named_or_anything_is() {
        let takes = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            accepts_gzip(&headers)
        };
        for yes in [
            "gzip",
            "br, GZIP;q=0.5",
            "*",
            "gzip, *;q=0",
            "deflate , gzip ; q=1",
        ] {
            assert!(takes(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "*;q=0.0", "gzip; q=0, *", "x-gzip"] {
            assert!(!takes(no), "{no}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn only_what_becomes_smaller_is_packed() {
        let text = "function ".repeat(1000);
        let packed = smallest(text.as_bytes()).expect("packed");
        assert!(packed.len() * 20 < text.len());
        assert_eq!(unpack(&packed), text.as_bytes());
        assert!(smallest(b"short").is_none());
    }
}
