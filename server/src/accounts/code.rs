//! Random codes to read and type: the set-up code and initial passwords.

/// Crockford's base 32: no I, L, O or U, which are mistaken for others. <https://www.crockford.com/base32.html>
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A code of `groups` groups of `letters` letters, 5 random bits each, joined by dashes.
///
/// # Errors
/// When the kernel gives no randomness.
pub fn random(groups: usize, letters: usize) -> Result<String, getrandom::Error> {
    let mut bytes = vec![0; groups * letters];
    getrandom::fill(&mut bytes)?;
    let groups: Vec<String> = bytes
        .chunks(letters)
        // 256 is a multiple of 32: every letter is as likely.
        .map(|group| group.iter().map(|byte| letter(*byte)).collect())
        .collect();
    Ok(groups.join("-"))
}

fn letter(byte: u8) -> char {
    char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])
}

/// A typed code as it was meant: without case, spaces and dashes, and with the letters that are read for digits.
pub fn normal(typed: &str) -> String {
    typed
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .map(|c| match c.to_ascii_lowercase() {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_grouped_and_differ() {
        let code = random(3, 4).unwrap();
        assert_eq!(code.len(), 14);
        let groups: Vec<&str> = code.split('-').collect();
        assert_eq!(groups.len(), 3);
        assert!(groups.iter().all(|group| group.len() == 4));
        assert!(
            groups
                .concat()
                .bytes()
                .all(|letter| ALPHABET.contains(&letter))
        );
        assert_ne!(code, random(3, 4).unwrap());
    }

    #[test]
    fn typed_codes_are_forgiven_what_is_easily_mistaken() {
        assert_eq!(normal(" 1O2l-ABCD 00 "), "1021abcd00");
        assert_eq!(normal(&normal("x-O-y")), "x0y");
    }
}
