//! How many files the store may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::objects::Limits;
use super::serve::CONNECTIONS_MAX;

/// Descriptors that are neither a connection nor an object.
const RESERVED: u64 = 64;

/// Raises the limit of open files towards so many and the reserved ones, and says what it is then.
pub(super) fn raise_open_files(files: usize) -> u64 {
    let wanted = files as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    let raised = Rlimit {
        current: Some(wanted.min(hard)),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted.min(hard),
        Err(_) => current,
    }
}

/// Objects and connections, at most, with so many open files.
pub(super) fn shares(files: u64) -> (usize, usize) {
    let free = files.saturating_sub(RESERVED) as usize;
    let count = (free / 2).clamp(1, Limits::default().count);
    (count, (free / 4).clamp(1, CONNECTIONS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_are_shared_by_objects_and_connections() {
        assert_eq!(shares(u64::MAX), (2_048, CONNECTIONS_MAX));
        assert_eq!(shares(1_064), (500, 250));
        assert_eq!(shares(0), (1, 1));
    }
}
