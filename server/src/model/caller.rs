//! The caller of a request: a user or a token, and its rights.

use std::sync::Arc;

use super::{Right, SessionOwner, TokenView, UserView};

/// The caller of a request. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Caller {
    /// A user, through a session.
    User(Arc<UserView>),
    /// A token, by itself or through a session.
    Token(Arc<TokenView>),
}

impl Caller {
    /// The user's or the token's name.
    pub fn name(&self) -> &str {
        match self {
            Self::User(user) => &user.name,
            Self::Token(token) => &token.name,
        }
    }

    /// Whether the caller has this right.
    pub fn may(&self, right: Right) -> bool {
        match self {
            Self::User(user) => user.role.rights().contains(&right),
            Self::Token(token) => token.rights.contains(&right),
        }
    }

    /// The functions the caller is limited to; `None` for all.
    pub fn scope(&self) -> Option<&[String]> {
        match self {
            Self::User(_) => None,
            Self::Token(token) => token.scope.as_deref(),
        }
    }

    /// Whether the caller's rights reach this function.
    pub fn reaches(&self, function: &str) -> bool {
        self.scope()
            .is_none_or(|scope| scope.iter().any(|name| name == function))
    }

    /// Whose sessions the caller's are.
    pub fn owner(&self) -> SessionOwner {
        match self {
            Self::User(user) => SessionOwner::User(user.id),
            Self::Token(token) => SessionOwner::Token(token.id),
        }
    }

    /// The user, when it is one.
    pub fn user(&self) -> Option<&UserView> {
        match self {
            Self::User(user) => Some(user),
            Self::Token(_) => None,
        }
    }

    /// Whether the caller is the token with this number.
    pub fn is_token(&self, id: i64) -> bool {
        matches!(self, Self::Token(token) if token.id == id)
    }
}
