//! The frame of every page: the user and their rights, the current section, a notice after a change.

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
    /// May manage users, tokens and retention.
    pub can_admin: bool,
    /// The part of the console the page belongs to.
    pub section: Section,
    /// How the page is coloured.
    pub theme: Theme,
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

/// The parts of the console, as the main navigation has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Section {
    /// A page the navigation has no entry for.
    #[default]
    Other,
    /// `/`
    Overview,
    /// `/functions`, `/functions/…` and `/new`
    Functions,
    /// `/chains`, `/chains/…` and `/new-chain`
    Chains,
    /// `/lab`, `/lab/…`
    Lab,
    /// `/secrets`
    Secrets,
    /// `/ingress`
    Ingress,
    /// `/users`
    Accounts,
    /// `/tokens`
    Tokens,
    /// `/audit`
    Audit,
    /// `/retention`
    Retention,
}

impl Section {
    /// The part an address belongs to.
    pub fn of(path: &str) -> Self {
        let first = path.trim_start_matches('/').split('/').next();
        match first.unwrap_or_default() {
            "" => Self::Overview,
            "functions" | "new" => Self::Functions,
            "chains" | "new-chain" => Self::Chains,
            "lab" => Self::Lab,
            "secrets" => Self::Secrets,
            "ingress" => Self::Ingress,
            "users" => Self::Accounts,
            "tokens" => Self::Tokens,
            "audit" => Self::Audit,
            "retention" => Self::Retention,
            _ => Self::Other,
        }
    }

    /// Whether the main navigation has it on narrow screens, too, where the others are in the menu.
    pub fn is_always_shown(self) -> bool {
        matches!(self, Self::Overview | Self::Functions)
    }

    /// The entries of the main navigation, in order: section, address, label, and whether only administrators see it.
    pub const ENTRIES: [(Self, &'static str, &'static str, bool); 10] = [
        (Self::Overview, "/", "Overview", false),
        (Self::Functions, "/functions", "Functions", false),
        (Self::Chains, "/chains", "Chains", false),
        (Self::Lab, "/lab", "Lab", false),
        (Self::Secrets, "/secrets", "Secrets", false),
        (Self::Ingress, "/ingress", "Ingress", true),
        (Self::Accounts, "/users", "Users", true),
        (Self::Tokens, "/tokens", "Tokens", true),
        (Self::Audit, "/audit", "Audit", true),
        (Self::Retention, "/retention", "Retention", true),
    ];
}

/// Light, dark, or what the system prefers. Kept in a cookie, so that the server's first answer is coloured right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// `prefers-color-scheme` decides.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

impl Theme {
    /// Name of the cookie. Scripts may read it: it is no secret.
    pub const COOKIE: &'static str = "hearth_theme";

    /// All of them with the label of the switch, in its order.
    pub const CHOICES: [(Self, &'static str); 3] = [
        (Self::System, "System"),
        (Self::Light, "Light"),
        (Self::Dark, "Dark"),
    ];

    /// As the cookie and the page's root element have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of this name; the system's if unknown.
    pub fn named(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_leads_to_its_own_section() {
        for (section, address, ..) in Section::ENTRIES {
            assert_eq!(Section::of(address), section);
        }
        assert_eq!(Section::of("/functions/a/latency"), Section::Functions);
        assert_eq!(Section::of("/new"), Section::Functions);
        assert_eq!(Section::of("/account"), Section::Other);
    }

    #[test]
    fn themes_are_known_by_name() {
        for (theme, _) in Theme::CHOICES {
            assert_eq!(Theme::named(theme.name()), theme);
        }
        assert_eq!(Theme::named("\"><script>"), Theme::System);
    }
}
