//! The allow list and the deny list.

use std::net::IpAddr;
use std::time::Duration;

use aya::maps::lpm_trie::Key;
use aya::maps::{Array, LpmTrie, MapData};

use super::MapError;
use crate::clock;
use crate::records::{
    LISTED_ALLOW, LISTED_DENY, Listed, SETTINGS_LISTED4, SETTINGS_LISTED6, Settings,
};

/// What is to happen to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let through past the limits.
    Allow,
    /// Dropped.
    Deny,
}

/// Prefixes of sources, for all functions. The longest that matches and has not expired decides.
pub struct Lists {
    ipv4: LpmTrie<MapData, [u8; 4], Listed>,
    ipv6: LpmTrie<MapData, [u8; 16], Listed>,
    settings: Array<MapData, Settings>,
}

impl Lists {
    pub(super) fn new(
        ipv4: LpmTrie<MapData, [u8; 4], Listed>,
        ipv6: LpmTrie<MapData, [u8; 16], Listed>,
        settings: Array<MapData, Settings>,
    ) -> Self {
        Self {
            ipv4,
            ipv6,
            settings,
        }
    }

    /// Tells the program whether it has to look at a list.
    fn mark(&mut self, flag: u32, is_used: bool) -> Result<(), MapError> {
        let mut settings = self.settings.get(&0, 0)?;
        let flags = settings.flags & !flag | if is_used { flag } else { 0 };
        if flags != settings.flags {
            settings.flags = flags;
            self.settings.set(0, settings, 0)?;
        }
        Ok(())
    }

    /// Lists a prefix, for a time or until it is removed. Replaces what was said of it.
    ///
    /// # Errors
    /// [`MapError::Full`], [`MapError::Kernel`]; also for a prefix longer than the address.
    pub fn insert(
        &mut self,
        address: IpAddr,
        length: u8,
        verdict: Verdict,
        lasts: Option<Duration>,
    ) -> Result<(), MapError> {
        let length = u32::from(length);
        let listed = Listed {
            expires: lasts.map(clock::after).unwrap_or_default(),
            verdict: match verdict {
                Verdict::Allow => LISTED_ALLOW,
                Verdict::Deny => LISTED_DENY,
            },
            length,
        };
        match address.to_canonical() {
            IpAddr::V4(address) => {
                self.mark(SETTINGS_LISTED4, true)?;
                Ok(self
                    .ipv4
                    .insert(&Key::new(length, address.octets()), listed, 0)?)
            }
            IpAddr::V6(address) => {
                self.mark(SETTINGS_LISTED6, true)?;
                Ok(self
                    .ipv6
                    .insert(&Key::new(length, address.octets()), listed, 0)?)
            }
        }
    }

    /// Removes just this prefix.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also if it is not listed.
    pub fn remove(&mut self, address: IpAddr, length: u8) -> Result<(), MapError> {
        let length = u32::from(length);
        match address.to_canonical() {
            IpAddr::V4(address) => {
                self.ipv4.remove(&Key::new(length, address.octets()))?;
                let is_used = self.ipv4.keys().next().is_some();
                self.mark(SETTINGS_LISTED4, is_used)
            }
            IpAddr::V6(address) => {
                self.ipv6.remove(&Key::new(length, address.octets()))?;
                let is_used = self.ipv6.keys().next().is_some();
                self.mark(SETTINGS_LISTED6, is_used)
            }
        }
    }

    /// All prefixes with their verdicts and, where they expire, when on the [`clock`].
    #[must_use]
    pub fn all(&self) -> Vec<(IpAddr, u8, Verdict, Option<u64>)> {
        let ipv4 = self.ipv4.iter().filter_map(Result::ok);
        let ipv6 = self.ipv6.iter().filter_map(Result::ok);
        let ipv4 = ipv4.map(|(key, listed)| (IpAddr::from(key.data()), listed));
        let ipv6 = ipv6.map(|(key, listed)| (IpAddr::from(key.data()), listed));
        ipv4.chain(ipv6)
            .map(|(address, listed)| {
                let verdict = if listed.verdict == LISTED_DENY {
                    Verdict::Deny
                } else {
                    Verdict::Allow
                };
                let expires = (listed.expires != 0).then_some(listed.expires);
                (address, listed.length as u8, verdict, expires)
            })
            .collect()
    }

    /// Removes what has expired, which makes room and look-ups short. Says how many.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn sweep(&mut self) -> Result<usize, MapError> {
        let now = clock::now();
        let expired: Vec<_> = self
            .all()
            .into_iter()
            .filter(|(.., expires)| expires.is_some_and(|expires| expires <= now))
            .collect();
        for (address, length, ..) in &expired {
            self.remove(*address, *length)?;
        }
        Ok(expired.len())
    }
}
