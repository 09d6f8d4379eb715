//! What settings come to on this host: defaults that depend on it, and settings that are there but empty.

use std::time::Duration;

use hearth_host::CriuChoice;

use super::Config;
use crate::system::{HostMemory, cores};

/// The budget if neither the setting nor the host gives one.
const FALLBACK_BUDGET: u64 = 1 << 30;

impl Config {
    /// The memory budget in bytes.
    pub fn memory_budget(&self) -> u64 {
        match self.memory_budget_mb {
            Some(mib) => mib * 1024 * 1024,
            None => match HostMemory::read().total {
                0 => FALLBACK_BUDGET,
                total => total / 2,
            },
        }
    }

    /// The busy poll to use on this host: on a single core, spinning would only delay the other side.
    pub fn busy_poll(&self) -> Duration {
        let several = cores() > 1;
        if several {
            Duration::from_micros(self.busy_poll_us.into())
        } else {
            Duration::ZERO
        }
    }

    /// The user as which the server runs. Empty means none was named.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref().filter(|user| !user.is_empty())
    }

    /// Which CRIU dumps and restores templates: none where images have no room.
    pub fn criu_choice(&self) -> CriuChoice {
        match &self.criu {
            _ if self.image_budget_mb == 0 => {
                CriuChoice::Never("HEARTH_IMAGE_BUDGET_MB=0 leaves no room for images".into())
            }
            Some(path) => CriuChoice::Named(path.clone()),
            None => CriuChoice::Detect,
        }
    }

    /// The configured token. Empty means none: an unset variable in a compose file becomes an empty one.
    pub fn admin_token(&self) -> Option<&str> {
        self.admin_token
            .as_deref()
            .filter(|token| !token.is_empty())
    }
}
