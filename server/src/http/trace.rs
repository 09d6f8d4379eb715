//! W3C Trace Context: `traceparent` is passed through, unchanged, when it is well-formed.
//!
//! Hearth creates no spans, so it starts no traces. A malformed header is ignored, as the specification requires
//! (https://www.w3.org/TR/trace-context/).

/// Header name.
pub const TRACEPARENT: &str = "traceparent";

/// Bytes of a version 00 header: `00-{32 hex}-{16 hex}-{2 hex}`.
const VERSION_00_BYTES: usize = 55;
/// A later version may be longer; this much of it is taken.
const MAX_BYTES: usize = 256;

/// The header's value if it is a valid `traceparent`.
pub fn checked(value: &[u8]) -> Option<&str> {
    if value.len() < VERSION_00_BYTES || value.len() > MAX_BYTES {
        return None;
    }
    let dashes = [2, 35, 52];
    let well_formed = value[..VERSION_00_BYTES]
        .iter()
        .enumerate()
        .all(|(at, byte)| match dashes.contains(&at) {
            true => *byte == b'-',
            false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    let zero = |range: std::ops::Range<usize>| value[range].iter().all(|byte| *byte == b'0');
    let length_fits = match &value[..2] {
        b"00" => value.len() == VERSION_00_BYTES,
        b"ff" => false,
        _ => value.len() == VERSION_00_BYTES || value[VERSION_00_BYTES] == b'-',
    };
    if !well_formed || zero(3..35) || zero(36..52) || !length_fits {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    text.bytes().all(|b| b.is_ascii_graphic()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_headers_pass() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(checked(good.as_bytes()), Some(good));
        let future = format!("01{}-extra", &good[2..]);
        assert_eq!(checked(future.as_bytes()), Some(future.as_str()));
        for bad in [
            String::new(),
            format!("{good}-x"),
            format!("ff{}", &good[2..]),
            good.to_uppercase(),
            good.replace('-', "_"),
            good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            good.replace("00f067aa0ba902b7", &"0".repeat(16)),
            format!("01{}x", &good[2..]),
            format!("01{}-{}", &good[2..], "x".repeat(300)),
        ] {
            assert_eq!(checked(bad.as_bytes()), None, "{bad}");
        }
    }
}
