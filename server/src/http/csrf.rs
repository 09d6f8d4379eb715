//! CSRF tokens of sessions, masked differently in each page.
//!
//! Pages are compressed, and some repeat parts of their URL. From the lengths of many such pages, a constant token
//! could be guessed piece by piece (BREACH); a random mask makes it different each time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

/// The token for one page: a random mask, and the token under it. Empty, so that nothing can be changed from the page,
/// when the system gives no random bytes.
pub fn masked(token: &str) -> String {
    let mut mask = vec![0; token.len()];
    if getrandom::fill(&mut mask).is_err() {
        return String::new();
    }
    let hidden = under(&mask, token.as_bytes());
    mask.extend(hidden);
    URL_SAFE_NO_PAD.encode(mask)
}

/// Whether a page sent this token back. An empty token is met by nothing.
pub fn fits(sent: &[u8], token: &str) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(sent) else {
        return false;
    };
    if token.is_empty() || bytes.len() != 2 * token.len() {
        return false;
    }
    let (mask, hidden) = bytes.split_at(token.len());
    under(mask, hidden).ct_eq(token.as_bytes()).into()
}

fn under(mask: &[u8], bytes: &[u8]) -> Vec<u8> {
    mask.iter().zip(bytes).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_another_text_each_time_and_always_fits() {
        let (first, second) = (masked("secret"), masked("secret"));
        assert_ne!(first, second);
        assert!(fits(first.as_bytes(), "secret") && fits(second.as_bytes(), "secret"));
        for wrong in [&first[1..], "", "secret", "c2VjcmV0", &masked("other!")] {
            assert!(!fits(wrong.as_bytes(), "secret"), "{wrong}");
        }
        assert!(!fits(masked("").as_bytes(), ""));
    }
}
