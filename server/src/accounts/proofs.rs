//! When a session last confirmed its password or token.
//!
//! A session lasts for hours, and an attacker who gets hold of one (a script, an unlocked screen) must not be able to
//! create an account or a token that outlasts it. In memory only: after a restart, every session must confirm again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a confirmed password is valid for changes that outlast the session.
pub const FRESH: Duration = Duration::from_secs(10 * 60);
/// Number of sessions whose last confirmation is kept: bounds memory to a few hundred KiB. Others must confirm again.
const MAX_SESSIONS: usize = 10_000;

/// When each session last proved whose it is. The policy takes the time as a parameter and holds no lock.
#[derive(Debug, Default)]
pub struct Proofs {
    at: HashMap<i64, Instant>,
}

impl Proofs {
    /// The session of this number has proved it just now.
    pub fn note(&mut self, session: i64, now: Instant) {
        if self.at.len() >= MAX_SESSIONS {
            self.at
                .retain(|_, at| now.saturating_duration_since(*at) < FRESH);
        }
        if self.at.len() >= MAX_SESSIONS {
            let oldest = self.at.iter().min_by_key(|(_, at)| **at);
            if let Some(session) = oldest.map(|(session, _)| *session) {
                self.at.remove(&session);
            }
        }
        self.at.insert(session, now);
    }

    /// Whether that is not too long ago.
    pub fn is_fresh(&self, session: i64, now: Instant) -> bool {
        self.at
            .get(&session)
            .is_some_and(|at| now.saturating_duration_since(*at) < FRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_good_for_ten_minutes() {
        let (mut proofs, start) = (Proofs::default(), Instant::now());
        assert!(!proofs.is_fresh(1, start));
        proofs.note(1, start);
        let last = start + Duration::from_secs(599);
        assert!(proofs.is_fresh(1, start) && proofs.is_fresh(1, last));
        assert!(!proofs.is_fresh(2, start));
        assert!(!proofs.is_fresh(1, start + Duration::from_secs(600)));
        proofs.note(1, last);
        assert!(proofs.is_fresh(1, start + Duration::from_secs(600)));
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let (mut proofs, start) = (Proofs::default(), Instant::now());
        for session in 0..=i64::try_from(MAX_SESSIONS).expect("small") {
            proofs.note(
                session,
                start + Duration::from_micros(session.unsigned_abs()),
            );
        }
        assert_eq!(proofs.at.len(), MAX_SESSIONS);
        assert!(!proofs.is_fresh(0, start) && proofs.is_fresh(1, start));
    }
}
