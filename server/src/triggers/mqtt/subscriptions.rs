//! What a client wants to be sent, and what it has not confirmed yet.

use std::collections::HashSet;

use mqtt_proto::v5::SubscribeReasonCode as Code;
use mqtt_proto::{Pid, QoS, QosPid, SHARED_PREFIX};

use crate::model::topics;

/// Most filters of a client.
const FILTERS_MAX: usize = 32;
/// Most bytes of a filter: all of a client's together are 32 KiB.
const FILTER_MAX: usize = 1 << 10;
/// Most messages that a client has not confirmed.
const UNCONFIRMED_MAX: u16 = 64;

/// See the module.
pub(super) struct Subscriptions {
    filters: Vec<(String, QoS)>,
    unconfirmed: HashSet<u16>,
    most: u16,
    last: Pid,
}

impl Subscriptions {
    /// None yet, of a client that takes so many messages without confirming one.
    pub(super) fn new(receive_max: u16) -> Self {
        Self {
            filters: Vec::new(),
            unconfirmed: HashSet::new(),
            most: receive_max.clamp(1, UNCONFIRMED_MAX),
            last: Pid::default(),
        }
    }

    /// Adds filters, or says why not.
    pub(super) fn add(&mut self, filters: Vec<(String, QoS)>) -> Vec<Code> {
        let one = |(filter, qos): (String, QoS)| {
            if filter.starts_with(SHARED_PREFIX) {
                return Code::SharedSubscriptionNotSupported;
            }
            // As much as there is.
            let qos = qos.min(QoS::Level1);
            self.filters.retain(|(other, _)| *other != filter);
            if self.filters.len() >= FILTERS_MAX || filter.len() > FILTER_MAX {
                return Code::QuotaExceeded;
            }
            self.filters.push((filter, qos));
            match qos {
                QoS::Level0 => Code::GrantedQoS0,
                _ => Code::GrantedQoS1,
            }
        };
        filters.into_iter().map(one).collect()
    }

    /// Removes filters, and says which there were.
    pub(super) fn remove(&mut self, filters: &[String]) -> Vec<bool> {
        let one = |filter: &String| {
            let before = self.filters.len();
            self.filters.retain(|(other, _)| other != filter);
            self.filters.len() < before
        };
        filters.iter().map(one).collect()
    }

    /// How a message on this topic is to be sent; none if it is not, because nobody wants it or too many are unconfirmed.
    pub(super) fn take(&mut self, topic: &str) -> Option<QosPid> {
        let wanted = self.filters.iter();
        let wanted = wanted.filter(|(filter, _)| topics::fits(filter, topic));
        match wanted.map(|(_, qos)| *qos).max()? {
            QoS::Level0 => Some(QosPid::Level0),
            _ if self.unconfirmed.len() >= usize::from(self.most) => None,
            _ => {
                // There are more numbers than may be unconfirmed.
                loop {
                    self.last += 1;
                    if self.unconfirmed.insert(self.last.value()) {
                        return Some(QosPid::Level1(self.last));
                    }
                }
            }
        }
    }

    /// The client has got one.
    pub(super) fn confirmed(&mut self, id: Pid) {
        self.unconfirmed.remove(&id.value());
    }

    /// One was not sent after all.
    pub(super) fn unsent(&mut self, qos: QosPid) {
        if let QosPid::Level1(id) = qos {
            self.confirmed(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_bounded_and_shared_ones_refused() {
        let mut all = Subscriptions::new(9);
        let filter = |number: usize| (format!("a/{number}"), QoS::Level2);
        let codes = all.add((0..=FILTERS_MAX).map(filter).collect());
        assert_eq!(codes[0], Code::GrantedQoS1);
        assert_eq!(codes[FILTERS_MAX], Code::QuotaExceeded);
        assert_eq!(all.add(vec![filter(0)]), [Code::GrantedQoS1], "the same");
        assert_eq!(all.remove(&["a/1".into()]), [true]);
        let mut long = |length| all.add(vec![("a".repeat(length), QoS::Level0)]);
        assert_eq!(long(FILTER_MAX + 1), [Code::QuotaExceeded]);
        assert_eq!(long(FILTER_MAX), [Code::GrantedQoS0]);
        let shared = all.add(vec![("$share/g/a".into(), QoS::Level0)]);
        assert_eq!(shared, [Code::SharedSubscriptionNotSupported]);
        assert_eq!(all.remove(&["a/0".into(), "b".into()]), [true, false]);
        assert_eq!(all.take("a/0"), None);
    }

    #[test]
    fn unconfirmed_messages_are_bounded() {
        let mut all = Subscriptions::new(2);
        all.add(vec![
            ("a/#".into(), QoS::Level0),
            ("a/b".into(), QoS::Level1),
        ]);
        assert_eq!(all.take("a"), Some(QosPid::Level0));
        let Some(QosPid::Level1(first)) = all.take("a/b") else {
            panic!("not sent");
        };
        assert!(
            all.take("a/b")
                .is_some_and(|qos| qos != QosPid::Level1(first))
        );
        assert_eq!(all.take("a/b"), None);
        all.confirmed(first);
        assert!(all.take("a/b").is_some());
        for _ in 0..100_000 {
            let qos = all.take("a/b");
            if let Some(qos) = qos {
                all.unsent(qos);
            }
        }
    }
}
