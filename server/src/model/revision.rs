//! Which state a change applies to, so that nobody overwrites another's change unknowingly.

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Bytes of a digest: 64 bits are enough to tell the states of one thing apart.
const DIGEST_BYTES: usize = 8;

/// A short digest of some content.
pub fn digest(content: &[u8]) -> String {
    hex::encode(&Sha256::digest(content)[..DIGEST_BYTES])
}

/// Names one state of what was asked for: the same after two changes that cancel each other out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

impl Revision {
    /// Of a function: versions are immutable, so the active version's number identifies the configuration. The id
    /// distinguishes it from an earlier function of the same name.
    pub fn of_function(id: i64, active_version: u32) -> Self {
        Self(format!("{id}.{active_version}"))
    }

    /// Of a chain, likewise.
    pub fn of_chain(id: i64, active_version: u32) -> Self {
        Self(format!("c{id}.{active_version}"))
    }

    /// The revision of settings: a digest of their content.
    pub fn of_content(content: &impl Serialize) -> Self {
        // Settings are plain values with names: they always serialise.
        Self(digest(&serde_json::to_vec(content).unwrap_or_default()))
    }

    /// The version that was active, where this is a revision of the function with this id.
    pub fn version_of(&self, id: i64) -> Option<u32> {
        let (of, version) = self.0.split_once('.')?;
        if of.parse() == Ok(id) {
            version.parse().ok()
        } else {
            None
        }
    }

    /// As it came from outside.
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The states that a change is meant for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Meant {
    /// Whatever there is.
    #[default]
    Any,
    /// One of these.
    Only(Vec<Revision>),
}

impl Meant {
    /// For just this state.
    pub fn only(revision: Revision) -> Self {
        Self::Only(vec![revision])
    }

    /// Whether a change meant so may be made to what is in this state.
    ///
    /// # Errors
    /// [`Changed`].
    pub fn check(&self, present: Revision) -> Result<(), Changed> {
        match self {
            Self::Only(revisions) if !revisions.contains(&present) => Err(Changed { present }),
            _ => Ok(()),
        }
    }
}

/// The state that a change applies to has been replaced in the meantime.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it has changed in the meantime")]
pub struct Changed {
    /// What there is now.
    pub present: Revision,
}
