//! The initial set-up: while there is no user, anyone who can read the server's log can create the first admin.
//!
//! The log shows a code, which exists only in memory, changes at every start and is discarded after use. It proves that
//! its bearer can read the log, which whoever started the server can and others on the network cannot.

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use super::code;

/// Three groups of four letters of 5 bits: 60 bits. Guesses are limited to a few a minute, see [`super::limit`].
const GROUPS: usize = 3;
const LETTERS: usize = 4;

/// Whether the set-up is open, and with which code.
#[derive(Debug, Default)]
pub struct Setup {
    code: Mutex<Option<String>>,
}

impl Setup {
    /// Opens the set-up and returns the code to be shown.
    ///
    /// # Errors
    /// When the kernel gives no randomness.
    pub fn open(&self) -> Result<String, getrandom::Error> {
        let code = code::random(GROUPS, LETTERS)?;
        *self.code.lock() = Some(code.clone());
        Ok(code)
    }

    /// Whether a code is waiting to be used.
    pub fn is_open(&self) -> bool {
        self.code.lock().is_some()
    }

    /// Whether this is the code. Compares in constant time.
    pub fn accepts(&self, typed: &str) -> bool {
        let typed = code::normal(typed);
        self.code.lock().as_deref().is_some_and(|code| {
            let code = code::normal(code);
            bool::from(code.as_bytes().ct_eq(typed.as_bytes()))
        })
    }

    /// Ends it: there is a user.
    pub fn close(&self) {
        *self.code.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_until_it_was_used() {
        let setup = Setup::default();
        assert!(!setup.is_open() && !setup.accepts(""));
        let code = setup.open().unwrap();
        assert!(setup.is_open());
        assert!(setup.accepts(&code) && setup.accepts(&code.to_uppercase().replace('-', " ")));
        for wrong in ["", "-", &code[1..], &format!("{code}0")] {
            assert!(!setup.accepts(wrong), "{wrong:?}");
        }
        setup.close();
        assert!(!setup.is_open() && !setup.accepts(&code) && !setup.accepts(""));
    }
}
