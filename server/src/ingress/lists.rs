//! The lists of the node: sources that are exempt from limits at ports, and sources that are dropped. Kept in the
//! database; the kernel has what has not expired.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hearth_ebpf::Verdict;
use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Ingress, Inner};
use crate::store::{Store, StoreError};

/// Most prefixes: they are stored as a whole, and the kernel has room for 16,384 of each family.
pub const MAX_LISTED: usize = 1_000;
/// How often what has expired is removed. The kernel heeds the time itself.
const SWEEP: Duration = Duration::from_secs(10);
/// The name under which they are stored.
const SETTING: &str = "ingress_lists";

/// What happens to the packets of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListVerdict {
    /// Let through past the limits of functions and chains.
    Allow,
    /// Dropped where they are for ports of functions and chains.
    Deny,
}

/// A network on the lists. The longest that a source is in decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListedPrefix {
    /// An address, or a network in CIDR notation.
    #[serde(with = "as_text")]
    #[schema(value_type = String, example = "198.51.100.0/24")]
    pub prefix: IpNet,
    /// What happens to its packets.
    pub verdict: ListVerdict,
    /// Until when; null until it is removed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Why, in the words of who listed it.
    #[schema(max_length = 200)]
    pub note: String,
    /// When it was listed.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// Networks as text, in CIDR notation.
mod as_text {
    use ipnet::IpNet;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(network: &IpNet, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(network)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<IpNet, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl ListedPrefix {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// Why a list could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// There are [`MAX_LISTED`] already.
    #[error("{MAX_LISTED} networks are listed, which is the most; remove one first")]
    Full,
    /// The kernel refused.
    #[error("the kernel does not take it: {0}")]
    Kernel(#[from] hearth_ebpf::MapError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Ingress {
    /// What is listed.
    pub async fn listed(&self) -> Vec<ListedPrefix> {
        let now = Timestamp::now();
        let mut all = self.0.listed.lock().await.clone();
        all.retain(|entry| !entry.has_expired(now));
        all
    }

    /// Reads what is stored, and removes what expires from now on.
    ///
    /// # Errors
    /// The database's.
    pub async fn load_lists(&self, store: &Store) -> Result<(), StoreError> {
        let stored: Option<Vec<ListedPrefix>> = store.setting(SETTING).await?;
        let mut listed = self.0.listed.lock().await;
        *listed = stored.unwrap_or_default();
        for entry in listed.iter() {
            if let Err(error) = self.0.list(entry) {
                tracing::error!(prefix = %entry.prefix, %error, "cannot list a network in the kernel");
            }
        }
        tokio::spawn(sweep(Arc::downgrade(&self.0), store.clone()));
        Ok(())
    }

    /// Lists a network, or changes what is said of it. Says whether it is new.
    ///
    /// # Errors
    /// [`ListError`]; nothing has changed then.
    pub async fn list(&self, store: &Store, entry: ListedPrefix) -> Result<bool, ListError> {
        let mut listed = self.0.listed.lock().await;
        let mut new = listed.clone();
        new.retain(|other| other.prefix != entry.prefix);
        let is_new = new.len() == listed.len();
        if new.len() >= MAX_LISTED {
            return Err(ListError::Full);
        }
        new.push(entry.clone());
        new.sort_by_key(|entry| entry.prefix);
        store.set_setting(SETTING, &new).await?;
        let replaced = std::mem::replace(&mut *listed, new);
        if let Err(error) = self.0.list(&entry) {
            store.set_setting(SETTING, &replaced).await?;
            *listed = replaced;
            return Err(error.into());
        }
        Ok(is_new)
    }

    /// Takes a network off the lists. Says whether it was on one.
    ///
    /// # Errors
    /// [`ListError`].
    pub async fn unlist(&self, store: &Store, prefix: IpNet) -> Result<bool, ListError> {
        let mut listed = self.0.listed.lock().await;
        let mut new = listed.clone();
        new.retain(|other| other.prefix != prefix);
        if new.len() == listed.len() {
            return Ok(false);
        }
        store.set_setting(SETTING, &new).await?;
        *listed = new;
        self.0.unlist(prefix);
        Ok(true)
    }
}

impl Inner {
    fn list(&self, entry: &ListedPrefix) -> Result<(), hearth_ebpf::MapError> {
        let Some(kernel) = self
            .kernel
            .as_ref()
            .filter(|_| !self.report.interfaces.is_empty())
        else {
            return Ok(());
        };
        let lasts = match entry.expires_at {
            None => None,
            Some(end) => match Duration::try_from(end.duration_since(Timestamp::now())) {
                Ok(left) if !left.is_zero() => Some(left),
                // It has expired.
                _ => return Ok(()),
            },
        };
        let verdict = match entry.verdict {
            ListVerdict::Allow => Verdict::Allow,
            ListVerdict::Deny => Verdict::Deny,
        };
        let lists = &mut kernel.lock().maps.lists;
        lists.insert(
            entry.prefix.addr(),
            entry.prefix.prefix_len(),
            verdict,
            lasts,
        )
    }

    fn unlist(&self, prefix: IpNet) {
        if let Some(kernel) = &self.kernel {
            // It may have expired, and been removed.
            let _ = kernel
                .lock()
                .maps
                .lists
                .remove(prefix.addr(), prefix.prefix_len());
        }
    }
}

/// As long as there is an ingress.
async fn sweep(inner: Weak<Inner>, store: Store) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let mut listed = inner.listed.lock().await;
        let now = Timestamp::now();
        let mut new = listed.clone();
        new.retain(|entry| !entry.has_expired(now));
        if new.len() == listed.len() {
            continue;
        }
        match store.set_setting(SETTING, &new).await {
            Ok(()) => {
                for entry in listed.iter().filter(|entry| entry.has_expired(now)) {
                    inner.unlist(entry.prefix);
                }
                *listed = new;
            }
            // Tried again; the kernel does not heed it any more.
            Err(error) => tracing::warn!(%error, "cannot remove expired networks from the lists"),
        }
    }
}
