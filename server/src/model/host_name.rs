//! Names of hosts.

/// A host name in the form used for comparison: lower case, without a trailing dot. `None` if it is not valid.
#[must_use]
pub fn normal_host_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let good = name.len() <= 253 && name.split('.').all(is_label);
    good.then(|| name.to_ascii_lowercase())
}
