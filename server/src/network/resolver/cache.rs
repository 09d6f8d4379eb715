//! Answers that one sandbox got, while they are valid. Each sandbox has its own: response times must not reveal what
//! others resolve.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::question::Kind;

/// Names and record types kept: a function repeats a few queries.
const ENTRIES_MAX: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub struct Cache {
    known: HashMap<(String, Kind), (Vec<IpAddr>, Instant)>,
}

impl Cache {
    /// What the name resolved to, and for how long it still does.
    pub fn get(&mut self, name: &str, kind: Kind, now: Instant) -> Option<(Vec<IpAddr>, Duration)> {
        let (addresses, until) = self.known.get(&(name.to_owned(), kind))?;
        let left = until.checked_duration_since(now)?;
        // TTLs are whole seconds, and at least one.
        (left >= Duration::from_secs(1)).then(|| (addresses.clone(), left))
    }

    /// Stores an answer.
    pub fn put(
        &mut self,
        name: &str,
        kind: Kind,
        addresses: Vec<IpAddr>,
        until: Instant,
        now: Instant,
    ) {
        if self.known.len() >= ENTRIES_MAX {
            self.known.retain(|_, (_, until)| *until > now);
        }
        if self.known.len() >= ENTRIES_MAX {
            let oldest = self.known.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.known.remove(&key);
            }
        }
        let entry = (addresses, until);
        self.known.insert((name.to_owned(), kind), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_stands_for_its_time() {
        let start = Instant::now();
        let mut cache = Cache::default();
        let addresses = vec![[192, 0, 2, 1].into()];
        cache.put(
            "a.example",
            Kind::A,
            addresses.clone(),
            start + Duration::from_secs(10),
            start,
        );
        let later = start + Duration::from_secs(4);
        let found = cache.get("a.example", Kind::A, later);
        assert_eq!(found, Some((addresses, Duration::from_secs(6))));
        assert_eq!(cache.get("a.example", Kind::Aaaa, later), None);
        assert_eq!(
            cache.get("a.example", Kind::A, start + Duration::from_millis(9500)),
            None
        );
        assert_eq!(
            cache.get("a.example", Kind::A, start + Duration::from_secs(11)),
            None
        );
        assert!(cache.get("a.example", Kind::A, start).is_some());
    }

    #[test]
    fn it_has_a_bounded_size() {
        let start = Instant::now();
        let mut cache = Cache::default();
        for number in 0..2 * ENTRIES_MAX {
            let ttl = Duration::from_secs(10 + number as u64);
            cache.put(
                &format!("n{number}"),
                Kind::A,
                Vec::new(),
                start + ttl,
                start,
            );
        }
        assert_eq!(cache.known.len(), ENTRIES_MAX);
        assert!(cache.get("n511", Kind::A, start).is_some());
    }
}
