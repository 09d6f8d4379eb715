//! Rate limit of log-in attempts.
//!
//! Each attempt counts against two quotas: that of its address, against trying many accounts, and that of its account,
//! against trying one account from many addresses. An attempt is counted when it begins and refunded when it succeeds.
//! Addresses from which the user recently logged in have a separate quota, so that others cannot lock a user out by
//! failing in their name.
//!
//! The policy takes the time as a parameter and holds no lock.
//!
//! Not `governor`, which has the same algorithm: it takes no attempt back, counts in both quotas only by locking around
//! them, and its map of keys has no bound that an attacker's many addresses could not pass.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// A burst of this many attempts, and one more each `every`.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// Attempts that are free at first.
    pub burst: u32,
    /// Between two more.
    pub every: Duration,
}

/// For one address: it may be an office whose users all log in in the morning.
pub const BY_ADDRESS: Quota = Quota {
    burst: 20,
    every: Duration::from_secs(6),
};
/// Of one account: a person who tries the passwords that it might have been. 2,880 guesses a day find nothing that is
/// twelve characters long.
pub const BY_ACCOUNT: Quota = Quota {
    burst: 5,
    every: Duration::from_secs(30),
};
/// Keys of one limiter: bounds its memory to about a megabyte.
const MAX_KEYS: usize = 10_000;
/// Pairs of account and address that are counted apart.
const MAX_KNOWN: usize = 1_000;
/// Longest account name that is distinguished: no user name is longer.
const MAX_ACCOUNT_CHARS: usize = 64;

/// Counts attempts by key: the generic cell rate algorithm, which keeps one time for each.
#[derive(Debug)]
pub struct Limiter<K> {
    quota: Quota,
    max_keys: usize,
    /// When the key's attempts are all free again.
    due: HashMap<K, Instant>,
}

impl<K: Hash + Eq + Clone> Limiter<K> {
    /// Keeps at most `max_keys` keys.
    pub fn new(quota: Quota, max_keys: usize) -> Self {
        Self {
            quota,
            max_keys: max_keys.max(1),
            due: HashMap::new(),
        }
    }

    /// Whether an attempt is allowed at `now`; `Err` says how long until one is.
    ///
    /// # Errors
    /// When the key's attempts are used up.
    pub fn check(&self, key: &K, now: Instant) -> Result<(), Duration> {
        let used = self
            .due
            .get(key)
            .map_or(Duration::ZERO, |due| due.saturating_duration_since(now));
        let room = self.quota.every * self.quota.burst.saturating_sub(1);
        match used.checked_sub(room) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// Counts an attempt that [`Self::check`] allowed.
    pub fn count(&mut self, key: &K, now: Instant) {
        if !self.due.contains_key(key) && self.due.len() >= self.max_keys {
            self.make_room(now);
        }
        let due = self.due.entry(key.clone()).or_insert(now);
        *due = (*due).max(now) + self.quota.every;
    }

    /// Takes one counted attempt back.
    pub fn give_back(&mut self, key: &K) {
        if let Some(due) = self.due.get_mut(key)
            && let Some(earlier) = due.checked_sub(self.quota.every)
        {
            *due = earlier;
        }
    }

    /// Forgets all of a key's attempts.
    pub fn forget(&mut self, key: &K) {
        self.due.remove(key);
    }

    /// Drops the keys that are free again, else the one that soonest will be: never the one that is tried hardest.
    fn make_room(&mut self, now: Instant) {
        self.due.retain(|_, due| *due > now);
        if self.due.len() < self.max_keys {
            return;
        }
        let soonest = self.due.iter().min_by_key(|(_, due)| **due);
        if let Some(key) = soonest.map(|(key, _)| key.clone()) {
            self.due.remove(&key);
        }
    }

    /// Keys that are kept.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether no key is kept.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

/// Whose attempts are counted together: an account's from anywhere, or from one address where it is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Account {
    name: String,
    known_at: Option<IpAddr>,
}

/// Both quotas.
#[derive(Debug)]
pub struct Logins {
    addresses: Limiter<IpAddr>,
    accounts: Limiter<Account>,
    /// Who logged in from where, the latest last.
    known: VecDeque<(String, IpAddr)>,
}

impl Default for Logins {
    fn default() -> Self {
        Self {
            addresses: Limiter::new(BY_ADDRESS, MAX_KEYS),
            accounts: Limiter::new(BY_ACCOUNT, MAX_KEYS),
            known: VecDeque::new(),
        }
    }
}

impl Logins {
    /// Counts an attempt; `Err` says how long to wait. A refused attempt does not count, so that waiting helps.
    ///
    /// # Errors
    /// When one of the quotas is used up.
    pub fn attempt(
        &mut self,
        address: IpAddr,
        account: Option<&str>,
        now: Instant,
    ) -> Result<(), Duration> {
        let address = network(address);
        let account = account.map(|name| self.account(name, address));
        let by_address = self.addresses.check(&address, now);
        let by_account = account
            .as_ref()
            .map_or(Ok(()), |account| self.accounts.check(account, now));
        match (by_address, by_account) {
            (Ok(()), Ok(())) => {}
            (Err(wait), Ok(())) | (Ok(()), Err(wait)) => return Err(wait),
            (Err(one), Err(other)) => return Err(one.max(other)),
        }
        self.addresses.count(&address, now);
        if let Some(account) = account {
            self.accounts.count(&account, now);
        }
        Ok(())
    }

    /// The last attempt from here was good: it is given back, and the account is known at this address from now on.
    pub fn succeeded(&mut self, address: IpAddr, account: Option<&str>) {
        let address = network(address);
        self.addresses.give_back(&address);
        let Some(name) = account else { return };
        let account = self.account(name, address);
        match account.known_at {
            // Its own: all is forgiven. One that anybody counts on is only given back what was just taken.
            Some(_) => self.accounts.forget(&account),
            None => self.accounts.give_back(&account),
        }
        let pair = (account.name, address);
        self.known.retain(|known| *known != pair);
        if self.known.len() >= MAX_KNOWN {
            self.known.pop_front();
        }
        self.known.push_back(pair);
    }

    fn account(&self, name: &str, address: IpAddr) -> Account {
        let name: String = name.chars().take(MAX_ACCOUNT_CHARS).collect();
        let is_known = self
            .known
            .iter()
            .any(|(account, at)| *account == name && *at == address);
        Account {
            name,
            known_at: is_known.then_some(address),
        }
    }
}

/// What one client is: an IPv4 address, or a network of 64 bits of IPv6, of which a client has all.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests;
