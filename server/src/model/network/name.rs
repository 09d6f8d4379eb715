//! Host names as policies write them, with wildcards.

use std::fmt;

use super::error::RuleError;
use crate::model::normal_host_name;

/// A host name in which labels may be `*`. At the beginning, `*` stands for one or more labels, elsewhere for exactly one:
/// `*.example.com` is everything below `example.com`, but not `example.com` itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamePattern(String);

const WILDCARD: &str = "*";

impl NamePattern {
    /// Reads one. Case and a dot at the end do not matter; names in other scripts become their `xn--` form, which is what
    /// is asked for.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let written = text.strip_suffix('.').unwrap_or(text);
        let name = match written.is_ascii() {
            true => written.to_ascii_lowercase(),
            false => ascii(written).ok_or_else(|| RuleError::Name(text.to_owned()))?,
        };
        let labels: Vec<&str> = name.split('.').collect();
        if labels.iter().all(|label| *label == WILDCARD) {
            return Err(RuleError::Everything);
        }
        if labels
            .iter()
            .any(|label| *label != WILDCARD && label.contains(WILDCARD))
        {
            return Err(RuleError::PartialWildcard(text.to_owned()));
        }
        let last = labels.last().copied().unwrap_or_default();
        if last == WILDCARD {
            return Err(RuleError::OpenEnd(text.to_owned()));
        }
        if !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RuleError::Address(text.to_owned()));
        }
        if last == "localhost" {
            return Err(RuleError::Localhost);
        }
        // A wildcard takes as much room as the shortest label that it can stand for.
        let sample = name.replace(WILDCARD, "a");
        // One trailing dot was removed; a second one is invalid.
        if last.is_empty()
            || normal_host_name(&sample).is_none()
            || name.split('.').any(has_wrong_hyphen)
        {
            return Err(RuleError::Name(text.to_owned()));
        }
        Ok(Self(name))
    }

    /// Whether it stands for this name, which is in lower case and without a dot at its end.
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut labels) = (self.0.rsplit('.'), name.rsplit('.'));
        let mut left = self.0.split('.').count();
        loop {
            match (pattern.next(), labels.next()) {
                (None, None) => return true,
                (Some(WILDCARD), Some(label)) => {
                    if label.is_empty() {
                        return false;
                    }
                    // The first label is the last from this side: it stands for all that is left.
                    if left == 1 {
                        return labels.all(|label| !label.is_empty());
                    }
                }
                (Some(wanted), Some(label)) if wanted == label => {}
                _ => return false,
            }
            left -= 1;
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Host names begin and end with a letter or a digit; an underscore is common in names of services.
fn has_wrong_hyphen(label: &str) -> bool {
    label.starts_with('-') || label.ends_with('-')
}

/// A name in another script, in ASCII. Wildcards are no part of what IDNA maps.
fn ascii(name: &str) -> Option<String> {
    let labels: Option<Vec<String>> = name
        .split('.')
        .map(|label| match label {
            WILDCARD => Some(WILDCARD.to_owned()),
            label => idna::domain_to_ascii_strict(label).ok(),
        })
        .collect();
    Some(labels?.join("."))
}
