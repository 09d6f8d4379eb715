//! Who has ports.

use std::fmt;
use std::sync::Arc;

/// Who has a port. Functions and chains may have the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortOwner {
    /// A function, by its name.
    Function(Arc<str>),
    /// A chain, by its name.
    Chain(Arc<str>),
}

impl PortOwner {
    /// A function.
    pub fn function(name: impl Into<Arc<str>>) -> Self {
        Self::Function(name.into())
    }

    /// A chain.
    pub fn chain(name: impl Into<Arc<str>>) -> Self {
        Self::Chain(name.into())
    }

    /// What it is, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Function(_) => "function",
            Self::Chain(_) => "chain",
        }
    }

    /// Its name among those of its kind.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(name) | Self::Chain(name) => name,
        }
    }
}

/// As in `function "shop"`.
impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind(), self.name())
    }
}
