//! Rules for user names and passwords.

use crate::model::InvalidField;

/// Longest name: it stands in pages, logs and addresses.
pub const MAX_NAME_CHARS: usize = 64;
/// Shortest password. NIST SP 800-63B asks for 8 at least and for 15 where it is the only factor; with the limits on
/// log-ins, 12 leave nothing to guess that is not already in a list.
pub const MIN_PASSWORD_CHARS: usize = 12;
/// Longest password: enough for any phrase; hashing takes longer with length.
pub const MAX_PASSWORD_CHARS: usize = 128;

/// The rule for a name.
pub const NAME_RULE: &str =
    "must be 1 to 64 of a-z, 0-9, dot, dash, underscore and @, starting with a letter or a digit";
const LENGTH_RULE: &str = "must be 12 to 128 characters long";
const NOT_THE_NAME_RULE: &str = "must differ from the name";
/// Stands where a refused value is repeated: a password is not.
const HIDDEN: &str = "\"(not shown)\"";

/// Whether a user may be called so.
pub fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    starts
        && name.len() <= MAX_NAME_CHARS
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_@".contains(&b))
}

/// A name as it was meant: names have no upper case and no spaces around them.
pub fn normal_name(typed: &str) -> String {
    typed.trim().to_lowercase()
}

/// Checks a new password. `field` is what the form or document calls it.
///
/// # Errors
/// The rule that it breaks; the password itself is not repeated.
pub fn check_password(field: &str, name: &str, password: &str) -> Result<(), InvalidField> {
    let chars = password.chars().count();
    let rule = if !(MIN_PASSWORD_CHARS..=MAX_PASSWORD_CHARS).contains(&chars) {
        LENGTH_RULE
    } else if password.trim().to_lowercase() == name.to_lowercase() {
        NOT_THE_NAME_RULE
    } else {
        return Ok(());
    };
    Err(refused(field, rule))
}

/// A refusal of a password, which is not repeated.
pub fn refused(field: &str, rule: &str) -> InvalidField {
    InvalidField {
        field: field.to_owned(),
        value: HIDDEN.to_owned(),
        rule: rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in [
            "a",
            "ada",
            "ada.lovelace@example.org",
            "0-1_2",
            &"a".repeat(64),
        ] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            " ",
            "Ada",
            ".a",
            "@a",
            "a b",
            "ä",
            "a/b",
            "a\n",
            &"a".repeat(65),
        ] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert_eq!(normal_name("  Ada "), "ada");
    }

    #[test]
    fn passwords_are_long_and_not_the_name_and_never_repeated() {
        assert!(check_password("password", "ada", "correct horse").is_ok());
        assert!(check_password("password", "ada", &"ä".repeat(128)).is_ok());
        for (password, rule) in [
            ("", LENGTH_RULE),
            ("elevenchars", LENGTH_RULE),
            (&*"ä".repeat(129), LENGTH_RULE),
            ("Ada.Lovelace@x", NOT_THE_NAME_RULE),
        ] {
            let error = check_password("password", "ada.lovelace@x", password).unwrap_err();
            assert_eq!(
                (error.field.as_str(), error.rule.as_str()),
                ("password", rule)
            );
            assert!(password.is_empty() || !error.to_string().contains(password));
        }
    }
}
