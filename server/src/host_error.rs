//! Host errors, as opposed to errors of a function.
//!
//! When the host runs out of descriptors, processes, memory, cgroups or disk space, nothing is wrong with the function,
//! its template or its image. A start, restore, fork or dump reports this as a separate type, [`HostError`]. It ends or
//! discards nothing: the step is retried after a pause, and requests that cannot wait get a 503.

use std::fmt::Display;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;

/// Host errors that follow each other within this time are one burst, which is logged once: a host that is short of
/// descriptors must not have its log filled, too.
const BURST: Duration = Duration::from_secs(10);
/// What the kernel answers when it is short of something, or refuses it to this server.
const SHORTAGES: [Errno; 10] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOMEM,
    Errno::AGAIN,
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::NOBUFS,
    Errno::USERS,
    Errno::TOOMANYREFS,
    Errno::ROFS,
];

/// The host could not give what a start needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host is out of a resource: {0}")]
pub struct HostError(String);

impl HostError {
    /// What was tried and what the kernel said.
    pub fn new(what: impl Display) -> Self {
        Self(what.to_string())
    }
}

/// Whether the kernel is short of something, rather than something being wrong with a file or a peer.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(is_shortage_code)
}

/// The same for an error's bare number.
#[must_use]
pub fn is_shortage_code(code: i32) -> bool {
    SHORTAGES.iter().any(|errno| errno.raw_os_error() == code)
}

/// The same for what another program says: CRIU reports the kernel's errors in words.
#[must_use]
pub fn tells_of_shortage(text: &str) -> bool {
    SHORTAGES.iter().any(|errno| {
        let words = io::Error::from(*errno).to_string();
        // "Too many open files (os error 24)"
        let words = words.split(" (os error").next().unwrap_or(&words);
        text.contains(words)
    })
}

/// The host errors of this server, counted, and logged once per burst.
#[derive(Debug, Default)]
pub struct HostErrors(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    count: u64,
    last: Option<(Instant, String)>,
}

impl HostErrors {
    /// Counts one, and logs it when it begins a burst.
    pub fn note(&self, error: &impl Display) {
        let now = Instant::now();
        let mut seen = self.0.lock();
        seen.count += 1;
        let begins =
            !matches!(&seen.last, Some((at, _)) if now.saturating_duration_since(*at) < BURST);
        seen.last = Some((now, error.to_string()));
        drop(seen);
        if begins {
            tracing::error!(%error, "the host is out of a resource; retrying starts, answering 503 until one succeeds");
        }
    }

    /// How many there were since the server started, and the last one while its burst lasts.
    pub fn seen(&self) -> (u64, Option<String>) {
        let seen = self.0.lock();
        let last = seen.last.as_ref().filter(|(at, _)| at.elapsed() < BURST);
        (seen.count, last.map(|(_, error)| error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortages_are_told_from_other_errors() {
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::NOSPC,
            Errno::AGAIN,
        ] {
            assert!(is_shortage(&errno.into()), "{errno:?}");
        }
        for errno in [
            Errno::PIPE,
            Errno::CONNRESET,
            Errno::NOENT,
            Errno::IO,
            Errno::ACCESS,
        ] {
            assert!(!is_shortage(&errno.into()), "{errno:?}");
        }
        assert!(!is_shortage(&io::Error::other("Too many open files")));
        assert!(tells_of_shortage(
            "Error (criu/files.c:1): Can't open: Too many open files"
        ));
        assert!(tells_of_shortage("mmap: Cannot allocate memory"));
        assert!(!tells_of_shortage(
            "Error (criu/image.c:1): Magic doesn't match"
        ));
    }

    #[test]
    fn a_burst_is_one() {
        let errors = HostErrors::default();
        assert_eq!(errors.seen(), (0, None));
        errors.note(&HostError::new("one"));
        errors.note(&HostError::new("two"));
        let (count, last) = errors.seen();
        assert_eq!(count, 2);
        assert!(last.is_some_and(|last| last.ends_with("two")));
    }
}
