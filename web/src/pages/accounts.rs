//! `/users` and `/users/{name}`: users.

use askama::Template;

use super::{FieldErrors, Moment, SessionRow};
use crate::chrome::Chrome;

/// A role to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleChoice {
    /// As the API spells it.
    pub name: &'static str,
    /// What it may do, in words.
    pub about: &'static str,
}

impl RoleChoice {
    /// From the least to the most.
    pub const ALL: [Self; 3] = [
        Self {
            name: "viewer",
            about: "sees functions, results and logs",
        },
        Self {
            name: "operator",
            about: "also invokes, deploys, changes and deletes functions",
        },
        Self {
            name: "admin",
            about: "also manages users, tokens and retention",
        },
    ];
}

/// One user.
#[derive(Debug, Clone)]
pub struct PersonRow {
    /// The name to log in with.
    pub name: String,
    /// As the API spells it.
    pub role: &'static str,
    /// Cannot log in.
    pub disabled: bool,
    /// When the user was made.
    pub created: Moment,
    /// The last log-in.
    pub last_login: Option<Moment>,
    /// Open sessions.
    pub sessions: u32,
    /// It is who looks at the page.
    pub is_you: bool,
}

/// A password that was made just now, shown this once.
#[derive(Debug, Clone, Default)]
pub struct MadePassword {
    /// Whose it is.
    pub name: String,
    /// The password.
    pub password: String,
}

/// The form for a new user, as typed. A typed password is not shown again.
#[derive(Debug, Clone, Default)]
pub struct NewPerson {
    /// The name.
    pub name: String,
    /// The role.
    pub role: String,
    /// Whether a password was typed rather than to be made.
    pub typed: bool,
}

/// `accounts.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "accounts.html")]
pub struct AccountsPage {
    /// The frame.
    pub chrome: Chrome,
    /// All users.
    pub accounts: Vec<PersonRow>,
    /// The form for another.
    pub form: NewPerson,
    /// What is wrong with its fields: `name`, `role`, `password`.
    pub errors: FieldErrors,
    /// The user made just now, if the password was made too.
    pub made: Option<MadePassword>,
}

impl AccountsPage {
    fn is_open(&self) -> bool {
        self.accounts.is_empty() || !self.errors.is_empty()
    }
}

/// `person.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "person.html")]
pub struct PersonPage {
    /// The frame.
    pub chrome: Chrome,
    /// The user.
    pub person: PersonRow,
    /// Open sessions.
    pub sessions: Vec<SessionRow>,
    /// What is wrong with a field: `role`, `password`.
    pub errors: FieldErrors,
    /// Why a change was refused; empty when none was.
    pub problem: String,
    /// A password made just now.
    pub made: Option<MadePassword>,
}

impl PersonPage {
    /// The address of the page: names need no escapes there.
    fn base(&self) -> String {
        format!("/users/{}", self.person.name)
    }

    /// Whether there is a session that can be ended: the one of this page cannot.
    fn has_other_sessions(&self) -> bool {
        self.sessions.iter().any(|session| !session.current)
    }

    /// Where a session's form posts to, up to its number.
    fn sessions_base(&self) -> String {
        format!("{}/sessions", self.base())
    }
}
