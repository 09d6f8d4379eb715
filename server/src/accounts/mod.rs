//! Accounts: passwords and their rules, the initial set-up, the rate limit of log-in attempts.
//!
//! Nothing here depends on HTTP or the database. Users are stored in the store; `http::auth` authenticates requests.

pub mod code;
pub mod limit;
pub mod password;
pub mod proofs;
pub mod rules;
mod setup;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use password::{PasswordError, Passwords};
pub use setup::Setup;

use limit::Logins;
use proofs::Proofs;

/// The state behind log-ins and the set-up: in memory, bounded, new at each start.
#[derive(Debug, Default)]
pub struct Accounts {
    /// Hashes and checks passwords.
    pub passwords: Passwords,
    /// The first set-up.
    pub setup: Setup,
    /// Held for a look-up only.
    logins: Mutex<Logins>,
    /// The same.
    proofs: Mutex<Proofs>,
}

impl Accounts {
    /// Counts an attempt to log in to `account` (none for a token) from `address`; `Err` says how long to wait before the
    /// next one is looked at.
    ///
    /// # Errors
    /// When the address or the account has used up its attempts.
    pub fn attempt(&self, address: IpAddr, account: Option<&str>) -> Result<(), Duration> {
        self.logins.lock().attempt(address, account, Instant::now())
    }

    /// The attempt was good: it does not count.
    pub fn succeeded(&self, address: IpAddr, account: Option<&str>) {
        self.logins.lock().succeeded(address, account);
    }

    /// The session's password or token was just confirmed.
    pub fn proved(&self, session: i64) {
        self.proofs.lock().note(session, Instant::now());
    }

    /// Whether that was done lately, so that the session may make what outlasts it.
    pub fn is_fresh(&self, session: i64) -> bool {
        self.proofs.lock().is_fresh(session, Instant::now())
    }
}
