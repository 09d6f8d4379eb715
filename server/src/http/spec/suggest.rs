//! "Did you mean …?"

use strsim::levenshtein;

/// More edits than this are another word.
const MAX_DISTANCE: usize = 2;
/// Names longer than this are no misspelling of a field.
const MAX_CHARS: usize = 32;

/// The known name closest to `name`, if one is close.
pub fn closest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.chars().count() > MAX_CHARS {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace(['_', '-'], "");
    let wanted = plain(name);
    known
        .iter()
        .map(|candidate| (levenshtein(&wanted, &plain(candidate)), *candidate))
        .filter(|(edits, candidate)| *edits <= MAX_DISTANCE && *edits < candidate.len() / 2)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
        .or_else(|| {
            known
                .iter()
                .copied()
                .find(|candidate| is_stem(&wanted, candidate))
        })
}

/// `memory` for `memory_mb`, `timeout` for `timeout_ms`.
fn is_stem(name: &str, candidate: &str) -> bool {
    candidate
        .strip_prefix(name)
        .is_some_and(|unit| unit.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_suggested() {
        let known = ["name", "memory_mb", "timeout_ms", "env", "min_instances"];
        assert_eq!(closest("memroy_mb", &known), Some("memory_mb"));
        assert_eq!(closest("memoryMb", &known), Some("memory_mb"));
        assert_eq!(closest("timeout", &known), Some("timeout_ms"));
        assert_eq!(closest("minInstances", &known), Some("min_instances"));
        for far in ["x", "zzz", "region", "", &"n".repeat(1000)] {
            assert_eq!(closest(far, &known), None, "{far}");
        }
    }
}
