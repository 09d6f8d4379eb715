//! Names of hosts.

/// A host's name as it is compared: lower case, without the final dot of a full name. `None` when it is none.
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
