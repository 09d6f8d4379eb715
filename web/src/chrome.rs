//! What surrounds every page: who is logged in, what they may do, a notice after a change.

/// The frame of a page of a logged-in user.
#[derive(Debug, Clone, Default)]
pub struct Chrome {
    /// The session's CSRF token: sent back with every changing request.
    pub csrf: String,
    /// Name of the user; empty when the session was opened with an API token.
    pub user_name: String,
    /// Name of the API token the session was opened with; empty when a user is logged in.
    pub token_name: String,
    /// May deploy, change and delete.
    pub can_write: bool,
    /// May invoke.
    pub can_invoke: bool,
    /// May manage people, tokens and retention.
    pub can_admin: bool,
    /// What the last change did, shown once at the top of the page.
    pub notice: Option<String>,
}

impl Chrome {
    /// The user, or the token, by name.
    pub fn who(&self) -> &str {
        match self.user_name.as_str() {
            "" => &self.token_name,
            name => name,
        }
    }
}

/// How a [`Badge`] is coloured. The label always says the same in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// Under way.
    Busy,
    /// Needs attention.
    Bad,
    /// Nothing to see.
    Quiet,
}

impl Tone {
    /// The CSS class.
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "tone-good",
            Self::Busy => "tone-busy",
            Self::Bad => "tone-bad",
            Self::Quiet => "tone-quiet",
        }
    }
}

/// A short word in a coloured pill: a function's state, an invocation's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Badge {
    /// The word.
    pub label: &'static str,
    /// Its colour.
    pub tone: Tone,
}

impl Badge {
    /// A badge.
    pub const fn new(label: &'static str, tone: Tone) -> Self {
        Self { label, tone }
    }
}
