//! What is compared: a function, or one of its versions.

use std::fmt;
use std::str::FromStr;

/// A function's active version, or another of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The function's name.
    pub function: String,
    /// The version's number; none for the active one.
    pub version: Option<u32>,
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (function, version) = match text.split_once('@') {
            Some((function, version)) => {
                let version = version.parse().ok().filter(|version| *version > 0);
                let version = version.ok_or("a version is a number from 1: hello@3")?;
                (function, Some(version))
            }
            None => (text, None),
        };
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if function.is_empty() || !function.bytes().all(is_name) {
            return Err("a function is named by a-z, 0-9 and -: hello, or hello@3".to_owned());
        }
        Ok(Self {
            function: function.to_owned(),
            version,
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.function),
            None => f.write_str(&self.function),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_function_or_a_version() {
        let active: Subject = "hello-2".parse().expect("a function");
        assert_eq!(
            (active.version, active.to_string().as_str()),
            (None, "hello-2")
        );
        let third: Subject = "hello@3".parse().expect("a version");
        assert_eq!(
            (third.version, third.to_string().as_str()),
            (Some(3), "hello@3")
        );
        for bad in [
            "", "@1", "Hello", "a/b", "a@", "a@0", "a@-1", "a@b", "a@1@2", "a?x",
        ] {
            assert!(bad.parse::<Subject>().is_err(), "{bad}");
        }
    }
}
